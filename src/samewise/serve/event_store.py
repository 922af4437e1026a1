"""The log of a collection: everything that changes it, numbered in the order of the commits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import orjson

from samewise._typing import Array
from samewise.exceptions import SamewiseError
from samewise.serve.database import Database

MOST_READ = 1024
"""Records that one read returns at most."""


class UnreachableError(SamewiseError):
    """The database of events cannot be reached."""


@dataclass(frozen=True, eq=False)
class Record:
    """A committed event.

    Attributes
    ----------
    seq : int
        Its number.
    kind : str
        "start", "feedback", "promote", "rollback", "reset", "forget", "put" or "delete".
    body : dict
        What it says; plain JSON values.
    query : array of float32 of shape (d,) or None
        The query, of feedback.
    user : str or None
        Who said it.
    time : float
        When it was committed, in seconds since 1970.
    """

    seq: int
    kind: str
    body: dict[str, Any]
    query: Array | None
    user: str | None
    time: float


class EventStore(Protocol):
    """Where the log is kept. Appending and removing happen inside a transaction of the writer.

    Attributes
    ----------
    position : int
        The number that the next record gets.
    """

    position: int

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written inside is committed together, or not at all."""

    def part(self) -> AbstractContextManager[None]:
        """A part of a transaction; what raises an error inside is taken back alone."""

    def last(self) -> int:
        """The number of the newest record that is committed; 0 if there is none."""

    def append(
        self,
        kind: str,
        body: dict[str, Any],
        query: Array | None = None,
        user: str | None = None,
        event: str | None = None,
    ) -> tuple[int, bool]:
        """Add a record; its number, and whether it is new. An id that was seen adds nothing."""

    def read(self, after: int, limit: int = MOST_READ) -> list[Record]:
        """The next records after a number, at most so many."""

    def newest(self, kind: str, until: int) -> Record | None:
        """The newest record of a kind that is rare, up to a number."""

    def newest_of(self, user: str, after: int, until: int, limit: int) -> list[Record]:
        """The newest feedback of a user between two numbers, the oldest of it first."""

    def all_of(self, kind: str) -> list[Record]:
        """Every record of a kind that is rare."""

    def forget(self, user: str) -> tuple[int, int]:
        """Remove the feedback of a user: the first number that goes (0 if none), and how many."""

    def find(self, event: str) -> Record | None:
        """The record of an event's id; None if there is none, or no longer."""

    def remove(self, seq: int) -> None:
        """Remove the feedback of a number; the event's id stays known."""

    def drop_before(self, seq: int) -> int:
        """Remove the records before a number; how many."""

    def delete_all(self) -> None:
        """Remove everything of the collection, for good."""

    def close(self) -> None:
        """Close what is open."""


class SQLiteEvents:
    """An EventStore in the database of the collection.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.position = self.last() + 1

    def last(self) -> int:
        """The number of the newest record that is committed; 0 if there is none."""
        ((seq,),) = self._database.read("SELECT max(seq) FROM log")
        return int(seq or 0)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Count on from what is committed, if the transaction of the database is taken back."""
        try:
            yield
        except BaseException:
            self.restart()
            raise

    @contextmanager
    def part(self) -> Iterator[None]:
        """The parts of the database are those of the log."""
        yield

    def restart(self) -> None:
        """Count on from what is committed."""
        self.position = self.last() + 1

    def delete_all(self) -> None:
        """It goes with the files of the collection."""

    def close(self) -> None:
        """The database closes itself."""

    def append(
        self,
        kind: str,
        body: dict[str, Any],
        query: Array | None = None,
        user: str | None = None,
        event: str | None = None,
    ) -> tuple[int, bool]:
        """Add a record; its number, and whether it is new. An id that was seen adds nothing."""
        writer, seq = self._database.writer, self.position
        if event is not None:
            added = writer.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (event, seq))
            if not added.rowcount:
                found = writer.execute("SELECT seq FROM seen WHERE event = ?", (event,))
                return int(found.fetchone()[0]), False
        blob = None if query is None else np.asarray(query, dtype="<f4").tobytes()
        row = (seq, kind, user, time.time(), orjson.dumps(body).decode(), blob)
        writer.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", row)
        self.position = seq + 1
        return seq, True

    def read(self, after: int, limit: int = MOST_READ) -> list[Record]:
        """The next records after a number, at most so many."""
        return self._records("seq > ? ORDER BY seq LIMIT ?", (after, min(limit, MOST_READ)))

    def newest(self, kind: str, until: int) -> Record | None:
        """The newest record of a kind that is rare, up to a number."""
        # As the index has it: without the second condition all feedback would be looked at.
        where = "kind = ? AND kind != 'feedback' AND seq <= ? ORDER BY seq DESC LIMIT 1"
        found = self._records(where, (kind, until))
        return found[0] if found else None

    def newest_of(self, user: str, after: int, until: int, limit: int) -> list[Record]:
        """The newest feedback of a user between two numbers, the oldest of it first."""
        where = "user = ? AND seq > ? AND seq <= ? ORDER BY seq DESC LIMIT ?"
        return self._records(where, (user, after, until, limit))[::-1]

    def all_of(self, kind: str) -> list[Record]:
        """Every record of a kind that is rare."""
        return self._records("kind = ? AND kind != 'feedback' ORDER BY seq", (kind,))

    def _records(self, where: str, values: tuple[Any, ...]) -> list[Record]:
        # `where` is one of the texts of this file; what users say comes in `values`.
        rows = self._database.read(
            f"SELECT seq, kind, body, query, user, time FROM log WHERE {where}", values
        )
        return [
            Record(seq, kind, orjson.loads(body), vector_of(query), user, when)
            for seq, kind, body, query, user, when in rows
        ]

    def forget(self, user: str) -> tuple[int, int]:
        """Remove the feedback of a user: the first number that goes (0 if none), and how many."""
        writer = self._database.writer
        where = "WHERE user = ? AND kind = 'feedback'"
        first, count = writer.execute(
            f"SELECT min(seq), count(*) FROM log {where}", (user,)
        ).fetchone()
        writer.execute(f"DELETE FROM log {where}", (user,))
        return int(first or 0), int(count)

    def find(self, event: str) -> Record | None:
        """The record of an event's id; None if there is none, or no longer."""
        found = self._records("seq = (SELECT seq FROM seen WHERE event = ?)", (event,))
        return found[0] if found else None

    def remove(self, seq: int) -> None:
        """Remove the feedback of a number; the event's id stays known."""
        writer = self._database.writer
        writer.execute("DELETE FROM log WHERE seq = ? AND kind = 'feedback'", (seq,))

    def drop_before(self, seq: int) -> int:
        """Remove the records before a number; how many."""
        return self._database.writer.execute("DELETE FROM log WHERE seq < ?", (seq,)).rowcount


def vector_of(blob: bytes | None) -> Array | None:
    """The query that was kept as bytes."""
    return None if blob is None else np.frombuffer(blob, dtype="<f4").astype(np.float32)
