"""The documents that a topic holds, and how similar each is to the topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.files.state import Saved, State
from samewise.filtering.document_similarity import DocumentSimilarity
from samewise.filtering.sparse_store import Rows, packed, stacked, unpacked_names

_NOBODY, _FORGOTTEN = -1, -2


class AssignedDocuments:
    """Documents of one topic, the oldest first, with s₁ and s₂ of each.

    s₁ compares a document with the topic, s₂ with the nearest other document of the topic; who
    that is is remembered, so that taking a document out costs a product only for those to whom it
    was the nearest.

    A document may be taken out because it does not belong there, or be forgotten because there are
    too many. What was forgotten leaves its mark: s₂ of the others stays, and the least similarity
    too. Otherwise a topic would become the more lenient the more it forgets, and take everything.
    """

    def __init__(self, n_features: int) -> None:
        self.ids: list[str] = []
        self.raw = Rows.empty(n_features)
        self.queries = self.items = self.raw
        self.s1: NDArray[np.float64] = np.empty(0)
        self.s2: NDArray[np.float64] = np.empty(0)
        self.nearest: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.floor = np.inf
        # The terms of all documents compared so far, for unit vectors.
        self.vocabulary: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, id: str, raw: Rows, query: Rows, item: Rows, s1: float, work: Any) -> None:
        """Take in a document; `work` has a zero for each compared feature."""
        n = len(self)
        seen = self.queries.dots(item, work) if n else np.empty(0)
        back = seen if query is item else self.items.dots(query, work) if n else seen
        nearer = back > self.s2
        self.s2[nearer], self.nearest[nearer] = back[nearer], n
        best = int(np.argmax(seen)) if n else _NOBODY
        self.s1 = np.append(self.s1, s1)
        self.s2 = np.append(self.s2, seen[best] if n else -np.inf)
        self.nearest = np.append(self.nearest, best)
        self.ids.append(id)
        if len(self.vocabulary):
            self.vocabulary[query.indices] = 1
        self.raw = self.raw.joined(raw)
        shared = self.queries is self.items and query is item
        self.queries = self.queries.joined(query) if n else query
        self.items = self.queries if shared else self.items.joined(item) if n else item

    def forget_oldest(self, alpha: float) -> None:
        """Drop the oldest document, as if it were still there for the others."""
        self.floor = min(self.floor, float(self.similarities(alpha)[0]))
        self._drop(0)
        self.nearest[self.nearest == 0] = _FORGOTTEN
        self.nearest[self.nearest > 0] -= 1

    def remove(self, i: int, work: Any) -> None:
        """Take out a document."""
        self._drop(i)
        orphans = np.flatnonzero(self.nearest == i)
        self.nearest[self.nearest > i] -= 1
        for j in orphans:
            self._look(int(j), work)

    def _drop(self, i: int) -> None:
        shared = self.queries is self.items
        del self.ids[i]
        self.raw, self.queries = self.raw.without(i), self.queries.without(i)
        self.items = self.queries if shared else self.items.without(i)
        self.s1, self.s2 = np.delete(self.s1, i), np.delete(self.s2, i)
        self.nearest = np.delete(self.nearest, i)

    def _look(self, j: int, work: Any) -> None:
        """Find the nearest other document of document j."""
        if len(self) == 1:
            self.s2[j], self.nearest[j] = -np.inf, _NOBODY
            return
        seen = self.queries.dots(self.items[j : j + 1], work)
        seen[j] = -np.inf
        self.nearest[j] = np.argmax(seen)
        self.s2[j] = seen[self.nearest[j]]

    def compare_again(
        self, comparison: DocumentSimilarity, unit: Rows, topic: Rows, work: Any
    ) -> None:
        """Compute all similarities anew, from unit vectors under other weights."""
        self.queries = comparison.queries(unit)
        shared = comparison.queries is comparison.items
        self.items = self.queries if shared else comparison.items(unit)
        if len(self.vocabulary):
            self.vocabulary[self.queries.indices] = 1
        self.s1 = self.items.dots(topic, work)
        before, forgotten = self.s2, self.nearest == _FORGOTTEN
        self.s2, self.nearest = np.empty(len(self)), np.empty(len(self), dtype=np.int64)
        for j in range(len(self)):
            self._look(j, work)
        # Of a neighbor that was forgotten, the similarity under other weights is not known.
        kept = forgotten & (before > self.s2)
        self.s2[kept], self.nearest[kept] = before[kept], _FORGOTTEN

    def least(self, alpha: float) -> float:
        """min_d sim(t, d) over the documents, those forgotten included."""
        return min(self.floor, float(np.min(self.similarities(alpha))))

    def similarities(self, alpha: float) -> NDArray[np.float64]:
        """sim(t, d) of each document; one that was always alone has only s₁."""
        alone = self.nearest == _NOBODY
        return np.where(alone, self.s1, alpha * self.s1 + (1 - alpha) * np.where(alone, 0, self.s2))

    def nearest_to(self, item: Rows, work: Any) -> int:
        """Number of the document that is the most similar to another one."""
        return int(np.argmax(self.queries.dots(item, work)))


def assigned_state(topics: Sequence[AssignedDocuments], n_features: int) -> State:
    """The documents of all topics, one after the other, so that a file has few arrays."""
    s2, nearest = (np.concatenate([getattr(t, name) for t in topics]) for name in ("s2", "nearest"))
    floors = np.array([held.floor for held in topics])
    state = State(
        {
            "ids": packed(id for held in topics for id in held.ids),
            "sizes": np.array([len(held) for held in topics], dtype=np.int64),
            # A file knows no infinity.
            "s2": np.where(nearest == _NOBODY, 0.0, s2),
            "nearest": nearest,
            "floors": np.where(np.isfinite(floors), floors, 0.0),
            "forgot": np.isfinite(floors),
        }
    )
    return state.add("rows", stacked([held.raw for held in topics], n_features).state())


def restore_assigned(saved: Saved, topics: Sequence[AssignedDocuments]) -> None:
    """Give topics without documents those that `assigned_state` describes."""
    ids = unpacked_names(saved, "ids")
    n, n_topics = len(ids), len(topics)
    rows = Rows.restore(saved.part("rows"), n)
    sizes = saved.array("sizes", n_topics, dtypes=["int64"])
    right = bool(np.all(sizes >= 0)) and sizes.sum() == n
    saved.check(right, "documents of topics must be as many as there are")
    nearest = saved.array("nearest", n, dtypes=["int64"], empty=True)
    right = bool(np.all((nearest >= _FORGOTTEN) & (nearest < np.repeat(sizes, sizes))))
    saved.check(right, "nearest must be held")
    s2 = saved.array("s2", n, dtypes=["float64"], empty=True)
    s2[nearest == _NOBODY] = -np.inf
    floors = saved.array("floors", n_topics, dtypes=["float64"])
    floors[~saved.array("forgot", n_topics, dtypes=["bool"])] = np.inf
    ends = np.cumsum(sizes)
    for held, start, end, floor in zip(topics, ends - sizes, ends, floors.tolist(), strict=True):
        held.ids, held.raw, held.floor = ids[start:end], rows[start:end], floor
        held.s2, held.nearest = s2[start:end].copy(), nearest[start:end].copy()
