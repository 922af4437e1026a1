"""The events an adapter has heard: which ids were seen, and all that a replay needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.files.container import parse
from samewise.files.state import Saved, State


class Heard(NamedTuple):
    """An event as it was learned from; `shown` is an array of vectors or a list of ids."""

    event: str | int | None
    user: str | int | None
    query: Array
    shown: Any
    grades: NDArray[np.int64]
    weight: float
    tested: bool
    lead: float
    candidate: int
    two_kinds: bool

    @property
    def by_ids(self) -> bool:
        """Whether items are named by ids."""
        return isinstance(self.shown, list)


class EventLog:
    """Events in their order.

    Parameters
    ----------
    whole : bool
        Whether events are kept, or only their ids.
    """

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.seen: dict[str | int, None] = {}
        self._events: list[Heard] = []

    def __iter__(self) -> Iterator[Heard]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, heard: Heard) -> None:
        """Keep an event."""
        if heard.event is not None:
            self.seen[heard.event] = None
        if self.whole:
            self._events.append(heard)

    def state(self) -> State:
        """Vectors one after the other; what is no number as JSON."""
        told = [
            [
                e.event,
                e.user,
                len(e.grades),
                e.weight,
                e.tested,
                e.lead,
                e.candidate,
                e.shown if e.by_ids else None,
            ]
            for e in self._events
        ]
        state = State(values={"whole": self.whole})
        state.arrays["seen"] = _as_bytes(list(self.seen))
        state.arrays["events"] = _as_bytes(told)
        if self._events:
            state.arrays["queries"] = np.stack([e.query for e in self._events])
            state.arrays["grades"] = np.concatenate([e.grades for e in self._events])
            vectors = [e.shown for e in self._events if not e.by_ids]
            if vectors:
                state.arrays["shown"] = np.concatenate(vectors)
        return state

    @classmethod
    def restore(cls, saved: Saved, d: int) -> Self:
        """The log of that state."""
        log = cls(saved.flag("whole"))
        seen, told = _listed(saved, "seen"), _listed(saved, "events")
        saved.check(all(type(event) in (str, int) for event in seen), "seen must be ids of events")
        log.seen = dict.fromkeys(seen)
        if not told:
            return log
        saved.check(all(_right(fields) for fields in told), "events must be what was heard")
        sizes = [fields[2] for fields in told]
        by_vectors = [n for n, fields in zip(sizes, told, strict=True) if fields[7] is None]
        queries = saved.array("queries", len(told), d, dtypes=["float32"])
        grades = saved.array("grades", sum(sizes), dtypes=["int64"])
        empty = np.empty((0, d), dtype=np.float32)
        rows = saved.array("shown", sum(by_vectors), d, dtypes=["float32"]) if by_vectors else empty
        parts = np.split(grades, np.cumsum(sizes)[:-1])
        shown = iter(np.split(rows, np.cumsum(by_vectors)[:-1]) if by_vectors else ())
        for fields, query, mine in zip(told, queries, parts, strict=True):
            event, user, _, weight, tested, lead, candidate, ids = fields
            items = next(shown) if ids is None else ids
            log._events.append(
                Heard(
                    event,
                    user,
                    query,
                    items,
                    mine,
                    float(weight),
                    tested,
                    float(lead),
                    candidate,
                    len(set(mine[mine != 0].tolist())) > 1,
                )
            )
        return log


def _right(fields: Any) -> bool:
    """Whether these are the fields of an event."""
    if not isinstance(fields, list) or len(fields) != 8:
        return False
    names = all(name is None or type(name) in (str, int) for name in fields[:2])
    _, _, n, weight, tested, lead, candidate, ids = fields
    sizes = type(n) is int and n >= 1 and type(weight) in (int, float) and weight >= 0
    kinds = type(tested) is bool and lead in (-1, 0, 1)
    kinds = kinds and sizes and type(candidate) is int and -1 <= candidate < n
    return names and sizes and kinds and (ids is None or (isinstance(ids, list) and len(ids) == n))


def _as_bytes(values: list[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)


def _listed(saved: Saved, name: str) -> list[Any]:
    values = parse(saved.array(name, None, dtypes=["uint8"]).tobytes())
    saved.check(isinstance(values, list), f"{name} must be a list")
    assert isinstance(values, list)
    return values
