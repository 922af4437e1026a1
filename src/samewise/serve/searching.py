"""Answers to searches: which items, why, under which form; and the impression they leave."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.adapt.shown_lists import fill_slots
from samewise.exceptions import InvalidInputError
from samewise.serve.collection_stores import Settings
from samewise.serve.event_store import EventStore
from samewise.serve.impressions import Impression
from samewise.serve.item_graph import GraphKeeper
from samewise.serve.item_search import ItemSnapshot, ProductBatches
from samewise.serve.item_table import ItemTable
from samewise.serve.learning import Learning
from samewise.serve.payload_filters import accepts
from samewise.serve.personal_memories import PersonalMemories

EXPLORED_FROM = 100
"""The best so many of each form are candidates for a list that explores."""


@dataclass(frozen=True)
class Question:
    """What a search asks for.

    Attributes
    ----------
    k : int
        How many items.
    which : {"served", "start", "live"}
        Under which form.
    filters : dict
        Conditions on fields of the payload.
    explore : int or None
        How many of the items are sampled; with a number, even 0, one is the live form's candidate.
    user : str or None
        Who asks, so that the impression can be forgotten, and that own lists count.
    min_seq : int
        The record that must have been learned from.
    patience : float
        How many seconds to wait for it.
    """

    k: int = 10
    which: str = "served"
    filters: dict[str, Any] = field(default_factory=dict)
    explore: int | None = None
    user: str | None = None
    min_seq: int = 0
    patience: float = 5.0


class SearchedStores(Protocol):
    """What searches need of the files of a collection."""

    items: ItemTable
    events: EventStore

    @property
    def settings(self) -> Settings:
        """How the collection works."""

    def vectors(self, rows: Any) -> Array:
        """The vectors of rows."""

    @property
    def snapshot(self) -> ItemSnapshot:
        """The items as they are now."""

    def keep(self, impression: Impression) -> None:
        """Remember what was shown."""


class Nearest:
    """The best rows for a vector: by the graph, if there is one, or exactly.

    Parameters
    ----------
    batches : ProductBatches
    graphs : GraphKeeper
    """

    def __init__(self, batches: ProductBatches, graphs: GraphKeeper) -> None:
        self._batches, self._graphs = batches, graphs

    def best(
        self,
        snapshot: ItemSnapshot,
        vector: Array,
        k: int,
        accepted: Callable[[Indices], NDArray[np.bool_]] | None = None,
    ) -> tuple[Indices, NDArray[np.float64]]:
        """Rows and scores under a mapped query."""
        graph = self._graphs.graph
        found = None if graph is None else graph.best(snapshot, vector, k, accepted)
        if found is None:
            found = self._batches.best(snapshot, vector, k, accepted)
        return found

    def first(self, snapshot: ItemSnapshot, vectors: Array) -> Indices:
        """The best row for each of a few vectors; −1 where there is none."""
        if self._graphs.graph is not None:
            rows = [self.best(snapshot, vector, 1)[0] for vector in vectors]
        else:
            rows = self._batches.together(snapshot, vectors, 1)
        return np.array([found[0] if len(found) else -1 for found in rows], dtype=np.int64)


class Searching:
    """Searches of a collection.

    Parameters
    ----------
    stores : SearchedStores
    learning : Learning
    graphs : GraphKeeper
    """

    def __init__(self, stores: SearchedStores, learning: Learning, graphs: GraphKeeper) -> None:
        self._stores, self._learning = stores, learning
        self._nearest = Nearest(ProductBatches(), graphs)
        self.personal = PersonalMemories(stores.events, stores.vectors, stores.settings.personal)

    def mapped(self, query: Array, which: str, user: str | None = None) -> tuple[Array, Array, int]:
        """A query as the order and the first place see it, and what had been learned by then."""
        with self._learning.turns.reading():
            adapter = self._learning.adapter
            assert adapter is not None
            form = getattr(adapter, which)
            rest = form.embed_query(query)
            first = adapter.embed_query(query, "first") if which == "served" else rest
            course, seq = adapter._fitted, self._learning.seq
        if which == "start":
            return rest, first, seq
        own = self.personal.added(user, query, course, seq)
        return rest + own, first + own, seq

    def ranked(self, query: Array, which: str, k: int, user: str | None = None) -> Indices:
        """The rows of the k best items."""
        vector, _, _ = self.mapped(query, which, user)
        return self._nearest.best(self._stores.snapshot, vector, k)[0]

    def nearest(self, queries: Array) -> Indices:
        """The row of the best item of each query under the start, all found together."""
        with self._learning.turns.reading():
            adapter = self._learning.adapter
            assert adapter is not None
            mapped = adapter.start.embed_query(queries)
        return self._nearest.first(self._stores.snapshot, mapped)

    def answer(self, question: Question, query: Array, text: str | None = None) -> dict[str, Any]:
        """The items, with places, scores, payloads and the impression, which keeps the text."""
        if question.explore is not None and question.explore > max(question.k - 2, 0):
            raise InvalidInputError(
                f"explore must be at most k − 2, since an item that is served and the live form's "
                f"have their places. Got {question.explore} with k={question.k}."
            )
        rest, first, seq = self.mapped(query, question.which, question.user)
        # Taken after the query was mapped: all items up to `seq` are in it.
        snapshot = self._stores.snapshot
        found = _Found(self._stores, snapshot, self._nearest, question.filters)
        depth = question.k if question.explore is None else max(question.k, EXPLORED_FROM)
        rows, scores = found.best(rest, depth)
        if not np.array_equal(rest, first) and len(rows):
            rows, scores = _pinned(rows, scores, *found.best(first, 1))
        why, candidate = ["served"] * len(rows), -1
        if question.explore is not None and len(rows) >= question.k >= 2:
            rows, why, candidate = self._explored(question, query, found, rows)
            scores = snapshot.maps.rows(rows).astype(np.float64) @ rest.astype(np.float64)
        rows, scores = rows[: question.k], scores[: question.k]
        items = found.items(rows)
        impression = self._impression(question, (query, text), rows, items, candidate)
        results = [
            {"position": place, "id": id, "score": float(score), "why": reason, "payload": payload}
            for place, ((id, payload), score, reason) in enumerate(
                zip(items, scores, why, strict=False)
            )
        ]
        return {
            "impression": impression.id,
            "seq": seq,
            "which": question.which,
            "results": results,
        }

    def _explored(
        self, question: Question, query: Array, found: _Found, rows: Indices
    ) -> tuple[Indices, list[str], int]:
        live, _, _ = self.mapped(query, "live", question.user)
        others, _ = found.best(live, EXPLORED_FROM)
        # Not the adapter's random numbers: searches are not in the log, and must not change it.
        random = np.random.RandomState(secrets.randbits(32))
        slots = fill_slots(rows, others, question.k, question.explore or 0, random)
        return slots.rows, list(slots.why), slots.candidate

    def _impression(
        self,
        question: Question,
        asked: tuple[Array, str | None],
        rows: Indices,
        items: list[tuple[str, Any]],
        candidate: int,
    ) -> Impression:
        ids, (query, text) = [id for id, _ in items], asked
        name = secrets.token_hex(12)
        new = Impression(name, query, rows.tolist(), ids, candidate, question.user, text)
        self._stores.keep(new)
        return new


class _Found:
    """The best items that meet the filters; payloads that were read are kept for the answer."""

    def __init__(
        self,
        stores: SearchedStores,
        snapshot: ItemSnapshot,
        nearest: Nearest,
        filters: dict[str, Any],
    ) -> None:
        self._stores, self._snapshot, self._nearest = stores, snapshot, nearest
        self._accepts = accepts(filters) if filters else None
        self._read: dict[int, tuple[str, Any]] = {}

    def best(self, vector: Array, k: int) -> tuple[Indices, NDArray[np.float64]]:
        """Rows and scores under a mapped query."""
        accepted = None if self._accepts is None else self._accepted
        return self._nearest.best(self._snapshot, vector, k, accepted)

    def _accepted(self, rows: Indices) -> NDArray[np.bool_]:
        assert self._accepts is not None
        found = [self._accepts(payload) for _, payload in self.items(rows)]
        return np.array(found, dtype=bool)

    def items(self, rows: Indices) -> list[tuple[str, Any]]:
        """Ids and payloads of rows."""
        wanted = [row for row in rows.tolist() if row not in self._read]
        self._read.update(self._stores.items.of_rows(wanted))
        # A new start may have given an item another row since.
        return [self._read.get(row, ("", {})) for row in rows.tolist()]


def _pinned(
    rows: Indices, scores: NDArray[np.float64], best: Indices, best_score: NDArray[np.float64]
) -> tuple[Indices, NDArray[np.float64]]:
    """The first place is another version's choice."""
    others = rows != best[0]
    return np.concatenate([best, rows[others]]), np.concatenate([best_score, scores[others]])
