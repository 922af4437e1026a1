"""What an example would like to change: a stack of rank-one proposals.

Example i proposes G_i = sign_i l_i r_iᵀ with coefficient offset_i on the threshold and wants

    ⟨W, G_i⟩ + offset_i b ≥ target_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.kernels.adapter_loops import list_direction
from samewise.kernels.pairwise import times
from samewise.kernels.rank_one import (
    any_in_rows,
    gather_differences,
    gather_sparse_differences,
    gather_triplets,
)
from samewise.kernels.scales import dense_scale, largest, sparse_scale
from samewise.kernels.steps import Wanted
from samewise.supervision import Judgements, Pairs, Triplets


@dataclass(frozen=True)
class Directions:
    """Rank-one proposals, one for each row.

    Attributes
    ----------
    left : array or CSR matrix of shape (n, m)
    right : array or CSR matrix of shape (n, d)
        The same object as `left` where G is symmetric.
    sign, offset, target, weight : arrays of shape (n,)
    """

    left: Matrix
    right: Matrix
    sign: NDArray[np.float64]
    offset: NDArray[np.float64]
    target: NDArray[np.float64]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.sign)

    @property
    def wanted(self) -> Wanted:
        """What compiled loops take beside the vectors."""
        return self.sign, self.offset, self.target, self.weight

    @property
    def symmetric(self) -> bool:
        """Whether left and right vectors are the same."""
        return self.left is self.right

    @property
    def sparse(self) -> bool:
        """Whether the vectors are rows of CSR matrices."""
        return bool(sp.issparse(self.right))

    def scale(self) -> tuple[float, float, float]:
        """How large the numbers are; NaN where one is not finite.

        Returns the length of the longest vector, that of the shortest which is not zero, and the
        largest target or weight.
        """
        sides = (self.right,) if self.symmetric else (self.left, self.right)
        found = [
            sparse_scale(V.indptr, V.data) if sp.issparse(V) else dense_scale(V) for V in sides
        ]
        most, least = zip(*found, strict=True)
        # Unlike a maximum, a sum with NaN is NaN.
        return max(most) + 0.0 * sum(most), min(least), largest(self.target, self.weight)

    def rows(self, start: int, stop: int | None = None) -> Directions:
        """A contiguous part."""
        part = slice(start, stop)
        right = self.right[part]
        left = right if self.symmetric else self.left[part]
        sign, offset, target, weight = self.wanted
        return Directions(left, right, sign[part], offset[part], target[part], weight[part])

    def dense(self, dtype: DTypeLike) -> Directions:
        """The same with vectors in C-ordered arrays of the given type."""
        right = _dense(self.right, dtype)
        left = right if self.symmetric else _dense(self.left, dtype)
        return Directions(left, right, *self.wanted)

    def within(self, left: Array, right: Array) -> Directions:
        """The same in coordinates: vectors multiplied by the columns of `left` and `right`."""
        # What is not finite is refused where they are looked at.
        with np.errstate(over="ignore", invalid="ignore"):
            L, R = times(self.left, left), times(self.right, right)
        weight = np.where(_any(L) & _any(R), self.weight, 0.0)
        return Directions(L, R, self.sign, self.offset, self.target, weight)


def _dense(vectors: Matrix, dtype: DTypeLike) -> Array:
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    return np.ascontiguousarray(vectors, dtype=dtype)


def pair_difference(pairs: Pairs) -> Directions:
    """G = −y v vᵀ with offset y: the constraint y (b − vᵀMv) ≥ 1 of a pair."""
    return pair_directions(differences(pairs.X, pairs.left, pairs.right), pairs)


def differences(X: Matrix, first: Indices, second: Indices) -> Matrix:
    """X[first] − X[second]; CSR with sorted indices where X is."""
    if sp.issparse(X):
        V = _sparse_differences(X, first, second)
    elif X.flags.c_contiguous:
        V = np.empty((len(first), X.shape[1]), dtype=X.dtype)
        gather_differences(X, first.astype(np.intp), second.astype(np.intp), V)
    else:
        V = X[first] - X[second]
    return V


def _sparse_differences(X: Matrix, first: Indices, second: Indices) -> Matrix:
    if not X.has_canonical_format:
        V = sp.csr_array(X[first] - X[second])
        V.sort_indices()
        return V
    first, second = first.astype(np.intp), second.astype(np.intp)
    most = int(sum(np.sum(X.indptr[rows + 1] - X.indptr[rows]) for rows in (first, second)))
    indptr = np.zeros(len(first) + 1, dtype=X.indptr.dtype)
    indices, data = np.empty(most, dtype=X.indices.dtype), np.empty(most, dtype=X.dtype)
    given: Any = (X.indptr, X.indices, X.data, first, second, indptr, indices, data)
    n = gather_sparse_differences(*given)
    return sp.csr_array((data[:n], indices[:n], indptr), shape=(len(first), X.shape[1]))


def pair_directions(V: Matrix, pairs: Pairs) -> Directions:
    """The directions of pairs whose differences, in whatever coordinates, are the rows of V."""
    y = pairs.y.astype(np.float64)
    ones = np.ones(len(pairs))
    # A copy, because compiled code would be compiled once more for read-only arrays.
    weight = ones if pairs.sample_weight is None else pairs.sample_weight.copy()
    return Directions(V, V, -y, y, ones, weight)


def pair_members(pairs: Pairs, margin: float) -> Directions:
    """The members of pairs as left and right: the constraint y (s(l, r) − b) ≥ margin of a cosine.

    Nothing can be learned where a member is zero: weight 0.
    """
    y = pairs.y.astype(np.float64)
    left, right = pairs.X[pairs.left], pairs.X[pairs.right]
    weight = np.ones(len(y)) if pairs.sample_weight is None else pairs.sample_weight
    weight = np.where(_any(left) & _any(right), weight, 0.0)
    return Directions(left, right, -y, y, np.full(len(y), margin), weight)


def triplet_ranking(triplets: Triplets, margin: float) -> Directions:
    """G = q pᵀ, p = p⁺ − p⁻: the constraint qᵀWp ≥ margin of a triplet."""
    n = len(triplets)
    ones = np.ones(n)
    # Nothing can be learned where q or p is zero, as when p⁺ and p⁻ are the same: weight 0.
    weight = ones.copy() if triplets.sample_weight is None else triplets.sample_weight.copy()
    X, items = triplets.X, triplets.items
    rows = [r.astype(np.intp) for r in (triplets.anchor, triplets.positive, triplets.negative)]
    if sp.issparse(X) or sp.issparse(items):
        # Loops over sparse rows take both sides sparse.
        left, right = sp.csr_array(X[rows[0]]), sp.csr_array(differences(items, *rows[1:]))
        left.sort_indices()
        weight[~(_any(left) & _any(right))] = 0.0
    else:
        left, right = (np.empty((n, V.shape[1]), dtype=V.dtype) for V in (X, items))
        given: Any = (X, items, *rows, left, right, weight)
        gather_triplets(*given)
    return Directions(left, right, ones, np.zeros(n), margin * ones, weight)


def list_ranking(
    judged: Judgements, margin: float, scores: Array, base: Array | None = None
) -> Directions:
    """G = q vᵀ, v the mean of p_i − p_j over the pairs of a list that lack margin now.

    `scores` of the shown items are those of the current form; so a stack is exact for its first
    list, and movers are given one list at a time. With `base`, rows b, the form is b·p + qᵀWp.
    """
    n, d = len(judged), judged.items.shape[1]
    right, weight = np.zeros((n, d), dtype=judged.items.dtype), np.zeros(n)
    given = np.ones(n) if judged.sample_weight is None else judged.sample_weight
    for i, (shown, y) in enumerate(zip(judged.shown, judged.y, strict=True)):
        grades = y.astype(np.int64)
        count, _ = list_direction(judged.items[shown], grades, scores[i], margin, right[i])
        weight[i] = given[i] if count else 0.0
    target = np.full(n, float(margin))
    if base is not None:
        target -= np.einsum("ij,ij->i", base, right)
    ones = np.ones(n)
    return Directions(judged.X[judged.query], right, ones, np.zeros(n), target, weight)


def _any(V: Matrix) -> NDArray[np.bool_]:
    """Which rows are not zero."""
    if not sp.issparse(V):
        return V.any(axis=1)
    found = np.empty(V.shape[0], dtype=np.bool_)
    any_in_rows(V.indptr, V.data, found)
    return found
