"""Exact Euclidean neighbors: a k-d tree, or products with exact refinement.

All routes end with the same distances of the candidates, from explicit differences in float64. So
all return the same lists: by distance, then by smaller index.

Products are taken in tiles, in float32, of which only the best are kept (`kernels.nearest_rows`).
Sparse rows, many neighbors, and queries of which float32 cannot tell the neighbors are compared in
blocks of products in the type of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.spatial import cKDTree

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.forms._input_checks import check_magnitude
from samewise.kernels.neighbors import at_least, first_k_per_row, kth_bound
from samewise.kernels.pairwise import squared_norms
from samewise.supervision.supervision_checks import checked_rows

if TYPE_CHECKING:
    from samewise.kernels.nearest_rows import SearchedRows

Route = Literal["auto", "tree", "blocked"]

# Small enough for a block to stay in the cache while it is searched.
BLOCK_BYTES = 8 * 2**20
MANY, FEW = 64, 2000
"""Tiles are for at most so many neighbors among at least so many rows: their sorted lists take
longer than blocks, and their code has to be loaded."""


def _choose_route(X: Matrix, route: Route) -> Route:
    # A tree needs dense rows, and at least one column.
    if sp.issparse(X) or X.shape[1] == 0:
        return "blocked"
    if route != "auto":
        return route
    # A tree pays off if there are enough rows to halve every dimension a few times. Measured for
    # 5 neighbors of 1 000 queries against one thread of products, on Gaussian data without any
    # structure, a tree's worst case: the tree is ahead up to 4 dimensions with 1 000 rows, 6 with
    # 3 000, 8 with 10 000 and 9 with 50 000. On clustered data it holds for a few more, which is
    # not worth the risk: there both are fast, while a lost tree costs several times the products.
    n, d = X.shape
    return "tree" if n >= 32 * 2**d else "blocked"


def items_of(form: Form | None, X: Matrix) -> Matrix:
    """X as rows to search in, with the features of the form's items."""
    if form is None:
        return checked_rows(X, None, "X")
    if not hasattr(form, "n_features_items"):
        raise InvalidInputError(
            "form must be a Form, such as the metric_ of a learner, or None for the Euclidean "
            f"distance. Got {type(form).__name__}."
        )
    return checked_rows(X, form.n_features_items, "X", more_columns=form.takes_more_columns)


def queries_of(form: Form | None, Q: Matrix, n_features: int) -> Matrix:
    """Q as queries: with the features that the form wants, or those of the stored rows."""
    if form is None:
        return checked_rows(Q, n_features, "Q")
    return checked_rows(Q, form.n_features_in, "Q", more_columns=form.takes_more_columns)


class DistanceSearch:
    """Nearest rows of X (dense or CSR) by Euclidean distance."""

    def __init__(self, X: Matrix, route: Route = "auto") -> None:
        check_magnitude(X, "X")
        self.X = X
        self.route = _choose_route(X, route)
        if self.route == "tree":
            # Sliding midpoints: median splits are slow to build where values repeat.
            self._tree = cKDTree(X, balanced_tree=False)

    def query(self, Q: Matrix, k: int, exclude_self: bool) -> tuple[Array, Indices]:
        """−distances (n, k), descending, and indices (n, k); ties by the smaller index."""
        squared, indices = self.squared(Q, k, exclude_self)
        return as_closeness(squared, np.result_type(Q.dtype, self.X.dtype)), indices

    def squared(self, Q: Matrix, k: int, exclude_self: bool) -> tuple[Array, Indices]:
        """Squared distances (n, k) in float64, ascending, and indices (n, k)."""
        check_magnitude(Q, "Q")
        Q = self._alike(Q)
        squared: NDArray[np.float64] = np.empty((Q.shape[0], k))
        indices = np.empty((Q.shape[0], k), dtype=np.intp)
        rows = np.arange(Q.shape[0])
        if self.route == "tree":
            rows = rows[self._by_tree(Q, k, exclude_self, squared, indices)]
        elif not sp.issparse(self.X) and k <= MANY and self.X.shape[1] and len(self.X) >= FEW:
            rows = rows[self._by_tiles(Q, k, exclude_self, squared, indices)]
        self._by_blocks(Q, k, exclude_self, rows, squared, indices)
        return squared, indices

    def _alike(self, Q: Matrix) -> Matrix:
        """Q as sparse or dense as the stored rows."""
        if sp.issparse(self.X):
            return sp.csr_array(Q)
        return Q.toarray() if sp.issparse(Q) else Q

    def _by_tree(
        self, Q: Array, k: int, exclude_self: bool, squared: Array, indices: Indices
    ) -> NDArray[np.bool_]:
        """Fill what the tree can settle and return the mask of rows it cannot."""
        n_rows, n = Q.shape[0], self.X.shape[0]
        width = min(k + 1 + exclude_self, n)
        distances, found = self._tree.query(Q, k=np.arange(1, width + 1))
        rows = np.repeat(np.arange(n_rows), width)
        exact = _squared_distances(Q, self.X, rows, found.ravel()).reshape(n_rows, width)
        if exclude_self:
            exact[found == np.arange(n_rows)[:, None]] = np.inf
        squared[:], indices[:] = first_k_per_row(rows, found.ravel(), exact.ravel(), n_rows, k)
        if width == n:
            return np.zeros(n_rows, dtype=bool)
        # Whatever was not returned is at least as far as the last one returned.
        unsure: NDArray[np.bool_] = distances[:, -1] ** 2 <= squared[:, -1] * (1 + 1e-9)
        return unsure

    def _by_tiles(
        self,
        Q: Array,
        k: int,
        exclude_self: bool,
        squared: NDArray[np.float64],
        indices: Indices,
    ) -> NDArray[np.bool_]:
        """Fill what tiles can settle and return the mask of rows they cannot."""
        from samewise.kernels import nearest_rows

        searched, largest, mean, unit = self._tiled
        Q = np.ascontiguousarray(Q)
        found = np.full((len(Q), k), -1, dtype=np.int32)
        near = np.abs(Q - mean).max(axis=1) <= nearest_rows.FARTHEST * unit
        F = nearest_rows.prepared(np.where(near[:, None], Q, 0), mean, unit)
        error = nearest_rows.product_error(F, largest)
        own = np.arange(len(Q)) if exclude_self else np.full(len(Q), -1)
        queries = nearest_rows.Queries(F, error, Q, own.astype(np.int32))
        for first in range(0, len(Q), nearest_rows.ROWS):
            last = min(first + nearest_rows.ROWS, len(Q))
            rows = (first, last, searched, 0, len(searched.X))
            nearest_rows.nearest(queries, *rows, False, found, squared)
            # Where rows repeat, or lie close together far from the rest, that does not help.
            if 2 * (found[first:last, 0] < 0).sum() > last - first:
                break
        indices[:] = found
        unsure: NDArray[np.bool_] = (found[:, 0] < 0) | ~near
        return unsure

    @cached_property
    def _tiled(self) -> tuple[SearchedRows, float, NDArray[np.float64], float]:
        """The rows to search in, in float32 too; the largest square, and how they were scaled."""
        from samewise.kernels import nearest_rows

        X = np.ascontiguousarray(self.X)
        mean, unit = nearest_rows.center(X)
        searched, largest = nearest_rows.searched_rows(X, nearest_rows.prepared(X, mean, unit))
        return searched, largest, mean, unit

    def _by_blocks(
        self,
        Q: Matrix,
        k: int,
        exclude_self: bool,
        rows: Indices,
        squared: Array,
        indices: Indices,
    ) -> None:
        """Fill the given rows: 2 q·x − ‖x‖² in blocks, then exact distances of the candidates.

        At least k approximate values reach the bound. If each is off by at most e, the k nearest
        rows truly reach the bound − e, and so approximately the bound − 2e: no neighbor is lost
        to cancellation.
        """
        for block in _row_blocks(rows, self.X.shape[0] * self.X.dtype.itemsize):
            Qb = Q[block]
            approximate, error = self._approximate(Qb)
            if exclude_self:
                approximate[np.arange(block.size), block] = -np.inf
            bound = kth_bound(approximate, k) - 2 * error
            at, columns = at_least(approximate, bound)
            exact = _squared_distances(Qb, self.X, at, columns)
            squared[block], indices[block] = first_k_per_row(at, columns, exact, block.size, k)

    @cached_property
    def _prepared(self) -> tuple[Array | None, Matrix, Array]:
        """A shift toward the origin, the shifted rows x, and ‖x‖²; sparse rows stay in place."""
        if sp.issparse(self.X):
            return None, self.X, squared_norms(self.X)
        shift = self.X.mean(axis=0)
        Xc = self.X - shift
        x_squared = squared_norms(Xc)
        Xc *= 2
        return shift, np.column_stack([Xc, -x_squared]), x_squared

    def _approximate(self, Q: Matrix) -> tuple[Array, Array]:
        """2 q·x − ‖x‖² for all rows, and a bound on its rounding for each row of Q."""
        shift, stored, x_squared = self._prepared
        if shift is None:
            values = (2 * (Q @ stored.T)).toarray() - x_squared
            terms = int(np.diff(stored.indptr).max())
        else:
            Q = Q - shift
            values = np.column_stack([Q, np.ones(len(Q), dtype=Q.dtype)]) @ stored.T
            terms = stored.shape[1]
        # A sum of s products is off by at most s·eps/2 times the sum of their sizes, here twice
        # (q·x and ‖x‖²); the extra terms cover the shift and the addition, and the smallest number
        # stands for what underflows.
        sizes = np.sqrt(squared_norms(Q).astype(np.float64)) + np.sqrt(x_squared.max())
        limits = np.finfo(self.X.dtype)
        return values, (terms + 8) * (limits.eps * sizes**2 + limits.tiny)


def embedding(form: Form | None) -> Callable[[Matrix], Matrix]:
    """The map into the one space of a distance; nothing is mapped where there is no such space."""
    if form is not None and len(form.spaces) == 1:
        return form.spaces[0].embed
    return _unchanged


def _unchanged(X: Matrix) -> Matrix:
    return X


def as_closeness(squared: Array, dtype: DTypeLike) -> Array:
    """−√ of squared distances, in their place if the type is the same."""
    # 0 − distance and not −distance: no negative zeros.
    closeness = np.subtract(0, np.sqrt(squared, out=squared), out=squared)
    return closeness.astype(dtype, copy=False)


def _row_blocks(rows: Indices, bytes_per_row: int) -> Iterator[Indices]:
    size = max(1, BLOCK_BYTES // bytes_per_row)
    for start in range(0, rows.size, size):
        yield rows[start : start + size]


def _squared_distances(Q: Matrix, X: Matrix, rows: Indices, columns: Indices) -> Array:
    """‖Q[rows] − X[columns]‖² pair by pair, in float64, by explicit differences."""
    out = np.empty(rows.size)
    width = Q.nnz // Q.shape[0] + 1 if sp.issparse(Q) else Q.shape[1]
    for at in _row_blocks(np.arange(rows.size), 8 * max(1, width)):
        v = Q[rows[at]].astype(np.float64) - X[columns[at]]
        out[at] = squared_norms(v)
    return out
