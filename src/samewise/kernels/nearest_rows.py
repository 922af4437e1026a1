"""The nearest rows of each query, by tiles of products in float32 and exact distances of the best.

Rows are centered and scaled, so that squares neither overflow nor vanish. Of the products' values
‖e‖²/2 − f·e the best k and a few more are kept for each query; these are compared again by
explicit differences in float64. Where rounding leaves open whether that was enough, it is noticed.
None of the compiled functions holds Python's lock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.adapter_loops import products
from samewise.kernels.compiling import compiled
from samewise.kernels.pairwise import row_slices
from samewise.kernels.rank_one import FAST

ROWS, WIDTH = 512, 512
"""A tile of products that stays in the cache."""
SPARE = 8
"""Neighbors beyond the k nearest whose exact distances are compared."""
FARTHEST = 1e15
"""How many times farther than all others a query may be: squares stay within float32."""
BLOCK_BYTES = 2**22
"""Rows that are prepared at once."""
# Columns compared at once before anyone looks which of them it was.
_CHUNK = 64


class Queries(NamedTuple):
    """Points whose nearest rows are searched.

    Attributes
    ----------
    F : array of shape (n, d)
        Centered float32, up to a factor.
    error : array of shape (n,)
        How far off a distance from a product may be.
    Q : array of shape (n, d)
        The queries as they are.
    own : array of shape (n,)
        The row that is the query itself, and no neighbor of it; −1 if there is none.
    """

    F: NDArray[np.float32]
    error: NDArray[np.float32]
    Q: Array
    own: NDArray[np.int32]


class SearchedRows(NamedTuple):
    """The rows that are searched: E and X as F and Q of `Queries`, with half = ‖e‖²/2."""

    E: NDArray[np.float32]
    half: NDArray[np.float32]
    X: Array


def center(
    X: Array, weight: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], float]:
    """The mean of the rows, by their weights, and the largest value when it is subtracted."""
    if weight is None:
        mean = X.mean(axis=0, dtype=np.float64)
    else:
        mean = weight @ X / weight.sum()
    return mean, float(max((X.max(axis=0) - mean).max(), (mean - X.min(axis=0)).max())) or 1.0


def prepared(Q: Array, mean: NDArray[np.float64], unit: float) -> NDArray[np.float32]:
    """Q centered and scaled."""
    E = np.empty(Q.shape, dtype=np.float32)
    for rows in row_slices(len(Q), 8 * Q.shape[1], BLOCK_BYTES):
        E[rows] = (Q[rows] - mean) / unit
    return E


def searched_rows(X: Array, E: NDArray[np.float32]) -> tuple[SearchedRows, float]:
    """Rows X, prepared as E, to search in; and the largest ‖e‖²."""
    squares = np.einsum("ij,ij->i", E, E, dtype=np.float64)
    return SearchedRows(E, (squares / 2).astype(np.float32), X), float(squares.max())


def product_error(F: NDArray[np.float32], largest: float) -> NDArray[np.float32]:
    """How far off ‖e‖²/2 − f·e may be for each query."""
    squares = np.einsum("ij,ij->i", F, F, dtype=np.float64)
    return (rounding(F.shape[1]) * (squares + largest)).astype(np.float32)


def rounding(terms: int) -> float:
    """How far a float32 product of rows may be off, relative to the mean of their squares."""
    return (terms + 8) * float(np.finfo(np.float32).eps)


@compiled(nogil=True, fastmath=FAST)
def nearest(
    queries: Queries,
    first: int,
    last: int,
    searched: SearchedRows,
    lo: int,
    hi: int,
    settle: bool,
    out: NDArray[np.int32],
    squared: NDArray[np.float64],
) -> None:
    """The nearest of the rows lo … hi for each of the queries first … last, nearest first.

    Products of the rows of F and E give each distance up to ±error; the k + SPARE nearest by them
    are compared again by exact distances of the rows of Q and X, ties by the smaller row. Where
    more might have been needed, all rows are compared exactly if `settle`; otherwise the query
    is left as it is.

    Parameters
    ----------
    queries : Queries
    searched : SearchedRows
    settle : bool
    out : array of shape (n_queries, k)
        Filled with rows. Where there are fewer, the last places are left as they are.
    squared : array of shape (n_queries, k)
        Filled with squared distances.
    """
    F, error, Q, own = queries
    E, half, X = searched
    others = hi - lo - (own[first] >= 0)
    k = min(out.shape[1], others)
    kept = min(k + SPARE, others)
    n_rows = last - first
    values = np.full((n_rows, kept), np.inf, dtype=np.float32)
    indices = np.full((n_rows, kept), -1, dtype=np.int32)
    tile = np.empty(n_rows * WIDTH, dtype=np.float32)
    for start in range(lo, hi, WIDTH):
        stop = min(start + WIDTH, hi)
        G = tile[: n_rows * (stop - start)].reshape(n_rows, stop - start)
        if n_rows == 1:
            products(E[start:stop], F[first], G[0])
        else:
            np.dot(F[first:last], E[start:stop].T, G)
        for a in range(first, last):
            mine, whose = values[a - first], indices[a - first]
            for left in range(start, stop, _CHUNK):
                right = min(left + _CHUNK, stop)
                g = G[a - first, left - start : right - start]
                if _any_below(half[left:right], g, mine[kept - 1]):
                    for b in range(left, right):
                        value = half[b] - g[b - left]
                        if value < mine[kept - 1] and b != own[a]:
                            _insert(mine, whose, value, b)
    for a in range(first, last):
        mine, whose = values[a - first], indices[a - first]
        # All that is not in the list is at least as far as its last entry, up to the error.
        if kept < others and mine[kept - 1] <= mine[k - 1] + 2 * error[a]:
            if not settle:
                continue
            whose = np.arange(lo, hi, dtype=np.int32)
        whose.sort()
        squared[a, :k] = np.inf
        for b in whose:
            distance = _squared_distance(Q[a], X[b])
            if distance < squared[a, k - 1] and b != own[a]:
                _insert(squared[a, :k], out[a, :k], distance, b)


@compiled(nogil=True, fastmath=FAST)
def _squared_distance(x: Array, y: Array) -> float:
    total = 0.0
    for c in range(x.shape[0]):
        v = np.float64(x[c]) - np.float64(y[c])
        total += v * v
    return total


@compiled(nogil=True, fastmath=FAST)
def _insert(values: Array, indices: Indices, value: float, index: int) -> None:
    """Put a value into an ascending list whose last entry falls out."""
    at = values.shape[0] - 1
    while at > 0 and values[at - 1] > value:
        values[at], indices[at] = values[at - 1], indices[at - 1]
        at -= 1
    values[at], indices[at] = value, index


@compiled(nogil=True, fastmath=FAST)
def _any_below(half: Array, g: Array, bound: float) -> bool:
    """Whether any half_c − g_c is below the bound."""
    closer = np.float32(0)
    for c in range(g.shape[0]):
        closer += np.float32(1) if half[c] - g[c] < bound else np.float32(0)
    return bool(closer > 0)
