"""Verification: are these two the same?"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.scores.pairs import choose_threshold, roc, verification_error
from samewise.supervision import Pairs
from samewise.supervision.gate import as_members

__all__ = ["Verifier"]

_BLOCK_BYTES = 64 * 2**20


class Verifier(BaseEstimator):
    """Decide whether two examples are the same: closeness ≥ threshold.

    Parameters
    ----------
    metric : Form or fitted learner
        A learner has ``metric_`` and, if it learns one, its own ``closeness_threshold_``.
    criterion : {"accuracy", "balanced_accuracy", "f_beta", "far", "frr"} or None, default=None
        How the threshold is calibrated on the pairs given to `fit`. None takes the learner's own
        threshold. "far": the largest true-accept rate with a false-accept rate of at most `rate`.
        "frr": the smallest false-accept rate with a false-reject rate of at most `rate`.
    beta : float, default=1.0
        For "f_beta": how much recall weighs against precision.
    rate : float, default=0.01
        For "far" and "frr".

    Attributes
    ----------
    metric_ : Form
    threshold_ : float
        On the scale of the form's closeness (−distance for a distance).
    roc_ : Roc
        The curve over the pairs given to `fit`, if any were given.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.decide import Verifier
    >>> from samewise.forms import Mahalanobis
    >>> pairs = np.array([[[0.0], [1.0]], [[5.0], [5.5]], [[0.0], [4.0]], [[2.0], [5.0]]])
    >>> verifier = Verifier(Mahalanobis(np.eye(1)), criterion="accuracy")
    >>> verifier.fit(pairs, [1, 1, -1, -1]).threshold_
    -2.0
    >>> verifier.predict(np.array([[[0.0], [1.9]], [[0.0], [2.1]]]))
    array([ 1, -1], dtype=int8)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [Form, HasMethods("fit")],
        "criterion": [
            None,
            StrOptions({"accuracy", "balanced_accuracy", "f_beta", "far", "frr"}),
        ],
        "beta": [Interval(Real, 0, None, closed="neither")],
        "rate": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        metric: Any,
        criterion: str | None = None,
        beta: float = 1.0,
        rate: float = 0.01,
    ) -> None:
        self.metric = metric
        self.criterion = criterion
        self.beta = beta
        self.rate = rate

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, pairs: Pairs | ArrayLike | None = None, y: ArrayLike | None = None) -> Self:
        """Set the threshold.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (n_pairs, 2, n_features), optional
            Pairs to calibrate on; may be left out if the learner's own threshold is used. Weights
            of `Pairs` count.
        y : array-like of shape (n_pairs,), optional
            +1 the same, −1 not the same; for an array of pairs.

        Returns
        -------
        self
        """
        self.metric_ = self._form()
        if self.criterion is None:
            self.threshold_ = self._own_threshold()
        elif pairs is None:
            raise InvalidInputError(
                f"criterion={self.criterion!r} is calibrated on pairs; pass some to fit."
            )
        if pairs is None:
            return self
        signs, weights = _answers(pairs, y)
        closeness = self._closeness(pairs)
        self.roc_ = roc(closeness, signs, weights)
        if self.criterion is not None:
            self.threshold_ = choose_threshold(
                closeness,
                signs,
                self.criterion,  # type: ignore[arg-type]
                beta=self.beta,
                rate=self.rate,
                sample_weight=weights,
            )
        return self

    def decision_function(self, pairs: Pairs | ArrayLike) -> NDArray[np.float64]:
        """Closeness − threshold of each pair: ndarray of shape (n_pairs,)."""
        check_is_fitted(self)
        return self._closeness(pairs) - np.float64(self.threshold_)

    def predict(self, pairs: Pairs | ArrayLike) -> NDArray[np.int8]:
        """+1 (the same) or −1 for each pair: ndarray of shape (n_pairs,)."""
        return np.where(self.decision_function(pairs) >= 0, 1, -1).astype(np.int8)

    def score(self, pairs: Pairs | ArrayLike, y: ArrayLike | None = None) -> float:
        """Fraction of pairs decided rightly, weighted if the pairs are."""
        signs, weights = _answers(pairs, y)
        return 1.0 - verification_error(self.decision_function(pairs), signs, 0.0, weights)

    def _form(self) -> Form:
        if isinstance(self.metric, Form):
            return self.metric
        if not hasattr(self.metric, "metric_"):
            raise InvalidInputError(
                f"Verifier needs a Form or a fitted learner; this {type(self.metric).__name__} "
                "has no metric_. Fit it first."
            )
        form: Form = self.metric.metric_
        return form

    def _own_threshold(self) -> float:
        threshold = getattr(self.metric, "closeness_threshold_", None)
        if threshold is None:
            raise InvalidInputError(
                f"{type(self.metric).__name__} has no threshold of its own; pass a criterion, "
                "for example Verifier(metric, criterion='accuracy'), and calibrate it with fit."
            )
        return float(threshold)

    def _closeness(self, pairs: Pairs | ArrayLike) -> NDArray[np.float64]:
        pairs = as_members(pairs, owner=type(self).__name__)
        X, n = pairs.X, len(pairs)
        closeness = np.empty(n)
        size = max(1, _BLOCK_BYTES // (X.shape[1] * X.dtype.itemsize))
        for start in range(0, n, size):
            at = slice(start, start + size)
            left, right = X[pairs.left[at]], X[pairs.right[at]]
            closeness[at] = self.metric_.pair_closeness(left, right)
        return closeness


def _answers(
    pairs: Pairs | ArrayLike, y: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """The signs that go with the pairs, and their weights."""
    if isinstance(pairs, Pairs):
        if y is not None:
            raise InvalidInputError("Pairs carry their own y; leave y out.")
        return pairs.y, pairs.sample_weight
    if y is None:
        raise InvalidInputError("An array of pairs needs y: +1 the same, -1 not the same.")
    return np.asarray(y), None
