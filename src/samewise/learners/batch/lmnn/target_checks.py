"""What LMNN asks of its input beyond what scikit-learn checks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError
from samewise.solvers.evaluation import Matrix64
from samewise.supervision.target_rows import checked_targets

FARTHEST = 1e15


def rank(n_components: int | None, solver: str) -> None:
    """Refuse a given rank for the convex problem."""
    if n_components is not None and solver == "M":
        raise InvalidInputError(
            "solver='M' is convex only without a limit on the rank. Got "
            f"n_components={n_components}; use solver='L', or reduce the result with "
            f"metric_.reduce({n_components})."
        )


def start(L: Matrix64 | None, X: Array) -> None:
    """Refuse a start under which squared distances overflow float32, in which impostors lie."""
    if L is None:
        return
    size = float(np.abs(X @ L.T).max(initial=0))
    if not size <= FARTHEST:
        raise InvalidInputError(
            f"LMNN starts with a map that takes points to values up to {size:.3g}, more than "
            f"{FARTHEST:g}; scale the features, or set init='auto'."
        )


def targets(
    given: ArrayLike | None, y: Indices, validation_fraction: float | None
) -> Indices | None:
    """Target neighbors by row number, of the same class and not the point itself."""
    if given is None:
        return None
    if validation_fraction is not None:
        raise InvalidInputError(
            "targets name rows of X, some of which validation_fraction would hold out; use only "
            "one of the two."
        )
    return checked_targets(given, y)
