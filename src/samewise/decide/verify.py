"""Verification: are these two the same?"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import unchanged_if_refused
from samewise.decide.metric_classifier import fitted
from samewise.decide.saved_decider import SavedDecider, keep_metric, restore_metric
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Form
from samewise.kernels.pairwise import row_slices
from samewise.scores.verification import (
    Criterion,
    Roc,
    choose_threshold,
    roc,
    verification_error,
)
from samewise.supervision import Pairs
from samewise.supervision.gate import as_members, check_own_labels

_BLOCK_BYTES = 64 * 2**20


@dataclass(eq=False, repr=False)
class Verifier(BaseEstimator, SavedDecider):
    """Decide whether two examples are the same: closeness ≥ threshold.

    Parameters
    ----------
    metric : Form or learner
        A learner that has no ``metric_`` yet is cloned and fitted on the pairs given to `fit`. A
        learner that has one is used as it is. `sklearn.base.clone`, and so cross-validation,
        passes on unfitted learners; `sklearn.frozen.FrozenEstimator` keeps one fitted.
    criterion : {"accuracy", "balanced_accuracy", "f_beta", "far", "frr"} or None, default=None
        How the threshold is calibrated on the pairs given to `fit`. None takes the learner's own
        ``closeness_threshold_``. "far": the largest true-accept rate with a false-accept rate of at
        most `rate`. "frr": the smallest false-accept rate with a false-reject rate of at most
        `rate`.
    beta : float, default=1.0
        For "f_beta": how much recall weighs against precision.
    rate : float, default=0.01
        For "far" and "frr".

    Attributes
    ----------
    metric_ : Form
        The form in use.
    learner_ : estimator
        The learner behind ``metric_``, if there is one.
    threshold_ : float
        On the scale of the form's closeness (−distance for a distance).
    roc_ : Roc
        The curve over the pairs given to `fit`, if any were given.
    n_features_in_ : int
        Number of features of each member of a pair.

    See Also
    --------
    KNNClassifier : Decide which class an example belongs to.
    samewise.scores.roc : The curve of all thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis, Verifier
    >>> pairs = np.array([[[0.0], [1.0]], [[5.0], [5.5]], [[0.0], [4.0]], [[2.0], [5.0]]])
    >>> verifier = Verifier(Mahalanobis(np.eye(1)), criterion="accuracy")
    >>> verifier.fit(pairs, [1, 1, -1, -1]).threshold_
    -2.0
    >>> verifier.predict(np.array([[[0.0], [1.9]], [[0.0], [2.1]]]))
    array([ 1, -1], dtype=int8)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [Form, HasMethods("fit")],
        "criterion": [None, StrOptions(set(get_args(Criterion)))],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "rate": [Interval(Real, 0, 1, closed="both")],
    }

    metric: Any
    criterion: Criterion | None = None
    beta: float = 1.0
    rate: float = 0.01

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Pairs | ArrayLike | None = None, y: ArrayLike | None = None) -> Self:
        """Learn the metric if it is not learned yet, and set the threshold.

        Parameters
        ----------
        X : Pairs or array-like of shape (n_pairs, 2, n_features), default=None
            Pairs to calibrate on. Not needed if the learner is fitted and its own threshold is
            used. Weights of `Pairs` count.
        y : array-like of shape (n_pairs,), default=None
            +1 the same, −1 not the same; for an array of pairs.

        Returns
        -------
        self : Verifier
            The fitted verifier.
        """
        if X is None and self.criterion is not None:
            raise InvalidInputError(
                f"criterion={self.criterion!r} is calibrated on pairs; pass some to fit."
            )
        answers = None if X is None else _answers(X, y)
        with unchanged_if_refused(self):
            self._set_metric(X, y)
            self.n_features_in_ = self.metric_.n_features_in
            if self.criterion is None:
                self.threshold_ = self._own_threshold()
            if X is None or answers is None:
                return self
            signs, weights = answers
            closeness = self._closeness(X)
            self.roc_ = roc(closeness, signs, weights)
            if self.criterion is not None:
                self.threshold_ = choose_threshold(
                    closeness,
                    signs,
                    self.criterion,
                    beta=self.beta,
                    rate=self.rate,
                    sample_weight=weights,
                )
        return self

    def decision_function(self, X: Pairs | ArrayLike) -> NDArray[np.float64]:
        """Closeness − threshold of each pair: at least 0 where the two are judged the same.

        Parameters
        ----------
        X : Pairs or array-like of shape (n_pairs, 2, n_features)
            Pairs to judge.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Signed margin of each pair: at least 0 where it is judged the same.
        """
        check_is_fitted(self)
        return self._closeness(X) - np.float64(self.threshold_)

    def predict(self, X: Pairs | ArrayLike) -> NDArray[np.int8]:
        """+1 (the same) or −1 (not the same) for each pair.

        Parameters
        ----------
        X : Pairs or array-like of shape (n_pairs, 2, n_features)
            Pairs to judge.

        Returns
        -------
        ndarray of shape (n_pairs,)
            +1 for the same, −1 for not the same.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.int8)

    def score(self, X: Pairs | ArrayLike, y: ArrayLike | None = None) -> float:
        """Fraction of pairs that are decided rightly, weighted if the pairs are.

        Parameters
        ----------
        X : Pairs or array-like of shape (n_pairs, 2, n_features)
            Pairs to judge.
        y : array-like of shape (n_pairs,), default=None
            +1 the same, −1 not the same; for an array of pairs.

        Returns
        -------
        float
            The fraction of right decisions.
        """
        signs, weights = _answers(X, y)
        return 1.0 - verification_error(self.decision_function(X), signs, 0.0, weights)

    def _set_metric(self, X: Pairs | ArrayLike | None, y: ArrayLike | None) -> None:
        if isinstance(self.metric, Form):
            self.metric_ = self.metric
            return
        if X is None and not hasattr(self.metric, "metric_"):
            raise InvalidInputError(
                f"This {type(self.metric).__name__} has no metric_ yet; pass pairs to fit, or a "
                "learner that is fitted."
            )
        self.learner_ = fitted(self.metric, X, y, "'metric' parameter of Verifier")
        self.metric_ = self.learner_.metric_

    def _learned_state(self) -> State:
        state = State(values={"threshold": float(self.threshold_)})
        keep_metric(self, state)
        if hasattr(self, "roc_"):
            arrays = {name: getattr(self.roc_, name) for name in ("fpr", "tpr", "thresholds")}
            state.add("roc", State(arrays, {"auc": float(self.roc_.auc)}))
        return state

    def _restore_learned(self, saved: Saved) -> None:
        restore_metric(self, saved)
        self.threshold_ = saved.number("threshold")
        self.n_features_in_ = self.metric_.n_features_in
        if saved.has("roc"):
            part = saved.part("roc")
            thresholds = part.array("thresholds", None)
            rates = (part.array(name, len(thresholds)) for name in ("fpr", "tpr"))
            fpr, tpr = rates
            self.roc_ = Roc(fpr, tpr, thresholds, part.number("auc", least=0.0))

    def _own_threshold(self) -> float:
        owner = getattr(self, "learner_", self.metric_)
        threshold = getattr(owner, "closeness_threshold_", None)
        if threshold is None:
            raise InvalidInputError(
                f"{type(owner).__name__} has no threshold of its own; pass a criterion, for "
                "example Verifier(metric, criterion='accuracy'), and calibrate it with fit."
            )
        return float(threshold)

    def _closeness(self, X: Pairs | ArrayLike) -> NDArray[np.float64]:
        pairs = as_members(X, owner=type(self).__name__)
        closeness = np.empty(len(pairs))
        row_bytes = pairs.X.shape[1] * pairs.X.dtype.itemsize
        for at in row_slices(len(pairs), row_bytes, _BLOCK_BYTES):
            left, right = pairs.X[pairs.left[at]], pairs.X[pairs.right[at]]
            closeness[at] = self.metric_.pair_closeness(left, right)
        return closeness

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Pairs: a matrix holds no two examples in a row.
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _answers(
    pairs: Pairs | ArrayLike, y: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """The signs that go with the pairs, and their weights."""
    if isinstance(pairs, Pairs):
        check_own_labels(pairs, y)
        return pairs.y, pairs.sample_weight
    if y is None:
        raise InvalidInputError("An array of pairs needs y: +1 the same, -1 not the same.")
    return np.asarray(y), None
