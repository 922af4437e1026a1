"""Differences of pairs, a block at a time: those of all pairs would be as large as the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.pairwise import squared_norms
from samewise.learners.dense_rows import dense_rows
from samewise.supervision import Pairs

BLOCK_BYTES = 2**17

Vector = NDArray[np.float64]


class Differences:
    """v = x − x′ of pairs of rows, in float64, each times a factor if there is one.

    Parameters
    ----------
    X : array of shape (n, d)
    left, right : arrays of shape (n_pairs,)
    factor : array of shape (n_pairs,), optional

    Examples
    --------
    >>> import numpy as np
    >>> V = Differences(np.array([[1.0, 2.0], [0.0, 5.0]]), np.array([0]), np.array([1]))
    >>> V[:]
    array([[ 1., -3.]])
    """

    def __init__(
        self, X: Array, left: Indices, right: Indices, factor: Vector | None = None
    ) -> None:
        self.X, self.left, self.right, self.factor = X, left, right, factor

    @classmethod
    def of(cls, pairs: Pairs, owner: str) -> Self:
        """Those of some pairs; of sparse rows, the ones that occur are made dense."""
        X, left, right = pairs.X, pairs.left, pairs.right
        if sp.issparse(X):
            rows, places = np.unique(np.concatenate([left, right]), return_inverse=True)
            X = dense_rows(X[rows], owner)
            left, right = places[: len(left)], places[len(left) :]
        return cls(X, left, right)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    def __getitem__(self, rows: Any) -> Vector:
        V: Vector = self.X[self.left[rows]].astype(np.float64)
        V -= self.X[self.right[rows]]
        if self.factor is not None:
            V *= self.factor[rows, None]
        return V

    def blocks(self) -> Iterator[slice]:
        """Pairs whose differences are to be at hand at once."""
        n = max(16, BLOCK_BYTES // (8 * self.n_features))
        for start in range(0, len(self), n):
            yield slice(start, min(start + n, len(self)))

    def differ(self, least: float = 0.0) -> NDArray[np.bool_]:
        """Which pairs have rows whose squared distance is above `least`."""
        found = np.empty(len(self), dtype=bool)
        for rows in self.blocks():
            found[rows] = squared_norms(self[rows]) > least
        return found

    def only(self, rows: Indices, factor: Vector | None = None) -> Differences:
        """Some pairs, with new factors."""
        return Differences(self.X, self.left[rows], self.right[rows], factor)

    def scatter(self) -> Vector:
        """Σ v vᵀ."""
        S = np.zeros((self.n_features, self.n_features))
        for rows in self.blocks():
            V = self[rows]
            S += V.T @ V
        return S
