"""What the learners of triplets have in common: a similarity of queries and items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Array, Matrix
from samewise.engine.online import chunks
from samewise.exceptions import InvalidInputError
from samewise.learners.base import OnlineLearner
from samewise.supervision import Triplets
from samewise.supervision.gate import as_triplets, is_labeled


class TripletLearner(OnlineLearner):
    """A similarity learned from triplets."""

    n_triplets: int | None
    n_features_items_: int

    def _supervision(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        random: np.random.RandomState,
        reset: bool,
    ) -> Triplets:
        def draw(X: Any, y: Any, sample_weight: Any) -> Triplets:
            return Triplets.from_labels(
                *self._examples(X, y, reset),
                self.n_triplets,
                merge_duplicates=True,
                sample_weight=sample_weight,
                random_state=random,
            )

        triplets = as_triplets(X, y, sample_weight, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_n_features(triplets.X.shape[1], reset)
        n_items = triplets.items.shape[1]
        if not reset and n_items != self.n_features_items_:
            raise InvalidInputError(
                f"Items have {n_items} features, but {type(self).__name__} is expecting "
                f"{self.n_features_items_}."
            )
        self.n_features_items_ = n_items
        return triplets

    def _portions(self, triplets: Triplets) -> Iterator[slice]:
        return chunks(len(triplets), triplets.X, triplets.items)

    @property
    def _n_features_out(self) -> int:
        return self.n_features_items_

    def transform(self, X: Matrix) -> Array:
        """X W: vectors whose dot product with the items is the learned score.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_item_features)
        """
        return self.metric_.embed_query(self._rows(X))  # type: ignore[attr-defined]

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the similarity is on what is given.

        With Triplets, or an array of triplets: the part that is ranked right, qᵀWp⁺ > qᵀWp⁻.
        With labeled examples: leave-one-out accuracy of the most similar example among them.
        """
        if is_labeled(X):
            return self._neighbor_score(X, y)
        return float(np.mean(self.triplet_margin(X) > 0))

    def triplet_margin(self, triplets: Any) -> Array:
        """qᵀWp⁺ − qᵀWp⁻ of Triplets, or of an array of shape (n, 3, n_features)."""
        check_is_fitted(self)
        told = as_triplets(
            triplets, None, None, learner=type(self).__name__, draw=Triplets.from_labels
        )
        parts = [told[start : start + 4096] for start in range(0, len(told), 4096)]
        margins = [
            self.metric_.pairs(part.X[part.anchor], part.items[part.positive])
            - self.metric_.pairs(part.X[part.anchor], part.items[part.negative])
            for part in parts
        ]
        return np.concatenate(margins)
