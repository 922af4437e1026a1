"""metric-learn's learners of pairs, and the same with pairs sampled from labels."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.compat.metric_learn.base import (
    MahalanobisLearner,
    PairsClassifier,
    check_calibration,
)
from samewise.compat.metric_learn.sampled_constraints import constrained_pairs
from samewise.compat.metric_learn.starts import prior_of
from samewise.forms import Mahalanobis
from samewise.learners.batch import itml, mmc, sdml
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


class FromLabels(OfPairs):
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
            Labels.

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

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        prior: Any = "identity",
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

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

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_constraints: int | None = None,
        prior: Any = "identity",
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.n_constraints = n_constraints
        self.prior = prior
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

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


class _MMC(OfPairs):
    max_iter: int
    tol: float
    init: Any
    diagonal: bool
    diagonal_c: float
    verbose: bool
    random_state: Any

    def _learn(self, pairs: Pairs) -> Self:
        learner = mmc.MMC(
            "diagonal" if self.diagonal else "full",
            max_iter=self.max_iter,
            tol=max(self.tol, 1e-6),
            shrinkage=0.0,
            verbose=self.verbose,
        ).fit(pairs)
        self.n_iter_ = learner.n_iter_
        scale = np.sqrt(self._similar_sum(pairs))
        form = learner.metric_
        return self._keep(Mahalanobis.from_components(scale * form.components))

    def _similar_sum(self, pairs: Pairs) -> float:
        """Σ vᵀAv over similar pairs, which is 1 in samewise and depends on the start there."""
        if self.diagonal:
            return self.diagonal_c / 2
        given = prior_of(self.init, self.n_features_in_, self.random_state)
        A: NDArray[np.float64] = np.eye(self.n_features_in_) if isinstance(given, str) else given
        similar = pairs[pairs.y > 0]
        V = similar.X[similar.left] - similar.X[similar.right]
        if isinstance(given, str) and given == "covariance":
            members = np.unique([pairs.left, pairs.right])
            A = np.linalg.pinv(np.atleast_2d(np.cov(pairs.X[members].T)))
        return float(np.einsum("ij,jk,ik->", V, A, V)) / 100


class MMC(_MMC, FromPairs):
    """`samewise.MMC` without shrinkage, with metric-learn's parameters and scale.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of iterations.
    max_proj : int, default=10000
        Not used: there are no inner projections.
    tol : float, default=1e-3
        On what may be missing of the objective, as a part of it; at least 1e-6.
    init : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The scale of the result: Σ vᵀAv over similar pairs is a hundredth of its value there.
    diagonal : bool, default=False
        Whether only the weights of features are learned.
    diagonal_c : float, default=1.0
        The scale of a diagonal result: half of it is Σ vᵀAv.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    def __init__(
        self,
        max_iter: int = 100,
        max_proj: int = 10000,
        tol: float = 1e-3,
        init: Any = "identity",
        diagonal: bool = False,
        diagonal_c: float = 1.0,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.max_proj = max_proj
        self.tol = tol
        self.init = init
        self.diagonal = diagonal
        self.diagonal_c = diagonal_c
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state


class MMC_Supervised(_MMC, FromLabels):
    """`MMC` with pairs sampled from labels.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of iterations.
    max_proj : int, default=10000
        Not used: there are no inner projections.
    tol : float, default=1e-06
        On what may be missing of the objective, as a part of it; at least 1e-6.
    n_constraints : int, default=None
        Pairs of each kind; 20 c² for c classes by default.
    init : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The scale of the result: Σ vᵀAv over similar pairs is a hundredth of its value there.
    diagonal : bool, default=False
        Whether only the weights of features are learned.
    diagonal_c : float, default=1.0
        The scale of a diagonal result: half of it is Σ vᵀAv.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    def __init__(
        self,
        max_iter: int = 100,
        max_proj: int = 10000,
        tol: float = 1e-6,
        n_constraints: int | None = None,
        init: Any = "identity",
        diagonal: bool = False,
        diagonal_c: float = 1.0,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.max_proj = max_proj
        self.tol = tol
        self.n_constraints = n_constraints
        self.init = init
        self.diagonal = diagonal
        self.diagonal_c = diagonal_c
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state


class _SDML(OfPairs):
    balance_param: float
    sparsity_param: float
    prior: Any
    verbose: bool
    random_state: Any

    def _learn(self, pairs: Pairs) -> Self:
        learner = sdml.SDML(
            self.balance_param,
            self.sparsity_param,
            prior=prior_of(self.prior, self.n_features_in_, self.random_state),
            verbose=self.verbose,
        ).fit(pairs)
        self.balance_ = learner.balance_
        return self._keep(learner.metric_)


class SDML(_SDML, FromPairs):
    """`samewise.SDML` with metric-learn's parameters.

    Parameters
    ----------
    balance_param : float, default=0.5
        Weight of the pairs. Where there is no solution it is lowered, with a warning.
    sparsity_param : float, default=0.01
        Cost of entries beside the diagonal. The larger it is, the more of them are 0.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    def __init__(
        self,
        balance_param: float = 0.5,
        sparsity_param: float = 0.01,
        prior: Any = "identity",
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.balance_param = balance_param
        self.sparsity_param = sparsity_param
        self.prior = prior
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state


class SDML_Supervised(_SDML, FromLabels):
    """`SDML` with pairs sampled from labels.

    Parameters
    ----------
    balance_param : float, default=0.5
        Weight of the pairs. Where there is no solution it is lowered, with a warning.
    sparsity_param : float, default=0.01
        Cost of entries beside the diagonal. The larger it is, the more of them are 0.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    n_constraints : int, default=None
        Pairs of each kind; 20 c² for c classes by default.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    def __init__(
        self,
        balance_param: float = 0.5,
        sparsity_param: float = 0.01,
        prior: Any = "identity",
        n_constraints: int | None = None,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.balance_param = balance_param
        self.sparsity_param = sparsity_param
        self.prior = prior
        self.n_constraints = n_constraints
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state
