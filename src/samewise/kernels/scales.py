"""How large and how small numbers are, found before anything is moved by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from samewise._typing import Array


@njit(cache=True)
def dense_scale(V: Array) -> tuple[float, float]:
    """The largest |v| of all, NaN where one is not finite, and of the rows that are not zero.

    The second number is the least over these rows of their largest |v|.
    """
    most, least, total = 0.0, np.inf, 0.0
    for i in range(V.shape[0]):
        top = 0.0
        for k in range(V.shape[1]):
            size = abs(V[i, k])
            top = max(top, size)
            # Nothing finite times zero is NaN.
            total += size * 0.0
        most = max(most, top)
        if 0.0 < top < least:
            least = top
    return most + total, least


@njit(cache=True)
def sparse_scale(indptr: NDArray[Any], data: Array) -> tuple[float, float]:
    """The same for CSR rows."""
    most, least, total = 0.0, np.inf, 0.0
    for i in range(indptr.shape[0] - 1):
        top = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            size = abs(data[k])
            top = max(top, size)
            total += size * 0.0
        most = max(most, top)
        if 0.0 < top < least:
            least = top
    return most + total, least


@njit(cache=True)
def largest(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The largest absolute value in two vectors, NaN where one is not finite."""
    most, total = 0.0, 0.0
    for i in range(first.shape[0]):
        most = max(most, max(abs(first[i]), abs(second[i])))
        total += (first[i] + second[i]) * 0.0
    return most + total
