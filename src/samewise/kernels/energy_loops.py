"""The loops of the energy rule over a block of squared distances.

D is a C-ordered array of shape (b, n): row t has the squared distances of a test point to all
training points, which stand class by class: class c in the columns starts[c] … starts[c + 1] − 1.
Rounding may have left values below zero, which are read as zero. Sums are in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.compiling import compiled

# Cells of the lookup table for each threshold: most cells hold none, and few more than one.
_CELLS = 4


@compiled(nogil=True)
def nearest(D: Array, starts: Indices, own: NDArray[np.float64]) -> None:
    """own_tc := the k smallest values of row t in class c, ascending; ∞ where there are fewer.

    Parameters
    ----------
    D : ndarray of shape (b, n)
    starts : ndarray of shape (n_classes + 1,)
    own : ndarray of shape (b, n_classes, k)
        Written.
    """
    k = own.shape[2]
    for t in range(D.shape[0]):
        row = D[t]
        for c in range(own.shape[1]):
            best = own[t, c]
            best[:] = np.inf
            farthest = np.inf
            for l in range(starts[c], starts[c + 1]):  # noqa: E741
                if row[l] < farthest:
                    d = max(row[l], 0.0)
                    j = k - 1
                    while j > 0 and best[j - 1] > d:
                        best[j] = best[j - 1]
                        j -= 1
                    best[j] = d
                    farthest = best[k - 1]


@compiled(nogil=True)
def invasions(
    D: Array, starts: Indices, perimeters: Array, reach: Array, out: NDArray[np.float64]
) -> None:
    """out_tc := Σ_{i in c} Σ_j [perimeters_ij − D_ti]₊, what t would pay to the members of c.

    Parameters
    ----------
    D : ndarray of shape (b, n)
    starts : ndarray of shape (n_classes + 1,)
    perimeters : ndarray of shape (n, m)
        Descending in each row; −∞ where a training point has fewer than m targets.
    reach : ndarray of shape (n,)
        The first column of `perimeters`, side by side.
    out : ndarray of shape (b, n_classes)
        Written.
    """
    for t in range(D.shape[0]):
        row = D[t]
        for c in range(out.shape[1]):
            total = 0.0
            for i in range(starts[c], starts[c + 1]):
                if row[i] < reach[i]:
                    d = max(row[i], 0.0)
                    for j in range(perimeters.shape[1]):
                        if perimeters[i, j] <= d:
                            break
                        total += perimeters[i, j] - d
            out[t, c] = total


@compiled(nogil=True)
def impostors(
    D: Array,
    starts: Indices,
    thresholds: NDArray[np.float64],
    order: Indices,
    out: NDArray[np.float64],
) -> None:
    """out_tc := Σ_j Σ_{l not in c} [τ_tcj − D_tl]₊, what others would pay to t as a member of c.

    All q thresholds of a row are put in order, and each distance into the bin of the first
    threshold above it. With N distances of sum S in the bins up to that of τ, all of them pay
    τN − S; what the members of c themselves would pay is taken off. The cost is linear in n,
    however many classes there are.

    Parameters
    ----------
    D : ndarray of shape (b, n)
    starts : ndarray of shape (n_classes + 1,)
    thresholds : ndarray of shape (b, q)
        τ ≥ 0: first those of class 0, then those of class 1, as many each; zero for none.
    order : ndarray of shape (b, q)
        The numbers that sort each row of `thresholds`.
    out : ndarray of shape (b, n_classes)
        Written.
    """
    n_classes, q = out.shape[1], thresholds.shape[1]
    k = q // n_classes
    near = np.empty(D.shape[1])
    rising = np.empty(q)
    table = np.empty(_CELLS * q + 2, dtype=np.int64)
    counts = np.empty(q, dtype=np.int64)
    sums = np.empty(q)
    for t in range(D.shape[0]):
        tau = thresholds[t]
        for p in range(q):
            rising[p] = tau[order[t, p]]
        m = 0
        for c in range(n_classes):
            first = m
            m = _below(D[t, starts[c] : starts[c + 1]], rising[q - 1], near, m)
            out[t, c] = -_hinges(tau[c * k : (c + 1) * k], near[first:m])
        _sort_in(near[:m], rising, table, counts, sums)
        N = 0
        S = 0.0
        for p in range(q):
            N += counts[p]
            S += sums[p]
            out[t, order[t, p] // k] += rising[p] * N - S


@compiled(nogil=True)
def _below(values: Array, top: float, near: NDArray[np.float64], m: int) -> int:
    """Append the values below top to the first m of `near`; how many there are then."""
    for l in range(values.shape[0]):  # noqa: E741
        d = max(values[l], 0.0)
        # Written in any case and kept by counting it: there is no branch to mispredict.
        near[m] = d
        m += d < top
    return m


@compiled(nogil=True)
def _hinges(tau: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    total = 0.0
    for d in values:
        for j in range(tau.shape[0]):
            total += max(tau[j] - d, 0.0)
    return total


@compiled(nogil=True)
def _sort_in(
    values: NDArray[np.float64],
    rising: NDArray[np.float64],
    table: Indices,
    counts: Indices,
    sums: NDArray[np.float64],
) -> None:
    """Count and add up the values between one threshold and the next; all are below the last."""
    q, top = rising.shape[0], rising[-1]
    counts[:] = 0
    sums[:] = 0.0
    if values.shape[0] == 0:
        return
    # table[g]: thresholds in cells before g. The cell does not fall with the value, so the bin of
    # a value in cell g lies between table[g] and table[g + 1]: seldom anything to search.
    table[:] = 0
    for p in range(q):
        table[_cell(rising[p], top, q) + 1] += 1
    for g in range(1, table.shape[0]):
        table[g] += table[g - 1]
    for d in values:
        g = _cell(d, top, q)
        p, wide = table[g], table[g + 1] - table[g] + 1
        while wide > 1:
            half = wide // 2
            if rising[p + half - 1] <= d:
                p += half
            wide -= half
        counts[p] += 1
        sums[p] += d


@compiled(nogil=True)
def _cell(value: float, top: float, q: int) -> int:
    return int(value / top * (_CELLS * q))
