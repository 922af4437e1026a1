"""Rows for learners that work on dense ones and on their squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import min_max_axis

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.supervision.supervision_checks import LARGEST

MOST_SPARSE = 2**27
"""The most values of a sparse matrix that is made dense."""


def dense_rows(X: Matrix, owner: str) -> Array:
    """X as a dense array; refused if it is sparse and too large, or of an extreme scale.

    Examples
    --------
    >>> dense_rows(sp.csr_array([[0.0, 1.0]]), "LMNN")
    array([[0., 1.]])
    """
    check_scale(X)
    if not sp.issparse(X):
        return X
    if X.shape[0] * X.shape[1] > MOST_SPARSE:
        raise TooLargeError(
            f"{owner} works on dense rows; made dense, X would have {X.shape[0]:,} × "
            f"{X.shape[1]:,} values, more than {MOST_SPARSE:,}. Reduce the features first, for "
            "example with sklearn.decomposition.TruncatedSVD, take fewer examples, or use OASIS, "
            "which keeps sparse rows."
        )
    return X.toarray()


def typed(values: Array, dtype: np.dtype[Any]) -> Array:
    """What was learned, in the type of the examples; refused if it overflows that.

    Examples
    --------
    >>> typed(np.array([0.5]), np.dtype(np.float32))
    array([0.5], dtype=float32)
    """
    with np.errstate(over="ignore"):
        result = values.astype(dtype)
    if not np.isfinite(result).all():
        raise InvalidInputError(
            f"What was learned has values up to {np.abs(values).max():.3g}, which overflow "
            f"{dtype}; scale the features up, or remove those that hardly vary."
        )
    return result


def check_scale(X: Matrix) -> None:
    """Refuse rows whose squares overflow, or differ by so little that its square vanishes.

    Rows of Pairs are the user's, and may have been changed since they were checked.

    Examples
    --------
    >>> check_scale(np.array([[1.0, 2.0], [1.0, 3.0]]))
    """
    values = X.data if sp.issparse(X) else X
    largest, limit = max(values.max(initial=0), -values.min(initial=0)), LARGEST[X.dtype]
    if np.isnan(largest):
        raise InvalidInputError(
            "X holds NaN, but every value must be finite. Values may have been changed since they "
            "were checked."
        )
    if largest > limit:
        raise InvalidInputError(
            f"X holds values up to {largest:.3g}, whose squares overflow {X.dtype} when they are "
            f"multiplied; scale the features below {limit:g}."
        )
    # Mostly two rows show that there is nothing to look for.
    if abs(X[0] - X[-1]).max() >= 1 / limit:
        return
    low, high = min_max_axis(X, axis=0) if sp.issparse(X) else (X.min(axis=0), X.max(axis=0))
    spread = (high - low).max()
    if 0 < spread < 1 / limit:
        raise InvalidInputError(
            f"The rows of X differ by {spread:.3g} at most, whose square vanishes in {X.dtype} "
            f"when it is multiplied; scale the features so that they differ by {1 / limit:g} or "
            "more."
        )
