"""Exact search: one product with all items for the queries that wait, then the best of each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.neighbors import top_k
from samewise.serve.vector_segments import Maps

MOST_TOGETHER = 32
MOST_SCORES = 2**25
"""Queries of one product, and scores that it may have."""
MOST_KEPT = 2**22
"""Scores of which the memory is kept for the next product: to get it anew costs a tenth of one."""
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

    def scores(self, queries: Array, begin: int = 0, out: Array | None = None) -> Array:
        """Dot products with all rows from a number on; −∞ for rows that are no item's."""
        found = out
        if found is None:
            found = np.empty((len(queries), max(self.maps.n_rows - begin, 0)), dtype=np.float32)
        for first, part in self.maps.parts:
            end, skipped = first + len(part) - begin, max(begin - first, 0)
            if end > 0:
                np.matmul(queries, part[skipped:].T, out=found[:, first + skipped - begin : end])
        if self.n_alive < self.maps.n_rows:
            # Among them the rows of segments that were removed.
            found[:, ~self.alive[begin:]] = -np.inf
        return found


@dataclass(eq=False)
class _Request:
    snapshot: ItemSnapshot
    query: Array
    k: int | None
    ready: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    scores: Array | None = None
    found: tuple[Indices, NDArray[np.float64]] | None = None
    error: BaseException | None = None


class ProductBatches:
    """Queries that arrive while a product is being computed are answered together by the next.

    One of those who wait leads: it computes a product for all of them, and passes the lead on to
    one that came meanwhile. Those who were just answered together will often ask again together: a
    product waits for as many queries as the one before had, for a fifth of the time that one took
    at most. One query alone takes as long as eight together. Who leads also finds the best
    rows of each: threads that look for theirs at the same time get in each other's way.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._led = False
        self._waiting: list[_Request] = []
        self._last, self._seconds = 0, 0.0
        self._kept = np.empty(0, dtype=np.float32)
        self.n_products = 0

    def best(
        self,
        snapshot: ItemSnapshot,
        query: Array,
        k: int,
        accepted: Callable[[Indices], NDArray[np.bool_]] | None = None,
    ) -> tuple[Indices, NDArray[np.float64]]:
        """The k best rows and their scores, as `best_rows` says."""
        if accepted is not None:
            scores = self.scores(snapshot, query)
            return best_rows(snapshot, scores, query, k, accepted)
        found = self._answered(snapshot, query, k).found
        assert found is not None
        return found

    def together(self, snapshot: ItemSnapshot, queries: Array, k: int) -> list[Indices]:
        """The k best rows of each of several queries of one caller."""
        most = max(min(MOST_TOGETHER, MOST_KEPT // max(snapshot.maps.n_rows, 1)), 1)
        return [
            best_rows(snapshot, scores, query, k)[0]
            for at in range(0, len(queries), most)
            for query, scores in zip(
                queries[at : at + most], snapshot.scores(queries[at : at + most]), strict=True
            )
        ]

    def scores(self, snapshot: ItemSnapshot, query: Array) -> Array:
        """The scores of all rows for a query."""
        scores = self._answered(snapshot, query, None).scores
        assert scores is not None
        return scores

    def _answered(self, snapshot: ItemSnapshot, query: Array, k: int | None) -> _Request:
        """The k best rows, or the scores of all."""
        mine = _Request(snapshot, query, k)
        with self._guard:
            self._waiting.append(mine)
            mine.leads, self._led = not self._led, True
        if not mine.leads:
            mine.ready.wait()
        if mine.leads:
            self._lead(mine)
        if mine.error is not None:
            raise mine.error
        return mine

    def _lead(self, mine: _Request) -> None:
        end = time.perf_counter() + 0.2 * self._seconds
        while len(self._waiting) < self._last and time.perf_counter() < end:
            time.sleep(self._seconds / 100)
        batch = self._together(mine)
        self._compute(batch)
        with self._guard:
            following = self._waiting[:1]
            self._led = bool(following)
        for other in following:
            other.leads = True
        for request in batch + following:
            request.ready.set()

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
        self._last, begin = len(batch), time.perf_counter()
        try:
            queries, snapshot = np.stack([r.query for r in batch]), batch[0].snapshot
            kept = self._memory(len(batch), snapshot.maps.n_rows)
            found = snapshot.scores(queries, out=kept)
            for request, scores in zip(batch, found, strict=True):
                if request.k is None:
                    request.scores = scores if kept is None else scores.copy()
                else:
                    request.found = best_rows(snapshot, scores, request.query, request.k)
        except BaseException as error:
            for request in batch:
                request.error = error
            return
        self._seconds = time.perf_counter() - begin

    def _memory(self, n: int, n_rows: int) -> Array | None:
        """Where the scores of n queries go; None for a place of their own. One leads at a time."""
        size = n * n_rows
        if size > MOST_KEPT:
            return None
        if size > len(self._kept):
            self._kept = np.empty(size, dtype=np.float32)
        return self._kept[:size].reshape(n, n_rows)


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
    size, tried = min(k + SPARE, snapshot.n_alive), 0
    rows = np.empty(0, dtype=np.int64)
    while size > tried:
        more = top_k(scores[None], size)[0][tried:]
        if accepted is not None:
            more = more[accepted(more)]
        rows = np.concatenate([rows, more])
        tried = size
        if len(rows) < k:
            size = min(4 * size, snapshot.n_alive)
    return best_of(snapshot, rows, query, k)


def best_of(
    snapshot: ItemSnapshot, rows: Indices, query: Array, k: int
) -> tuple[Indices, NDArray[np.float64]]:
    """The k best of some rows, and their scores in float64."""
    exact = snapshot.maps.rows(rows).astype(np.float64) @ query.astype(np.float64)
    order = np.lexsort((rows, -exact))[:k]
    return rows[order], exact[order]
