"""What a learner of triplets settles before the first one: W and the coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear
from samewise.kernels.pairwise import dense
from samewise.learners.online.margin_gauge import Bases, stacked, unit_rows
from samewise.supervision import Triplets

FEW = 300
"""Up to so many rows or features all directions are computed."""
POWERS = 10
"""Products with X and Xᵀ in the search for the leading ones."""


def named_start(init: Any, triplets: Triplets, automatic: bool) -> tuple[Any, bool]:
    """`init` without "auto", and whether rows have unit length where that matters.

    It matters to "auto" itself, and to an automatic margin of another start than 0.

    "auto" is the identity for unit vectors of the same features, whose dot product says something
    already, and else 0, as in the papers on AROMA.
    """
    named = init if isinstance(init, str) else None
    if named == "zero" or (named != "auto" and not automatic):
        return init, False
    unit = unit_rows(triplets)
    if named == "auto":
        same = triplets.X.shape[1] == triplets.items.shape[1]
        return "identity" if unit and same else "zero", unit
    return init, unit


def initial(init: Any, m: int, n: int, bases: Bases | None) -> Array:
    """W to start from, in the coordinates of the bases (A, B) if there are any: AᵀWB."""
    if isinstance(init, str):
        if init not in ("zero", "identity"):
            raise InvalidInputError(
                "The 'init' parameter must be 'auto', 'zero', 'identity' or an array of shape "
                f"(n_features, n_item_features). Got {init!r} instead."
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


def bases(triplets: Triplets, rank: int) -> Bases:
    """Orthonormal columns that span the leading directions of the queries and of the items.

    Queries and items of the same width share one basis, so that the identity keeps its meaning.
    """
    X, items = triplets.X, triplets.items
    if items is X:
        A = _leading(X, rank)
        return A, A
    if X.shape[1] == items.shape[1]:
        A = _leading(stacked(X, items), rank)
        return A, A
    return _leading(X, rank), _leading(items, rank)


def _leading(X: Matrix, rank: int) -> Array:
    """The first right singular vectors of X, as columns."""
    n, d = X.shape
    if rank >= min(n, d):
        raise InvalidInputError(
            f"rank must be less than the number of rows and of features. Got rank={rank} with "
            f"{n} rows of {d} features; leave it out, or give the first portion of a stream the "
            "matrix of all rows."
        )
    if min(n, d) <= FEW:
        V = np.linalg.svd(dense(X), full_matrices=False)[2][:rank]
    else:
        # ARPACK's are not the same every time where X has fewer directions.
        V = randomized_svd(X, rank, n_iter=POWERS, random_state=0)[2]
    signs = np.sign(V[np.arange(rank), np.argmax(np.abs(V), axis=1)])
    return np.ascontiguousarray((V * signs[:, None]).T)
