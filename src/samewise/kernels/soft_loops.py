"""Probabilities of neighbors, a row at a time: exponentials, their sums by class, and weights.

E is a C-ordered block of rows over all n points, which stand class by class. NumPy's exponential of
float64 is not vectorized on every processor; this one is, by whatever the compiler finds.
"""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.compiling import compiled

LOG2_E = 1.4426950408889634
# ln 2 in two parts: whole multiples of the first, up to 2¹¹, are exact.
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
ROUNDER = 1.5 * 2.0**52
"""Added to a number, it leaves the nearest whole number in the lowest bits."""
TERMS = np.array([1 / factorial(k) for k in range(14)])
"""e^r for |r| ≤ ln 2 / 2, to the last bit but one."""
LEAST = {np.dtype(t): 0.4 * float(np.log(np.finfo(t).tiny)) for t in (np.float32, np.float64)}
"""Exponents are raised to this: of numbers near the least that there are, products take a hundred
times as long."""


@compiled(nogil=True, fastmath={"contract"})
def _exponentials(
    row: Array, most: float, least: float, powers: NDArray[np.float64], bits: NDArray[np.int64]
) -> None:
    """row_j := exp(max(row_j − most, least)); bits are those of powers, whose values are lost."""
    c = TERMS
    for j in range(len(row)):
        x = row[j] - most
        if x < least:
            x = least
        shifted = x * LOG2_E + ROUNDER
        powers[j] = shifted
        k = shifted - ROUNDER
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        s = r * r
        even = c[0] + s * (c[2] + s * (c[4] + s * (c[6] + s * (c[8] + s * (c[10] + s * c[12])))))
        odd = c[1] + s * (c[3] + s * (c[5] + s * (c[7] + s * (c[9] + s * (c[11] + s * c[13])))))
        row[j] = even + r * odd
    for j in range(len(row)):
        bits[j] = (bits[j] + 1023) << 52
    for j in range(len(row)):
        row[j] *= powers[j]


@compiled(nogil=True, fastmath={"reassoc", "nsz"})
def _sum(row: Array) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total


@compiled(nogil=True)
def soften(
    E: Array,
    start: int,
    starts: Indices,
    ends: Indices,
    most: Array,
    least: float,
    sums: NDArray[np.float64],
) -> None:
    """E_ij := exp(E_ij − most_i), 0 for the point itself; sums := those of its class, and others.

    Parameters
    ----------
    E : array of shape (b, n)
        Its rows are the points start … start + b − 1.
    starts, ends : arrays of shape (n,)
        Where the class of each point starts and ends.
    most : array of shape (b,)
    least : float
        What exponents are raised to.
    sums : array of shape (2, b)
        Written.
    """
    powers = np.empty(E.shape[1])
    bits = powers.view(np.int64)
    for i in range(E.shape[0]):
        row, own = E[i], start + i
        _exponentials(row, most[i], least, powers, bits)
        row[own] = 0
        # Both sums, and not one less the other: either may be all there is.
        sums[0, i] = _sum(row[starts[own] : ends[own]])
        sums[1, i] = _sum(row[: starts[own]]) + _sum(row[ends[own] :])


@compiled(nogil=True)
def weigh(E: Array, start: int, starts: Indices, ends: Indices, f: Array, g: Array) -> None:
    """Multiply E_ij by f_i where j is of the class of i, else by g_i."""
    for i in range(E.shape[0]):
        row, own = E[i], start + i
        for j in range(starts[own]):
            row[j] *= g[i]
        for j in range(starts[own], ends[own]):
            row[j] *= f[i]
        for j in range(ends[own], len(row)):
            row[j] *= g[i]
