"""Who taught what, and which queries are hard: read from the log, for people."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from samewise.serve.collection import Collection
from samewise.serve.event_store import Record
from samewise.serve.item_views import title_of, titles

NEWEST = 20_000
"""Records that are read of a log that was not followed before."""
MOST_TEACHERS = 200
MOST_HARD = 30
_TITLES = 4
_KINDS = {"thumb": "thumbs", "click": "clicks", "judged": "judged lists", "ranked": "ranked lists"}


@dataclass(eq=False)
class _Followed:
    """Counts of a log up to a record."""

    after: int
    since: int
    users: dict[str | None, Counter[str]] = field(default_factory=dict)
    times: dict[str | None, tuple[float, float]] = field(default_factory=dict)
    who: OrderedDict[int, str | None] = field(default_factory=OrderedDict)

    def take(self, record: Record) -> None:
        if record.kind == "feedback":
            user = record.user
            self.users.setdefault(user, Counter())[_KINDS[record.body["type"]]] += 1
            first, _ = self.times.get(user, (record.time, 0.0))
            self.times[user] = first, record.time
            self.who[record.seq] = user
            if len(self.who) > NEWEST:
                self.who.popitem(last=False)


class Teachers:
    """Who taught what, in the collections of a service; each log is read once."""

    def __init__(self) -> None:
        self._followed: WeakKeyDictionary[Collection, _Followed] = WeakKeyDictionary()
        self._turn = threading.Lock()

    def table(self, collection: Collection) -> dict[str, Any]:
        """Users with how much they taught, and how far the start agrees with them.

        The agreement is 2 AUC − 1 of the start in the mean over their newest judged lists; 0 is
        chance.
        """
        with self._turn:
            followed = self._follow(collection)
            recent = _measured(collection)
            agreement: dict[str | None, list[float]] = {}
            for seq, start, _, _ in recent:
                if seq in followed.who:
                    agreement.setdefault(followed.who[seq], []).append(2 * start - 1)
            users = sorted(followed.users.items(), key=lambda one: -one[1].total())
            rows = [
                {
                    "user": user,
                    "events": counts.total(),
                    "kinds": dict(counts),
                    "first": followed.times[user][0],
                    "last": followed.times[user][1],
                    "agreement": float(np.mean(agreement[user])) if user in agreement else None,
                }
                for user, counts in users[:MOST_TEACHERS]
            ]
            return {"since": followed.since, "users": rows, "more": len(users) - len(rows)}

    def _follow(self, collection: Collection) -> _Followed:
        events = collection.stores.events
        followed = self._followed.get(collection)
        if followed is None:
            followed = _started(collection)
        while records := events.read(followed.after):
            if any(record.kind in ("forget", "start") for record in records):
                # What was counted may not be there any more.
                last, followed = records[-1].seq, _started(collection)
                while followed.after < last and (again := events.read(followed.after)):
                    _take(followed, again)
            else:
                _take(followed, records)
        self._followed[collection] = followed
        return followed


def _started(collection: Collection) -> _Followed:
    after = max(collection.stores.events.last() - NEWEST, 0)
    return _Followed(after, after + 1)


def _take(followed: _Followed, records: list[Record]) -> None:
    for record in records:
        followed.take(record)
    followed.after = records[-1].seq


def _measured(collection: Collection) -> list[tuple[int, float, float, float]]:
    """Record, and AUC under start, served and live, of the newest judged lists."""
    with collection.learning.turns.reading():
        recent = collection.learning.curve.recent()
    return [(int(seq), float(a), float(b), float(c)) for seq, a, b, c in recent]


def hard_queries(collection: Collection) -> list[dict[str, Any]]:
    """The newest judged lists in which what was served agreed least with the user."""
    order = sorted(_measured(collection), key=lambda one: (one[2], -one[0]))
    found: list[tuple[dict[str, Any], Record]] = []
    for seq, start, served, live in order[:MOST_HARD]:
        if served >= 0.5:
            break
        records = collection.stores.events.read(seq - 1, 1)
        if not records or records[0].seq != seq or records[0].kind != "feedback":
            continue
        record = records[0]
        auc = {"start": start, "served": served, "live": live}
        found.append(({"seq": seq, "auc": auc, "user": record.user, "time": record.time}, record))
    asked = _asked(collection, [record for _, record in found])
    return [
        {**head, "asked": text, **_said(collection, record)}
        for (head, record), text in zip(found, asked, strict=True)
    ]


def _asked(collection: Collection, records: list[Record]) -> list[str]:
    """The texts of queries; of one that was a vector, the item that the start finds for it."""
    asked = [record.body.get("text") for record in records]
    places = [place for place, text in enumerate(asked) if text is None]
    queries = [query for place in places if (query := records[place].query) is not None]
    if queries:
        rows = collection.searching.nearest(np.stack(queries))
        named = collection.stores.items.of_rows(rows.tolist())
        field = collection.settings.text_field
        for place, row in zip(places, rows.tolist(), strict=True):
            near = named.get(row)
            asked[place] = "" if near is None else f"like: {title_of(near[0], near[1], field)}"
    return [str(text) for text in asked]


def _said(collection: Collection, record: Record) -> dict[str, Any]:
    """What was liked and not."""
    rows = np.array(record.body["rows"])
    y = np.array(record.body.get("y") or np.arange(len(rows), 0, -1) * 2 - len(rows) - 1)
    return {
        "liked": [title for _, title, _ in titles(collection, rows[y > 0][:_TITLES])],
        "disliked": [title for _, title, _ in titles(collection, rows[y < 0][:_TITLES])],
    }
