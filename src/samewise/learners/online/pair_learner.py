"""What the learners of pairs have in common: a distance, and a threshold on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Array, Matrix
from samewise.learners.online.online_learner import OnlineLearner
from samewise.supervision import Pairs
from samewise.supervision.gate import as_members, as_pairs, is_labeled

LEAST_B = 1.0
"""The smallest admissible threshold: b ≥ 1 belongs to M ⪰ 0 (POLA §3)."""


class PairLearner(OnlineLearner):
    """A distance and a threshold learned from pairs."""

    n_pairs: int | None
    strategy: str

    def _supervision(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        random: np.random.RandomState,
        reset: bool,
        **more: Any,
    ) -> Pairs:
        def draw(X: Any, y: Any, sample_weight: Any) -> Pairs:
            return Pairs.from_labels(
                *self._examples(X, y, reset),
                self.n_pairs,
                strategy=self.strategy,
                merge_duplicates=True,
                sample_weight=sample_weight,
                random_state=random,
            )

        pairs = as_pairs(X, y, sample_weight, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_n_features(pairs.X.shape[1], reset)
        return pairs

    @property
    def threshold_(self) -> float:
        """b: a pair is called similar when its squared distance does not exceed it."""
        return self._solution()[1]

    @property
    def closeness_threshold_(self) -> float:
        """The same threshold on the scale of `metric_.closeness`: −√b."""
        return -float(np.sqrt(self.threshold_))

    def transform(self, X: Matrix) -> Array:
        """Map rows to where the learned distance is Euclidean.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)

        Returns
        -------
        array of shape (n, rank of the metric)
        """
        return self.metric_.embed(self._rows(X))  # type: ignore[attr-defined]

    def pair_distance(self, pairs: Any) -> Array:
        """The learned distance √D of each pair.

        Parameters
        ----------
        pairs : Pairs, array of shape (n, 2, n_features), or matrix of shape (n, n_features)
            A matrix is read as the differences x − x′, on which alone the distance depends.
        """
        return np.sqrt(self._squared(pairs))

    def pair_score(self, pairs: Any) -> Array:
        """−√D of each pair: higher is more similar."""
        return -self.pair_distance(pairs)

    def decision_function(self, pairs: Any) -> Array:
        """b − D of each pair: positive where it is called similar."""
        return self.threshold_ - self._squared(pairs)

    def predict(self, pairs: Any) -> NDArray[np.int64]:
        """+1 for each pair called similar (D ≤ b), −1 for the others."""
        return np.where(self.decision_function(pairs) >= 0, 1, -1)

    def _squared(self, pairs: Any) -> Array:
        check_is_fitted(self)
        if is_labeled(pairs):
            return self._squared_lengths(self._rows(pairs))
        pairs = as_members(pairs, owner=type(self).__name__)
        parts = [
            self.metric_.pairs(pairs.X[part.left], pairs.X[part.right], squared=True)  # type: ignore[call-arg]
            for part in (pairs[start : start + 4096] for start in range(0, len(pairs), 4096))
        ]
        return np.concatenate([np.empty(0, dtype=pairs.X.dtype), *parts])

    def _squared_lengths(self, V: Matrix) -> Array:
        """vᵀMv of differences."""
        E = self.metric_.embed(V)  # type: ignore[attr-defined]
        return np.einsum("ij,ij->i", E, E)

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the metric is on what is given.

        With Pairs, or an array of pairs and labels ±1: the part of the pairs that `predict`
        gets right. With labeled examples: leave-one-out accuracy of the nearest neighbor among
        them.
        """
        if is_labeled(X):
            return super().score(X, y)
        pairs = as_pairs(X, y, None, learner=type(self).__name__, draw=Pairs.from_labels)
        return float(np.mean(self.predict(pairs) == pairs.y))
