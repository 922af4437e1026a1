"""Which rows are set aside: a part of each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise.exceptions import InvalidInputError


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
