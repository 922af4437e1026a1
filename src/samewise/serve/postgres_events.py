"""The log of a collection in PostgreSQL: one connection writes, another reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import orjson

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.serve.event_store import MOST_READ, Record, UnreachableError, vector_of

# Names are bytes, since texts of PostgreSQL have no NUL.
_SCHEMA = """
SELECT pg_advisory_xact_lock(hashtextextended('samewise', 0));
CREATE TABLE IF NOT EXISTS samewise_log(
    collection TEXT, seq BIGINT, kind TEXT NOT NULL, name BYTEA, time DOUBLE PRECISION NOT NULL,
    body TEXT NOT NULL, query BYTEA, PRIMARY KEY (collection, seq)
);
CREATE INDEX IF NOT EXISTS samewise_log_name ON samewise_log(collection, name)
    WHERE name IS NOT NULL;
CREATE INDEX IF NOT EXISTS samewise_log_kind ON samewise_log(collection, kind, seq)
    WHERE kind != 'feedback';
CREATE TABLE IF NOT EXISTS samewise_seen(
    collection TEXT, event BYTEA, seq BIGINT NOT NULL, PRIMARY KEY (collection, event)
);
"""
Rows = Iterator[tuple[Any, ...]]
PATIENCE = 10.0
"""Seconds to wait for the connection of a process that was killed to end."""


class PostgresEvents:
    """An EventStore in PostgreSQL. What is committed is on its disk, by `synchronous_commit`.

    Several collections share the tables, each under an id of its own; a lock of the database keeps
    a second service from writing to the same one.

    Parameters
    ----------
    url : str
        Such as "postgresql://user@host/database".
    collection : str
        The id of the collection.
    writes : bool, default=True
        Whether it writes, or only reads what another process writes.
    """

    def __init__(self, url: str, collection: str, writes: bool = True) -> None:
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise ImportError(
                "Events in PostgreSQL need pip install 'samewise[postgres]'."
            ) from error
        self._psycopg, self._url, self._collection = psycopg, url, collection
        self._reading = threading.Lock()
        self._reader: Any = None
        self._writer: Any = None
        self.position = 0
        if writes:
            self._open_writer()

    # Connections

    def _connect(self, autocommit: bool) -> Any:
        try:
            connection = self._psycopg.connect(
                self._url, autocommit=autocommit, connect_timeout=5, application_name="samewise"
            )
            connection.execute("SET synchronous_commit = on")
        except self._psycopg.Error as error:
            raise unreachable(error) from error
        return connection

    def _open_writer(self) -> None:
        self._writer = self._connect(autocommit=False)
        try:
            self._writer.execute(_SCHEMA)
            self._writer.commit()
            end = time.monotonic() + PATIENCE
            while not self._locked():
                if time.monotonic() > end:
                    raise InvalidInputError(
                        "Another service writes to the events of this collection; end that one."
                    )
                time.sleep(0.1)
        except self._psycopg.Error as error:
            self._writer.close()
            raise unreachable(error) from error
        except BaseException:
            self._writer.close()
            raise
        self.restart()

    def _locked(self) -> bool:
        statement = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        (found,) = self._writer.execute(statement, (self._collection,)).fetchone()
        self._writer.commit()
        return bool(found)

    def close(self) -> None:
        """Close the connections."""
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()

    def delete_all(self) -> None:
        """Remove everything of the collection."""
        with self.transaction():
            for table in ("samewise_log", "samewise_seen"):
                self._write(f"DELETE FROM {table} WHERE collection = %s", ())

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is committed together, or not at all."""
        if self._writer.closed or self._writer.broken:
            self._open_writer()
        try:
            yield
            self._writer.commit()
        except BaseException as error:
            with suppress(self._psycopg.Error):
                self._writer.rollback()
            if not self._writer.closed:
                with suppress(UnreachableError):
                    self.restart()
            if isinstance(error, self._psycopg.Error):
                raise unreachable(error) from error
            raise

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of a transaction; what raises an error inside is taken back alone."""
        self._writer.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            # If the connection is gone, so is the transaction.
            with suppress(self._psycopg.Error):
                self._writer.execute("ROLLBACK TO part")
            raise
        self._writer.execute("RELEASE part")

    def restart(self) -> None:
        """Count on from what is committed."""
        self.position = self.last() + 1

    def _write(self, statement: str, values: tuple[Any, ...]) -> Any:
        return self._writer.execute(statement, (self._collection, *values))

    def append(
        self,
        kind: str,
        body: dict[str, Any],
        query: Array | None = None,
        user: str | None = None,
        event: str | None = None,
    ) -> tuple[int, bool]:
        """Add a record; its number, and whether it is new. An id that was seen adds nothing."""
        seq = self.position
        if event is not None:
            statement = "INSERT INTO samewise_seen VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
            if not self._write(statement, (_bytes(event), seq)).rowcount:
                statement = "SELECT seq FROM samewise_seen WHERE collection = %s AND event = %s"
                return int(self._write(statement, (_bytes(event),)).fetchone()[0]), False
        blob = None if query is None else np.asarray(query, dtype="<f4").tobytes()
        values = (seq, kind, _bytes(user), time.time(), orjson.dumps(body).decode(), blob)
        self._write("INSERT INTO samewise_log VALUES (%s, %s, %s, %s, %s, %s, %s)", values)
        self.position = seq + 1
        return seq, True

    def forget(self, user: str) -> tuple[int, int]:
        """Remove the feedback of a user: the first number that goes (0 if none), and how many."""
        statement = (
            "WITH gone AS (DELETE FROM samewise_log WHERE collection = %s AND name = %s AND "
            "kind = 'feedback' RETURNING seq) SELECT min(seq), count(*) FROM gone"
        )
        first, count = self._write(statement, (_bytes(user),)).fetchone()
        return int(first or 0), int(count)

    def remove(self, seq: int) -> None:
        """Remove the feedback of a number; the event's id stays known."""
        where = "collection = %s AND seq = %s AND kind = 'feedback'"
        self._write(f"DELETE FROM samewise_log WHERE {where}", (seq,))

    def drop_before(self, seq: int) -> int:
        """Remove the records before a number; how many."""
        statement = "DELETE FROM samewise_log WHERE collection = %s AND seq < %s"
        return int(self._write(statement, (seq,)).rowcount)

    # Reading, of what is committed

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._reading:
            for again in (True, False):
                if self._reader is None or self._reader.closed:
                    self._reader = self._connect(autocommit=True)
                try:
                    found = self._reader.execute(statement, (self._collection, *values))
                    return list(found.fetchall())
                except self._psycopg.Error as error:
                    self._reader.close()
                    if not again:
                        raise unreachable(error) from error
        raise AssertionError("It was read, or an error was raised.")

    def _records(self, where: str, values: tuple[Any, ...]) -> list[Record]:
        # `where` is one of the texts of this file; what users say comes in `values`.
        rows = self._read(
            "SELECT seq, kind, body, query, name, time FROM samewise_log WHERE collection = %s "
            f"AND {where}",
            values,
        )
        return [
            Record(
                int(seq),
                kind,
                orjson.loads(body),
                vector_of(query),
                None if name is None else name.decode(),
                when,
            )
            for seq, kind, body, query, name, when in rows
        ]

    def last(self) -> int:
        """The number of the newest record that is committed; 0 if there is none."""
        ((seq,),) = self._read("SELECT max(seq) FROM samewise_log WHERE collection = %s")
        return int(seq or 0)

    def read(self, after: int, limit: int = MOST_READ) -> list[Record]:
        """The next records after a number, at most so many."""
        return self._records("seq > %s ORDER BY seq LIMIT %s", (after, min(limit, MOST_READ)))

    def newest(self, kind: str, until: int) -> Record | None:
        """The newest record of a kind that is rare, up to a number."""
        where = "kind = %s AND kind != 'feedback' AND seq <= %s ORDER BY seq DESC LIMIT 1"
        found = self._records(where, (kind, until))
        return found[0] if found else None

    def newest_of(self, user: str, after: int, until: int, limit: int) -> list[Record]:
        """The newest feedback of a user between two numbers, the oldest of it first."""
        where = "name = %s AND seq > %s AND seq <= %s ORDER BY seq DESC LIMIT %s"
        return self._records(where, (_bytes(user), after, until, limit))[::-1]

    def all_of(self, kind: str) -> list[Record]:
        """Every record of a kind that is rare."""
        return self._records("kind = %s AND kind != 'feedback' ORDER BY seq", (kind,))

    def find(self, event: str) -> Record | None:
        """The record of an event's id; None if there is none, or no longer."""
        where = "seq = (SELECT seq FROM samewise_seen WHERE collection = %s AND event = %s)"
        found = self._records(where, (self._collection, _bytes(event)))
        return found[0] if found else None


@contextmanager
def rows_at_one_moment(url: str, collection: str) -> Iterator[tuple[Rows, Rows]]:
    """The rows of the log and of the ids of events, as they are when the block is entered.

    They are those of the tables in SQLite, and the service may go on writing meanwhile.
    """
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            # The moment is that of the first statement.
            connection.execute("SELECT 1 FROM samewise_log LIMIT 1")
            yield (
                _rows(connection, "log", "seq, kind, name, time, body, query", collection),
                _rows(connection, "seen", "event, seq", collection),
            )
    except psycopg.Error as error:
        raise unreachable(error) from error


def _rows(connection: Any, table: str, columns: str, collection: str) -> Rows:
    # On the server until they are asked for: a log can be larger than memory.
    with connection.cursor(name=table) as cursor:
        cursor.execute(
            f"SELECT {columns} FROM samewise_{table} WHERE collection = %s", (collection,)
        )
        for row in cursor:
            name = 2 if table == "log" else 0
            text = None if row[name] is None else row[name].decode()
            yield (*row[:name], text, *row[name + 1 :])


def unreachable(error: Exception) -> UnreachableError:
    """An error of the database, as the service says it."""
    # Only the first line: it names what is wrong, and no password.
    about = str(error).strip().partition("\n")[0].rstrip(".")
    return UnreachableError(f"The database of events cannot be used: {about}.")


def _bytes(name: str | None) -> bytes | None:
    return None if name is None else name.encode()
