"""What LMNN asks of its input beyond what scikit-learn checks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError


def rank(n_components: int | None, solver: str) -> None:
    """Refuse a given rank for the convex problem."""
    if n_components is not None and solver == "M":
        raise InvalidInputError(
            "solver='M' is convex only without a limit on the rank. Got "
            f"n_components={n_components}; use solver='L', or reduce the result with "
            f"metric_.reduce({n_components})."
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
    T = np.asarray(given)
    if T.ndim != 2 or len(T) != len(y) or T.shape[1] < 1 or T.dtype.kind not in "iu":
        raise InvalidInputError(
            f"targets must be an integer array of shape ({len(y)}, k). Got {T.dtype} of shape "
            f"{T.shape} instead."
        )
    if T.min() < -1 or T.max() >= len(y):
        raise InvalidInputError(
            f"targets must be row numbers from 0 to {len(y) - 1}, or −1 for none. Got values from "
            f"{T.min()} to {T.max()}."
        )
    wrong = (T >= 0) & ((y[T] != y[:, None]) | (T == np.arange(len(y))[:, None]))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise InvalidInputError(
            f"Targets must be other points of the same class. Got row {T[i, j]} as a target of row "
            f"{i}; give −1 where there is none."
        )
    return T
