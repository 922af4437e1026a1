"""metric-learn's learners of labels, numbers, chunks, or points alone."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from samewise.compat.metric_learn.base import MahalanobisLearner
from samewise.compat.metric_learn.sampled_constraints import Constraints
from samewise.compat.metric_learn.starts import start
from samewise.learners.batch import mlkr, nca
from samewise.learners.batch.lmnn import estimator as lmnn
from samewise.learners.closed import classical, lfda, rca


class LMNN(MahalanobisLearner):
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

    def __init__(
        self,
        init: Any = "auto",
        n_neighbors: int = 3,
        min_iter: int = 50,
        max_iter: int = 1000,
        learn_rate: float = 1e-7,
        regularization: float = 0.5,
        convergence_tol: float = 0.001,
        verbose: bool = False,
        preprocessor: Any = None,
        n_components: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.init = init
        self.n_neighbors = n_neighbors
        self.min_iter = min_iter
        self.max_iter = max_iter
        self.learn_rate = learn_rate
        self.regularization = regularization
        self.convergence_tol = convergence_tol
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.n_components = n_components
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


class NCA(MahalanobisLearner):
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

    def __init__(
        self,
        init: Any = "auto",
        n_components: int | None = None,
        max_iter: int = 100,
        tol: float | None = None,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.init = init
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
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


class MLKR(MahalanobisLearner):
    """`samewise.MLKR` with metric-learn's parameters.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of rows of the linear map; as many as features by default.
    init : {"auto", "pca", "lda", "identity", "random"} or array of shape (r, d), default="auto"
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

    def __init__(
        self,
        n_components: int | None = None,
        init: Any = "auto",
        tol: float | None = None,
        max_iter: int = 1000,
        verbose: bool = False,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.preprocessor = preprocessor
        self.random_state = random_state

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
            init=start(self.init, X, y, self.n_components, self.random_state),
            max_iter=self.max_iter,
            verbose=self.verbose,
        )
        if self.tol is not None:
            learner.set_params(tol=self.tol)
        learner.fit(X, y)
        self.n_iter_ = learner.n_iter_
        return self._keep(learner.metric_)


class LFDA(MahalanobisLearner):
    """`samewise.LFDA` with metric-learn's parameters.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of rows of the linear map; as many as features by default.
    k : int, default=None
        Number of neighbors. By default 7, or one less than features if that is fewer.
    embedding_type : {"weighted", "orthonormalized", "plain"}, default="weighted"
        How the directions are scaled.
    preprocessor : array or callable, default=None
        What forms points of indices.
    """

    def __init__(
        self,
        n_components: int | None = None,
        k: int | None = None,
        embedding_type: str = "weighted",
        preprocessor: Any = None,
    ) -> None:
        self.n_components = n_components
        self.k = k
        self.embedding_type = embedding_type
        self.preprocessor = preprocessor

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
        k = max(1, min(7, X.shape[1] - 1)) if self.k is None else self.k
        learner = lfda.LFDA(
            self.n_components, n_neighbors=k, embedding_type=self.embedding_type
        ).fit(X, y)
        return self._keep(learner.metric_)


class Covariance(MahalanobisLearner):
    """`samewise.Covariance` without shrinkage: the inverse of the covariance, divided by n − 1.

    Parameters
    ----------
    preprocessor : array or callable, default=None
        What forms points of indices.
    """

    def __init__(self, preprocessor: Any = None) -> None:
        self.preprocessor = preprocessor

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from points.

        Parameters
        ----------
        X : array of shape (n, d), or indices of shape (n,)
            Points.
        y : array, default=None
            Not used.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X = self._points(X)
        form = classical.Covariance(shrinkage=0.0).fit(X).metric_
        scale = np.sqrt((len(X) - 1) / len(X))
        return self._keep(type(form).from_components(scale * form.components))


class RCA(MahalanobisLearner):
    """`samewise.RCA` with metric-learn's parameters.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L, all by default.
    preprocessor : array or callable, default=None
        What forms points of indices.
    """

    def __init__(self, n_components: int | None = None, preprocessor: Any = None) -> None:
        self.n_components = n_components
        self.preprocessor = preprocessor

    def fit(self, X: Any, chunks: Any) -> Self:
        """Learn from chunks of points that are alike.

        Parameters
        ----------
        X : array of shape (n, d), or indices of shape (n,)
            Points.
        chunks : int array of shape (n,)
            The number of the chunk of each point; −1 for none.

        Returns
        -------
        self : object
            The fitted learner.
        """
        X, chunks = self._points(X, chunks)
        return self._learned(X, np.asarray(chunks).astype(int))

    def _learned(self, X: Any, chunks: Any) -> Self:
        return self._keep(rca.RCA(self.n_components).fit(X, chunklets=chunks).metric_)


class RCA_Supervised(RCA):
    """`RCA` with chunks sampled from labels.

    Parameters
    ----------
    n_components : int, default=None
        Number of rows of L, all by default.
    n_chunks : int, default=100
        Number of chunklets to sample.
    chunk_size : int, default=2
        Number of examples in a chunklet.
    preprocessor : array or callable, default=None
        What forms points of indices.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for what is random; pass an int for reproducible output.
    """

    def __init__(
        self,
        n_components: int | None = None,
        n_chunks: int = 100,
        chunk_size: int = 2,
        preprocessor: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, preprocessor)
        self.n_chunks = n_chunks
        self.chunk_size = chunk_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labeled points; negative labels are unknown.

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
        labels = np.asarray(y)
        if labels.dtype.kind not in "iuf":
            labels = np.unique(labels, return_inverse=True)[1]
        chunks = Constraints(labels).chunks(self.n_chunks, self.chunk_size, self.random_state)
        return self._learned(X, chunks)
