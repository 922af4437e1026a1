"""What was shown to whom: feedback names an impression, and the items are known from it."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from samewise._typing import Array
from samewise.serve.database import Database

RECENT = 4096
"""Impressions in memory, where those are found that are not committed yet."""


@dataclass(frozen=True, eq=False)
class Impression:
    """A list that was shown.

    Attributes
    ----------
    id : str
        Its name.
    query : array of float32 of shape (d,)
    rows : list of int
        The rows of the items, in the order of their places.
    ids : list of str
        The items.
    candidate : int
        The place of the live form's candidate; −1 if there is none.
    user : str or None
    text : str or None
        What was asked; it is kept in memory only.
    """

    id: str
    query: Array
    rows: list[int]
    ids: list[str]
    candidate: int
    user: str | None
    text: str | None = None


class Impressions:
    """Impressions in the database, the newest also in memory.

    Parameters
    ----------
    database : Database
    kept : int
        How many are kept in the database; the oldest go first.
    """

    def __init__(self, database: Database, kept: int) -> None:
        self._database, self._kept = database, kept
        self._recent: OrderedDict[str, Impression] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, impression: Impression) -> None:
        """Keep it in memory, until the commit and a while longer."""
        with self._lock:
            self._recent[impression.id] = impression
            while len(self._recent) > RECENT:
                self._recent.popitem(last=False)

    def write(self, impression: Impression) -> None:
        """Write it, and remove the one that is too old; within a transaction."""
        writer = self._database.writer
        number = writer.execute(
            "INSERT INTO impressions(id, user, query, rows, ids, candidate) "
            "VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
            (
                impression.id,
                impression.user,
                impression.query.astype("<f4").tobytes(),
                np.array(impression.rows, dtype="<i8").tobytes(),
                json.dumps(impression.ids),
                impression.candidate,
            ),
        ).fetchone()[0]
        writer.execute("DELETE FROM impressions WHERE number <= ?", (number - self._kept,))

    def find(self, id: str) -> Impression | None:
        """The impression of that name; None if there is none, or no longer."""
        with self._lock:
            if id in self._recent:
                return self._recent[id]
        found = self._database.read(
            "SELECT query, rows, ids, candidate, user FROM impressions WHERE id = ?", (id,)
        )
        if not found:
            return None
        query, rows, ids, candidate, user = found[0]
        return Impression(
            id,
            np.frombuffer(query, dtype="<f4").astype(np.float32),
            np.frombuffer(rows, dtype="<i8").tolist(),
            json.loads(ids),
            candidate,
            user,
        )

    def queries(self, n: int) -> Array:
        """The newest queries, at most so many."""
        found = self._database.read(
            "SELECT query FROM impressions ORDER BY number DESC LIMIT ?", (n,)
        )
        rows = [np.frombuffer(query, dtype="<f4") for (query,) in found]
        return np.array(rows, dtype=np.float32)

    def forget(self, user: str) -> None:
        """Remove those of a user; within a transaction."""
        self._database.writer.execute("DELETE FROM impressions WHERE user = ?", (user,))
        self._drop(lambda impression: impression.user == user)

    def clear(self) -> None:
        """Remove all, since their rows have no meaning any more; within a transaction."""
        self._database.writer.execute("DELETE FROM impressions")
        self._drop(lambda impression: True)

    def _drop(self, gone: Callable[[Impression], bool]) -> None:
        with self._lock:
            for id in [id for id, impression in self._recent.items() if gone(impression)]:
                del self._recent[id]

    def needed_rows(self) -> set[int]:
        """The rows that impressions of the database name."""
        rows = self._database.read("SELECT rows FROM impressions")
        return {row for (blob,) in rows for row in np.frombuffer(blob, dtype="<i8").tolist()}
