"""Products of sparse rows, one term after the other: the same bits in whatever blocks they come.

Rows are three arrays as in CSR, in one tuple: indptr (int64), indices (int32, ascending in each
row) and data (float64). Every sum goes through the terms in ascending order, so that a product is
the same number whether a row is compared alone or among others.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise.kernels.compiling import compiled

_Floats = NDArray[np.float64]
# A plain tuple: numba takes a named one only after a slow look at its class.
_Rows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], _Floats]
_TABLE = 4096
# What rounding may add to the length of a vector, relative to it.
_ROUNDING = 1 + 1e-9


@compiled(nogil=True)
def to_unit(indptr: NDArray[np.int64], data: _Floats) -> None:
    """Divide each row by its length, in place; a zero row stays zero."""
    for i in range(len(indptr) - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * data[k]
        if total > 0.0:
            norm = np.sqrt(total)
            for k in range(indptr[i], indptr[i + 1]):
                data[k] /= norm


@compiled(nogil=True)
def dots(rows: _Rows, one: _Rows, work: _Floats) -> _Floats:
    """x_i·q for every row x_i and the one row q.

    `work` has a zero for each feature, and has them again afterwards.
    """
    indptr, indices, data = rows
    _, q_indices, q_data = one
    out = np.zeros(len(indptr) - 1)
    for k in range(len(q_indices)):
        work[q_indices[k]] = q_data[k]
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * work[indices[k]]
        out[i] = total
    for k in range(len(q_indices)):
        work[q_indices[k]] = 0.0
    return out


@compiled(nogil=True)
def tables(rows: _Rows, columns: _Rows, n: int) -> _Floats:
    """x_i·t_j for every row x_i and each of n others t_j, which are given by columns (CSC)."""
    indptr, indices, data = rows
    t_indptr, t_rows, t_data = columns
    out = np.zeros((len(indptr) - 1, n))
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            x, j = data[k], indices[k]
            for m in range(t_indptr[j], t_indptr[j + 1]):
                out[i, t_rows[m]] += x * t_data[m]
    return out


@compiled(nogil=True)
def first_above(
    places: NDArray[np.int64],
    s1: _Floats,
    rows: _Rows,
    documents: _Rows,
    alpha: float,
    limit: float,
    strict: bool,
    vocabulary: NDArray[np.uint8],
    work: _Floats,
) -> tuple[int, float]:
    """The first of some rows x with α s₁ + (1 − α) max_d x·d above a limit, and that value.

    Parameters
    ----------
    places : integer array
        The rows to look at, in this order.
    s1 : array of shape (n_rows,)
        s₁ of each row.
    rows : tuple of three arrays
        The rows x.
    documents : tuple of three arrays
        The rows d, at least one.
    alpha, limit : float
        The weight of s₁, and the limit.
    strict : bool
        Whether the value must be above the limit, or only at least the limit.
    vocabulary : array of shape (n_features,) or (0,)
        Not zero for the terms of the rows d, if these are of unit length: then x·d is at most the
        length of x on these terms, and rows for which that is too small are passed over.
    work : array of shape (n_features,)
        Zeros, and zeros again afterwards.

    Returns
    -------
    position, value : int and float
        The position in `places` (their number, if there is none) and the value.
    """
    indptr, indices, data = rows
    d_indptr, d_indices, d_data = documents
    # Most terms of d are not in x: a small table, which stays in the cache, says so.
    marked = np.zeros(_TABLE, dtype=np.uint8)
    for p in range(len(places)):
        i = places[p]
        if len(vocabulary):
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                if vocabulary[indices[k]]:
                    total += data[k] * data[k]
            if alpha * s1[i] + (1.0 - alpha) * np.sqrt(total) * _ROUNDING < limit:
                continue
        for k in range(indptr[i], indptr[i + 1]):
            work[indices[k]] = data[k]
            marked[indices[k] & (_TABLE - 1)] = 1
        best = -np.inf
        for m in range(len(d_indptr) - 1):
            total = 0.0
            for k in range(d_indptr[m], d_indptr[m + 1]):
                if marked[d_indices[k] & (_TABLE - 1)]:
                    total += d_data[k] * work[d_indices[k]]
            if total > best:
                best = total
        for k in range(indptr[i], indptr[i + 1]):
            work[indices[k]] = 0.0
            marked[indices[k] & (_TABLE - 1)] = 0
        value = alpha * s1[i] + (1.0 - alpha) * best
        if value > limit or (not strict and value == limit):
            return p, value
    return len(places), 0.0


@compiled(nogil=True)
def quadratics(rows: _Rows, T: _Floats) -> _Floats:
    """x_iᵀMx_i for every row x_i; the symmetric M stands in the lower triangle of T."""
    indptr, indices, data = rows
    out = np.zeros(len(indptr) - 1)
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            row, inner = T[indices[k]], 0.0
            for m in range(indptr[i], k):
                inner += row[indices[m]] * data[m]
            total += data[k] * (2.0 * inner + row[indices[k]] * data[k])
        out[i] = total
    return out


@compiled(nogil=True)
def nearest(rows: _Rows, squares: _Floats, one: _Rows, T: _Floats) -> tuple[int, float]:
    """The first row r with the smallest (x − r)ᵀM(x − r) to the one row x, and that value.

    The value is at least 0. `squares` are the rᵀMr; M stands in the lower triangle of T. There must
    be a row.
    """
    indptr, indices, data = rows
    _, x_indices, x_data = one
    Mx = np.zeros(len(T))
    for j in range(len(T)):
        total = 0.0
        for k in range(len(x_indices)):
            i = x_indices[k]
            total += (T[j, i] if i <= j else T[i, j]) * x_data[k]
        Mx[j] = total
    square = 0.0
    for k in range(len(x_indices)):
        square += x_data[k] * Mx[x_indices[k]]
    best, place = np.inf, 0
    for i in range(len(indptr) - 1):
        dot = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            dot += data[k] * Mx[indices[k]]
        value = max(squares[i] - 2.0 * dot + square, 0.0)
        if value < best:
            best, place = value, i
    return place, best
