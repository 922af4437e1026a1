"""What a learner of triplets settles before the first one: W, the margin, the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear
from samewise.kernels.pairwise import all_dots, squared_norms, times
from samewise.supervision import Triplets
from samewise.supervision.sampling import row_keys

Bases = tuple[Array, Array]
"""Orthonormal columns, for queries and for items: the coordinates of a W of low rank."""
UNIT = 1e-3
"""How far from 1 a length may be: stored embeddings are often rounded."""
SAMPLE = 1000
"""Rows that the size of similarities is measured on."""
DISTURBANCE = 0.05
"""How much of the scores of unrelated pairs a step may change (`margin="auto"`)."""


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
    W = Bilinear(init).matrix
    if W.shape != (m, n):
        raise InvalidInputError(
            f"init has shape {W.shape}, but queries have {m} and items {n} features; give a matrix "
            f"of shape ({m}, {n})."
        )
    return W if bases is None else bases[0].T @ W @ bases[1]


def automatic_margin(triplets: Triplets, W: Array, bases: Bases | None) -> float:
    """1, unless vectors have unit length and W says something to begin with.

    A step that changes its own score by the margin changes the score of an unrelated (q′, p′) by
    margin · (q·q′)(p·p′), about margin · ρ² with ρ the size of such products. To keep that to a
    twentieth of the scores there are, which are of size s, the margin is at most s/20ρ²; the
    identity, with s = ρ, gets min(1, 1/20ρ). From W = 0 the margin only sets the scale of W.
    """
    if not W.any() or not all(_unit_rows(X) for X in (triplets.X, triplets.items)):
        return 1.0
    Q, P = (X[_some_rows(X)] for X in (triplets.X, triplets.items))
    if bases is not None:
        Q, P = times(Q, bases[0]), times(P, bases[1])
    one = triplets.items is triplets.X
    rho = np.sqrt(_size(Q, Q, True) * _size(P, P, True))
    scores = _size(times(Q, W.astype(Q.dtype)), P, one)
    if rho == 0.0 or scores == 0.0:
        return 1.0
    return float(scores / rho * min(1.0, DISTURBANCE / rho))


def _size(A: Matrix, B: Matrix, same: bool) -> float:
    """Root mean square of the products of rows, but for those of a row with itself."""
    products = np.asarray(all_dots(A, B), dtype=np.float64)
    if same:
        np.fill_diagonal(products, 0.0)
    n = products.size - len(products) * same
    return float(np.sqrt(np.sum(products**2) / max(n, 1)))


def _unit_rows(X: Matrix) -> bool:
    return bool(np.all(np.abs(np.sqrt(squared_norms(X)) - 1.0) <= UNIT))


def _some_rows(X: Matrix) -> Indices:
    """Some different rows, the same ones however X is ordered and whatever it repeats."""
    rows = np.unique(row_keys(X), return_index=True)[1]
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.intp)]


def bases(triplets: Triplets, rank: int) -> Bases:
    """Orthonormal columns that span the leading directions of the queries and of the items.

    Queries and items of the same width share one basis, so that the identity keeps its meaning.
    """
    X, items = triplets.X, triplets.items
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
