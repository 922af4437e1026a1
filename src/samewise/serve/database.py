"""The SQLite database of a collection: one connection writes, each reading thread has its own."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from samewise.exceptions import FileFormatError
from samewise.serve.group_commit import BusyError

VERSION = 1
_SCHEMA = """
CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log(
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, user TEXT, time REAL NOT NULL,
    body TEXT NOT NULL, query BLOB
);
CREATE INDEX log_user ON log(user) WHERE user IS NOT NULL;
CREATE INDEX log_kind ON log(kind, seq) WHERE kind != 'feedback';
CREATE TABLE seen(event TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE items(
    key INTEGER PRIMARY KEY, id TEXT NOT NULL, payload TEXT NOT NULL, row INTEGER, dead INTEGER
);
CREATE UNIQUE INDEX items_alive ON items(id) WHERE dead IS NULL;
CREATE INDEX items_dead ON items(dead) WHERE dead IS NOT NULL;
CREATE UNIQUE INDEX items_row ON items(row) WHERE row IS NOT NULL;
CREATE TABLE blocks(first INTEGER PRIMARY KEY, count INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE impressions(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user TEXT, query BLOB NOT NULL,
    rows BLOB NOT NULL, ids TEXT NOT NULL, candidate INTEGER NOT NULL
);
CREATE INDEX impressions_user ON impressions(user) WHERE user IS NOT NULL;
"""


class Database:
    """A database file in WAL mode; a commit is on the disk when it returns.

    Parameters
    ----------
    path : Path
        The file; it is made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._opening = threading.Lock()
        self._closed = False
        self._prepare()

    def _prepare(self) -> None:
        try:
            self.writer = self._connect()
            # What is deleted is overwritten: a person who is forgotten leaves no bytes behind.
            self.writer.execute("PRAGMA secure_delete=ON")
            self.writer.execute("PRAGMA journal_mode=WAL")
            version = self._version() or self._made()
        except sqlite3.DatabaseError as error:
            self.close()
            raise FileFormatError(
                f"{self.path} is not a database of samewise, or is damaged: {error}."
            ) from error
        if version > VERSION:
            self.close()
            raise FileFormatError(f"{self.path} was written by a newer version; upgrade samewise.")

    def _version(self) -> int:
        ((version,),) = self.writer.execute("PRAGMA user_version")
        return int(version)

    def _made(self) -> int:
        """Make the tables, if no other process does so at the same time; the version."""
        with self.transaction():
            if not self._version():
                for statement in f"{_SCHEMA} PRAGMA user_version={VERSION}".split(";"):
                    self.writer.execute(statement)
        return self._version()

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            # Another collection may have its name by now.
            raise BusyError("The collection is being closed; try again later.")
        # The writing connection is used by one thread at a time; closing is done by another.
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=30.0
        )
        with self._opening:
            self._open.append(connection)
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def read(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query, on the connection of this thread; it sees what is committed."""
        connection = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = self._local.connection = self._connect()
                connection.execute("PRAGMA query_only=ON")
            return connection.execute(statement, values).fetchall()
        except sqlite3.ProgrammingError as error:
            if not self._closed:
                raise
            raise BusyError("The collection is being closed; try again later.") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is committed together, or not at all."""
        self.writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.writer.execute("COMMIT")
        except BaseException:
            if self.writer.in_transaction:
                self.writer.execute("ROLLBACK")
            raise

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of a transaction; what raises an error inside is taken back alone."""
        self.writer.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self.writer.execute("ROLLBACK TO part")
            self.writer.execute("RELEASE part")
            raise
        self.writer.execute("RELEASE part")

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database and empty it, if no reader is in the way."""
        # On a connection of its own: the writing one may be amid a transaction.
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=5.0)
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()

    def problems(self) -> list[str]:
        """What SQLite finds damaged."""
        found = [str(text) for (text,) in self.read("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def setting(self, name: str) -> str | None:
        """A setting of the collection."""
        found = self.read("SELECT value FROM settings WHERE name = ?", (name,))
        return str(found[0][0]) if found else None

    def set(self, name: str, value: str) -> None:
        """Change a setting; within a transaction."""
        self.writer.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        with self._opening:
            for connection in self._open:
                connection.close()
            self._open.clear()
