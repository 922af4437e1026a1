"""samewise teach: what a user said about an answer of samewise ask."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from samewise.cli.console import Answer, say
from samewise.cli.options import HERE, ClientToken, CollectionName, Url, User, command
from samewise.exceptions import InvalidInputError
from samewise.serve import Client

_JUDGED = {"+": "liked", "-": "disliked", "0": "not judged"}


@command()
def teach(
    collection: CollectionName,
    impression: Annotated[
        str, typer.Argument(help="Of the answer, as samewise ask shows it.", metavar="IMPRESSION")
    ],
    items: Annotated[
        list[str] | None,
        typer.Argument(help="ID=+ (liked), ID=- (not liked) or ID=0.", metavar="[ID=+|-|0]..."),
    ] = None,
    click: Annotated[
        list[str] | None, typer.Option(help="An item that was clicked; several may be given.")
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(help="Id of this event, which counts once; made up by default."),
    ] = None,
    user: User = None,
    url: Url = HERE,
    token: ClientToken = None,
) -> Answer:
    """Send feedback on an answer of a running service; it is on its disk when this returns.

    Example: samewise teach books 0123456789abcdef01234567 fox=+ sea=-
    """
    if bool(items) == bool(click):
        raise InvalidInputError(
            "Say what was good: either items as ID=+, ID=- or ID=0, or --click."
        )
    said = {"type": "click", "clicked": click} if click else _judged(items or ())
    event = uuid.uuid4().hex if event is None else event
    with Client(url, collection, token) as client:
        done = client.feedback({**said, "impression": impression, "user": user, "event": event})
    content = {"event": event, "seq": done["events"][0], "new": bool(done["new"])}

    def show() -> None:
        say(f"event {event}: {'taught' if content['new'] else 'known'} as record {content['seq']}")

    return Answer(content, show)


def _judged(items: Sequence[str]) -> dict[str, Any]:
    """A judged list; what is not judged is left out."""
    lists: dict[str, list[str]] = {kind: [] for kind in _JUDGED.values()}
    for item in items:
        id, _, answer = item.rpartition("=")
        if not id or answer not in _JUDGED:
            raise InvalidInputError(f"An item must be ID=+, ID=- or ID=0. Got {item!r}.")
        lists[_JUDGED[answer]].append(id)
    if not (lists["liked"] or lists["disliked"]):
        raise InvalidInputError("At least one item must be liked (ID=+) or not (ID=-).")
    return {"type": "judged", "liked": lists["liked"], "disliked": lists["disliked"]}
