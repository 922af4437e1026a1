"""What an example would like to change: a stack of rank-one proposals.

Example i proposes G_i = sign_i l_i r_iᵀ with coefficient offset_i on the threshold and wants

    ⟨W, G_i⟩ + offset_i b ≥ target_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from samewise._typing import Matrix
from samewise.kernels.rank_one import gather_differences
from samewise.supervision import Pairs


@dataclass(frozen=True)
class Directions:
    """Rank-one proposals whose left and right vectors are the rows of V.

    Attributes
    ----------
    V : array or CSR matrix of shape (n, d)
    sign, offset, target, weight : arrays of shape (n,)
    """

    V: Matrix
    sign: NDArray[np.float64]
    offset: NDArray[np.float64]
    target: NDArray[np.float64]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.sign)

    def rows(self, start: int, stop: int | None = None) -> Directions:
        """A contiguous part."""
        part = slice(start, stop)
        return Directions(
            self.V[part], self.sign[part], self.offset[part], self.target[part], self.weight[part]
        )

    def dense(self, dtype: DTypeLike) -> Directions:
        """The same with V as a C-ordered array of the given type."""
        V = self.V.toarray() if sp.issparse(self.V) else self.V
        V = np.ascontiguousarray(V, dtype=dtype)
        return Directions(V, self.sign, self.offset, self.target, self.weight)


def pair_difference(pairs: Pairs) -> Directions:
    """G = −y v vᵀ with offset y: the constraint y (b − vᵀMv) ≥ 1 of a pair (algorithms.md §1)."""
    if sp.issparse(pairs.X):
        V = sp.csr_array(pairs.differences())
        V.sort_indices()
    elif pairs.X.flags.c_contiguous:
        V = np.empty((len(pairs), pairs.X.shape[1]), dtype=pairs.X.dtype)
        gather_differences(pairs.X, pairs.left.astype(np.intp), pairs.right.astype(np.intp), V)
    else:
        V = pairs.differences()
    return pair_directions(V, pairs)


def pair_directions(V: Matrix, pairs: Pairs) -> Directions:
    """The directions of pairs whose differences, in whatever coordinates, are the rows of V."""
    y = pairs.y.astype(np.float64)
    ones = np.ones(len(pairs))
    # A copy, because compiled code would be compiled once more for read-only arrays.
    weight = ones if pairs.sample_weight is None else pairs.sample_weight.copy()
    return Directions(V, -y, y, ones, weight)
