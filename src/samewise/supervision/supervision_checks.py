"""The checks that every kind of supervision shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from samewise._typing import Indices, Matrix, Signs
from samewise.exceptions import InvalidInputError
from samewise.kernels.sparse_structure import refuse_masked, sound_rows

LARGEST = {np.dtype(np.float64): 1e70, np.dtype(np.float32): 1e15}
"""Beyond this a step would need ‖v‖⁴ or a product that the type cannot hold."""


def checked_rows(
    X: Any, n_features: int | None, name: str, least: int = 1, more_columns: bool = False
) -> Matrix:
    """X as finite float rows, dense or CSR: at least so many, with the wanted features.

    With `more_columns`, as for rows of a kernel matrix, there may be more features than wanted.
    """
    X = sound_rows(X, name)
    if not _plain_rows(X, least):
        try:
            X = check_array(
                X,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                input_name=name,
                ensure_min_samples=least,
            )
        except ValueError as error:
            raise InvalidInputError(f"{str(error).rstrip('.')}.") from error
    width = X.shape[1]
    if n_features is not None and (width < n_features or (width > n_features and not more_columns)):
        raise InvalidInputError(
            f"{name} has {width} features, but {n_features} are expected here; "
            "pass rows with the features the index and its form were made for."
        )
    return X


def _plain_rows(X: Any, least: int) -> bool:
    """Whether X is what `check_array` would return as it is, which takes it 100 µs to find out."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in LARGEST:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return len(X) >= least and X.shape[1] > 0 and bool(np.isfinite(X.sum()))


def labeled_rows(
    X: Any, y: ArrayLike, names: tuple[str, str] = ("X", "y")
) -> tuple[Matrix, NDArray[Any]]:
    """Finite rows of floats, and a label for each of them.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows.
    y : array of shape (n,)
        Their labels.
    names : (str, str), default=("X", "y")
        What to call the two in messages.

    Returns
    -------
    X : array or CSR matrix of shape (n, d)
        Of float64 or float32.
    y : array of shape (n,)
        The labels.
    """
    X = checked_rows(X, None, names[0])
    labels = parameter_array(y, names[1])
    if labels.shape != (X.shape[0],):
        raise InvalidInputError(
            f"{names[1]} must have one label for each of the {X.shape[0]} rows of {names[0]}. "
            f"Got shape {labels.shape}."
        )
    check_one_kind(labels)
    return X, labels


def check_one_kind(y: NDArray[Any]) -> None:
    """Refuse labels that cannot be put in order, as text and numbers cannot, or are missing."""
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise InvalidInputError(
            f"Labels must not be missing. Got NaT for {np.isnat(y).sum()} of {len(y)} examples."
        )
    if y.dtype.names:
        raise InvalidInputError(
            f"Labels must be one value for each example. Got an array with the fields "
            f"{', '.join(y.dtype.names)}; give one of them."
        )
    if y.dtype != object:
        return
    try:
        np.unique(y)
    except TypeError as error:
        kinds = " and ".join(sorted({type(label).__name__ for label in y.ravel()})[:3])
        raise InvalidInputError(
            f"Labels must be of one kind, text or numbers. Got {kinds}; make them one, for "
            "instance with y.astype(str)."
        ) from error


def numeric_targets(y: NDArray[Any], owner: str) -> NDArray[np.float64]:
    """Numbers to predict, as float64.

    Examples
    --------
    >>> numeric_targets(np.array([1, 2]), "MLKR")
    array([1., 2.])
    """
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{owner} predicts numbers. Got targets of the type {y.dtype}; give numbers, or learn "
            "classes with others, such as NCA and KNNClassifier."
        ) from error
    limit, largest = LARGEST[numbers.dtype], np.abs(numbers).max(initial=0.0)
    if not largest < limit:
        raise InvalidInputError(
            f"Targets must be finite numbers below {limit:g}. Got values up to {largest:.3g}; "
            "scale them."
        )
    return numbers


def checked_matrix(X: Any, name: str = "X") -> Matrix:
    """X as a finite 2-D float array or CSR matrix; float32 and float64 pass uncopied.

    The indices of a CSR matrix are a read-only copy: they stay those that were checked.
    """
    X = checked_rows(X, None, name, least=0)
    values = X
    if sp.issparse(X):
        values = X.data
        X.indices, X.indptr = read_only(X.indices), read_only(X.indptr)
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    if largest > LARGEST[X.dtype]:
        raise InvalidInputError(
            f"{name} holds values up to {largest:.3g}, with which squared inner products overflow "
            f"{X.dtype}; scale the features below {LARGEST[X.dtype]:g}."
        )
    return X


def names_of_columns(X: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame, if all of them are texts."""
    names = getattr(X, "columns", None)
    if names is None:
        return None
    found = tuple(names)
    return found if all(isinstance(name, str) for name in found) else None


def checked_indices(indices: ArrayLike, n_rows: int, name: str) -> Indices:
    """Row numbers in [0, n_rows), read-only; an integer array is taken without a copy."""
    indices = parameter_array(indices, name)
    if indices.ndim != 1 or (indices.dtype.kind not in "iu" and indices.size):
        raise InvalidInputError(
            f"{name} must be a one-dimensional array of integer row numbers. Got an array of shape "
            f"{indices.shape} and type {indices.dtype}."
        )
    if indices.size == 0:
        indices = indices.astype(np.intp)
    elif indices.min() < 0 or indices.max() >= n_rows:
        bad = indices[(indices < 0) | (indices >= n_rows)][0]
        raise InvalidInputError(
            f"{name} must hold row numbers from 0 to {n_rows - 1} (the matrix has {n_rows} rows). "
            f"Got {bad}."
        )
    return read_only(indices)


def checked_signs(y: ArrayLike, n: int) -> Signs:
    """Labels of pairs: +1 for similar, −1 for dissimilar, nothing else."""
    y = parameter_array(y, "y")
    if y.ndim != 1 or len(y) != n:
        raise InvalidInputError(
            f"y must have one label for each of the {n} pairs. Got an array of shape {y.shape}."
        )
    if y.dtype.kind not in "iuf" or not np.all((y == 1) | (y == -1)):
        seen = list(dict.fromkeys(y.tolist()))[:5]
        raise InvalidInputError(
            f"Labels of pairs must be +1 (similar) or -1 (dissimilar). Got {seen}; for labels 0/1 "
            "pass 2*y - 1."
        )
    return read_only(y.astype(np.int8, copy=False))


def checked_weights(
    sample_weight: ArrayLike | None, n: int, what: str
) -> NDArray[np.float64] | None:
    """Non-negative finite weights, one each, or None."""
    if sample_weight is None:
        return None
    weights = parameter_array(sample_weight, "sample_weight")
    if weights.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"sample_weight must be real numbers. Got an array of type {weights.dtype}."
        )
    weights = weights.astype(np.float64, copy=False)
    if weights.shape != (n,):
        raise InvalidInputError(
            f"sample_weight must have one weight for each of the {n} {what}. Got an array of shape "
            f"{weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InvalidInputError(
            "sample_weight must be finite and not negative (0 leaves an example out). Got values "
            f"from {np.min(weights)} to {np.max(weights)}."
        )
    if np.max(weights, initial=0.0) > LARGEST[weights.dtype]:
        raise InvalidInputError(
            f"sample_weight holds values up to {np.max(weights):.3g}, whose sums and products "
            f"overflow; scale the weights below {LARGEST[weights.dtype]:g}."
        )
    return read_only(weights)


def parameter_array(values: Any, name: str, dtype: Any = None) -> NDArray[Any]:
    """What a user gives as an array: it may be ragged, masked or sparse, or no numbers."""
    refuse_masked(values, name)
    if sp.issparse(values):
        raise InvalidInputError(f"{name!r} must be a dense array. Got {type(values).__name__}.")
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"{name!r} must be a rectangular array of numbers, but {str(error).rstrip('.')}."
        ) from error


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of the array."""
    view = array.view()
    view.flags.writeable = False
    return view
