"""metric-learn's LSML, from quadruplets and from labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from samewise.compat.metric_learn.base import (
    ComparisonsClassifier,
    MahalanobisLearner,
    PointsTransformer,
)
from samewise.compat.metric_learn.constraints import constrained_pairs
from samewise.compat.metric_learn.former_names import formerly
from samewise.compat.metric_learn.starts import prior_of
from samewise.learners.batch import lsml
from samewise.supervision import Quadruplets


class _LSML(MahalanobisLearner):
    tol: float
    max_iter: int
    prior: Any
    verbose: bool
    random_state: Any

    def _learn(self, quadruplets: Quadruplets) -> Self:
        """Take over what samewise learns from quadruplets."""
        learner = lsml.LSML(
            1.0,
            prior=prior_of(self.prior, self.n_features_in_, self.random_state),
            tol=self.tol,
            max_iter=self.max_iter,
            verbose=self.verbose,
        ).fit(quadruplets)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)


@dataclass(eq=False, repr=False)
class LSML(ComparisonsClassifier, _LSML):
    """`samewise.LSML` with gamma=1, with metric-learn's parameters.

    Parameters
    ----------
    tol : float, default=1e-3
        On what the loss can still fall, as a part of it.
    max_iter : int, default=1000
        Maximum number of iterations.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    _tuple_size: ClassVar[int] = 4

    tol: float = 1e-3
    max_iter: int = 1000
    prior: Any = "identity"
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None

    def fit(self, quadruplets: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Learn from quadruplets: the first two are closer to each other than the last two.

        Parameters
        ----------
        quadruplets : array of shape (n, 4, d), or indices of shape (n, 4)
            The quadruplets.
        weights : array of shape (n,), default=None
            How much each counts.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X, rows = self._tuples(quadruplets, 4)
        a, b, c, d = rows.T
        return self._learn(Quadruplets(X, a, b, c, d, sample_weight=weights))


@formerly(num_constraints="n_constraints")
@dataclass(eq=False, repr=False)
class LSML_Supervised(PointsTransformer, _LSML):
    """`LSML` with quadruplets sampled from labels.

    Parameters
    ----------
    tol : float, default=1e-3
        On what the loss can still fall, as a part of it.
    max_iter : int, default=1000
        Maximum number of iterations.
    prior : {"identity", "covariance", "random"} or array of shape (d, d), default="identity"
        The matrix that the learned one stays near; an array must be positive definite.
    n_constraints : int, default=None
        Number of quadruplets; 20 c² for c classes by default.
    weights : array of shape (n_constraints,), default=None
        How much each counts.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    tol: float = 1e-3
    max_iter: int = 1000
    prior: Any = "identity"
    n_constraints: int | None = None
    weights: ArrayLike | None = None
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None

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
        X, y = self._points(X, y)
        a, b, c, d = constrained_pairs(y, self.n_constraints, self.random_state, same_length=True)
        return self._learn(Quadruplets(X, a, b, c, d, sample_weight=self.weights))
