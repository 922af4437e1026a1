"""What batch learners have in common: the gate and the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError, SamewiseWarning, TooLargeError
from samewise.forms import Mahalanobis
from samewise.learners.learner import Learner, MapLearner
from samewise.supervision import Pairs
from samewise.supervision.gate import as_pairs, is_labeled

__all__ = ["Batch", "BatchLearner"]

MOST_SPARSE = 2**27
"""Values of a sparse matrix that is made dense."""

SINGULAR = 1e-10
"""A variance below this part of the mean is none."""

RIDGE = 1e-3
"""What a covariance that is singular gets on its diagonal, relative to the mean variance."""


class Batch(Learner, storable=False):
    """A form learned from all examples at once; a subclass has the `fit`."""

    def _examples(self, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, NDArray[Any]]:
        """Labeled examples, checked as scikit-learn does."""
        if isinstance(X, Pairs) or not is_labeled(X):
            raise InvalidInputError(
                f"{type(self).__name__} learns from class labels: give a matrix of examples and "
                "y. Got pairs; use a learner of pairs, such as ITML or MMC."
            )
        return super()._examples(X, y, reset)

    def _pairs(self, X: Any, y: Any, draw: Callable[[Matrix, NDArray[Any]], Pairs]) -> Pairs:
        """Pairs as they are given, or sampled from labeled examples."""
        pairs = as_pairs(
            X,
            y,
            None,
            learner=type(self).__name__,
            draw=lambda X, y, _: draw(*self._examples(X, y)),
        )
        if not is_labeled(X):
            self._set_n_features(pairs.X.shape[1])
        return pairs

    def _say_unfinished(self, tol: float, n_iter: int, reached: str) -> None:
        warnings.warn(
            f"{type(self).__name__} has not converged to tol={tol:g} in {n_iter} iterations"
            f"{reached}. Allow more (max_iter), or a larger tol.",
            ConvergenceWarning,
            stacklevel=4,
        )


class BatchLearner(MapLearner, Batch, storable=False):
    """A Mahalanobis distance learned from all examples at once."""

    metric_: Mahalanobis

    def _keep(self, components: Array) -> None:
        self.metric_ = Mahalanobis.from_components(components)


def dense_rows(X: Matrix, owner: str) -> Array:
    """X as a dense array, if it is not sparse and large."""
    if not sp.issparse(X):
        return X
    if X.shape[0] * X.shape[1] > MOST_SPARSE:
        raise TooLargeError(
            f"{owner} works on dense rows; made dense, there would be {X.shape[0]:,} × "
            f"{X.shape[1]:,} values, more than {MOST_SPARSE:,}. Reduce the features first, for "
            "example with sklearn.decomposition.TruncatedSVD, take fewer examples, or use OASIS, "
            "which keeps sparse rows."
        )
    return X.toarray()


def regularized(C: NDArray[np.float64], what: str, owner: str) -> NDArray[np.float64]:
    """A covariance or scatter as it is, or with a ridge and a warning where it is singular.

    Features must be in comparable units.
    """
    mean = np.trace(C) / len(C)
    if not mean > 0:
        raise InvalidInputError(
            f"{owner} needs examples that differ, but {what} is zero; give other examples."
        )
    if np.linalg.eigvalsh(C)[0] > SINGULAR * mean:
        return C
    warnings.warn(
        f"{owner}: {what} is singular, because features are constant or linearly dependent or "
        f"there are too few examples. {RIDGE:g} of the mean is added to its diagonal; remove such "
        "features, reduce them with PCA, or give more examples, if that is not meant.",
        SamewiseWarning,
        stacklevel=5,
    )
    return C + RIDGE * mean * np.eye(len(C))


def given_map(
    L: ArrayLike, n_components: int | None, n_features: int, name: str
) -> NDArray[np.float64]:
    """A map to start from, of the right shape."""
    L = np.array(L, dtype=np.float64)
    rows = n_components or (L.shape[0] if L.ndim == 2 else n_features)
    if L.shape != (rows, n_features) or not np.isfinite(L).all():
        raise InvalidInputError(
            f"{name} must be a finite array of shape ({rows}, {n_features}). Got shape {L.shape} "
            "instead."
        )
    return L


def held_out_rows(
    labels: Indices, fraction: float | None, random: np.random.RandomState
) -> tuple[Indices, Indices | None]:
    """Rows to learn from and rows held out, if any, from each class."""
    everyone = np.arange(len(labels))
    if fraction is None:
        return everyone, None
    mixed = random.permutation(len(labels))
    mixed = mixed[np.argsort(labels[mixed], kind="stable")]
    sizes = np.bincount(labels)
    rank = everyone - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held = np.sort(mixed[rank < np.repeat(sizes * fraction, sizes).astype(int)])
    if not len(held):
        raise InvalidInputError(
            f"validation_fraction={fraction:g} holds out no point of any class; raise it, or leave "
            "it out."
        )
    return np.setdiff1d(everyone, held), held
