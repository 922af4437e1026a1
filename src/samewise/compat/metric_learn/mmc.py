"""metric-learn's MMC, from pairs and from labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise.compat.metric_learn.former_names import formerly
from samewise.compat.metric_learn.of_pairs import FromLabels, FromPairs, OfPairs
from samewise.compat.metric_learn.starts import prior_of
from samewise.forms import Mahalanobis
from samewise.learners.batch import mmc
from samewise.supervision import Pairs


class _MMC(OfPairs):
    max_iter: int
    tol: float
    init: Any
    diagonal: bool
    diagonal_c: float
    verbose: bool
    random_state: Any

    def _learn(self, pairs: Pairs) -> Self:
        d, random = self.n_features_in_, self.random_state
        given = prior_of(self.init, d, random, "init", definite=False)
        learner = mmc.MMC(
            "diagonal" if self.diagonal else "full",
            max_iter=self.max_iter,
            tol=max(self.tol, 1e-6),
            shrinkage=0.0,
            verbose=self.verbose,
        ).fit(pairs)
        self.n_iter_ = learner.n_iter_
        scale = np.sqrt(self._similar_sum(pairs, given))
        form = learner.metric_
        return self._keep(Mahalanobis.from_components(scale * form.components))

    def _similar_sum(self, pairs: Pairs, given: Any) -> float:
        """Σ vᵀAv over similar pairs, which is 1 in samewise and depends on the start there."""
        if self.diagonal:
            return self.diagonal_c / 2
        A: NDArray[np.float64] = np.eye(self.n_features_in_) if isinstance(given, str) else given
        similar = pairs[pairs.y > 0]
        V = similar.X[similar.left] - similar.X[similar.right]
        if isinstance(given, str) and given == "covariance":
            members = np.unique([pairs.left, pairs.right])
            A = np.linalg.pinv(np.atleast_2d(np.cov(pairs.X[members].T)))
        return float(np.einsum("ij,jk,ik->", V, A, V)) / 100


@formerly(convergence_threshold="tol")
@dataclass(eq=False, repr=False)
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

    max_iter: int = 100
    max_proj: int = 10000
    tol: float = 1e-3
    init: Any = "identity"
    diagonal: bool = False
    diagonal_c: float = 1.0
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None


@formerly(num_constraints="n_constraints", convergence_threshold="tol")
@dataclass(eq=False, repr=False)
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

    max_iter: int = 100
    max_proj: int = 10000
    tol: float = 1e-6
    n_constraints: int | None = None
    init: Any = "identity"
    diagonal: bool = False
    diagonal_c: float = 1.0
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None
