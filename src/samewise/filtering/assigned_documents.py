"""The documents that a topic holds, and how similar each is to the topic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.filtering.document_similarity import DocumentSimilarity
from samewise.filtering.sparse_store import Rows

__all__ = ["AssignedDocuments"]

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
        self._nearest: NDArray[np.int64] = np.empty(0, dtype=np.int64)
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
        self.s2[nearer], self._nearest[nearer] = back[nearer], n
        best = int(np.argmax(seen)) if n else _NOBODY
        self.s1 = np.append(self.s1, s1)
        self.s2 = np.append(self.s2, seen[best] if n else -np.inf)
        self._nearest = np.append(self._nearest, best)
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
        self._nearest[self._nearest == 0] = _FORGOTTEN
        self._nearest[self._nearest > 0] -= 1

    def remove(self, i: int, work: Any) -> None:
        """Take out a document."""
        self._drop(i)
        orphans = np.flatnonzero(self._nearest == i)
        self._nearest[self._nearest > i] -= 1
        for j in orphans:
            self._look(int(j), work)

    def _drop(self, i: int) -> None:
        shared = self.queries is self.items
        del self.ids[i]
        self.raw, self.queries = self.raw.without(i), self.queries.without(i)
        self.items = self.queries if shared else self.items.without(i)
        self.s1, self.s2 = np.delete(self.s1, i), np.delete(self.s2, i)
        self._nearest = np.delete(self._nearest, i)

    def _look(self, j: int, work: Any) -> None:
        """Find the nearest other document of document j."""
        if len(self) == 1:
            self.s2[j], self._nearest[j] = -np.inf, _NOBODY
            return
        seen = self.queries.dots(self.items[j : j + 1], work)
        seen[j] = -np.inf
        self._nearest[j] = np.argmax(seen)
        self.s2[j] = seen[self._nearest[j]]

    def compare_again(
        self, comparison: DocumentSimilarity, unit: Rows, topic: Rows, work: Any
    ) -> None:
        """Compute all similarities anew, from unit vectors under other weights."""
        self.queries = comparison.queries(unit)
        self.items = (
            self.queries if comparison.queries is comparison.items else comparison.items(unit)
        )
        if len(self.vocabulary):
            self.vocabulary[self.queries.indices] = 1
        self.s1 = self.items.dots(topic, work)
        before, forgotten = self.s2, self._nearest == _FORGOTTEN
        self.s2, self._nearest = np.empty(len(self)), np.empty(len(self), dtype=np.int64)
        for j in range(len(self)):
            self._look(j, work)
        # Of a neighbor that was forgotten, the similarity under other weights is not known.
        kept = forgotten & (before > self.s2)
        self.s2[kept], self._nearest[kept] = before[kept], _FORGOTTEN

    def least(self, alpha: float) -> float:
        """min_d sim(t, d) over the documents, those forgotten included."""
        return min(self.floor, float(np.min(self.similarities(alpha))))

    def similarities(self, alpha: float) -> NDArray[np.float64]:
        """sim(t, d) of each document; one that was always alone has only s₁."""
        alone = self._nearest == _NOBODY
        return np.where(alone, self.s1, alpha * self.s1 + (1 - alpha) * np.where(alone, 0, self.s2))

    def marks(self) -> tuple[list[float], list[int], float]:
        """s₂ and the nearest of each document, and the floor, for a file; 0 is for infinities."""
        s2 = np.where(self._nearest == _NOBODY, 0.0, self.s2)
        return s2.tolist(), self._nearest.tolist(), self.floor if np.isfinite(self.floor) else 0.0

    def restore_marks(self, s2: Any, nearest: Any, floor: float) -> None:
        """Take over what `marks` gave."""
        self.s2, self._nearest = np.where(nearest == _NOBODY, -np.inf, s2), nearest
        self.floor = floor

    def nearest_to(self, item: Rows, work: Any) -> int:
        """Number of the document that is the most similar to another one."""
        return int(np.argmax(self.queries.dots(item, work)))
