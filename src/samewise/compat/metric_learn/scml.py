"""metric-learn's SCML, from triplets and from labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from samewise.compat.metric_learn.base import (
    ComparisonsClassifier,
    MahalanobisLearner,
    PointsTransformer,
)
from samewise.compat.metric_learn.constraints import known_codes, warn_of_few
from samewise.exceptions import InvalidInputError
from samewise.learners.batch import scml
from samewise.supervision import Triplets


class _SCML(MahalanobisLearner):
    beta: float
    basis: Any
    n_basis: int | None
    max_iter: int
    verbose: bool
    random_state: Any
    _bases: ClassVar[tuple[str, ...]] = ("triplet_diffs",)

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


@dataclass(eq=False, repr=False)
class SCML(ComparisonsClassifier, _SCML):
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

    beta: float = 1e-5
    basis: Any = "triplet_diffs"
    n_basis: int | None = None
    gamma: float = 5e-3
    max_iter: int = 10000
    output_iter: int = 500
    batch_size: int = 10
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None

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


@dataclass(eq=False, repr=False)
class SCML_Supervised(PointsTransformer, _SCML):
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

    k_genuine: int = 3
    k_impostor: int = 10
    beta: float = 1e-5
    basis: Any = "lda"
    n_basis: int | None = None
    gamma: float = 5e-3
    max_iter: int = 10000
    output_iter: int = 500
    batch_size: int = 10
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
        codes = known_codes(y)
        if codes.max() > 0:
            warn_of_few(y[codes >= 0], self.k_genuine, self.k_impostor)
        X, y = X[codes >= 0], codes[codes >= 0]
        near: dict[str, Any] = {"n_neighbors": self.k_genuine, "n_impostors": self.k_impostor}
        if isinstance(self.basis, str) and self.basis == "triplet_diffs":
            triplets = Triplets.from_neighbors(X, y, **near, random_state=self.random_state)
            return self._learn((triplets,), 80 * X.shape[1])
        return self._learn((X, y), 20 * np.shape(X)[1], **near)
