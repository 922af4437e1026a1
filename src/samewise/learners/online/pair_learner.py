"""What the learners of pairs have in common: a metric, and a threshold on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Array, Matrix
from samewise.engine.directions import Directions, pair_difference
from samewise.engine.policy import Psd
from samewise.engine.rank_one_mover import RankOneMover
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import FLOATS
from samewise.forms import Form, Mahalanobis
from samewise.forms.distance_form import EuclideanForm
from samewise.kernels.steps import Step
from samewise.learners.attributes import Attribute, OneOf
from samewise.learners.learner import PAIRS, MapLearner
from samewise.learners.online.online_learner import OnlineLearner
from samewise.supervision import Pairs
from samewise.supervision.gate import as_members, as_pairs, is_labeled

LEAST_B = 1.0
"""The smallest admissible threshold on squared distances: b ≥ 1 belongs to M ⪰ 0 (POLA §3)."""


class PairLearner(MapLearner, OnlineLearner, storable=False):
    """A metric learned from pairs, and a threshold on it: a Mahalanobis distance by default."""

    n_pairs: int | None
    strategy: str
    _dtype: str
    """The type of the data, and of the form."""
    _learned: ClassVar[dict[str, Attribute]] = {"_dtype": OneOf(FLOATS)}

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
            X, y = self._examples(X, y, reset)
            return Pairs.from_labels(
                X,
                y,
                self.n_pairs,
                merge_duplicates=True,
                sample_weight=sample_weight,
                random_state=random,
                **self._sampling(X),
            )

        pairs = as_pairs(X, y, sample_weight, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_n_features(pairs.X.shape[1], reset)
        if reset:
            self._dtype = pairs.X.dtype.name
        return pairs

    def _sampling(self, X: Matrix) -> dict[str, Any]:
        """How pairs are sampled from labeled examples."""
        return {"strategy": self.strategy}

    def _directions(self, examples: Pairs) -> Directions:
        return pair_difference(examples)

    def _form(self, M: Array) -> Form:
        return Mahalanobis.nearest(M.astype(self._dtype, copy=False))

    @property
    def _shape(self) -> tuple[int, int]:
        return self.n_features_in_, self.n_features_in_

    @property
    def threshold_(self) -> float:
        """The threshold b: a pair is called similar if its squared distance is at most b."""
        return self._solution()[1]

    @property
    def closeness_threshold_(self) -> float:
        """The same threshold on the scale of `pair_score` and `metric_.closeness`: −√b."""
        return -float(np.sqrt(self.threshold_))

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
        return self.threshold_ - self._squared(X)

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

    def _squared(self, X: Any) -> Array:
        """The squared distance of each pair."""
        pairs, form = self._members(X), self._solution()[0]
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


def rank_one_mover(
    learner: Any, pairs: Pairs, step: Step, psd: Psd = "each", b: float = LEAST_B
) -> RankOneMover:
    """Steps −τ y v vᵀ from the `init` of a learner, by its `path`."""
    # A projection finds eigenvalues of the size of float32's rounding: keep the state exact.
    dtype = np.float64 if psd == "each" else pairs.X.dtype
    M = initial_matrix(learner.init, pairs.X.shape[1], dtype)
    return RankOneMover(Symmetric(M), b, step, learner.path, psd=psd, least_b=LEAST_B)


def initial_matrix(init: Any, d: int, dtype: Any) -> Array:
    """M to start from: "zero", "identity", an array or a form."""
    if isinstance(init, str):
        if init not in ("zero", "identity"):
            raise InvalidInputError(
                "The 'init' parameter must be 'zero', 'identity', an array of shape (n_features, "
                f"n_features) or a Mahalanobis form. Got {init!r} instead."
            )
        return np.zeros((d, d), dtype=dtype) if init == "zero" else np.eye(d, dtype=dtype)
    try:
        form = init if isinstance(init, Mahalanobis) else Mahalanobis(init)
    except InvalidInputError as error:
        raise type(error)(f"The 'init' parameter is not a metric. {error}") from error
    if form.n_features_in != d:
        raise InvalidInputError(
            f"init has {form.n_features_in} features, but the data have {d}; give a matrix of "
            f"shape ({d}, {d})."
        )
    return form.matrix.astype(dtype)
