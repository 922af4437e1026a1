"""The labeled points of a problem, sorted by class, and exact neighbors among them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels import lmnn_loops as kernel
from samewise.kernels.pairwise import row_slices
from samewise.solvers.workers import Workers

ROWS, WIDTH = 512, 512
"""A tile of products that stays in the cache."""

BLOCK_BYTES = 2**22
"""Rows that are prepared at once."""

FARTHEST = 1e15
"""How many times farther than all others a query may be before distances are in its unit."""

SPARE = 8
"""Neighbors beyond the k nearest whose exact distances are compared."""


class Classes:
    """How rows sorted by class are laid out.

    Attributes
    ----------
    order : array of shape (n,)
        Row i of the sorted points is row order[i] of the given ones.
    bounds : array of shape (n_classes + 1,)
        Class c has the rows bounds[c] … bounds[c + 1].
    starts, ends : arrays of shape (n,)
        Where the class of each row starts and ends.
    """

    def __init__(self, y: Indices, n_classes: int) -> None:
        self.order = np.argsort(y, kind="stable")
        sizes = np.bincount(y, minlength=n_classes)
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.starts = np.repeat(self.bounds[:-1], sizes)
        self.ends = np.repeat(self.bounds[1:], sizes)

    @property
    def sizes(self) -> Indices:
        """Number of points in each class."""
        return np.diff(self.bounds)

    def sorted_targets(
        self, targets: Indices, anchors: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """Targets among the given rows, as targets among the sorted ones; −1 is none.

        If anchors are given, sorted rows, all others have none.
        """
        place = np.empty(len(self.order) + 1, dtype=np.int32)
        place[self.order] = np.arange(len(self.order))
        place[-1] = -1
        if anchors is None:
            return place[targets[self.order]]
        out = np.full(targets.shape, -1, dtype=np.int32)
        out[anchors] = place[targets[self.order[anchors]]]
        return out


def nearest_targets(
    X: Array,
    classes: Classes,
    k: int,
    workers: Workers,
    anchors: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """The k nearest rows of the same class, for each row in sorted order.

    Distances are exact in float64; ties go to the row that was given first. Where a class has k
    rows or fewer, the last places are −1.

    Parameters
    ----------
    X : array of shape (n, d)
        In the order given.
    anchors : array, optional
        Sorted rows to find targets for, ascending; all others get −1.
    """
    S = np.ascontiguousarray(X[classes.order])
    E = _prepared(S, *center(S))
    half, error = _half_and_error(E, E)
    own = np.arange(len(E), dtype=np.int32) if anchors is None else anchors
    F, Q, error = (E, S, error) if anchors is None else (E[own], S[own], error[own])
    queries, searched = kernel.Queries(F, error, Q, own), kernel.SearchedRows(E, half, S)
    found = np.full((len(own), k), -1, dtype=np.int32)

    def fill(lo: int, hi: int, first: int, last: int) -> None:
        width = min(WIDTH, hi - lo)
        kernel.nearest(queries, first, last, searched, lo, hi, SPARE, width, found)

    pieces = [
        (int(lo), int(hi), first, min(first + ROWS, end))
        for lo, hi in pairwise(classes.bounds)
        if hi - lo > 1
        for begin, end in [np.searchsorted(own, (lo, hi)).tolist()]
        for first in range(begin, end, ROWS)
    ]
    workers.map(fill, *zip(*pieces, strict=True))
    if anchors is None:
        return found
    out = np.full((len(E), k), -1, dtype=np.int32)
    out[anchors] = found
    return out


def nearest_rows(Q: Array, X: Array, k: int, workers: Workers) -> NDArray[np.int32]:
    """The k ≤ n nearest of the n rows of X for each row of Q, nearest first."""
    mean, unit = center(X)
    # In float32, also where queries lie far outside.
    unit = max(unit, float(np.abs(Q - mean).max(initial=0.0)) / FARTHEST)
    F, E = _prepared(Q, mean, unit), _prepared(X, mean, unit)
    half, error = _half_and_error(F, E)
    out = np.full((len(Q), k), -1, dtype=np.int32)
    own = np.full(len(Q), -1, dtype=np.int32)
    queries, searched = kernel.Queries(F, error, Q, own), kernel.SearchedRows(E, half, X)

    def fill(first: int) -> None:
        last, width = min(first + ROWS, len(Q)), min(WIDTH, len(X))
        kernel.nearest(queries, first, last, searched, 0, len(X), SPARE, width, out)

    workers.map(fill, range(0, len(Q), ROWS))
    return out


def _prepared(Q: Array, mean: NDArray[np.float64], unit: float) -> NDArray[np.float32]:
    """Q centered and scaled, so that squares neither overflow nor vanish."""
    E = np.empty(Q.shape, dtype=np.float32)
    for rows in row_slices(len(Q), 8 * Q.shape[1], BLOCK_BYTES):
        E[rows] = (Q[rows] - mean) / unit
    return E


def center(
    X: Array, weight: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], float]:
    """The mean of the rows, by their weights, and the largest value when it is subtracted."""
    if weight is None:
        mean = X.mean(axis=0, dtype=np.float64)
    else:
        mean = weight @ X / weight.sum()
    return mean, float(max((X.max(axis=0) - mean).max(), (mean - X.min(axis=0)).max())) or 1.0


def _half_and_error(
    F: NDArray[np.float32], E: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """‖e‖²/2 of each row, and how far off ‖e‖²/2 − f·e may be for each query."""
    squares = np.einsum("ij,ij->i", E, E, dtype=np.float64)
    queries = np.einsum("ij,ij->i", F, F, dtype=np.float64)
    error = rounding(E.shape[1]) * (queries + squares.max())
    return (squares / 2).astype(np.float32), error.astype(np.float32)


def rounding(terms: int) -> float:
    """How far a float32 product of rows may be off, relative to the mean of their squares."""
    return (terms + 8) * float(np.finfo(np.float32).eps)
