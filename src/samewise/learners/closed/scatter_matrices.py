"""Covariances in blocks of rows, with no copy of the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices

BLOCK_BYTES = 2**17
LEAST_ROWS = 256

Vector = NDArray[np.float64]


def covariance(X: Array) -> Vector:
    """The covariance of all rows, with 0 for features that do not vary."""
    return _of_all(X)[0]


def covariances(X: Array, groups: Indices) -> tuple[Vector, Vector | None]:
    """The covariance of all rows, and that within groups of two or more; −1 is no group.

    With p rows in such groups and m the mean of the group, the second is 1/p Σ (x − m)(x − m)ᵀ; it
    is None if there are none. Features that do not vary have 0 in both.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.1], [2.0, 0.1], [3.0, 0.1], [6.0, 0.1]])
    >>> C, within = covariances(X, np.array([7, 0, 7, -1]))
    >>> C
    array([[3.5, 0. ],
           [0. , 0. ]])
    >>> within
    array([[1., 0.],
           [0., 0.]])
    """
    C, mean, rounding = _of_all(X)
    within = _mean_square(_within(X, groups, mean), len(mean))
    return C, None if within is None else _without(rounding, within)


def _of_all(X: Array) -> tuple[Vector, Vector, Vector]:
    """The covariance of all rows, their mean, and how large differences are by rounding alone."""
    mean = X.mean(axis=0, dtype=np.float64)
    C = _mean_square(_centered(X, mean), len(mean))
    assert C is not None
    # The size of a feature that hardly varies is that of its mean.
    size = np.abs(mean) + np.sqrt(np.diagonal(C))
    rounding = 16 * float(np.finfo(X.dtype).eps) * size
    return _without(rounding, C), mean, rounding


def _mean_square(blocks: Iterator[Vector], d: int) -> Vector | None:
    """1/n Σ zzᵀ over all n rows z; None if there are none."""
    S, n = np.zeros((d, d)), 0
    for Z in blocks:
        S += Z.T @ Z
        n += len(Z)
    return S / n if n else None


def _without(rounding: Vector, S: Vector) -> Vector:
    """0 for features that hold only rounding."""
    still = np.diagonal(S) <= rounding**2
    S[still] = 0
    S[:, still] = 0
    return S


def _centered(X: Array, mean: Vector) -> Iterator[Vector]:
    n = _block_rows(X)
    for start in range(0, len(X), n):
        yield X[start : start + n] - mean


def _within(X: Array, groups: Indices, mean: Vector) -> Iterator[Vector]:
    """Rows minus the mean of their group, whole groups at a time."""
    order = np.argsort(groups, kind="stable")
    firsts = np.flatnonzero(np.diff(groups[order], prepend=groups[order[0]] - 1))
    sizes = np.diff(firsts, append=len(order))
    kept = (sizes > 1) & (groups[order[firsts]] >= 0)
    order, sizes = order[np.repeat(kept, sizes)], sizes[kept]
    ends, n = np.cumsum(sizes), _block_rows(X)
    group = 0
    while group < len(sizes):
        start = ends[group] - sizes[group]
        last = max(group + 1, int(np.searchsorted(ends, start + n, side="right")))
        some = sizes[group:last]
        Z = X[order[start : ends[last - 1]]] - mean
        means = np.add.reduceat(Z, np.cumsum(some) - some, axis=0) / some[:, None]
        Z -= np.repeat(means, some, axis=0)
        yield Z
        group = last


def _block_rows(X: Array) -> int:
    return max(LEAST_ROWS, BLOCK_BYTES // (8 * X.shape[1]))
