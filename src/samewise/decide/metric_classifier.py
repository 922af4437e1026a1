"""What decides by examples: checked rows, neighbors, and learners fitted where they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.sparse_structure import sound_rows
from samewise.search import Index
from samewise.supervision.supervision_checks import check_one_kind

FLOATS = [np.float64, np.float32]


class MetricEstimator(BaseEstimator):
    """Something that decides about dense or sparse rows."""

    def _queries(self, X: Matrix) -> Matrix:
        """Rows to decide about, checked."""
        check_is_fitted(self)
        return validate_data(self, sound_rows(X), accept_sparse="csr", dtype=FLOATS, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class NearestExamples(MetricEstimator):
    """Decides by the nearest training examples."""

    n_neighbors: int
    metric_: Form | None
    _rows: Matrix
    _index: Index

    def kneighbors(
        self,
        X: Matrix | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> tuple[Array, Indices] | Indices:
        """The nearest training examples of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), default=None
            Rows whose neighbors are searched. By default the training examples, each without
            itself.
        n_neighbors : int, default=None
            Number of neighbors; by default the parameter ``n_neighbors``.
        return_distance : bool, default=True
            Whether to return the values as well as the row numbers.

        Returns
        -------
        values : ndarray of shape (n_queries, n_neighbors)
            Distances, ascending, if the metric is a distance; similarities, descending, if it is
            a similarity. Only if ``return_distance``.
        indices : ndarray of shape (n_queries, n_neighbors)
            Row numbers of the training set.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        Q = self._rows if X is None else self._queries(X)
        closeness, indices = self._index.query(Q, k, exclude_self=X is None)
        if not return_distance:
            return indices
        is_distance = self.metric_ is None or self.metric_.is_distance
        # 0 − closeness and not −closeness: no negative zeros.
        return (0 - closeness if is_distance else closeness), indices


class MetricClassifier(ClassifierMixin, MetricEstimator):
    """A classifier of dense or sparse rows."""

    def _examples(self, X: Matrix, y: ArrayLike) -> tuple[Matrix, NDArray[Any]]:
        """The training examples, checked."""
        X, classes = validate_data(self, sound_rows(X), y, accept_sparse="csr", dtype=FLOATS)
        check_one_kind(classes)
        check_classification_targets(classes)
        return X, classes


def fitted(learner: Any, X: Any, y: Any, parameter: str, **more: Any) -> Any:
    """The learner itself if it has a metric, else a clone that is fitted."""
    if hasattr(learner, "metric_"):
        return learner
    return fitted_clone(learner, X, y, parameter, **more)


def fitted_clone(learner: Any, X: Any, y: Any, parameter: str, **more: Any) -> Any:
    """A clone of the learner, fitted; `parameter` says where it came from, for the message."""
    fitted = clone(learner).fit(X, y, **more)
    if not hasattr(fitted, "metric_"):
        raise InvalidInputError(
            f"The {parameter} must be a learner with a metric_ after fit. Got "
            f"{type(learner).__name__}, which learns no metric."
        )
    return fitted
