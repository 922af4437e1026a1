"""Where the matrix lives.

A store gives the scores lᵀWr of directions and their inner products, adds Σ c_i l_i r_iᵀ, and runs
the compiled loop over examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import block_diag

from samewise._typing import Array, Matrix
from samewise.engine.directions import Directions
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.kernels import blocked, psd, rank_one
from samewise.kernels.steps import Rows

_MIRRORED = 64
"""Columns that are mirrored at once: a block of so many stays in the cache."""


@dataclass
class Symmetric(Storable):
    """A symmetric d×d matrix, kept in the lower triangle of a C-ordered array.

    What stands above the diagonal is not read.
    """

    lower: Array

    @classmethod
    def zeros(cls, d: int, dtype: DTypeLike) -> Symmetric:
        """The zero matrix."""
        return cls(np.zeros((d, d), dtype=dtype))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.lower.dtype

    @property
    def matrix(self) -> Array:
        """Both triangles, as a new array."""
        M = self.lower.copy()
        for start in range(0, len(M), _MIRRORED):
            end = min(start + _MIRRORED, len(M))
            square = np.tril(M[start:end, start:end])
            M[start:end, start:end] = square + np.tril(square, -1).T
            M[start:end, end:] = M[end:, start:end].T
        return M

    @matrix.setter
    def matrix(self, M: Array) -> None:
        self.lower = np.tril(M)

    def scores(self, block: Directions) -> NDArray[np.float64]:
        """v_iᵀ M v_i for dense directions."""
        return blocked.quadratic(self.lower, block.right)

    def gram(self, block: Directions) -> NDArray[np.float64]:
        """Inner products (v_i·v_j)² of dense directions, j ≥ i."""
        return blocked.squared_gram(block.right)

    def add(self, left: Matrix, right: Matrix, c: NDArray[np.float64]) -> None:
        """M += Σ c_i v_i v_iᵀ; left and right are the same."""
        if sp.issparse(right):
            moved = (right * c[:, None]).T @ right
            self.lower += np.tril(moved.toarray()).astype(self.dtype)
        else:
            blocked.add(self.lower, right, c)

    def loop(self, block: Directions, rest: Any) -> tuple[int, float]:
        """The compiled loop; `rest` are its arguments beyond matrix and vectors."""
        if block.sparse:
            return rank_one.sparse(self.lower, csr_parts(block.right, self.dtype), *rest)
        return rank_one.dense(self.lower, block.dense(self.dtype).right, *rest)

    def zeros_like(self) -> Symmetric:
        """A zero matrix of the same kind."""
        return Symmetric.zeros(len(self.lower), self.dtype)

    def copy(self) -> Symmetric:
        """The same matrix in an array of its own."""
        return Symmetric(self.lower.copy())

    def scaled_add(self, c: float, other: Symmetric) -> None:
        """M += c · other."""
        self.lower += self.dtype.type(c) * other.lower

    def scale(self, c: float) -> None:
        """M becomes c · M."""
        self.lower *= self.dtype.type(c)

    def project(self) -> tuple[Array, Array, NDArray[np.float64]]:
        """M becomes its projection on the PSD cone.

        Returns the correction Σ c_i u_i u_iᵀ that was added, as (U, U, c).
        """
        values, vectors = np.linalg.eigh(self.matrix)
        below = values < 0
        U, c = np.ascontiguousarray(vectors[:, below].T), -values[below].astype(np.float64)
        self.add(U, U, c)
        return U, U, c

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

    @property
    def shape(self) -> tuple[int, int]:
        """(d, d)."""
        return self.lower.shape

    def state(self) -> State:
        """The triangle."""
        return State({"lower": np.tril(self.lower)})

    @classmethod
    def restore(cls, saved: Saved) -> Symmetric:
        """The matrix of that state."""
        lower = saved.array("lower", None, None, empty=True)
        saved.check(lower.shape[0] == lower.shape[1], "lower must be square")
        saved.check(not np.triu(lower, 1).any(), "lower must be a lower triangle")
        return cls(lower)


@dataclass
class Full(Storable):
    """Any m×n matrix W, in a C-ordered array."""

    array: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.array.dtype

    @property
    def matrix(self) -> Array:
        """W, as a new array."""
        return self.array.copy()

    @matrix.setter
    def matrix(self, W: Array) -> None:
        self.array = np.ascontiguousarray(W)

    def scores(self, block: Directions) -> NDArray[np.float64]:
        """l_iᵀ W r_i for dense directions."""
        return blocked.bilinear(self.array, block.left, block.right)

    def gram(self, block: Directions) -> NDArray[np.float64]:
        """Inner products (l_i·l_j)(r_i·r_j) of dense directions, j ≥ i."""
        return blocked.product_gram(block.left, block.right)

    def add(self, left: Matrix, right: Matrix, c: NDArray[np.float64]) -> None:
        """W += Σ c_i l_i r_iᵀ."""
        if sp.issparse(right):
            self.array += ((left * c[:, None]).T @ right).toarray().astype(self.dtype)
        else:
            blocked.add_bilinear(self.array, left, right, c)

    def loop(self, block: Directions, rest: Any) -> tuple[int, float]:
        """The compiled loop; `rest` are its arguments beyond matrix and vectors."""
        if block.sparse:
            left, right = (csr_parts(V, self.dtype) for V in (block.left, block.right))
            return rank_one.sparse_bilinear(self.array, left, right, *rest)
        block = block.dense(self.dtype)
        return rank_one.dense_bilinear(self.array, block.left, block.right, *rest)

    def project(self) -> tuple[Array, Array, NDArray[np.float64]]:
        """W becomes the projection of its symmetric part on the PSD cone; W must be square.

        Returns the correction Σ c_i l_i r_iᵀ that was added, as (left, right, c).
        """
        projected = psd.project(self.array)
        change, self.array = projected - self.array, projected
        return np.eye(len(change), dtype=self.dtype), change, np.ones(len(change))

    def zeros_like(self) -> Full:
        """A zero matrix of the same kind."""
        return Full(np.zeros_like(self.array))

    def copy(self) -> Full:
        """The same matrix in an array of its own."""
        return Full(self.array.copy())

    def scaled_add(self, c: float, other: Full) -> None:
        """W += c · other."""
        self.array += self.dtype.type(c) * other.array

    def scale(self, c: float) -> None:
        """W becomes c · W."""
        self.array *= self.dtype.type(c)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.array.shape

    def state(self) -> State:
        """W."""
        return State({"W": self.array})

    @classmethod
    def restore(cls, saved: Saved) -> Full:
        """The matrix of that state."""
        return cls(saved.array("W", None, None))


Store: TypeAlias = Symmetric | Full


def csr_parts(V: Matrix, dtype: DTypeLike) -> Rows:
    """What compiled loops take of CSR rows; unsigned indices are twice as fast to follow."""
    return V.indptr, V.indices.astype(np.uint32), V.data.astype(dtype, copy=False)
