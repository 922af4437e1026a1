"""What a collection keeps on the disk, and the one thread that writes it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.serve.database import Database
from samewise.serve.event_store import EventStore, SQLiteEvents
from samewise.serve.group_commit import BusyError, GroupCommit
from samewise.serve.impressions import Impression, Impressions
from samewise.serve.item_search import ItemSnapshot
from samewise.serve.item_table import ItemTable
from samewise.serve.model_files import ModelFiles
from samewise.serve.vector_segments import SEGMENT_BYTES, Maps, VectorSegments

IMPRESSIONS_KEPT = 100_000


@dataclass(frozen=True)
class Settings:
    """How a collection works; fixed when it is made.

    Attributes
    ----------
    encoder : {"given", "text", "callable"}
        Where vectors come from: the client; the built-in encoder of texts; a function that the
        service was started with.
    text_field : str
        The field of a payload that is encoded.
    guard, margin, memory, half_life
        Parameters of the `LiveAdapter`.
    index_from : int or None
        From how many items on they are searched by a graph; None for never.
    personal : int
        How many of a user's newest lists count for this user alone, on top of what all have taught.
    """

    encoder: str = "given"
    text_field: str = "text"
    guard: float | None = 0.05
    margin: float = 0.3
    memory: int = 20_000
    half_life: float | None = None
    index_from: int | None = 200_000
    personal: int = 0


@dataclass(frozen=True, eq=False)
class NewItem:
    """An item to put."""

    id: str
    payload: dict[str, Any]


def is_collection(folder: Path) -> bool:
    """Whether a folder holds a collection that was made to its end."""
    if not (folder / "collection.sqlite").is_file():
        return False
    database = Database(folder / "collection.sqlite")
    try:
        return database.setting("settings") is not None
    finally:
        database.close()


def events_of(database: Database, url: str | None, writes: bool = True) -> EventStore:
    """The log of a collection, where it was when the collection was made."""
    id = database.setting("events")
    if id is None:
        return SQLiteEvents(database)
    if url is None:
        raise InvalidInputError(
            f"The events of {database.path.parent} are in PostgreSQL; give --events postgresql://…."
        )
    from samewise.serve.postgres_events import PostgresEvents

    return PostgresEvents(url, id, writes)


class CollectionStores:
    """The files of a collection.

    Parameters
    ----------
    folder : Path
        Where they are.
    settings : Settings, default=None
        Of a new collection.
    segment_bytes : int, default=SEGMENT_BYTES
        The size of a segment of vectors, of a new collection.
    url : str, default=None
        Of a PostgreSQL database, for the log of a new collection; that of an old one stays where it
        is.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        url: str | None = None,
    ) -> None:
        for each in (folder, folder / "models", folder / "vectors"):
            each.mkdir(exist_ok=True)
        self.folder = folder
        self.database = Database(folder / "collection.sqlite")
        if settings is not None and self.database.setting("settings") is None:
            with self.database.transaction():
                self.database.set("segment_bytes", str(segment_bytes))
                if url is not None:
                    self.database.set("events", secrets.token_hex(16))
                self.database.set("settings", json.dumps(asdict(settings)))
        self.settings = Settings(**json.loads(self.database.setting("settings") or "{}"))
        self._unsettled = True
        try:
            self.events = events_of(self.database, url)
        except BaseException:
            self.database.close()
            raise
        self.items = ItemTable(self.database)
        self.impressions = Impressions(self.database, IMPRESSIONS_KEPT)
        self.models = ModelFiles(folder / "models")
        self.segments: VectorSegments | None = None
        width = self.database.setting("width")
        if width is not None:
            self._open_segments(int(width))
        with self.events.transaction(), self.database.transaction():
            self._settle()
        self.models.drop_unsound(self.events.last(), self.events.all_of("forget"))
        self.models.drop_unnamed(self.events.all_of("start"))
        self._alive = self.items.alive(0 if self.segments is None else self.segments.n_rows)
        self._died: list[int] = []
        self._dropped: list[int] = []
        self.snapshot = self._published()
        self.commits = GroupCommit(self._transaction, self._part, self._after)
        self.on_commit: Any = lambda seq: None

    @property
    def width(self) -> int | None:
        """Numbers in a vector; None before the first."""
        return None if self.segments is None else self.segments.width

    def _open_segments(self, width: int) -> None:
        size = int(self.database.setting("segment_bytes") or SEGMENT_BYTES)
        self.segments = VectorSegments(self.folder / "vectors", width, self.items.blocks(), size)

    def vectors(self, rows: Any) -> Array:
        """The vectors of rows."""
        return self.snapshot.maps.rows(rows)

    def keep(self, impression: Impression) -> None:
        """Keep it in memory at once; the next commit writes it, and nobody waits for that."""
        self.impressions.remember(impression)
        try:
            self.commits.submit(lambda: self.impressions.write(impression))
        except BusyError:
            # It stays in memory; a search is answered also where nothing can be written.
            pass

    def close(self) -> None:
        """Commit what is waiting, and close the files."""
        self.commits.close()
        if self.segments is not None:
            self.segments.close()
        self.events.close()
        self.database.close()

    # The writer's thread

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        before, n_rows = self._rows_before()
        self._died, self._dropped = [], []
        with self.events.transaction():
            try:
                with self.database.transaction():
                    if self._unsettled:
                        self._settle()
                    yield
                    if self.segments is not None:
                        self.segments.sync()
            except BaseException:
                self._take_back(before, n_rows)
                raise
            # What records of the log name is committed before them, wherever the log is.
            self._publish()
            self._unsettled = True
        self._unsettled = False

    def _settle(self) -> None:
        """Add the newest start to the log, if only the database here has it.

        The commit of a log elsewhere can fail after that of the database, whose items may have the
        vectors of a new start by then.
        """
        noted = self.database.setting("start")
        newest = self.events.newest("start", self.events.last())
        if noted is not None and (newest is None or newest.body != json.loads(noted)):
            self.events.append("start", json.loads(noted))
        self._unsettled = False

    def note_start(self, body: dict[str, Any]) -> int:
        """Add the record of a start; its number."""
        self.database.set("start", json.dumps(body))
        return self.events.append("start", body)[0]

    @contextmanager
    def _part(self) -> Iterator[None]:
        before, n_rows = self._rows_before()
        seq, n_died = self.events.position, len(self._died)
        try:
            # The log's part ends first: where its database is gone, that fails, and the part of the
            # database here is still to be taken back.
            with self.database.part(), self.events.part():
                yield
        except BaseException:
            self.events.position = seq
            del self._died[n_died:]
            self._take_back(before, n_rows)
            raise

    def _rows_before(self) -> tuple[VectorSegments | None, int]:
        return self.segments, 0 if self.segments is None else self.segments.n_rows

    def _take_back(self, before: VectorSegments | None, n_rows: int) -> None:
        if before is None and self.segments is not None:
            self.segments.close()
        self.segments = before
        if before is not None:
            before.take_back(n_rows)

    def _after(self) -> None:
        """The records of a group are committed."""
        self.on_commit(self.events.position - 1)

    def _publish(self) -> None:
        """Show the items of a commit to readers."""
        if self.segments is not None and (
            self._died or self._dropped or self.segments.n_rows != self.snapshot.maps.n_rows
        ):
            self.segments.committed()
            self.segments.remove(self._dropped)
            n_old = len(self._alive)
            alive = np.ones(self.segments.n_rows, dtype=bool)
            alive[:n_old] = self._alive
            alive[self._died] = False
            self._alive = alive
            self.snapshot = self._published()

    def _published(self) -> ItemSnapshot:
        if self.segments is None:
            return ItemSnapshot(Maps((), 0, 0), self._alive, 0)
        return ItemSnapshot(self.segments.maps(), self._alive, int(self._alive.sum()))

    # Jobs, to be run by the writer

    def put(self, items: Sequence[NewItem], vectors: Array | None) -> int:
        """Add or replace items; the number of the record."""
        first = None
        if vectors is not None:
            first = self.add_vectors(vectors)
        seq, _ = self.events.append("put", {"count": len(items)})
        for i, item in enumerate(items):
            row = None if first is None else first + i
            died = self.items.put(item.id, json.dumps(item.payload), row, seq)
            if died is not None:
                self._died.append(died)
        return seq

    def add_vectors(self, vectors: Array) -> int:
        """Append vectors; the row of the first."""
        if self.segments is None:
            self.database.set("width", str(vectors.shape[1]))
            self._open_segments(vectors.shape[1])
        assert self.segments is not None
        if vectors.shape[1] != self.segments.width:
            raise InvalidInputError(
                f"Vectors of this collection have {self.segments.width} numbers. Got "
                f"{vectors.shape[1]}."
            )
        first = self.segments.n_rows
        self.items.add_blocks(self.segments.append(vectors))
        return first

    def delete(self, ids: Sequence[str]) -> tuple[int, int]:
        """Bury items: how many there were, and the number of the record."""
        seq, _ = self.events.append("delete", {"count": len(ids)})
        n_found = 0
        for id in ids:
            found = self.items.delete(id, seq)
            n_found += len(found)
            self._died += [row for row in found if row is not None]
        return n_found, seq

    def move(self, keys: Sequence[int], vectors: Array) -> None:
        """Give items new vectors; what named the old rows is of no use any more."""
        self._died += range(0 if self.segments is None else self.segments.n_rows)
        self.items.move(keys, self.add_vectors(vectors))
        self.impressions.clear()

    def drop_segments(self, segments: Sequence[int]) -> None:
        """Delete segments after the commit; their blocks are no longer named."""
        self._dropped += segments
