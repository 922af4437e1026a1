"""Exact search: one product with all items for the queries that wait, then the best of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.neighbors import top_k
from samewise.serve.vector_segments import Maps

MOST_TOGETHER = 32
MOST_SCORES = 2**25
"""Queries of one product, and scores that it may have."""
SPARE = 32
"""Candidates beyond k, whose scores are computed again in float64."""


@dataclass(frozen=True, eq=False)
class ItemSnapshot:
    """The items at one moment; it never changes.

    Attributes
    ----------
    maps : Maps
        The vectors.
    alive : array of bool of shape (n_rows,)
        Which rows are vectors of items.
    n_alive : int
        How many these are.
    """

    maps: Maps
    alive: NDArray[np.bool_]
    n_alive: int

    def scores(self, queries: Array) -> Array:
        """Dot products with all rows; −∞ for rows that are no item's."""
        found = np.empty((len(queries), self.maps.n_rows), dtype=np.float32)
        for first, part in self.maps.parts:
            np.matmul(queries, part.T, out=found[:, first : first + len(part)])
        if self.n_alive < self.maps.n_rows:
            # Among them the rows of segments that were removed.
            found[:, ~self.alive] = -np.inf
        return found


@dataclass(eq=False)
class _Request:
    snapshot: ItemSnapshot
    query: Array
    scores: Array | None = None
    error: BaseException | None = None


class ProductBatches:
    """Queries that arrive while a product is being computed are answered together by the next."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._waiting: list[_Request] = []
        self.n_products = 0

    def scores(self, snapshot: ItemSnapshot, query: Array) -> Array:
        """The scores of all rows for a query."""
        mine = _Request(snapshot, query)
        with self._guard:
            self._waiting.append(mine)
        with self._turn:
            if mine.scores is None and mine.error is None:
                self._compute(self._together(mine))
        if mine.error is not None:
            raise mine.error
        assert mine.scores is not None
        return mine.scores

    def _together(self, mine: _Request) -> list[_Request]:
        """This request, and others that wait for the same items."""
        most = min(MOST_TOGETHER, MOST_SCORES // max(mine.snapshot.maps.n_rows, 1))
        with self._guard:
            others = [r for r in self._waiting if r.snapshot is mine.snapshot and r is not mine]
            batch = [mine, *others[: max(most - 1, 0)]]
            self._waiting = [r for r in self._waiting if r not in batch]
        return batch

    def _compute(self, batch: list[_Request]) -> None:
        self.n_products += 1
        try:
            found = batch[0].snapshot.scores(np.stack([request.query for request in batch]))
        except BaseException as error:
            for request in batch:
                request.error = error
            return
        for request, scores in zip(batch, found, strict=True):
            request.scores = scores


def best_rows(
    snapshot: ItemSnapshot,
    scores: Array,
    query: Array,
    k: int,
    accepted: Callable[[Indices], NDArray[np.bool_]] | None = None,
) -> tuple[Indices, NDArray[np.float64]]:
    """The k best rows, and their scores in float64, which do not depend on what was batched.

    Parameters
    ----------
    snapshot : ItemSnapshot
    scores : array of shape (n_rows,)
        As `ProductBatches` computed them.
    query : array of shape (d,)
    k : int
    accepted : callable, default=None
        Of rows, whether each may be found. More rows are tried until there are k.
    """
    q = query.astype(np.float64)
    size, tried = min(k + SPARE, snapshot.n_alive), 0
    rows = np.empty(0, dtype=np.int64)
    exact = np.empty(0)
    while size > tried:
        more = top_k(scores[None], size)[0][tried:]
        if accepted is not None:
            more = more[accepted(more)]
        rows = np.concatenate([rows, more])
        exact = np.concatenate([exact, snapshot.maps.rows(more).astype(np.float64) @ q])
        tried = size
        if len(rows) < k:
            size = min(4 * size, snapshot.n_alive)
    order = np.lexsort((rows, -exact))[:k]
    return rows[order], exact[order]
