"""Rows set aside to judge by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError

Parts = tuple[Matrix, NDArray[Any], Matrix, NDArray[Any]]
"""X, y to learn from and X, y to judge by."""


def hold_out(y: ArrayLike, part: float, random_state: Any = None) -> NDArray[np.bool_]:
    """Which rows to set aside: a part of each class, as evenly as numbers allow.

    The only member of a class is never set aside.

    Parameters
    ----------
    y : array of shape (n,)
        Labels.
    part : float in (0, 1)
        The part to set aside.
    random_state : int, RandomState instance or None, default=None
        Seed for reproducible splits.

    Returns
    -------
    array of booleans of shape (n,)
        True for rows that are set aside.

    Examples
    --------
    >>> from samewise.protocols import hold_out
    >>> held = hold_out(["a", "b"] * 10, 0.3, random_state=0)
    >>> held[::2].sum(), held[1::2].sum()
    (np.int64(3), np.int64(3))
    """
    codes = np.unique(np.asarray(y), return_inverse=True)[1]
    if not 0 < part < 1:
        raise InvalidInputError(f"The part to set aside must be between 0 and 1. Got {part!r}.")
    rows = check_random_state(random_state).permutation(len(codes))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    held = np.zeros(len(codes), dtype=bool)
    held[rows] = np.diff(np.floor(np.arange(len(codes) + 1) * part + 0.5)) > 0
    held &= np.bincount(codes)[codes] > 1
    if not held.any() or held.all():
        raise InvalidInputError(
            f"A part of {part:g} of {len(codes)} rows leaves nothing to learn from or nothing to "
            "judge by; give more rows, or another part."
        )
    return held


def held_rows(y: NDArray[Any], held: float | ArrayLike, random_state: Any) -> NDArray[np.bool_]:
    """Which rows are set aside, of a part (0 for none) or of booleans that say it."""
    if not isinstance(held, float | int):
        chosen = np.asarray(held)
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
