"""metric-learn's ITML, from pairs and from labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from samewise.compat.metric_learn.former_names import formerly
from samewise.compat.metric_learn.of_pairs import FromLabels, FromPairs, OfPairs
from samewise.compat.metric_learn.starts import prior_of
from samewise.learners.batch import itml
from samewise.supervision import Pairs


class _ITML(OfPairs):
    gamma: float
    max_iter: int
    tol: float
    prior: Any
    verbose: bool
    random_state: Any
    _bounds: Any = None

    def _learn(self, pairs: Pairs) -> Self:
        learner = itml.ITML(
            self.gamma,
            prior=prior_of(self.prior, self.n_features_in_, self.random_state),
            bounds=self._bounds,
            max_iter=self.max_iter,
            tol=self.tol,
            verbose=self.verbose,
        ).fit(pairs)
        self.bounds_ = np.array(learner.bounds_)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)


@formerly(convergence_threshold="tol")
@dataclass(eq=False, repr=False)
class ITML(_ITML, FromPairs):
    """`samewise.ITML` with metric-learn's parameters.

    Parameters
    ----------
    gamma : float, default=1.0
        Cost of slack. The larger it is, the closer the bounds are kept.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-3
        On the duality gap, as a part of the loss.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    gamma: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-3
    prior: Any = "identity"
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None

    def fit(  # type: ignore[override]
        self,
        pairs: ArrayLike,
        y: ArrayLike,
        bounds: ArrayLike | None = None,
        calibration_params: dict[str, Any] | None = None,
    ) -> Self:
        """Learn from pairs, and calibrate the threshold on them.

        Parameters
        ----------
        pairs : array of shape (n, 2, d), or indices of shape (n, 2)
            The pairs.
        y : array of shape (n,)
            ±1.
        bounds : pair of floats, default=None
            (u, l) on squared distances; by default percentiles of them.
        calibration_params : dict, default=None
            Arguments of `calibrate_threshold`.

        Returns
        -------
        self : object
            The fitted learner.
        """
        self._bounds = bounds
        return super().fit(pairs, y, calibration_params)


@formerly(num_constraints="n_constraints", convergence_threshold="tol")
@dataclass(eq=False, repr=False)
class ITML_Supervised(_ITML, FromLabels):
    """`ITML` with pairs sampled from labels.

    Parameters
    ----------
    gamma : float, default=1.0
        Cost of slack. The larger it is, the closer the bounds are kept.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-3
        On the duality gap, as a part of the loss.
    n_constraints : int, default=None
        Pairs of each kind; 20 c² for c classes by default.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    gamma: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-3
    n_constraints: int | None = None
    prior: Any = "identity"
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, bounds: ArrayLike | None = None) -> Self:
        """Learn from labeled points.

        Parameters
        ----------
        X : array of shape (n, d), or indices of shape (n,)
            Points.
        y : array of shape (n,)
            Labels.
        bounds : pair of floats, default=None
            (u, l) on squared distances; by default percentiles of them.

        Returns
        -------
        self : object
            The fitted learner.
        """
        self._bounds = bounds
        return super().fit(X, y)
