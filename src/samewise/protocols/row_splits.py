"""Rows set aside to judge by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.supervision.holding_out import hold_out
from samewise.supervision.supervision_checks import parameter_array

Parts = tuple[Matrix, NDArray[Any], Matrix, NDArray[Any]]
"""X, y to learn from and X, y to judge by."""


def held_rows(y: NDArray[Any], held: float | ArrayLike, random_state: Any) -> NDArray[np.bool_]:
    """Which rows are set aside, of a part (0 for none) or of booleans that say it."""
    if not isinstance(held, float | int):
        chosen = parameter_array(held, "The rows to set aside")
        if chosen.shape != y.shape or chosen.dtype != np.bool_:
            raise InvalidInputError(
                f"The rows to set aside must be a part of them, or a boolean for each of the "
                f"{len(y)} rows. Got an array of {chosen.dtype} of shape {chosen.shape}."
            )
        return chosen
    return np.zeros(len(y), dtype=bool) if held == 0 else hold_out(y, held, random_state)


def learn_and_judge(
    X: Matrix, y: NDArray[Any], validation: float, most: int, random_state: Any
) -> Parts:
    """Rows to learn from and rows to judge by, of at most so many; of each class in proportion."""
    rows: Indices = np.arange(len(y))
    if len(y) > most:
        rows = np.flatnonzero(hold_out(y, most / len(y), random_state))
    held = hold_out(y[rows], validation, random_state)
    learn, judge = rows[~held], rows[held]
    return X[learn], y[learn], X[judge], y[judge]
