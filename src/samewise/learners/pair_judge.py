"""What every learner of pairs can do with what it has learned: judge pairs by a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import alone
from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.forms.distance_form import EuclideanForm
from samewise.learners.learner import PAIRS, Learner
from samewise.scores.verification import choose_threshold
from samewise.supervision import Pairs
from samewise.supervision.gate import as_members, is_labeled

PORTION = 512
"""Pairs compared at a time when a threshold is chosen."""


class PairJudge(Learner, storable=False):
    """A metric with a threshold b: on squared distances D² ≤ b is similar, on similarities s ≥ b.

    `threshold_` is an attribute, or a property of what is still learning. It may be missing where
    nothing tells it.
    """

    if TYPE_CHECKING:

        @property
        def threshold_(self) -> float:
            """The threshold b."""

    @property
    def closeness_threshold_(self) -> float:
        """The threshold on the scale of `pair_score` and `metric_.closeness`: −√b, or b itself."""
        b = self.threshold_
        return -float(np.sign(b) * np.sqrt(np.abs(b))) if self.metric_.is_distance else b

    def pair_score(self, X: Any) -> Array:
        """How close the two members of each pair are: larger is closer.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features) or matrix of shape (n, n_features)
            The pairs. The rows of a matrix are paired with the zero vector.

        Returns
        -------
        array of shape (n,)
            A similarity, or a distance with a minus sign.
        """
        return super().pair_score(self._members(X))

    def decision_function(self, X: Any) -> Array:
        """How clearly the two members of each pair are similar.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features) or matrix of shape (n, n_features)
            The pairs. The rows of a matrix are paired with the zero vector.

        Returns
        -------
        array of shape (n,)
            At least 0 for pairs called similar, negative for the others: the threshold minus the
            squared distance, or the similarity minus the threshold.
        """
        check_is_fitted(self)
        # The metric and the threshold of one state.
        with alone(self):
            closeness, b = self._closeness(X), getattr(self, "threshold_", None)
        if b is None:
            raise InvalidInputError(
                f"This {type(self).__name__} has no threshold_: it was fitted on pairs of one kind "
                "or loaded from a file that has none. Fit it on similar and dissimilar pairs, or "
                "calibrate a Verifier(learner, criterion='accuracy')."
            )
        return closeness + b if self.metric_.is_distance else closeness - b

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Whether the two members of each pair are similar.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features) or matrix of shape (n, n_features)
            The pairs. The rows of a matrix are paired with the zero vector.

        Returns
        -------
        array of shape (n,)
            +1 for similar, −1 for dissimilar.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _members(self, X: Any) -> Pairs:
        """Pairs to be judged; the rows of a matrix are paired with the zero vector."""
        check_is_fitted(self)
        if not is_labeled(X):
            return as_members(X, owner=type(self).__name__)
        X = self._rows(X)
        n, d = X.shape
        zero = np.zeros((1, d), dtype=X.dtype)
        both = sp.vstack([X, sp.csr_array(zero)], "csr") if sp.issparse(X) else np.vstack([X, zero])
        return Pairs(both, np.arange(n), np.full(n, n), np.ones(n))

    def _calibrated(self, pairs: Pairs) -> float | None:
        """The b that decides most of the pairs rightly, by weight; None if all are of one kind.

        Of equally good ones, the one that accepts fewest.
        """
        weight = pairs.sample_weight
        if len(np.unique(pairs.y if weight is None else pairs.y[weight > 0])) < 2:
            return None
        # In small portions, because learning from pairs takes less memory than their rows.
        starts = range(0, len(pairs), PORTION)
        closeness = np.concatenate([self._closeness(pairs[at : at + PORTION]) for at in starts])
        return self._chosen(closeness, pairs.y, weight)

    def _chosen(
        self, closeness: Array, y: NDArray[Any], weight: NDArray[np.float64] | None = None
    ) -> float:
        """The b that decides most of the pairs of these closenesses rightly."""
        threshold = choose_threshold(closeness, y, "accuracy", sample_weight=weight)
        return -threshold if self.metric_.is_distance else threshold

    def _closeness(self, X: Any) -> Array:
        """Larger is closer, on the scale of the threshold: −D², or s."""
        return -self._squared(X) if self.metric_.is_distance else self.pair_score(X)

    def _squared(self, X: Any) -> Array:
        """The squared distance of each pair."""
        pairs, form = self._members(X), self.metric_
        assert isinstance(form, EuclideanForm)
        parts = [
            form.pairs(pairs.X[part.left], pairs.X[part.right], squared=True)
            for part in (pairs[start : start + PAIRS] for start in range(0, len(pairs), PAIRS))
        ]
        return np.concatenate([np.empty(0, dtype=pairs.X.dtype), *parts])


class PairDistance:
    """What a learner of distances has beside the rest."""

    if TYPE_CHECKING:
        metric_: Any

        def _squared(self, X: Any) -> Array: ...

    def get_mahalanobis_matrix(self) -> Array:
        """M of shape (n_features, n_features), as a copy.

        Returns
        -------
        array of shape (n_features, n_features)
            A copy of M.
        """
        return self.metric_.matrix.copy()

    def pair_distance(self, X: Any) -> Array:
        """The learned distance of the two members of each pair.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features) or matrix of shape (n, n_features)
            The pairs. The rows of a matrix are paired with the zero vector: the distance depends
            on the difference of the members only, unless there is a kernel.

        Returns
        -------
        array of shape (n,)
            Distances, not squared.
        """
        return np.sqrt(self._squared(X))
