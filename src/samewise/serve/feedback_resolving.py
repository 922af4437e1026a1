"""From feedback that names impressions and items to what the log keeps: a query and rows.

A record of the log must mean the same in every replay, whatever happened to the items since. So
all that depends on the moment is decided before it is written: which rows the items are, and what a
thumb is set against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt.event_reading import ItemStore, read_event
from samewise.exceptions import InvalidInputError
from samewise.serve.event_store import Record
from samewise.serve.impressions import Impression
from samewise.serve.replaying import Vectors, as_event


class NotFoundError(InvalidInputError):
    """What was named is not there."""


@dataclass(frozen=True, eq=False)
class Said:
    """What a user said, as it was sent.

    Attributes
    ----------
    type : {"judged", "click", "ranked", "thumb", "same", "different"}
        What kind of feedback it is.
    impression : str or None
        The list it is about; or `query` or `text`, and `shown`.
    liked, disliked : list of str
        Items of a judged list; those of the list that are in neither were not judged.
    clicked : list of str
        Items that were clicked, of the kind "click".
    ranked : list of str
        Items, the best first, of the kind "ranked".
    item, up : str, bool
        The item of the other kinds, and of a thumb whether it was liked.
    against : list of str
        Items of which the opposite holds; chosen by the service if it is empty.
    candidate : str or None
        The item that is in the list because the live form chose it; known of an impression.
    """

    type: str
    event: str | None = None
    impression: str | None = None
    query: Any = None
    text: str | None = None
    shown: Sequence[str] = ()
    liked: Sequence[str] = ()
    disliked: Sequence[str] = ()
    clicked: Sequence[str] = ()
    ranked: Sequence[str] = ()
    item: str | None = None
    up: bool | None = None
    against: Sequence[str] = ()
    candidate: str | None = None
    user: str | None = None
    weight: float = 1.0


MOST_TEXT = 300
"""Characters of a query that the log keeps, for people who read it."""
_OWN = {
    "judged": {"liked", "disliked", "candidate"},
    "click": {"clicked"},
    "ranked": {"ranked"},
    "thumb": {"item", "up", "against"},
    "same": {"item", "against"},
    "different": {"item", "against"},
}
"""Which fields a kind of feedback has beside those of all kinds."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What is needed to resolve feedback.

    Attributes
    ----------
    impression : callable
        The impression of a name, or None.
    rows_of : callable
        The rows of ids.
    encode : callable
        The query vector of a `query` or a `text`.
    contrast : callable
        Rows to set a single item against: of a query, for a liked one or not.
    vectors : callable
        The vectors of rows.
    width : int
        Numbers in a vector.
    """

    impression: Callable[[str], Impression | None]
    rows_of: Callable[[Sequence[str]], Mapping[str, int]]
    encode: Callable[[Any, str | None], Array]
    contrast: Callable[[Array, bool], Sequence[int]]
    vectors: Vectors
    width: int


def resolved(said: Said, known: Surroundings) -> tuple[dict[str, Any], Array]:
    """The body of the record and the query; InvalidInputError if an adapter would refuse it."""
    _check_fields(said)
    query, text, ids, rows, candidate = _list_of(said, known)
    places = {id: place for place, id in enumerate(ids)}
    if said.type == "judged":
        body = _judged(said, rows, places, candidate)
    elif said.type == "click":
        clicked = sorted({_place(id, places) for id in said.clicked})
        body = {"type": "click", "rows": rows, "clicked": clicked}
    elif said.type == "ranked":
        if said.impression is not None:
            _check_once(said.ranked)
            rows = [rows[_place(id, places)] for id in said.ranked]
        body = {"type": "ranked", "rows": rows}
    else:
        body = _thumb(said, query, places, rows, known)
    body |= {"weight": float(said.weight), "event": said.event}
    if text:
        body["text"] = text[:MOST_TEXT]
    record = Record(0, "feedback", body, query, said.user, 0.0)
    # Checked as the adapter will check it: what is committed is never refused.
    read_event(as_event(record), ItemStore(known.vectors, known.width), no_contrast)
    return body, query


def _check_fields(said: Said) -> None:
    own = _OWN[said.type]
    for name in sorted(set().union(*_OWN.values()) - own):
        if getattr(said, name) not in (None, (), []):
            raise InvalidInputError(f"Feedback of the type {said.type!r} has no {name!r}.")
    if said.type == "thumb" and said.up is None:
        raise InvalidInputError("A thumb needs 'up': true or false.")
    if "item" in own and said.item is None:
        raise InvalidInputError(f"Feedback of the type {said.type!r} needs an 'item'.")
    if set(said.liked) & set(said.disliked):
        raise InvalidInputError("An item is either liked or disliked, not both.")
    ways = (said.impression is not None, said.query is not None, said.text is not None)
    if sum(ways) != 1:
        raise InvalidInputError("Feedback needs one of 'impression', 'query' and 'text'.")
    if said.impression is not None and (said.shown or said.candidate):
        raise InvalidInputError("An impression knows what was shown: leave out 'shown'.")


def _list_of(
    said: Said, known: Surroundings
) -> tuple[Array, str | None, list[str], list[int], int]:
    """The query and its text, ids and rows that were shown, and the place of the candidate."""
    if said.impression is not None:
        found = known.impression(said.impression)
        if found is None:
            raise NotFoundError(
                f"There is no impression {said.impression!r}, or no longer; send 'query' and "
                "'shown' instead."
            )
        return found.query, found.text, found.ids, found.rows, found.candidate
    query = known.encode(said.query, said.text)
    judged = [*said.liked, *said.disliked] if said.type == "judged" else []
    ids = list(said.shown) or [*said.ranked, *judged]
    if said.type == "ranked":
        ids = list(said.ranked)
    if said.type == "click" and not ids:
        raise InvalidInputError("Clicks need an 'impression', or 'shown': what was clicked in.")
    rows = _rows(ids, known)
    candidate = -1 if said.candidate is None else _place(said.candidate, _places(ids))
    return query, said.text, ids, rows, candidate


def _places(ids: Sequence[str]) -> dict[str, int]:
    return {id: place for place, id in enumerate(ids)}


def _check_once(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InvalidInputError(f"Each item may be named once in a list. {twice!r} is there twice.")


def _rows(ids: Sequence[str], known: Surroundings) -> list[int]:
    _check_once(ids)
    found = known.rows_of(ids)
    for id in ids:
        if id not in found:
            raise NotFoundError(f"There is no item {id!r}.")
    return [found[id] for id in ids]


def _place(id: str, places: Mapping[str, int]) -> int:
    if id not in places:
        raise InvalidInputError(f"The item {id!r} is not in the list that was shown.")
    return places[id]


def _judged(
    said: Said, rows: list[int], places: Mapping[str, int], candidate: int
) -> dict[str, Any]:
    y = [0] * len(rows)
    for ids, answer in ((said.liked, 1), (said.disliked, -1)):
        for id in ids:
            y[_place(id, places)] = answer
    return {
        "type": "judged",
        "rows": rows,
        "y": y,
        "candidate": None if candidate < 0 else candidate,
    }


def _thumb(
    said: Said, query: Array, places: Mapping[str, int], rows: list[int], known: Surroundings
) -> dict[str, Any]:
    assert said.item is not None
    up = said.up if said.type == "thumb" else said.type == "same"
    mine = rows[places[said.item]] if said.item in places else _rows([said.item], known)[0]
    if said.against:
        others = _rows(said.against, known)
        if mine in others:
            raise InvalidInputError(f"The item {said.item!r} cannot be set against itself.")
    else:
        others = [int(row) for row in known.contrast(query, bool(up)) if row != mine]
    if not others:
        raise InvalidInputError("A single item needs others to be set against; put more items.")
    return {"type": "thumb", "rows": [mine, *others], "up": bool(up)}


def no_contrast(query: Array, up: bool) -> Any:
    """Never asked for: a thumb of the log has what it was set against."""
    raise AssertionError("A thumb of the log has its contrast.")


def contrast_rows(ranked: Sequence[int], up: bool, seed: int) -> list[int]:
    """What a single item is set against: five from ranks 100 to 1000, or the best seven."""
    if not up:
        return list(ranked[:7])
    far = list(ranked[min(100, len(ranked) // 2) :])
    random = np.random.RandomState(seed)
    return [int(row) for row in random.choice(far, min(5, len(far)), replace=False)]


def as_said(record: Record, names: Mapping[int, str]) -> dict[str, Any] | None:
    """A record of feedback as it can be sent again, with items by name; None if one is gone."""
    body = record.body
    if record.query is None or not all(row in names for row in body["rows"]):
        return None
    ids = [names[row] for row in body["rows"]]
    said: dict[str, Any] = {"type": body["type"], "query": record.query.tolist()}
    match body["type"]:
        case "judged":
            said["shown"] = ids
            for name, answer in (("liked", 1), ("disliked", -1)):
                said[name] = [id for id, y in zip(ids, body["y"], strict=True) if y == answer]
            if body["candidate"] is not None:
                said["candidate"] = ids[body["candidate"]]
        case "click":
            said |= {"shown": ids, "clicked": [ids[place] for place in body["clicked"]]}
        case "ranked":
            said["ranked"] = ids
        case _:
            said |= {"item": ids[0], "up": body["up"], "against": ids[1:]}
    if record.user is not None:
        said["user"] = record.user
    if body["event"] is not None:
        said["event"] = body["event"]
    return said | {"weight": body["weight"]}
