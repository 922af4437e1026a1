"""Products and distances of rows, row by row and all against all, dense or CSR."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from samewise._typing import Array, Matrix


def row_slices(n_rows: int, row_bytes: int, block_bytes: int) -> Iterator[slice]:
    """Cut rows 0..n_rows into slices of about block_bytes, at least one row each.

    Examples
    --------
    >>> list(row_slices(5, row_bytes=8, block_bytes=16))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, block_bytes // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def dense(X: Matrix) -> Array:
    """X as a dense array (X itself if it is one already).

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> dense(csr_array([[0.0, 1.0]]))
    array([[0., 1.]])
    """
    return X.toarray() if sparse.issparse(X) else X


def difference(X: Matrix, Y: Matrix) -> Matrix:
    """X − Y, sparse only if both are.

    Examples
    --------
    >>> import numpy as np
    >>> difference(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]]))
    array([[2., 0.]])
    """
    if sparse.issparse(X) and sparse.issparse(Y):
        return X - Y
    return dense(X) - dense(Y)


def times(X: Matrix, A: Array) -> Array:
    """The product XA of rows X (dense or CSR) with a dense A, as a dense array.

    Examples
    --------
    >>> import numpy as np
    >>> times(np.array([[1.0, 2.0]]), np.eye(2))
    array([[1., 2.]])
    """
    return np.asarray(X @ A)


def row_dots(X: Matrix, Y: Matrix) -> Array:
    """x_iᵀy_i for each row i.

    Examples
    --------
    >>> import numpy as np
    >>> row_dots(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([11.])
    """
    if sparse.issparse(X):
        return np.asarray(X.multiply(Y).sum(axis=1)).ravel()
    if sparse.issparse(Y):
        return row_dots(Y, X)
    return np.einsum("ij,ij->i", X, Y)


def all_dots(X: Matrix, Y: Matrix) -> Array:
    """x_iᵀy_j for all i and j, as a dense array in C order.

    Examples
    --------
    >>> import numpy as np
    >>> all_dots(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[11.,  1.]])
    """
    if sparse.issparse(Y) and not sparse.issparse(X):
        return np.ascontiguousarray((Y @ X.T).T)
    return np.ascontiguousarray(dense(X @ Y.T))


def row_sums(X: Matrix) -> Array:
    """|x_i|₁, the sum of the absolute values of each row.

    Examples
    --------
    >>> import numpy as np
    >>> row_sums(np.array([[1.0, -2.0]]))
    array([3.])
    """
    return np.asarray(abs(X).sum(axis=1)).ravel()


def squared_norms(X: Matrix) -> Array:
    """‖x_i‖² for each row i.

    Examples
    --------
    >>> import numpy as np
    >>> squared_norms(np.array([[3.0, 4.0]]))
    array([25.])
    """
    return row_dots(X, X)


def squared_distances(E: Array, F: Array, F_sq: Array | None = None) -> Array:
    """‖e_i − f_j‖² for all i and j, by ‖e‖² + ‖f‖² − 2eᵀf, never below zero.

    The error is about the rounding of ‖e‖² + ‖f‖²: center both on a common point first.

    Parameters
    ----------
    E : array of shape (n, r)
    F : array of shape (m, r)
    F_sq : array of shape (m,), optional
        ‖f_j‖², where it is known already.

    Returns
    -------
    array of shape (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[25.,  0.]])
    """
    D = (-2 * E) @ F.T
    D += squared_norms(E)[:, None]
    D += squared_norms(F) if F_sq is None else F_sq
    return np.maximum(D, 0, out=D)
