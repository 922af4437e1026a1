"""samewise ask: a search in a running service."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from samewise.cli.console import Answer, json_line, number, say, show_table
from samewise.cli.options import (
    HERE,
    ClientToken,
    CollectionName,
    Url,
    User,
    command,
    numbers_of,
)
from samewise.exceptions import InvalidInputError
from samewise.serve import Client

_SHOWN = 60
"""Characters of a payload in the table."""


@command()
def ask(
    collection: CollectionName,
    query: Annotated[str | None, typer.Argument(help="A text.", metavar="[QUERY]")] = None,
    vector: Annotated[
        str | None, typer.Option(help='Numbers in place of a text: "0.6, 0.8".')
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many items.")] = 10,
    which: Annotated[
        Literal["served", "start", "live"], typer.Option(help="Under which form.")
    ] = "served",
    filters: Annotated[
        str | None, typer.Option(help='Of the payload, as JSON: {"year": {"lt": 2005}}.')
    ] = None,
    explore: Annotated[
        int | None, typer.Option(min=0, help="How many of the items are sampled, to teach more.")
    ] = None,
    user: User = None,
    url: Url = HERE,
    token: ClientToken = None,
) -> Answer:
    """Search a collection of a running service; samewise teach sends feedback on the answer.

    Example: samewise ask books "a fox" -k 5
    """
    if (query is None) == (vector is None):
        raise InvalidInputError("Say what to search for: either QUERY or --vector.")
    wanted: Any = query if vector is None else numbers_of(vector)
    options = {"which": which, "filters": _filters(filters), "explore": explore, "user": user}
    with Client(url, collection, token) as client:
        found = client.search(wanted, k, **options)
    return Answer(found, lambda: _show(found))


def _filters(text: str | None) -> Any:
    try:
        return {} if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"--filters is no JSON object: {error}.") from error


def _show(found: dict[str, Any]) -> None:
    rows = [
        [
            str(one["position"] + 1),
            one["id"],
            _cut(one["payload"]),
            one["why"],
            number(one["score"]),
        ]
        for one in found["results"]
    ]
    show_table(["", "id", "payload", "why", "score"], rows, n_texts=4)
    say(f"impression {found['impression']}")


def _cut(payload: dict[str, Any]) -> str:
    text = json_line(payload) if payload else ""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
