"""How large and how small numbers are, found before anything is moved by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST

SQUARE = 1e-30
"""A sum of squares that is at least this has lost nothing that counts."""


@compiled(fastmath=FAST)
def _dense_squares(V: Array, squares: NDArray[np.float64]) -> None:
    for i in range(V.shape[0]):
        total = 0.0
        for k in range(V.shape[1]):
            total += V[i, k] * V[i, k]
        squares[i] = total


@compiled(fastmath=FAST)
def _sparse_squares(indptr: NDArray[Any], data: Array, squares: NDArray[np.float64]) -> None:
    for i in range(squares.shape[0]):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * data[k]
        squares[i] = total


@compiled
def _ordinary(squares: NDArray[np.float64]) -> tuple[float, float, bool]:
    """The largest and the least of squares, and whether all are sums that have lost nothing."""
    most, least, right = 0.0, np.inf, True
    for i in range(squares.shape[0]):
        most, least = max(most, squares[i]), min(least, squares[i])
        right &= SQUARE <= squares[i] < np.inf
    return math.sqrt(most), math.sqrt(least), right


@compiled
def _extreme(most: float, least: float, v: Array) -> tuple[float, float]:
    """The same with one more row, whose squares may overflow or vanish: by its largest |v_k|."""
    top, total = 0.0, 0.0
    for k in range(v.shape[0]):
        top = max(top, abs(v[k]))
        # Nothing finite times zero is NaN.
        total += v[k] * 0.0
    return max(most, top) + total, min(least, top) if top > 0.0 else least


@compiled
def dense_scale(V: Array) -> tuple[float, float]:
    """How long rows are: the longest, NaN where a value is not finite, and the shortest.

    Rows of zeros do not count. Where squares overflow or vanish, the largest value of each row
    stands for its length.
    """
    squares = np.empty(V.shape[0])
    _dense_squares(V, squares)
    most, least, right = _ordinary(squares)
    if not right:
        most, least = 0.0, np.inf
        for i in range(V.shape[0]):
            most, least = _extreme(most, least, V[i])
    return most, least


@compiled
def sparse_scale(indptr: NDArray[Any], data: Array) -> tuple[float, float]:
    """The same for CSR rows."""
    squares = np.empty(indptr.shape[0] - 1)
    _sparse_squares(indptr, data, squares)
    most, least, right = _ordinary(squares)
    if not right:
        most, least = 0.0, np.inf
        for i in range(squares.shape[0]):
            most, least = _extreme(most, least, data[indptr[i] : indptr[i + 1]])
    return most, least


@compiled
def largest(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The largest absolute value in two vectors, NaN where one is not finite."""
    most, total = 0.0, 0.0
    for i in range(first.shape[0]):
        most = max(most, max(abs(first[i]), abs(second[i])))
        total += (first[i] + second[i]) * 0.0
    return most + total
