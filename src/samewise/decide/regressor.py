"""A scikit-learn regressor from any learner or form and the nearest examples."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Matrix
from samewise.decide.metric_classifier import FLOATS, NearestExamples, fitted
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.sparse_structure import sound_rows
from samewise.search import Index
from samewise.supervision.supervision_checks import numeric_targets


@dataclass(eq=False, repr=False)
class KNNRegressor(RegressorMixin, NearestExamples):
    """Predict numbers by the nearest training examples under a learned, given or Euclidean metric.

    Parameters
    ----------
    metric : Form, learner or None, default=None
        None is the Euclidean distance. A learner that has no ``metric_`` yet, such as `MLKR`, is
        cloned and fitted on the training data. A learner that has one is used as it is, without
        fitting it again; note that `sklearn.base.clone`, and so cross-validation, passes on
        unfitted learners.
    n_neighbors : int, default=5
        Neighbors whose targets are averaged.
    weights : {"uniform", "distance", "kernel"}, default="uniform"
        How much neighbors count: all the same; by the inverse of their distance, where those at
        distance 0, if there are any, count alone; or by exp(−distance²), the kernel regression of
        `MLKR`. The last two are for distances.

    Attributes
    ----------
    metric_ : Form or None
        The form in use; None is the Euclidean distance.
    learner_ : estimator
        The learner behind ``metric_``, if there is one.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the training data has string column names.

    See Also
    --------
    MLKR : Learns a distance for this.
    KNNClassifier : The same for classes.

    Examples
    --------
    >>> from samewise import KNNRegressor
    >>> model = KNNRegressor(n_neighbors=2).fit([[0.0], [1.0], [4.0]], [0.0, 2.0, 5.0])
    >>> model.predict([[0.4], [3.0]])
    array([1. , 3.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [None, Form, HasMethods("fit")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance", "kernel"})],
    }

    metric: Any = None
    n_neighbors: int = 5
    weights: str = "uniform"

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: ArrayLike) -> Self:
        """Learn the metric if it is not learned yet, and store the training examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training examples, one row each.
        y : array-like of shape (n_samples,)
            Their targets: numbers.

        Returns
        -------
        self : KNNRegressor
            The fitted regressor.
        """
        with unchanged_if_refused(self):
            X, y = validate_data(
                self, sound_rows(X), y, accept_sparse="csr", dtype=FLOATS, y_numeric=True
            )
            self._targets = numeric_targets(np.asarray(y), "KNNRegressor")
            if self.n_neighbors > X.shape[0]:
                raise InvalidInputError(
                    f"n_neighbors={self.n_neighbors} is more than the training set holds "
                    f"(n_samples = {X.shape[0]}); choose a smaller n_neighbors."
                )
            self.metric_ = self.metric
            if self.metric is not None and not isinstance(self.metric, Form):
                owner = "'metric' parameter of KNNRegressor"
                self.learner_ = fitted(self.metric, X, y, owner)
                self.metric_ = self.learner_.metric_
            is_distance = self.metric_ is None or self.metric_.is_distance
            if self.weights != "uniform" and not is_distance:
                raise InvalidInputError(
                    f"weights={self.weights!r} is for distances. Got a "
                    f"{type(self.metric_).__name__}, a similarity; set weights to 'uniform'."
                )
            self._rows = X
            self._index = Index(None if self.metric_ is None else self.metric_.bind(X, y), X)
        return self

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """The predicted number of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows to predict for.

        Returns
        -------
        ndarray of shape (n,)
            Means of the targets of the nearest examples.
        """
        Q = self._queries(X)
        closeness, indices = self._index.query(Q, self.n_neighbors)
        targets = self._targets[indices]
        if self.weights == "uniform":
            return np.asarray(targets.mean(axis=1))
        weights = self._weights(-closeness.astype(np.float64))
        return np.asarray(np.sum(weights * targets, axis=1))

    def _weights(self, distances: Array) -> Array:
        """Those of the neighbors of each row, which sum to 1."""
        nearest = distances[:, :1]
        if self.weights == "kernel":
            return np.asarray(softmax((nearest - distances) * (nearest + distances), axis=1))
        # Relative to the nearest, so that nothing overflows.
        weights = np.where(nearest > 0, nearest, 1) / np.where(distances > 0, distances, 1)
        weights = np.where(nearest > 0, weights, distances == 0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
