"""metric-learn's NCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from samewise.compat.metric_learn.base import PointsTransformer
from samewise.compat.metric_learn.starts import start
from samewise.learners.batch import nca


@dataclass(eq=False, repr=False)
class NCA(PointsTransformer):
    """`samewise.NCA` with metric-learn's parameters.

    Parameters
    ----------
    init : {"auto", "pca", "lda", "identity", "random"} or array of shape (r, d), default="auto"
        Where the linear map starts. "auto" chooses by the data.
    n_components : int or None, default=None
        Number of rows of the linear map; as many as features by default.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=None
        Tolerance of the stopping rule, of the loss; by default that of samewise's learner.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    init: Any = "auto"
    n_components: int | None = None
    max_iter: int = 100
    tol: float | None = None
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
            Labels.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X, y = self._points(X, y)
        learner = nca.NCA(
            self.n_components,
            init=start(self.init, X, y, self.n_components, self.random_state),
            max_iter=self.max_iter,
            verbose=self.verbose,
            random_state=self.random_state,
        )
        if self.tol is not None:
            learner.set_params(tol=self.tol)
        learner.fit(X, y)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)
