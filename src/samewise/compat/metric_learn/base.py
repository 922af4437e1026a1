"""What the classes of metric-learn have in common, over a form that samewise learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array
from samewise.compat.metric_learn.tuples import Tuples, read_points, read_tuples, vector
from samewise.exceptions import InvalidInputError
from samewise.forms import Mahalanobis
from samewise.kernels.sparse_structure import sound_rows
from samewise.scores.verification import choose_threshold
from samewise.supervision import Pairs

STRATEGIES = {"accuracy": "accuracy", "f_beta": "f_beta", "max_tpr": "far", "max_tnr": "frr"}
"""metric-learn's names for how a threshold is calibrated, and ours."""
LEAST_BETA = 1e-6
"""F_β is the precision up to rounding; among equally precise thresholds the recall decides."""


class MahalanobisLearner(BaseEstimator):
    """A learned map, and the distance after it.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        L. All else follows from it, also if it is set by hand.
    """

    preprocessor: Any
    components_: NDArray[np.float64]

    def _points(self, X: Any, y: Any = None, reset: bool = True) -> Any:
        """Points, or indices of them, checked as scikit-learn does; with y both."""
        X = sound_rows(read_points(X, self.preprocessor))
        how: dict[str, Any] = {"accept_sparse": not reset, "dtype": np.float64, "reset": reset}
        if y is None:
            return validate_data(self, X, ensure_min_samples=2 if reset else 1, **how)
        numeric = {"y_numeric": True} if getattr(self, "_numeric", False) else {}
        return validate_data(self, X, y, ensure_min_samples=2, **how, **numeric)

    def _tuples(self, given: Any, size: int) -> Tuples:
        """Tuples to learn from, which say how many features there are."""
        found = read_tuples(given, size, self.preprocessor)
        self.n_features_in_ = found.X.shape[1]
        return found

    def _keep(self, form: Any) -> Self:
        """Take over a learned form."""
        self.components_ = np.array(form.components, dtype=np.float64)
        return self

    @property
    def metric_(self) -> Mahalanobis:
        """The learned form: what samewise saves, searches and decides with."""
        check_is_fitted(self, "components_")
        return Mahalanobis.from_components(np.atleast_2d(self.components_))

    def transform(self, X: Any) -> Array:
        """X Lᵀ.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or indices of shape (n,)
            Points.

        Returns
        -------
        array of shape (n, n_components)
            The points, mapped.
        """
        check_is_fitted(self, "components_")
        return np.asarray(self._points(X, reset=False) @ self.components_.T)

    def pair_distance(self, pairs: ArrayLike) -> NDArray[np.float64]:
        """The learned distance of each pair.

        Parameters
        ----------
        pairs : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.

        Returns
        -------
        array of shape (n,)
            Distances.
        """
        check_is_fitted(self, "components_")
        X, rows = read_tuples(pairs, 2, self.preprocessor)
        return np.asarray(self.metric_.pairs(X[rows[:, 0]], X[rows[:, 1]]), dtype=np.float64)

    def pair_score(self, pairs: ArrayLike) -> NDArray[np.float64]:
        """Minus the learned distance of each pair: larger is more similar.

        Parameters
        ----------
        pairs : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.

        Returns
        -------
        array of shape (n,)
            Scores.
        """
        return -self.pair_distance(pairs)

    def score_pairs(self, pairs: ArrayLike) -> NDArray[np.float64]:
        """The learned distance of each pair, by its former name.

        Parameters
        ----------
        pairs : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.

        Returns
        -------
        array of shape (n,)
            Distances.
        """
        warnings.warn(
            "score_pairs is deprecated: use pair_distance, which it is, or pair_score.",
            FutureWarning,
            stacklevel=2,
        )
        return self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """The learned distance as a function of two points.

        Returns
        -------
        callable (u, v, squared=False) → float
            It does not change when this learner is fitted again.
        """
        check_is_fitted(self, "components_")
        L = self.components_.copy()

        def metric_fun(u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
            """The learned distance of two points."""
            total = float(np.sum((L @ (vector(u) - vector(v))) ** 2))
            return total if squared else float(np.sqrt(total))

        return metric_fun

    def get_mahalanobis_matrix(self) -> NDArray[np.float64]:
        """M = LᵀL, as a copy.

        Returns
        -------
        array of shape (n_features, n_features)
            M.
        """
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_


class PointsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MahalanobisLearner):
    """A learner of points."""

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class PairsClassifier(ClassifierMixin, MahalanobisLearner):
    """A learner of pairs, with a threshold on distances.

    Attributes
    ----------
    threshold_ : float
        A pair is called similar if its distance is at most this.
    """

    classes_: ClassVar[NDArray[Any]] = np.array([0, 1])
    threshold_: float

    def _pairs(self, pairs: Any, y: Any) -> Pairs:
        """Pairs to learn from."""
        X, rows = self._tuples(pairs, 2)
        return Pairs(X, rows[:, 0], rows[:, 1], y)

    def predict(self, pairs: ArrayLike) -> NDArray[np.int64]:
        """Whether the members of each pair are similar.

        Parameters
        ----------
        pairs : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.

        Returns
        -------
        array of shape (n,)
            +1 or −1.
        """
        check_is_fitted(self, "components_")
        if not hasattr(self, "threshold_"):
            raise AttributeError(
                "There is no threshold: call set_threshold or calibrate_threshold first."
            )
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def decision_function(self, pairs: ArrayLike) -> NDArray[np.float64]:
        """Minus the learned distance of each pair.

        Parameters
        ----------
        pairs : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.

        Returns
        -------
        array of shape (n,)
            Scores.
        """
        return self.pair_score(pairs)

    def score(self, pairs: ArrayLike, y: ArrayLike) -> float:
        """The area under the ROC curve.

        Parameters
        ----------
        pairs : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.
        y : array of shape (n,)
            ±1.

        Returns
        -------
        float
            The area.
        """
        return float(roc_auc_score(y, self.decision_function(pairs)))

    def set_threshold(self, threshold: float) -> Self:
        """Judge by a given threshold.

        Parameters
        ----------
        threshold : float
            On distances.

        Returns
        -------
        self : object
            This learner.
        """
        check_is_fitted(self, "components_")
        try:
            self.threshold_ = float(threshold)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"The threshold must be a number. Got {threshold!r}."
            ) from error
        return self

    def calibrate_threshold(
        self,
        pairs_valid: ArrayLike,
        y_valid: ArrayLike,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose the threshold on labeled pairs.

        Parameters
        ----------
        pairs_valid : array of shape (n, 2, n_features), or indices of shape (n, 2)
            The pairs.
        y_valid : array of shape (n,)
            ±1.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What is maximized; the rate of true positives with at least `min_rate` of true
            negatives, or the other way around.
        min_rate : float in [0, 1], default=None
            For the last two.
        beta : float, default=1.0
            For "f_beta": how much recall weighs against precision; at 0 precision alone counts.

        Returns
        -------
        self : object
            This learner.
        """
        check_is_fitted(self, "components_")
        check_calibration(strategy, min_rate, beta)
        rate = {} if min_rate is None else {"rate": 1 - min_rate}
        criterion: Any = STRATEGIES[strategy]
        weight = max(abs(float(beta)), LEAST_BETA)
        scores = self.decision_function(pairs_valid)
        self.threshold_ = -choose_threshold(scores, y_valid, criterion, beta=weight, **rate)
        return self

    def _calibrated(self, pairs: Any, y: Any, params: dict[str, Any] | None) -> Self:
        """With the threshold that is best for the pairs learned from, if they tell one."""
        self.__dict__.pop("threshold_", None)
        if len(np.unique(y)) == 2:
            self.calibrate_threshold(pairs, y, **(params or {}))
        return self


def check_calibration(
    strategy: str = "accuracy", min_rate: float | None = None, beta: float = 1.0
) -> None:
    """Refuse what `calibrate_threshold` does not know, before anything is learned."""
    if strategy not in STRATEGIES:
        raise InvalidInputError(
            f"strategy must be one of {', '.join(map(repr, STRATEGIES))}. Got {strategy!r}."
        )
    if strategy.startswith("max_") and (
        not isinstance(min_rate, Real) or not 0 <= float(min_rate) <= 1
    ):
        raise InvalidInputError(
            f"strategy={strategy!r} needs a min_rate from 0 to 1. Got {min_rate!r}."
        )
    if strategy == "f_beta" and not isinstance(beta, Real):
        raise InvalidInputError(f"beta must be a number. Got {beta!r}.")


class ComparisonsClassifier(ClassifierMixin, MahalanobisLearner):
    """A learner of triplets or quadruplets."""

    classes_: ClassVar[NDArray[Any]] = np.array([0, 1])
    _tuple_size: ClassVar[int]

    def decision_function(self, tuples: ArrayLike) -> NDArray[np.float64]:
        """By how much the pair that should be farther apart is farther apart.

        Parameters
        ----------
        tuples : array of shape (n, 3 or 4, n_features), or indices of shape (n, 3 or 4)
            Triplets or quadruplets.

        Returns
        -------
        array of shape (n,)
            Differences of distances.
        """
        check_is_fitted(self, "components_")
        X, rows = read_tuples(tuples, self._tuple_size, self.preprocessor)
        first = rows[:, [0, 2]] if self._tuple_size == 3 else rows[:, [2, 3]]
        far, near = (
            self.metric_.pairs(X[pair[:, 0]], X[pair[:, 1]]) for pair in (first, rows[:, :2])
        )
        return np.asarray(far - near, dtype=np.float64)

    def predict(self, tuples: ArrayLike) -> NDArray[np.float64]:
        """Whether each triplet or quadruplet is right.

        Parameters
        ----------
        tuples : array of shape (n, 3 or 4, n_features), or indices of shape (n, 3 or 4)
            Triplets or quadruplets.

        Returns
        -------
        array of shape (n,)
            1 or −1; for equal distances −1 of triplets, and 0 of quadruplets.
        """
        margins = self.decision_function(tuples)
        return np.where(margins > 0, 1.0, -1.0) if self._tuple_size == 3 else np.sign(margins)

    def score(self, tuples: ArrayLike) -> float:
        """The part of the triplets or quadruplets that is right.

        Parameters
        ----------
        tuples : array of shape (n, 3 or 4, n_features), or indices of shape (n, 3 or 4)
            Triplets or quadruplets.

        Returns
        -------
        float
            Quadruplets of equal distances count a half.
        """
        return float(self.predict(tuples).mean() / 2 + 0.5)
