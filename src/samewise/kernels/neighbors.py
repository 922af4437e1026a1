"""The k best of each row, exactly, with ties resolved by the smaller column."""

from __future__ import annotations

import numpy as np

from samewise._typing import Array, Indices

_GROUPS = 32


def top_k(C: Array, k: int) -> Indices:
    """Columns of the k largest values of each row, best first, ties by the smaller column.

    Parameters
    ----------
    C : ndarray of shape (n, m)
        Closeness values, without NaN.
    k : int
        How many per row, 1 ≤ k ≤ m.

    Returns
    -------
    ndarray of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> top_k(np.array([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]]), 2)
    array([[1, 2],
           [0, 1]])
    """
    n, m = C.shape
    rows, columns = at_least(C, kth_bound(C, k))
    # Few candidates are sorted; where a good part of everything ties, a partition is cheaper.
    if 8 * rows.size <= n * m:
        return first_k_per_row(rows, columns, -C[rows, columns], n, k)[1]
    return _top_k_by_partition(C, k)


def _top_k_by_partition(C: Array, k: int) -> Indices:
    m = C.shape[1]
    best = np.sort(np.argpartition(C, m - k, axis=1)[:, m - k :], axis=1)
    values = np.take_along_axis(C, best, axis=1)
    kth = values.min(axis=1, keepdims=True)
    # A partition keeps any of the columns that tie for the last place: where some were left
    # out, the row is filled again from the left.
    at_kth = C == kth
    tied = np.flatnonzero(at_kth.sum(axis=1) > (values == kth).sum(axis=1))
    if tied.size:
        above = C[tied] > kth[tied]
        room = k - above.sum(axis=1, keepdims=True)
        kept = above | (at_kth[tied] & (np.cumsum(at_kth[tied], axis=1) <= room))
        best[tied] = np.nonzero(kept)[1].reshape(tied.size, k)
        values[tied] = np.take_along_axis(C[tied], best[tied], axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def kth_bound(C: Array, k: int) -> Array:
    """A value per row that at least k values of the row reach, close to the k-th largest.

    It is the k-th largest of the maxima of groups of columns, which takes a fraction of the time
    of a partition of the row; for short rows it is the k-th largest value itself.

    Parameters
    ----------
    C : ndarray of shape (n, m)
    k : int

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> kth_bound(np.array([[1.0, 4.0, 2.0, 3.0]]), 2)
    array([3.])
    """
    width = C.shape[1] // _GROUPS
    maxima = C
    if width >= 4 * k:
        maxima = C[:, :width].copy()
        for start in range(width, width * _GROUPS, width):
            np.maximum(maxima, C[:, start : start + width], out=maxima)
    at = maxima.shape[1] - k
    return np.partition(maxima, at, axis=1)[:, at]


def at_least(C: Array, bound: Array) -> tuple[Indices, Indices]:
    """Rows and columns of the values that reach their row's bound, in row order.

    Examples
    --------
    >>> import numpy as np
    >>> at_least(np.array([[1.0, 4.0], [2.0, 3.0]]), np.array([2.0, 2.0]))
    (array([0, 1, 1]), array([1, 0, 1]))
    """
    # One flat search is several times faster than np.nonzero in two dimensions.
    rows, columns = np.divmod(np.flatnonzero(C >= bound[:, None]), C.shape[1])
    return rows, columns


def first_k_per_row(
    rows: Indices, columns: Indices, values: Array, n_rows: int, k: int
) -> tuple[Array, Indices]:
    """The k smallest values of each row of a ragged list, ties by the smaller column.

    Parameters
    ----------
    rows, columns : ndarray of shape (t,)
        Where each value stands; every row number 0 … n_rows − 1 appears at least k times.
    values : ndarray of shape (t,)
    n_rows : int
    k : int

    Returns
    -------
    values : ndarray of shape (n_rows, k)
        Ascending.
    columns : ndarray of shape (n_rows, k)

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([0, 0, 0, 1, 1])
    >>> columns = np.array([4, 2, 7, 1, 0])
    >>> values, columns = first_k_per_row(rows, columns, np.array([1.0, 1, 0, 3, 2]), 2, 2)
    >>> columns
    array([[7, 2],
           [0, 1]])
    """
    order = np.lexsort((columns, values, rows))
    starts = np.searchsorted(rows[order], np.arange(n_rows))
    chosen = order[starts[:, None] + np.arange(k)]
    return values[chosen], columns[chosen]
