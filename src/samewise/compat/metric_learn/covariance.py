"""metric-learn's Covariance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from samewise.compat.metric_learn.base import PointsTransformer
from samewise.learners.closed import classical


class Covariance(PointsTransformer):
    """`samewise.Covariance` without shrinkage: the inverse of the covariance, divided by n − 1.

    Parameters
    ----------
    preprocessor : array or callable, default=None
        What forms points of indices.
    """

    def __init__(self, preprocessor: Any = None) -> None:
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from points.

        Parameters
        ----------
        X : array of shape (n, d), or indices of shape (n,)
            Points.
        y : array, default=None
            Not used.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X = self._points(X)
        form = classical.Covariance(shrinkage=0.0).fit(X).metric_
        scale = np.sqrt((len(X) - 1) / len(X))
        return self._keep(type(form).from_components(scale * form.components))
