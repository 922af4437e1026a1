"""The one gate for what a form is given: rows to compare, and the arrays it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from samewise._typing import Array, Matrix
from samewise.exceptions import (
    DegenerateInputError,
    InvalidInputError,
    NotPSDError,
    TooLargeError,
)
from samewise.forms._frozen import freeze
from samewise.kernels import psd
from samewise.kernels.sparse_structure import sound_rows

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
# How far from symmetric and from semi-definite rounding alone may bring a matrix, relative to its
# largest entry and eigenvalue.
_SYMMETRY = {_FLOATS[0]: 1e-5, _FLOATS[1]: 1e-8}
_NEGATIVITY = {_FLOATS[0]: 1e-5, _FLOATS[1]: 1e-9}


def check_rows(X: Any, name: str, n_features: int, owner: str) -> Matrix:
    """X as float32 or float64 rows, dense or canonical CSR, with the right number of features."""
    X = _as_rows(X, name)
    if X.shape[1] != n_features:
        raise InvalidInputError(
            f"{name} has {X.shape[1]} features, but {owner} expects {n_features}; "
            "give rows with the features the form was made for."
        )
    return X


def check_columns(X: Any, name: str, n_columns: int, owner: str) -> Matrix:
    """Like `check_rows`, for rows of a kernel matrix: more columns than needed are fine."""
    X = _as_rows(X, name)
    if X.shape[1] < n_columns:
        raise InvalidInputError(
            f"{name} has {X.shape[1]} columns, but {owner} with a precomputed kernel needs at least"
            f" {n_columns}; give the kernel of these rows with all training points."
        )
    return X


def check_finite(values: Array, name: str) -> None:
    """Refuse NaN and infinities."""
    # A finite sum proves finite terms without a temporary array; the slow look is for the rest.
    with np.errstate(over="ignore", invalid="ignore"):
        proven = np.isfinite(values.sum())
    if not proven and not np.isfinite(values).all():
        raise InvalidInputError(
            f"{name} contains NaN or infinity, but every value must be finite; "
            "impute or drop those values."
        )


def check_magnitude(X: Matrix, name: str) -> None:
    """Refuse values whose squared distances overflow."""
    values = X.data if sparse.issparse(X) else X
    largest = max(values.max(initial=0), -values.min(initial=0))
    limit = np.sqrt(np.finfo(X.dtype).max / (16 * max(1, X.shape[1])))
    if largest > limit:
        raise InvalidInputError(
            f"{name} holds values up to {largest:.3g}, whose squared distances overflow "
            f"{X.dtype}; scale the features below {limit:.3g}."
        )


def check_squares(values: Array, name: str) -> None:
    """Refuse a map whose metric would overflow."""
    if not np.isfinite(np.einsum("ij,ij->", values, values)):
        raise InvalidInputError(
            f"{name} hold values up to {np.abs(values).max():.3g}, whose squares overflow "
            f"{values.dtype}; scale the features up."
        )


def check_overflow(values: Array, owner: str) -> None:
    """Refuse values, computed by a form within `naming_rows`, that are not finite."""
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        raise InvalidInputError(
            f"On these rows the values of {owner} overflow {values.dtype}; scale the features."
        )


def check_matrix(matrix: Any, name: str, owner: str, *, least_rows: int = 0) -> Array:
    """A read-only copy of a finite two-dimensional array of float32 or float64."""
    label = f"The {name} of {owner}"
    values = _as_dense(matrix, label)
    if values.ndim != 2:
        raise InvalidInputError(
            f"{label} must have two dimensions, but it has {values.ndim}; give a 2-D array."
        )
    if values.shape[1] == 0:
        raise InvalidInputError(
            f"{label} must have at least one column, but its shape is {values.shape}."
        )
    if values.shape[0] < least_rows:
        raise InvalidInputError(
            f"{label} must have at least one row, but its shape is {values.shape}."
        )
    check_finite(values, label)
    return frozen(values)


def check_on_zero(on_zero: str, owner: str) -> None:
    """Refuse anything but the two ways to treat rows that have no similarity."""
    if on_zero not in ("raise", "zero"):
        raise InvalidInputError(
            f"The on_zero of {owner} must be 'raise' or 'zero', but it is {on_zero!r}."
        )


def check_square(matrix: Array, owner: str) -> None:
    """Refuse a matrix that is not square."""
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidInputError(
            f"The matrix of {owner} must be square, but its shape is {matrix.shape}."
        )


def check_psd(matrix: Any, owner: str) -> tuple[Array, Array, Array]:
    """Read-only matrix, components and eigenvalues of a positive semi-definite matrix."""
    M = check_matrix(matrix, "matrix", owner)
    check_square(M, owner)
    size = np.abs(M).max()
    if size > np.finfo(M.dtype).max / (4 * len(M)):
        raise InvalidInputError(
            f"The matrix of {owner} holds values up to {size:.3g}, with which its eigenvalues "
            f"overflow {M.dtype}; scale it down."
        )
    gap = np.abs(M - M.T).max()
    if gap > _SYMMETRY[M.dtype] * size:
        raise NotPSDError(
            f"The matrix of {owner} must be symmetric, but entries across its diagonal differ by "
            f"up to {gap:.3g}; give (M + M.T) / 2."
        )
    M = psd.symmetrize(M)
    eigenvalues, vectors = psd.decompose(M)
    smallest = eigenvalues[-1]
    if smallest < -_NEGATIVITY[M.dtype] * np.abs(eigenvalues).max():
        raise NotPSDError(
            f"The matrix of {owner} must be positive semi-definite, but its smallest eigenvalue is "
            f"{smallest:.6g}; Mahalanobis.nearest(matrix).matrix is the nearest that is."
        )
    if smallest < 0:
        M = psd.symmetrize(M - _negative_part(eigenvalues, vectors))
    components, eigenvalues = psd.components_of(eigenvalues, vectors)
    return frozen(M), frozen(components), frozen(eigenvalues)


def check_factored(
    matrix: Array, components: Array, eigenvalues: Array, owner: str
) -> tuple[Array, Array, Array]:
    """The same three arrays, if they belong together: cheaper than decomposing once more."""
    for name, values, ndim in (
        ("matrix", matrix, 2),
        ("components", components, 2),
        ("eigenvalues", eigenvalues, 1),
    ):
        if values.ndim != ndim or values.dtype not in _FLOATS:
            raise InvalidInputError(f"The {name} of {owner} must be a {ndim}-D array of floats.")
        check_finite(values, f"The {name} of {owner}")
    check_square(matrix, owner)
    r, d = len(eigenvalues), len(matrix)
    if d == 0 or components.shape != (r, d):
        raise InvalidInputError(f"The components of {owner} must have the shape {(r, d)}.")
    tolerance = 1e-6 if matrix.dtype == np.float64 else 1e-3
    with np.errstate(over="ignore", invalid="ignore"):
        # Beside the least number with all its digits, rounding is not a part of anything.
        scale = tolerance * np.max(eigenvalues, initial=0.0) + np.finfo(matrix.dtype).tiny
        fits = (
            np.all(np.abs(components.T @ components - matrix) <= scale)
            and np.all(np.abs((components**2).sum(axis=1) - eigenvalues) <= scale)
            and np.all(np.diff(eigenvalues) <= 0)
        )
    if not fits:
        raise InvalidInputError(f"The components and eigenvalues of {owner} are not its matrix's.")
    return matrix, components, eigenvalues


def check_size(what: str, n: int, m: int, dtype: np.dtype[Any], max_bytes: float) -> None:
    """Refuse an (n, m) result of more than max_bytes before it is allocated."""
    needed = n * m * dtype.itemsize
    if needed > max_bytes:
        raise TooLargeError(
            f"{what} would need {_gib(needed)} ({n} × {m} {dtype}), more than "
            f"max_bytes={_gib(max_bytes)}; go through it with `blocks`, or raise max_bytes."
        )


class UndefinedRowsError(Exception):
    """A value is undefined for rows of a block; only the caller knows where the block starts."""

    def __init__(self, describe: Callable[[int], str]) -> None:
        super().__init__()
        self.describe = describe


@contextmanager
def naming_rows(start: int = 0) -> Iterator[None]:
    """Turn an UndefinedRowsError into the user's error, with the row numbers of the whole.

    Overflow is left to `check_overflow`, which says what to do about it.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except UndefinedRowsError as error:
        raise DegenerateInputError(error.describe(start)) from None


def frozen(values: Array) -> Array:
    """A read-only copy in C order."""
    return freeze(np.array(values, order="C"))


def _gib(n_bytes: float) -> str:
    # Small limits keep three digits, so that a message never says "more than 0.0 GiB".
    gib = n_bytes / 2**30
    return f"{gib:.1f} GiB" if gib >= 0.1 else f"{gib:.3g} GiB"


def _negative_part(eigenvalues: Array, vectors: Array) -> Array:
    negative = eigenvalues < 0
    V = vectors[negative]
    return (V.T * eigenvalues[negative]) @ V


def _as_rows(X: Any, name: str) -> Matrix:
    X = _as_csr(X, name) if sparse.issparse(X) else _as_dense(X, name)
    if X.ndim == 1:
        raise InvalidInputError(
            f"{name} must have two dimensions (rows, features), but it has one; reshape it with "
            f"{name}.reshape(1, -1) if it is one row, {name}.reshape(-1, 1) if it is one feature."
        )
    if X.ndim != 2:
        raise InvalidInputError(
            f"{name} must have two dimensions (rows, features), but it has {X.ndim}; reshape it."
        )
    check_finite(X.data if sparse.issparse(X) else X, name)
    return X


def _as_dense(X: Any, name: str) -> Array:
    if sparse.issparse(X):
        X = sound_rows(X, name).toarray()
    try:
        X = np.asarray(X)
        if X.dtype in _FLOATS and X.dtype.isnative:
            return X
        if X.dtype.kind not in "biufO":
            raise TypeError(f"it holds {X.dtype}")
        return X.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{name} must be a rectangular array of real numbers, but {str(error).rstrip('.')}."
        ) from error


def _as_csr(X: Any, name: str) -> Matrix:
    X = sound_rows(X, name)
    return X if X.dtype in _FLOATS else X.astype(np.float64)
