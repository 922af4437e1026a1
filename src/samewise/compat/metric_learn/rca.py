"""metric-learn's RCA, from chunks and from labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from samewise.compat.metric_learn.base import PointsTransformer
from samewise.compat.metric_learn.constraints import Constraints, known_codes
from samewise.compat.metric_learn.former_names import formerly
from samewise.learners.closed import rca


class RCA(PointsTransformer):
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

    @formerly(num_chunks="n_chunks")
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
        chunks = Constraints(known_codes(y)).chunks(
            self.n_chunks, self.chunk_size, self.random_state
        )
        return self._learned(X, chunks)
