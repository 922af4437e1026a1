"""When to stop by the error on examples that are not learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EVERY, PATIENCE = 5, 3
"""Iterations between two looks at the held-out error; looks without a new best before the end."""


class HeldOut:
    """The error on held-out examples, and what was best by it.

    Parameters
    ----------
    error_of : callable
        The error of what is learned, for example of a map.

    Attributes
    ----------
    best : object
        What had the least error; None before the first look.
    error : float
        The least error.

    Examples
    --------
    >>> held_out = HeldOut(abs)
    >>> [held_out.look(x) for x in (2, -1, 3, 3, 3)]
    [2, 1, 3, 3, 3]
    >>> held_out.best, held_out.enough
    (-1, True)
    """

    def __init__(self, error_of: Callable[[Any], float]) -> None:
        self._error_of = error_of
        self.best: Any = None
        self.error, self._worse = np.inf, 0

    def look(self, learned: Any) -> float:
        """The error of what is learned, which is kept if it is the best."""
        error = self._error_of(learned)
        self._worse += 1
        if error < self.error:
            self.error, self.best, self._worse = error, learned, 0
        return error

    @property
    def enough(self) -> bool:
        """Whether the error has not fallen for a while."""
        return self._worse >= PATIENCE
