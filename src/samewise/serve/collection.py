"""A collection: items, one adapter that learns, and what users and operators do with them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from samewise._typing import Array, Indices
from samewise.adapt import LiveAdapter
from samewise.adapt.event_log import EventLog
from samewise.adapt.item_units import checked_items
from samewise.exceptions import InvalidInputError
from samewise.serve.collection_stores import CollectionStores, NewItem, Settings
from samewise.serve.compaction import compact
from samewise.serve.event_store import Record
from samewise.serve.feedback_resolving import (
    Said,
    Surroundings,
    as_said,
    contrast_rows,
    resolved,
)
from samewise.serve.group_commit import BusyError
from samewise.serve.item_graph import GraphKeeper
from samewise.serve.learning import SNAPSHOT_EVERY, Learning, StoppedError
from samewise.serve.searched_collection import Encode, NotReadyError, SearchedCollection
from samewise.serve.searching import Searching
from samewise.serve.text_encoder import WIDTH, TextEncoder

MOST_LAG = 200_000
"""Committed events that may wait to be learned from; beyond this, feedback is refused."""
FITTED = 20_000
"""Items of which the adapter takes its units; a sample where there are more."""
PATIENCE = 30.0
"""Seconds to wait for the learner, for what must be answered after it has followed."""


@dataclass(frozen=True)
class Acknowledged:
    """A committed event: its number, and whether it is new."""

    seq: int
    new: bool


class Collection(SearchedCollection):
    """A collection that is open. All methods may be called by many threads.

    Parameters
    ----------
    folder : Path
        Its files.
    settings : Settings, default=None
        Of a new collection; those of an old one are in its files.
    encode : callable, default=None
        Vectors of texts, for a collection with ``encoder="callable"``.
    snapshot_every : int, default=SNAPSHOT_EVERY
        Lessons between snapshots of the model.
    url : str, default=None
        Of a PostgreSQL database for the log of a new collection.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings | None = None,
        encode: Encode | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        url: str | None = None,
    ) -> None:
        self.stores = CollectionStores(folder, settings, url=url)
        self._encode = encode
        self._encoder = self._newest_encoder()
        stores = self.stores
        self.learning = Learning(stores.events, stores.models, stores.vectors, snapshot_every)
        stores.on_commit = self.learning.committed
        self.graphs = GraphKeeper(
            folder / "graph",
            lambda: stores.snapshot,
            stores.impressions.queries,
            self.settings.index_from,
        )
        self.searching = Searching(stores, self.learning, self.graphs)

    def close(self) -> None:
        """Commit what is waiting, write a snapshot, and close the files."""
        self.stores.commits.close()
        self.graphs.close()
        self.learning.close()
        self.stores.close()

    # Items

    def put(self, items: Sequence[NewItem], vectors: Any = None) -> int:
        """Add or replace items; the number of the commit."""
        if len({item.id for item in items}) < len(items):
            raise InvalidInputError("Each item may be put once in a batch.")
        if self.settings.encoder == "given":
            if vectors is None:
                raise InvalidInputError("Items of this collection need vectors.")
            rows = checked_items(vectors, self.stores.width, "vectors").astype(np.float32)
            return int(self.stores.commits.do(lambda: self.stores.put(items, rows)))
        if vectors is not None:
            raise InvalidInputError("Vectors of this collection are made of texts: leave them out.")
        texts = [self._text(item.id, item.payload) for item in items]

        def work() -> int:
            # Encoded by the writer: a new start may replace the encoder between two commits.
            return self.stores.put(items, self._vectors_of(texts))

        return int(self.stores.commits.do(work))

    def _text(self, id: str, payload: dict[str, Any]) -> str:
        field = self.settings.text_field
        text = payload.get(field)
        if not isinstance(text, str):
            raise InvalidInputError(f"The payload of {id!r} needs a text in the field {field!r}.")
        return text

    def delete(self, ids: Sequence[str]) -> tuple[int, int]:
        """Remove items: how many there were, and the number of the commit."""
        n_found, seq = self.stores.commits.do(lambda: self.stores.delete(ids))
        return int(n_found), int(seq)

    # The start

    def start(self, again: bool = False) -> int:
        """Fit the encoder and the adapter to the items as they are; the number of the commit.

        With `again`, what was learned is left behind.
        """

        def work() -> Any:
            newest = self.stores.events.newest("start", self.stores.events.last())
            if newest is not None and not again:
                return newest.seq
            if self.settings.encoder != "text":
                return self._begin(self._new_adapter(self._given_rows()), None)
            encoder, rows = self._new_encoder()
            return self._begin(self._new_adapter(rows), encoder)

        try:
            return self._followed(work)
        except BaseException:
            self._encoder = self._newest_encoder()
            raise

    def _new_encoder(self) -> tuple[TextEncoder, Array]:
        """The encoder of the items' texts; items get its vectors."""
        alive = self.stores.items.all_alive()
        if len(alive) < 2:
            raise NotReadyError("A collection needs at least two items before it can be searched.")
        field = self.settings.text_field
        texts = [json.loads(payload)[field] for _, payload in alive]
        encoder = TextEncoder.fit(texts, WIDTH)
        rows = encoder.encode(texts)
        self.stores.move([key for key, _ in alive], rows)
        return encoder, rows

    def _given_rows(self) -> Array:
        snapshot = self.stores.snapshot
        if snapshot.n_alive < 2:
            raise NotReadyError("A collection needs at least two items before it can be searched.")
        rows = np.flatnonzero(snapshot.alive)
        if len(rows) > FITTED:
            rows = np.random.RandomState(0).choice(rows, FITTED, replace=False)
        return snapshot.maps.rows(rows)

    def _new_adapter(self, rows: Array) -> LiveAdapter:
        settings = self.settings
        adapter = LiveAdapter(
            settings.guard,
            settings.margin,
            settings.memory,
            settings.half_life,
            log=False,
            random_state=0,
        )
        return adapter.fit(rows)

    def _begin(self, adapter: LiveAdapter, encoder: TextEncoder | None) -> int:
        """Write the files of a start, and the record that names them."""
        models = self.stores.models
        body: dict[str, Any] = {"model": models.write_named("start", adapter), "encoder": None}
        if encoder is not None:
            body["encoder"] = models.write_named("encoder", encoder)
            self._encoder = encoder
        elif self._encoder is not None:
            newest = self.stores.events.newest("start", self.stores.events.last())
            assert newest is not None
            body["encoder"] = newest.body["encoder"]
        return self.stores.note_start(body)

    def _followed(self, work: Callable[[], int]) -> int:
        """Commit a record and wait until the learner has taken it; its number."""
        seq = int(self.stores.commits.do(work))
        if not self.learning.wait(seq, PATIENCE):
            raise BusyError("It is committed, but the learner has not reached it yet.")
        return seq

    def _ensure_started(self) -> None:
        if self.learning.failed is not None:
            raise StoppedError(
                f"Learning has stopped: {self.learning.failed}. Start the service again."
            )
        if self.learning.adapter is None:
            self.start()

    # Feedback

    def feedback(self, said: Sequence[Said]) -> list[Acknowledged]:
        """Commit feedback, all of it or nothing; what was sent before changes nothing."""
        return self.submit(said).result()

    def submit(self, said: Sequence[Said]) -> Future[list[Acknowledged]]:
        """As `feedback`, for who does not wait in a thread."""
        self._ensure_started()
        if self.learning.lag > MOST_LAG:
            raise BusyError("Learning is behind; try again later.")
        known = self._surroundings()
        bodies = []
        for place, one in enumerate(said):
            try:
                bodies.append((one, *resolved(one, known)))
            except InvalidInputError as error:
                raise type(error)(f"Event {place}: {error}") from error

        def work() -> list[Acknowledged]:
            append = self.stores.events.append
            return [
                Acknowledged(*append("feedback", body, query, one.user, one.event))
                for one, body, query in bodies
            ]

        return self.stores.commits.submit(work)

    def _surroundings(self) -> Surroundings:
        stores = self.stores
        assert stores.width is not None
        return Surroundings(
            stores.impressions.find,
            stores.items.rows_of,
            self.query_vector,
            self._contrast,
            stores.vectors,
            stores.width,
        )

    def _contrast(self, query: Array, up: bool) -> Sequence[int]:
        ranked: Indices = self.searching.ranked(query, "live", 1000 if up else 8)
        return contrast_rows(ranked.tolist(), up, secrets.randbits(32))

    # What is served

    @contextmanager
    def adapter(self) -> Iterator[LiveAdapter]:
        """The adapter, in a turn of reading."""
        self._ensure_started()
        with self.learning.turns.reading():
            adapter = self.learning.adapter
            assert adapter is not None
            yield adapter

    def decide(self, kind: str, version: int | None = None) -> tuple[int, int | None]:
        """Promote, roll back or reset: the number of the record, and the version served now."""
        self._ensure_started()
        body = {"version": version} if kind == "promote" else {}
        holder: list[Any] = []

        def work() -> int:
            seq, _ = self.stores.events.append(kind, body)
            holder.append(self.learning.awaited(seq))
            return seq

        seq = int(self.stores.commits.do(work))
        try:
            return seq, holder[0].result(PATIENCE)
        except TimeoutError as error:
            raise BusyError("It is committed, but the learner has not reached it yet.") from error

    def forget(self, user: str) -> tuple[int, int]:
        """Remove what a user said and was shown, and build the model again without it.

        Returns how many events there were, and the number of the record.
        """

        def remove() -> tuple[int, int]:
            self.stores.impressions.forget(user)
            return self.stores.events.forget(user)

        return self.removed(remove)

    def removed(self, remove: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Remove feedback and build the model again without it; how much, and the new record.

        `remove` runs in the writer's thread and returns the first number that goes (0 if none), and
        how many.
        """
        counted: list[int] = []

        def work() -> int:
            first, count = remove()
            counted.append(count)
            # The record says where the model changes, not who was forgotten.
            return self.stores.events.append("forget", {"first": first, "count": count})[0]

        seq = self._followed(work)
        self.stores.database.checkpoint()
        return counted[-1], seq

    # The adapter and the log, in and out

    def export_adapter(self, path: Path) -> None:
        """Write the adapter to a file that `samewise.load` reads."""
        with self.adapter() as adapter:
            adapter.save(path)

    def import_adapter(self, adapter: Any) -> int:
        """Go on from an adapter of the same width; the number of the record."""
        if not isinstance(adapter, LiveAdapter):
            raise InvalidInputError(f"A LiveAdapter was expected. Got {type(adapter).__name__}.")
        width = self.stores.width
        if width is None or adapter.n_features_in_ != width:
            raise InvalidInputError(
                f"The adapter is for vectors of {adapter.n_features_in_} numbers; this collection "
                f"has {'none yet' if width is None else width}."
            )
        # The service has its own log.
        adapter.log, adapter.log_ = False, EventLog(False)
        return self._followed(lambda: self._begin(adapter, None))

    def exported_log(self) -> Iterator[dict[str, Any]]:
        """The feedback of the log, as it can be sent to another collection."""
        after = 0
        names_of = self.stores.items.of_rows
        while records := self.stores.events.read(after):
            for record in records:
                if record.kind != "feedback":
                    continue
                found = names_of(record.body["rows"])
                said = as_said(record, {row: id for row, (id, _) in found.items()})
                if said is not None:
                    yield said
            after = records[-1].seq

    def events(self, after: int, limit: int) -> list[Record]:
        """Records of the log."""
        return self.stores.events.read(after, limit)

    def compact(self) -> dict[str, int]:
        """Remove what is not needed any more; how much that was."""
        done: dict[str, int] = self.stores.commits.do(lambda: compact(self.stores))
        self.stores.database.checkpoint()
        return done

    def facts(self) -> dict[str, Any]:
        """Numbers about the collection, for people and for metrics."""
        snapshot = self.stores.snapshot
        adapter = self.learning.adapter
        return {
            "items": snapshot.n_alive if self.stores.width else self.stores.items.count(),
            "rows": snapshot.maps.n_rows,
            "indexed": 0 if self.graphs.graph is None else self.graphs.graph.n_rows,
            "width": self.stores.width,
            "seq": self.learning.seq,
            "committed": self.stores.events.last(),
            "events": 0 if adapter is None else adapter.n_events_,
            "started": adapter is not None,
            "failed": self.learning.failed,
            "time": time.time(),
        }
