"""Which pairs of points of different classes can matter: the exact search, with slack."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels import lmnn_loops as kernel
from samewise.kernels.nearest_rows import ROWS, WIDTH, rounding
from samewise.kernels.pairwise import squared_distances
from samewise.learners.batch.points_by_class import Classes
from samewise.solvers.workers import Workers

COSTS = (0.9, 0.0065, 130.0)
"""Nanoseconds, see `cheapest_depth`."""

DEPTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)


@dataclass(frozen=True)
class Candidates:
    """Pairs of points, each once: those of a are columns[indptr[a] : indptr[a + 1]]."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.columns)

    def cut(self, n: int, more: int) -> list[tuple[int, int]]:
        """Rows in n ranges with about as much to do each: their pairs, and so many for each row."""
        cost = self.indptr + more * np.arange(len(self.indptr))
        inner = np.searchsorted(cost, np.linspace(0, cost[-1], n + 1)[1:-1])
        return list(pairwise([0, *inner.tolist(), len(cost) - 1]))

    def touched(self, rows: tuple[int, int]) -> tuple[int, int]:
        """The range of the points in the pairs of some rows."""
        columns = self.columns[self.indptr[rows[0]] : self.indptr[rows[1]]]
        if not len(columns):
            return rows
        return min(rows[0], int(columns.min())), max(rows[1], int(columns.max()) + 1)

    def union(self, other: Candidates) -> Candidates:
        """The pairs of both."""
        n = len(self.indptr) - 1
        keys = np.concatenate([self._keys(), other._keys()])
        # Two sorted runs: a stable sort merges them.
        keys.sort(kind="stable")
        rows, columns = np.divmod(keys[np.diff(keys, prepend=-1) > 0], n)
        indptr = np.searchsorted(rows, np.arange(n + 1))
        return Candidates(indptr, columns.astype(np.int32))

    def _keys(self) -> NDArray[np.int64]:
        n = len(self.indptr) - 1
        return np.repeat(n * np.arange(n), np.diff(self.indptr)) + self.columns


def search(Z: Array, reach: NDArray[np.float64], classes: Classes, workers: Workers) -> Candidates:
    """All pairs of different classes with ‖z_a − z_b‖² < max(reach_a, reach_b).

    A lower bound of the distance is tried first: the first columns of Z and, as one column more,
    the length of the rest, for ‖u − v‖ ≥ |‖u‖ − ‖v‖|. It is cheapest where the columns of Z go by
    decreasing variance.

    A point with reach −∞ has no targets. If these are most, each of the others is compared with
    all points; otherwise, all are compared with those of later classes.
    """
    Z = np.ascontiguousarray(Z, dtype=np.float32)
    limit = reach.astype(np.float32)
    anchors = np.flatnonzero(limit > 0).astype(np.int32)
    if not len(anchors):
        return Candidates(np.zeros(len(Z) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
    after = 2 * len(anchors) >= len(Z)
    if after:
        anchors = np.arange(len(Z), dtype=np.int32)
    points = _searched(Z, limit, _depth(Z, limit, anchors, classes), classes.starts, classes.ends)
    counts, columns = _pairs(points, anchors, after, 0, workers)
    indptr = np.zeros(len(Z) + 1, dtype=np.int64)
    indptr[anchors + 1] = counts
    return Candidates(np.cumsum(indptr), columns)


def search_between(
    A: Array,
    reach_a: NDArray[np.float64],
    bounds_a: Indices,
    B: Array,
    reach_b: NDArray[np.float64],
    bounds_b: Indices,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """All pairs of different classes of a row a of A and a row b of B, as `search` finds them.

    Parameters
    ----------
    A, B : arrays of shape (n_a, r) and (n_b, r)
        Each sorted by class, with columns of decreasing variance.
    reach_a, reach_b : arrays
        That of each row.
    bounds_a, bounds_b : arrays of shape (n_classes + 1,)
        Class c has the rows bounds[c] … bounds[c + 1].
    """
    Z = np.concatenate([A, B]).astype(np.float32)
    limit = np.concatenate([reach_a, reach_b]).astype(np.float32)
    # Where the class of each row of A starts and ends among the rows of B.
    starts, ends = np.zeros((2, len(Z)), dtype=np.intp)
    sizes = np.diff(bounds_a)
    starts[: len(A)] = len(A) + np.repeat(bounds_b[:-1], sizes)
    ends[: len(A)] = len(A) + np.repeat(bounds_b[1:], sizes)
    some = np.arange(0, len(A), len(A) // 256 + 1)
    others = np.arange(len(A), len(Z), len(B) // 1024 + 1)
    most = np.maximum(limit[some, None], limit[others])
    most[(starts[some, None] <= others) & (others < ends[some, None])] = -np.inf
    points = _searched(Z, limit, cheapest_depth(Z[some], Z[others], most, COSTS), starts, ends)
    who = np.arange(len(A), dtype=np.int32)
    counts, columns = _pairs(points, who, False, len(A), Workers(1, None))
    return np.repeat(np.arange(len(A), dtype=np.int32), counts), columns - np.int32(len(A))


def _searched(
    Z: NDArray[np.float32],
    limit: NDArray[np.float32],
    depth: int,
    starts: Indices,
    ends: Indices,
) -> kernel.SearchedPoints:
    E = _shortened(Z, depth)
    half = lowered_half_squares(E)
    return kernel.SearchedPoints(E, half, half - limit / np.float32(2), Z, limit, starts, ends)


def _pairs(
    points: kernel.SearchedPoints,
    anchors: NDArray[np.int32],
    after: bool,
    first: int,
    workers: Workers,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """How many pairs each anchor has, and the others of these pairs."""
    room = [64 * ROWS]

    def find(start: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        who = anchors[start : start + ROWS]
        found = room[0]
        while True:
            rows, columns = np.empty(found, dtype=np.uint16), np.empty(found, dtype=np.int32)
            found = kernel.impostor_pairs(points, who, after, first, WIDTH, rows, columns)
            if found <= len(rows):
                break
            room[0] = found + found // 4
        # A stable sort of 16-bit numbers takes linear time.
        order = np.argsort(rows[:found], kind="stable")
        return np.bincount(rows[:found], minlength=len(who)), columns[order]

    parts = workers.map(find, range(0, len(anchors), ROWS))
    counts, columns = zip(*parts, strict=True)
    return np.concatenate(counts), np.concatenate(columns)


def lowered_half_squares(E: NDArray[np.float32]) -> NDArray[np.float32]:
    """‖e‖²/2 of each row, less what a product of two rows may be off."""
    squares = np.einsum("ij,ij->i", E, E, dtype=np.float64)
    return (squares * (0.5 - rounding(E.shape[1]))).astype(np.float32)


def _shortened(Z: NDArray[np.float32], depth: int) -> NDArray[np.float32]:
    if depth >= Z.shape[1]:
        return Z
    rest = np.einsum("ij,ij->i", Z[:, depth:], Z[:, depth:])
    return np.column_stack([Z[:, :depth], np.sqrt(rest)])


def _depth(
    Z: NDArray[np.float32],
    reach: NDArray[np.float32],
    anchors: NDArray[np.int32],
    classes: Classes,
) -> int:
    """How many columns to try first, by the pairs of a sample that each number would leave."""
    n = len(Z)
    some, others = anchors[:: len(anchors) // 256 + 1], np.arange(0, n, n // 1024 + 1)
    limit = np.maximum(reach[some, None], reach[others])
    limit[classes.ends[some][:, None] == classes.ends[others]] = -np.inf
    return cheapest_depth(Z[some], Z[others], limit, COSTS)


def cheapest_depth(
    A: NDArray[np.float32],
    B: NDArray[np.float32],
    limit: NDArray[np.float32],
    costs: tuple[float, float, float],
) -> int:
    """The number of columns with which rows of A and B are compared most cheaply.

    Parameters
    ----------
    limit : array of shape (n_A, n_B)
        The squared distance that a pair is compared with.
    costs : tuple of floats
        Nanoseconds for a pair, as measured: for the pair, for each column of a product, and for a
        distance to check.
    """
    pair, column, check = costs
    D = np.zeros_like(limit)
    total, start = {}, 0
    for depth in [*(m for m in DEPTHS if m < A.shape[1]), A.shape[1]]:
        D += squared_distances(A[:, start:depth], B[:, start:depth])
        total[depth] = pair + column * depth + check * float(np.mean(D < limit))
        start = depth
    return min(total, key=lambda depth: total[depth])
