"""metric-learn's learners of triplets and quadruplets, and the same with labels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from samewise.compat.metric_learn.base import ComparisonsClassifier, MahalanobisLearner
from samewise.compat.metric_learn.sampled_constraints import constrained_pairs
from samewise.compat.metric_learn.starts import prior_of
from samewise.exceptions import InvalidInputError
from samewise.learners.batch import lsml, scml
from samewise.supervision import Quadruplets, Triplets


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

    def __init__(
        self,
        tol: float = 1e-3,
        max_iter: int = 1000,
        prior: Any = "identity",
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.prior = prior
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

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


class LSML_Supervised(_LSML):
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

    def __init__(
        self,
        tol: float = 1e-3,
        max_iter: int = 1000,
        prior: Any = "identity",
        n_constraints: int | None = None,
        weights: ArrayLike | None = None,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.prior = prior
        self.n_constraints = n_constraints
        self.weights = weights
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

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
        X, y = self._points(X, y)
        a, b, c, d = constrained_pairs(y, self.n_constraints, self.random_state, same_length=True)
        return self._learn(Quadruplets(X, a, b, c, d, sample_weight=self.weights))


class SCML(ComparisonsClassifier):
    """`samewise.SCML` with metric-learn's parameters.

    Parameters
    ----------
    beta : float, default=1e-5
        Cost of the weights. The larger it is, the fewer directions there are.
    basis : {"triplet_diffs"} or array of shape (n_basis, d), default="triplet_diffs"
        Directions to choose from.
    n_basis : int, default=None
        How many; 80 for each feature by default.
    gamma : float, default=5e-3
        Not used: all triplets are looked at in each iteration.
    max_iter : int, default=10000
        Iterations of L-BFGS at most.
    output_iter : int, default=500
        Not used: all triplets are looked at in each iteration.
    batch_size : int, default=10
        Not used: all triplets are looked at in each iteration.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    _tuple_size: ClassVar[int] = 3
    _bases: ClassVar[tuple[str, ...]] = ("triplet_diffs",)

    def __init__(
        self,
        beta: float = 1e-5,
        basis: Any = "triplet_diffs",
        n_basis: int | None = None,
        gamma: float = 5e-3,
        max_iter: int = 10000,
        output_iter: int = 500,
        batch_size: int = 10,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.basis = basis
        self.n_basis = n_basis
        self.gamma = gamma
        self.max_iter = max_iter
        self.output_iter = output_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

    def fit(self, triplets: ArrayLike) -> Self:
        """Learn from triplets: the first is closer to the second than to the third.

        Parameters
        ----------
        triplets : array of shape (n, 3, d), or indices of shape (n, 3)
            The triplets.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X, rows = self._tuples(triplets, 3)
        return self._learn((Triplets(X, *rows.T),), 80 * X.shape[1])

    def _learn(self, given: tuple[Any, ...], n_basis: int, **options: Any) -> Self:
        """Take over what samewise learns."""
        if isinstance(self.basis, str) and self.basis not in self._bases:
            raise InvalidInputError(
                f"basis must be one of {', '.join(map(repr, self._bases))}, or an array. Got "
                f"{self.basis!r}."
            )
        learner = scml.SCML(
            self.beta,
            basis=None if isinstance(self.basis, str) else self.basis,
            n_basis=n_basis if self.n_basis is None else self.n_basis,
            max_iter=self.max_iter,
            verbose=self.verbose,
            random_state=self.random_state,
            **options,
        ).fit(*given)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)


class SCML_Supervised(SCML):
    """`SCML` with triplets of nearest neighbors, and directions from discriminants.

    Parameters
    ----------
    k_genuine : int, default=3
        Number of nearest examples of the same class in the triplets of an example.
    k_impostor : int, default=10
        Number of nearest examples of other classes in the triplets of an example.
    beta : float, default=1e-5
        Cost of the weights. The larger it is, the fewer directions there are.
    basis : {"lda", "triplet_diffs"} or array of shape (n_basis, d), default="lda"
        Directions to choose from.
    n_basis : int, default=None
        How many; 20 for each feature by default.
    gamma : float, default=5e-3
        Not used: all triplets are looked at in each iteration.
    max_iter : int, default=10000
        Iterations of L-BFGS at most.
    output_iter : int, default=500
        Not used: all triplets are looked at in each iteration.
    batch_size : int, default=10
        Not used: all triplets are looked at in each iteration.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    _bases: ClassVar[tuple[str, ...]] = ("lda", "triplet_diffs")

    def __init__(
        self,
        k_genuine: int = 3,
        k_impostor: int = 10,
        beta: float = 1e-5,
        basis: Any = "lda",
        n_basis: int | None = None,
        gamma: float = 5e-3,
        max_iter: int = 10000,
        output_iter: int = 500,
        batch_size: int = 10,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            beta,
            basis,
            n_basis,
            gamma,
            max_iter,
            output_iter,
            batch_size,
            verbose,
            preprocessor,
            random_state,
        )
        self.k_genuine = k_genuine
        self.k_impostor = k_impostor

    def fit(self, X: Any, y: Any) -> Self:  # type: ignore[override]
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
        X, y = self._points(X, y)
        near: dict[str, Any] = {"n_neighbors": self.k_genuine, "n_impostors": self.k_impostor}
        if isinstance(self.basis, str) and self.basis == "triplet_diffs":
            triplets = Triplets.from_neighbors(X, y, **near, random_state=self.random_state)
            return self._learn((triplets,), 80 * X.shape[1])
        return self._learn((X, y), 20 * np.shape(X)[1], **near)
