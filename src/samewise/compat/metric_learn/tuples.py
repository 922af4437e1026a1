"""Tuples as metric-learn takes them: arrays of rows, or of indices that a preprocessor knows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Indices, Matrix
from samewise.compat.metric_learn.exceptions import PreprocessorError
from samewise.exceptions import InvalidInputError
from samewise.kernels.sparse_structure import sound_rows
from samewise.supervision.supervision_checks import checked_indices, checked_matrix

KINDS = {2: "pairs", 3: "triplets", 4: "quadruplets"}


class Tuples(NamedTuple):
    """Row numbers of the members of tuples, one column each, into a matrix."""

    X: Matrix
    rows: Indices


def formed(given: NDArray[Any], preprocessor: Any) -> Any:
    """The points of some indices."""
    if not callable(preprocessor):
        known = sound_rows(preprocessor, "The preprocessor")
        known = known if sp.issparse(known) else np.asarray(known)
        return known[checked_indices(given, known.shape[0], "X")]
    try:
        points = preprocessor(given)
        shape = np.shape(points)
    except Exception as error:
        raise PreprocessorError(f"The preprocessor failed: {error!r}") from error
    if len(shape) != 2 or shape[0] != len(given):
        raise PreprocessorError(
            f"The preprocessor must give an array of shape ({len(given)}, n_features) for "
            f"{len(given)} indices. Got one of shape {shape}."
        )
    return points


def read_tuples(given: Any, size: int, preprocessor: Any) -> Tuples:
    """Tuples of so many members: an array of rows, or of indices if there is a preprocessor.

    Examples
    --------
    >>> read_tuples([[[0.0], [1.0]]], 2, None).rows
    array([[0, 1]])
    >>> read_tuples([[2, 0]], 2, [[5.0], [6.0], [7.0]]).X.ravel()
    array([5., 6., 7.])
    """
    kind, found = KINDS[size], np.asarray(given)
    if found.ndim not in (2, 3) or found.shape[1] != size:
        raise InvalidInputError(
            f"{kind.capitalize()} must be an array of shape (n_{kind}, {size}, n_features), or of "
            f"indices of shape (n_{kind}, {size}) with a preprocessor. Got shape {found.shape}."
        )
    if not len(found):
        raise InvalidInputError(f"At least one of the {kind} is needed. Got none.")
    if found.ndim == 3:
        X = checked_matrix(found.reshape(-1, found.shape[2]), kind)
        return Tuples(X, np.arange(X.shape[0]).reshape(-1, size))
    if preprocessor is None:
        raise InvalidInputError(
            f"{kind.capitalize()} of indices, of shape {found.shape}, need a preprocessor: an "
            "array of points, or a function that forms them. Got none."
        )
    if callable(preprocessor):
        known, places = np.unique(found, return_inverse=True)
        return Tuples(checked_matrix(formed(known, preprocessor)), places.reshape(found.shape))
    if found.dtype.kind not in "iu":
        raise InvalidInputError(
            f"Indices into an array must be whole numbers. Got {found.dtype}; give integers, or a "
            "function as the preprocessor."
        )
    return Tuples(checked_matrix(preprocessor), found.astype(np.intp))


def read_points(X: Any, preprocessor: Any) -> Any:
    """Points, or those of indices of shape (n,)."""
    if preprocessor is not None and np.ndim(X) == 1:
        return formed(np.asarray(X), preprocessor)
    return X


def vector(u: Any) -> NDArray[np.float64]:
    """One point."""
    if sp.issparse(u):
        raise InvalidInputError(f"A point must be a dense vector. Got {type(u).__name__}.")
    found = np.atleast_1d(np.asarray(u, dtype=np.float64).squeeze())
    if found.ndim != 1:
        raise InvalidInputError(f"A point must be a vector. Got shape {np.shape(u)}.")
    return found
