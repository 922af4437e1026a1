"""metric-learn's MLKR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from samewise.compat.metric_learn.base import PointsTransformer
from samewise.compat.metric_learn.starts import start
from samewise.learners.batch import mlkr


@dataclass(eq=False, repr=False)
class MLKR(PointsTransformer):
    """`samewise.MLKR` with metric-learn's parameters.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of rows of the linear map; as many as features by default.
    init : {"auto", "pca", "identity", "random"} or array of shape (r, d), default="auto"
        Where the linear map starts. "auto" chooses by the data.
    tol : float, default=None
        Tolerance of the stopping rule, of the loss; by default that of samewise's learner.
    max_iter : int, default=1000
        Maximum number of iterations.
    verbose : bool, default=False
        Whether to print progress.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    _numeric: ClassVar[bool] = True

    n_components: int | None = None
    init: Any = "auto"
    tol: float | None = None
    max_iter: int = 1000
    verbose: bool = False
    preprocessor: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points with targets.

        Parameters
        ----------
        X : array of shape (n, d), or indices of shape (n,)
            Points.
        y : array of shape (n,)
            Numbers.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X, y = self._points(X, y)
        learner = mlkr.MLKR(
            self.n_components,
            init=start(self.init, X, None, self.n_components, self.random_state),
            max_iter=self.max_iter,
            verbose=self.verbose,
        )
        if self.tol is not None:
            learner.set_params(tol=self.tol)
        learner.fit(X, y)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)
