"""What LMNN asks of its input beyond what scikit-learn checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.learners.lmnn.lbfgs import Matrix64

MOST_SPARSE = 2**27


def dense(X: Matrix) -> Array:
    """X as a dense array, if it is not sparse and large."""
    if not sp.issparse(X):
        return X
    if X.shape[0] * X.shape[1] > MOST_SPARSE:
        raise TooLargeError(
            f"LMNN learns a dense map of dense rows; made dense, X would have {X.shape[0]:,} × "
            f"{X.shape[1]:,} values, more than {MOST_SPARSE:,}. Reduce the features first, for "
            "example with sklearn.decomposition.TruncatedSVD, or use OASIS or d-AROMA, which keep "
            "sparse rows."
        )
    return X.toarray()


def labels(y: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The classes, and the class number of each row."""
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            "LMNN needs labels of at least two classes, to push one from the other. Got one class."
        )
    if np.bincount(numbers).max() < 2:
        raise InvalidInputError(
            f"LMNN needs a class with at least two points, to pull together. Got {len(classes)} "
            "classes of one point each."
        )
    return classes, numbers


def components(n_components: int | None, n_features: int, solver: str) -> None:
    """Refuse more rows than features, and a given rank for the convex problem."""
    if n_components is None:
        return
    if solver == "M":
        raise InvalidInputError(
            "solver='M' is convex only without a limit on the rank. Got "
            f"n_components={n_components}; use solver='L', or reduce the result with "
            f"metric_.reduce({n_components})."
        )
    if n_components > n_features:
        raise InvalidInputError(
            f"n_components must be at most the number of features, {n_features}. Got "
            f"{n_components} instead."
        )


def start(L: ArrayLike, n_components: int | None, n_features: int, name: str) -> Matrix64:
    """A map to start from, of the right shape."""
    L = np.array(L, dtype=np.float64)
    rows = n_components or (L.shape[0] if L.ndim == 2 else n_features)
    if L.shape != (rows, n_features) or not np.isfinite(L).all():
        raise InvalidInputError(
            f"{name} must be a finite array of shape ({rows}, {n_features}). Got shape {L.shape} "
            "instead."
        )
    return L


def targets(
    given: ArrayLike | None, y: Indices, validation_fraction: float | None
) -> Indices | None:
    """Target neighbors by row number, of the same class and not the point itself."""
    if given is None:
        return None
    if validation_fraction is not None:
        raise InvalidInputError(
            "targets name rows of X, some of which validation_fraction would hold out; use only "
            "one of the two."
        )
    T = np.asarray(given)
    if T.ndim != 2 or len(T) != len(y) or T.shape[1] < 1 or T.dtype.kind not in "iu":
        raise InvalidInputError(
            f"targets must be an integer array of shape ({len(y)}, k). Got {T.dtype} of shape "
            f"{T.shape} instead."
        )
    if T.min() < -1 or T.max() >= len(y):
        raise InvalidInputError(
            f"targets must be row numbers from 0 to {len(y) - 1}, or −1 for none. Got values from "
            f"{T.min()} to {T.max()}."
        )
    wrong = (T >= 0) & ((y[T] != y[:, None]) | (T == np.arange(len(y))[:, None]))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise InvalidInputError(
            f"Targets must be other points of the same class. Got row {T[i, j]} as a target of row "
            f"{i}; give −1 where there is none."
        )
    return T


def held_out(rows: Indices, fraction: float) -> None:
    """Refuse to hold out nothing."""
    if not len(rows):
        raise InvalidInputError(
            f"validation_fraction={fraction:g} holds out no point of any class; raise it, or leave "
            "it out."
        )
