"""What metric-learn's learners of pairs have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from samewise.compat.metric_learn.base import (
    MahalanobisLearner,
    PairsClassifier,
    PointsTransformer,
    check_calibration,
)
from samewise.compat.metric_learn.constraints import constrained_pairs
from samewise.supervision import Pairs


class OfPairs(MahalanobisLearner):
    """What learns from pairs, however they were found."""

    @abstractmethod
    def _learn(self, pairs: Pairs) -> Self:
        """Take over what samewise learns from pairs."""


class FromPairs(PairsClassifier, OfPairs):
    """A learner that is given pairs."""

    def fit(
        self,
        pairs: ArrayLike,
        y: ArrayLike,
        calibration_params: dict[str, Any] | None = None,
    ) -> Self:
        """Learn from pairs, and calibrate the threshold on them.

        Parameters
        ----------
        pairs : array of shape (n, 2, d), or indices of shape (n, 2)
            The pairs.
        y : array of shape (n,)
            ±1.
        calibration_params : dict, default=None
            Arguments of `calibrate_threshold`.

        Returns
        -------
        self : object
            The fitted learner.
        """
        check_calibration(**(calibration_params or {}))
        return self._learn(self._pairs(pairs, y))._calibrated(pairs, y, calibration_params)


class FromLabels(PointsTransformer, OfPairs):
    """A learner that samples pairs from labels."""

    n_constraints: int | None
    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labeled points.

        Parameters
        ----------
        X : array of shape (n, d), or indices of shape (n,)
            Points.
        y : array of shape (n,)
            Labels; negative numbers are unknown.

        Returns
        -------
        self : object
            The fitted learner.
        """
        return self._learn(self._sampled(X, y))

    def _sampled(self, X: Any, y: Any) -> Pairs:
        X, y = self._points(X, y)
        a, b, c, d = constrained_pairs(y, self.n_constraints, self.random_state)
        sign = np.repeat([1, -1], [len(a), len(c)])
        return Pairs(X, np.concatenate([a, c]), np.concatenate([b, d]), sign)
