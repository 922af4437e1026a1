"""metric-learn's LMNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from samewise.compat.metric_learn.base import PointsTransformer
from samewise.compat.metric_learn.former_names import formerly
from samewise.compat.metric_learn.starts import start
from samewise.learners.batch.lmnn import estimator as lmnn


@formerly(k="n_neighbors")
@dataclass(eq=False, repr=False)
class LMNN(PointsTransformer):
    """`samewise.LMNN` with metric-learn's parameters.

    Parameters
    ----------
    init : {"auto", "pca", "lda", "identity", "random"} or array of shape (r, d), default="auto"
        Where the linear map starts. "auto" chooses by the data.
    n_neighbors : int, default=3
        Number of neighbors of the same class that are drawn near.
    min_iter : int, default=50
        Not used: L-BFGS chooses its steps.
    max_iter : int, default=1000
        Maximum number of iterations.
    learn_rate : float, default=1e-7
        Not used: L-BFGS chooses its steps.
    regularization : float, default=0.5
        Weight of the pull; the push has 1 − regularization.
    convergence_tol : float, default=1e-3
        A fifth of it is samewise's `tol`, a part of the loss.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    n_components : int or None, default=None
        Number of rows of the linear map; as many as features by default.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    init: Any = "auto"
    n_neighbors: int = 3
    min_iter: int = 50
    max_iter: int = 1000
    learn_rate: float = 1e-7
    regularization: float = 0.5
    convergence_tol: float = 0.001
    verbose: bool = False
    preprocessor: Any = None
    n_components: int | None = None
    random_state: Any = None

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
        learner = lmnn.LMNN(
            self.n_neighbors,
            init=start(self.init, X, y, self.n_components, self.random_state),
            n_components=self.n_components,
            push_weight=1 - self.regularization,
            tol=self.convergence_tol / 5,
            max_iter=self.max_iter,
            verbose=self.verbose,
            random_state=self.random_state,
        ).fit(X, y)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)
