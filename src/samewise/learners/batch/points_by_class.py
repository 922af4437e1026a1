"""The labeled points of a problem, sorted by class, and exact neighbors among them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels import nearest_rows as kernel
from samewise.solvers.workers import Workers


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
    E = kernel.prepared(S, *kernel.center(S))
    searched, largest = kernel.searched_rows(S, E)
    error = kernel.product_error(E, largest)
    own = np.arange(len(E), dtype=np.int32) if anchors is None else anchors
    F, Q, error = (E, S, error) if anchors is None else (E[own], S[own], error[own])
    queries = kernel.Queries(F, error, Q, own)
    found, squared = np.full((len(own), k), -1, dtype=np.int32), np.empty((len(own), k))

    def fill(lo: int, hi: int, first: int, last: int) -> None:
        kernel.nearest(queries, first, last, searched, lo, hi, True, found, squared)

    pieces = [
        (int(lo), int(hi), first, min(first + kernel.ROWS, end))
        for lo, hi in pairwise(classes.bounds)
        if hi - lo > 1
        for begin, end in [np.searchsorted(own, (lo, hi)).tolist()]
        for first in range(begin, end, kernel.ROWS)
    ]
    workers.map(fill, *zip(*pieces, strict=True))
    if anchors is None:
        return found
    out = np.full((len(E), k), -1, dtype=np.int32)
    out[anchors] = found
    return out


def nearest_rows(Q: Array, X: Array, k: int, workers: Workers) -> NDArray[np.int32]:
    """The k ≤ n nearest of the n rows of X for each row of Q, nearest first."""
    mean, unit = kernel.center(X)
    # In float32, also where queries lie far outside.
    unit = max(unit, float(np.abs(Q - mean).max(initial=0.0)) / kernel.FARTHEST)
    F = kernel.prepared(Q, mean, unit)
    searched, largest = kernel.searched_rows(X, kernel.prepared(X, mean, unit))
    own = np.full(len(Q), -1, dtype=np.int32)
    queries = kernel.Queries(F, kernel.product_error(F, largest), Q, own)
    out, squared = np.full((len(Q), k), -1, dtype=np.int32), np.empty((len(Q), k))

    def fill(first: int) -> None:
        last = min(first + kernel.ROWS, len(Q))
        kernel.nearest(queries, first, last, searched, 0, len(X), True, out, squared)

    workers.map(fill, range(0, len(Q), kernel.ROWS))
    return out
