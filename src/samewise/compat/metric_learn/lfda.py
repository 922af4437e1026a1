"""metric-learn's LFDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from samewise.compat.metric_learn.base import PointsTransformer
from samewise.learners.closed import lfda


@dataclass(eq=False, repr=False)
class LFDA(PointsTransformer):
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

    n_components: int | None = None
    k: int | None = None
    embedding_type: str = "weighted"
    preprocessor: Any = None

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
