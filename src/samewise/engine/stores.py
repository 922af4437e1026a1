"""Where the matrix lives."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import block_diag

from samewise._typing import Array, Matrix
from samewise.kernels import blocked


class Symmetric:
    """A symmetric d×d matrix, kept in the lower triangle of a C-ordered array."""

    def __init__(self, M: Array) -> None:
        self.lower = np.tril(M)

    @classmethod
    def zeros(cls, d: int, dtype: DTypeLike) -> Symmetric:
        """The zero matrix."""
        return cls(np.zeros((d, d), dtype=dtype))

    @property
    def matrix(self) -> Array:
        """Both triangles, as a new array."""
        lower = np.tril(self.lower)
        return lower + np.tril(lower, -1).T

    def scores(self, V: Array) -> NDArray[np.float64]:
        """v_iᵀ M v_i for the dense rows of V."""
        return blocked.quadratic(self.lower, V)

    def add(self, V: Matrix, c: NDArray[np.float64]) -> None:
        """M += Σ c_i v_i v_iᵀ."""
        if sp.issparse(V):
            moved = (V * c[:, None]).T @ V
            self.lower += np.tril(moved.toarray()).astype(self.lower.dtype)
        else:
            blocked.add(self.lower, V, c)

    def scaled_add(self, c: float, other: Symmetric) -> None:
        """M += c · other."""
        self.lower += self.lower.dtype.type(c) * other.lower

    def project(self) -> tuple[Array, NDArray[np.float64]]:
        """M becomes its projection on the PSD cone.

        Returns the correction Σ c_i u_i u_iᵀ that was added, as (U, c).
        """
        values, vectors = np.linalg.eigh(self.matrix)
        below = values < 0
        U, c = np.ascontiguousarray(vectors[:, below].T), -values[below].astype(np.float64)
        self.add(U, c)
        return U, c

    def widen(self, n_new: int, value: float = 0.0) -> None:
        """Add coordinates: zero everywhere but for `value` on their diagonal."""
        d = len(self.lower)
        grown = np.zeros((d + n_new, d + n_new), dtype=self.lower.dtype)
        grown[:d, :d] = self.lower
        np.fill_diagonal(grown[d:, d:], value)
        self.lower = grown

    def narrow(self, kept: int, H: Array) -> None:
        """M becomes J M Jᵀ, where J keeps the first coordinates and maps the rest by H."""
        M = self.matrix
        rest = M[kept:] @ block_diag(np.eye(kept), H.T)
        moved = np.zeros((kept + len(H), kept + len(H)), dtype=M.dtype)
        moved[:kept, :kept] = M[:kept, :kept]
        moved[kept:] = H @ rest
        self.lower = np.tril(moved)
