"""What the classifiers share: checked examples, and learners fitted where they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.kernels.sparse_structure import sound_rows
from samewise.supervision.supervision_checks import check_one_kind

_FLOATS = [np.float64, np.float32]


class MetricClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of dense or sparse rows."""

    def _examples(self, X: Matrix, y: ArrayLike) -> tuple[Matrix, NDArray[Any]]:
        """The training examples, checked."""
        X, classes = validate_data(self, sound_rows(X), y, accept_sparse="csr", dtype=_FLOATS)
        check_one_kind(classes)
        check_classification_targets(classes)
        return X, classes

    def _queries(self, X: Matrix) -> Matrix:
        """Rows to classify, checked."""
        check_is_fitted(self)
        return validate_data(self, sound_rows(X), accept_sparse="csr", dtype=_FLOATS, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


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
