"""Symmetric positive semi-definite matrices: projection on the cone, and M ↔ L with M = LᵀL."""

from __future__ import annotations

import numpy as np

from samewise._typing import Array


def symmetrize(M: Array) -> Array:
    """The symmetric part (M + Mᵀ)/2 of a square matrix.

    Examples
    --------
    >>> import numpy as np
    >>> symmetrize(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    S: Array = np.add(M, M.T, order="C")
    S *= 0.5
    return S


def project(M: Array) -> Array:
    """P_S(M): the positive semi-definite matrix nearest to M in the Frobenius norm.

    The negative eigenvalues of the symmetric part of M become zero.

    Parameters
    ----------
    M : array of shape (d, d)

    Returns
    -------
    array of shape (d, d)
        Symmetric, in C order, a new array.

    Examples
    --------
    >>> import numpy as np
    >>> project(np.diag([2.0, -1.0]))
    array([[2., 0.],
           [0., 0.]])
    """
    S = symmetrize(M)
    eigenvalues, V = np.linalg.eigh(S)
    negative = int(np.searchsorted(eigenvalues, 0.0))
    # The smaller of the two parts of the spectrum is the cheaper one to multiply out.
    if negative <= len(S) - negative:
        V = V[:, :negative]
        return symmetrize(S - (V * eigenvalues[:negative]) @ V.T)
    V = V[:, negative:]
    return symmetrize((V * eigenvalues[negative:]) @ V.T)


def decompose(M: Array) -> tuple[Array, Array]:
    """Eigenvalues of a symmetric matrix, largest first, and its eigenvectors as rows.

    Each eigenvector's largest entry is positive, so that the answer does not hang on LAPACK.

    Examples
    --------
    >>> import numpy as np
    >>> decompose(np.diag([1.0, 4.0]))[0]
    array([4., 1.])
    """
    eigenvalues, V = np.linalg.eigh(M)
    rows = np.ascontiguousarray(V[:, ::-1].T)
    return np.ascontiguousarray(eigenvalues[::-1]), _positive_rows(rows)


def components_of(eigenvalues: Array, vectors: Array, tol: float = 1e-12) -> tuple[Array, Array]:
    """L = √Λ V from what `decompose` gave, without eigenvalues up to tol·λ_max.

    Examples
    --------
    >>> import numpy as np
    >>> components_of(*decompose(np.diag([0.0, 4.0])))
    (array([[0., 2.]]), array([4.]))
    """
    kept = effective_rank(eigenvalues, tol)
    eigenvalues = eigenvalues[:kept].copy()
    return np.sqrt(eigenvalues)[:, None] * vectors[:kept], eigenvalues


def factor(M: Array, tol: float = 1e-12) -> tuple[Array, Array]:
    """Components L and eigenvalues of a positive semi-definite M = LᵀL.

    Parameters
    ----------
    M : array of shape (d, d)
        Symmetric. Negative eigenvalues are dropped as if they were zero.
    tol : float
        Eigenvalues up to ``tol`` times the largest one are dropped.

    Returns
    -------
    components : array of shape (r, d)
        Row i is √λ_i times the i-th eigenvector, by decreasing eigenvalue.
    eigenvalues : array of shape (r,)

    Examples
    --------
    >>> import numpy as np
    >>> components, eigenvalues = factor(np.diag([4.0, 0.0, 9.0]))
    >>> components
    array([[0., 0., 3.],
           [2., 0., 0.]])
    >>> eigenvalues
    array([9., 4.])
    """
    return components_of(*decompose(M), tol=tol)


def root_of(components: Array, eigenvalues: Array) -> Array:
    """The symmetric root M^½ = Vᵀ√ΛV from what `factor` gave.

    It is continuous in M, also where eigenvectors swap: ‖A^½ − B^½‖ ≤ √‖A − B‖ in the operator
    norm.

    Examples
    --------
    >>> import numpy as np
    >>> root_of(*factor(np.array([[2.0, 2.0], [2.0, 2.0]])))
    array([[1., 1.],
           [1., 1.]])
    """
    counts = eigenvalues > 0
    L = components[counts]
    return symmetrize(L.T @ (L / np.sqrt(eigenvalues[counts])[:, None]))


def effective_rank(eigenvalues: Array, tol: float = 1e-9) -> int:
    """Number of eigenvalues greater than tol·λ_max (none, if λ_max is not positive).

    Examples
    --------
    >>> import numpy as np
    >>> effective_rank(np.array([2.0, 1.0, 1e-12]))
    2
    """
    largest = np.max(eigenvalues, initial=0.0)
    return int(np.count_nonzero(eigenvalues > tol * largest))


def _positive_rows(rows: Array) -> Array:
    if rows.size == 0:
        return rows
    peaks = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    rows *= np.where(peaks < 0, -1, 1).astype(rows.dtype)
    return rows
