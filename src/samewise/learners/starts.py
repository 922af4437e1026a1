"""What a learner of triplets settles before the first one: W, the margin, the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear
from samewise.kernels.pairwise import all_dots, squared_norms, times
from samewise.supervision import Triplets

Bases = tuple[Array, Array]
"""Orthonormal columns, for queries and for items: the coordinates of a W of low rank."""
UNIT = 1e-3
"""How far from 1 a length may be: stored embeddings are often rounded."""
SAMPLE = 1000
"""Rows that the spread of similarities is measured on."""


def initial(init: Any, m: int, n: int, bases: Bases | None) -> Array:
    """W to start from, in the coordinates of the bases (A, B) if there are any: AᵀWB."""
    if isinstance(init, str):
        if init not in ("zero", "identity"):
            raise InvalidInputError(
                "The 'init' parameter must be 'zero', 'identity' or an array of shape (n_features, "
                f"n_item_features). Got {init!r} instead."
            )
        if bases is not None:
            A, B = bases
            shared = min(m, n)
            both: Array = A[:shared].T @ B[:shared]
            return both if init == "identity" else np.zeros_like(both)
        return np.zeros((m, n)) if init == "zero" else np.eye(m, n)
    W = Bilinear(np.asarray(init)).matrix
    if W.shape != (m, n):
        raise InvalidInputError(
            f"init has shape {W.shape}, but queries have {m} and items {n} features; give a matrix "
            f"of shape ({m}, {n})."
        )
    return W if bases is None else bases[0].T @ W @ bases[1]


def automatic_margin(told: Triplets, W: Array, bases: Bases | None) -> float:
    """1, unless vectors have unit length and W says something: then the spread of its scores.

    Scores of unit vectors differ by tenths, and a margin of 1 would only be met by a W far from
    the one to start from. From W = 0 the margin sets nothing but the scale of W.
    """
    if not W.any() or not all(_unit_rows(X) for X in (told.X, told.items)):
        return 1.0
    Q, P = (X[_spread_out(X.shape[0])] for X in (told.X, told.items))
    if bases is not None:
        Q, P = times(Q, bases[0]), times(P, bases[1])
    scores = np.asarray(all_dots(times(Q, W.astype(Q.dtype)), P), dtype=np.float64)
    different = np.ones(scores.shape, dtype=bool)
    if told.items is told.X:
        np.fill_diagonal(different, False)
    spread = float(np.std(scores[different])) if different.any() else 0.0
    return spread if spread > 0 else 1.0


def _unit_rows(X: Matrix) -> bool:
    return bool(np.all(np.abs(np.sqrt(squared_norms(X)) - 1.0) <= UNIT))


def _spread_out(n_rows: int) -> Any:
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, SAMPLE)).astype(np.intp))


def bases(told: Triplets, rank: int) -> Bases:
    """Orthonormal columns that span the leading directions of the queries and of the items.

    Queries and items of the same width share one basis, so that the identity keeps its meaning.
    """
    X, items = told.X, told.items
    if items is X:
        A = _leading(X, rank)
        return A, A
    if X.shape[1] == items.shape[1]:
        A = _leading(_stacked(X, items), rank)
        return A, A
    return _leading(X, rank), _leading(items, rank)


def _stacked(X: Matrix, Y: Matrix) -> Matrix:
    if sp.issparse(X) or sp.issparse(Y):
        return sp.csr_array(sp.vstack([sp.csr_array(X), sp.csr_array(Y)]))
    return np.concatenate([X, Y])


def _leading(X: Matrix, rank: int) -> Array:
    """The first right singular vectors of X, as columns."""
    n, d = X.shape
    if rank >= min(n, d):
        raise InvalidInputError(
            f"rank must be less than the number of rows and of features. Got rank={rank} with "
            f"{n} rows of {d} features; leave it out, or give the first portion of a stream the "
            "matrix of all rows."
        )
    # A start of its own makes the search for singular vectors deterministic.
    _, _, V = svds(X, k=rank, v0=np.ones(min(n, d), dtype=X.dtype), return_singular_vectors="vh")
    signs = np.sign(V[np.arange(rank), np.argmax(np.abs(V), axis=1)])
    return np.ascontiguousarray((V * signs[:, None])[::-1].T)
