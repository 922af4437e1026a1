"""What learners of comparisons have in common: one pair of rows is closer than another."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.kernels.pair_loops import add_weighted_differences, pair_distances
from samewise.kernels.pairwise import times
from samewise.learners.batch.batch_learner import Batch, BatchLearner
from samewise.learners.dense_rows import check_scale, dense_rows
from samewise.learners.learner import PAIRS
from samewise.supervision.gate import as_quadruplets, comparisons, is_labeled
from samewise.supervision.quadruplets import Quadruplets
from samewise.supervision.supervision_checks import checked_weights

Vector = NDArray[np.float64]


class ComparisonLearner(BatchLearner, storable=False):
    """A distance learned from quadruplets, triplets, or labels that they are sampled from."""

    random_state: Any

    @abstractmethod
    def _sampled(self, X: Matrix, y: NDArray[Any], random: np.random.RandomState) -> Quadruplets:
        """What is learned from labeled examples."""

    def _examples(self, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, NDArray[Any]]:
        return super(Batch, self)._examples(X, y, reset) if is_labeled(X) else (X, y)

    def _quadruplets(self, X: Any, y: Any) -> tuple[Quadruplets, Vector, np.random.RandomState]:
        """Checked comparisons, given or sampled, weights of sum 1, and the random numbers used."""
        random = check_random_state(self.random_state)

        def draw(X: Any, y: Any) -> Quadruplets:
            return self._sampled(*self._examples(X, y), random)

        found = as_quadruplets(X, y, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_features(found)
        check_scale(found.X)
        weight = checked_weights(found.sample_weight, len(found), "quadruplets")
        weight = np.ones(len(found)) if weight is None else weight
        if not weight.any():
            raise InvalidInputError(
                f"{type(self).__name__} needs quadruplets of a weight above 0. Got 0 for all."
            )
        used = weight > 0
        return found[used], weight[used] / weight.sum(), random

    def comparison_margin(self, X: Any) -> Array:
        """By how much the pair that should be farther apart is farther apart.

        Parameters
        ----------
        X : Quadruplets, Triplets, or array of shape (n, 4, n_features) or (n, 3, n_features)
            The comparisons.

        Returns
        -------
        array of shape (n,)
            D(c, d) − D(a, b), of distances that are not squared.
        """
        known = comparisons(X, type(self).__name__)
        parts = [known[start : start + PAIRS] for start in range(0, len(known), PAIRS)]
        form = self.metric_
        return np.concatenate(
            [
                form.pairs(part.X[part.c], part.X[part.d])
                - form.pairs(part.X[part.a], part.X[part.b])
                for part in parts
            ]
        )

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the metric is on the given data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features), Quadruplets or Triplets
            Labeled examples, or comparisons, also as an array of shape (n, 4, n_features) or
            (n, 3, n_features).
        y : array of shape (n,), default=None
            Class labels of examples.

        Returns
        -------
        float
            For examples, the leave-one-out accuracy of the nearest neighbor among them. For
            comparisons, the fraction that is right, D(a, b) < D(c, d).
        """
        if is_labeled(X):
            return super().score(X, y)
        return float(np.mean(self.comparison_margin(X) > 0))


class ComparedRows:
    """The rows that occur in quadruplets, mapped, and the distances of their pairs.

    Parameters
    ----------
    quadruplets : Quadruplets
    owner : str
        Who asks, for messages.
    basis : array of shape (d, r), optional
        Rows are x·basis, up to a shift; by default as they are.
    """

    def __init__(self, quadruplets: Quadruplets, owner: str, basis: Array | None = None) -> None:
        members = [getattr(quadruplets, name) for name in quadruplets._members]
        rows, places = np.unique(np.stack(members), return_inverse=True)
        X = dense_rows(quadruplets.X[rows], owner).astype(np.float64)
        # Differences alone matter; near zero they are exact.
        X -= X.mean(axis=0)
        self.Z: Vector = np.ascontiguousarray(X if basis is None else times(X, basis))
        a, b, c, d = places.reshape(4, -1).astype(np.intp)
        # A pair may occur many times, as each example's neighbors do in all their combinations.
        left = np.minimum(np.concatenate([a, c]), np.concatenate([b, d]))
        right = np.maximum(np.concatenate([a, c]), np.concatenate([b, d]))
        numbers, which = np.unique(left * len(rows) + right, return_inverse=True)
        self.left, self.right = np.divmod(numbers, len(rows))
        self.near, self.far = which.reshape(2, -1)

    def __len__(self) -> int:
        return len(self.near)

    def distances(self, E: Array) -> tuple[Vector, Vector]:
        """Squared distances of the near and the far pairs among mapped rows."""
        D = np.empty(len(self.left))
        pair_distances(np.ascontiguousarray(E), self.left, self.right, D)
        return D[self.near], D[self.far]

    def differences(self, some: Indices) -> tuple[Vector, Vector]:
        """Differences of the near and the far pairs of some quadruplets."""
        Z, near, far = self.Z, self.near[some], self.far[some]
        return (
            Z[self.left[near]] - Z[self.right[near]],
            Z[self.left[far]] - Z[self.right[far]],
        )

    def scatter(self, E: Array, near: Vector, far: Vector) -> Vector:
        """Σ w (e − e′)(z − z′)ᵀ over the near pairs and the far pairs, with their weights."""
        n, Q = len(self.left), np.zeros(E.shape)
        weight = np.bincount(self.near, near, n) + np.bincount(self.far, far, n)
        add_weighted_differences(
            np.ascontiguousarray(E), self.left, self.right, weight.astype(np.float64), Q
        )
        return Q.T @ self.Z
