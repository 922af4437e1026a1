"""Is a mean above or below zero? Tests and intervals that hold whenever one looks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.exceptions import InvalidInputError
from samewise.scores.significance import verdict

_Floats = NDArray[np.float64]

_GRID, _ROUNDS = 33, 3
"""Means that are tried in a round; each round looks between two of the one before."""


@dataclass(frozen=True)
class SequentialTest:
    """Result of `sequential_test`.

    Attributes
    ----------
    mean : float
        The mean of the values so far.
    low, high : float
        Limits of the true mean.
    p_value : float
        Two-sided, of the hypothesis that the true mean is 0.
    n : int
        How many values there are.
    """

    mean: float
    low: float
    high: float
    p_value: float
    n: int

    @property
    def mark(self) -> str:
        """The mark "≫" or "≪" for p ≤ 0.01, ">" or "<" for p ≤ 0.05, otherwise "="."""
        marks = "≫>" if self.mean > 0 else "≪<"
        return marks[0] if self.p_value <= 0.01 else marks[1] if self.p_value <= 0.05 else "="

    @property
    def verdict(self) -> str:
        """What the test says, in words: "better", "no difference shown" or "worse", with p."""
        return verdict(self.mark, self.p_value)


def sequential_test(x: ArrayLike, level: float = 0.05) -> SequentialTest:
    """Test whether values of [−1, 1], as they came, have a mean of 0, and bound their mean.

    Against each mean m two bets are made, that the values lie above and that they lie below:

        W_n(m) = Π (1 ± λ_t (x_t − m)),   λ_t = clip(Σ z / (Σ z² + ½), 0, 1/(2 + 2|m|)),

    where z = ±(x − m) of the values before t. If E[x_t | past] = m for all t, each is a
    martingale, and by Ville's inequality it ever reaches 2/level with probability level/2 at most.
    The interval has the means m against which neither bet has reached 2/level, and p = 2/W_n(0) for
    the bet on the side of the mean. So one may look at any time, and stop when one likes what one
    sees: the limits miss the mean with probability `level` at most. Tests for a fixed number of
    values are sharper, and do not allow it.

    Parameters
    ----------
    x : array of shape (n,)
        Values in [−1, 1] in the order in which they came, such as differences of two scores.
    level : float, default=0.05
        The probability with which the interval may miss the mean.

    Returns
    -------
    SequentialTest
        The mean, its limits, and the p-value.

    See Also
    --------
    s_test : For decisions whose number was fixed before.

    References
    ----------
    Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting, JRSS B 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.scores import sequential_test
    >>> test = sequential_test(np.tile([0.4, -0.2, 0.1], 100))
    >>> round(test.mean, 3), round(test.low, 2), round(test.high, 2)
    (0.1, 0.06, 0.15)
    >>> test.verdict
    'better, p < 0.001'
    """
    values = np.asarray(x)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "biuf":
        raise InvalidInputError(
            "x must be a one-dimensional array of numbers, at least one. Got an array of shape "
            f"{values.shape} and type {values.dtype}."
        )
    values = values.astype(np.float64)
    if not (np.abs(values) <= 1).all():
        raise InvalidInputError("x must have values from -1 to 1.")
    if not isinstance(level, Real) or not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1. Got {level!r}.")
    mean = float(values.mean())
    gained = log_wealth(values if mean > 0 else -values, 0.0)[-1]
    limit = math.log(2 / level)
    return SequentialTest(
        mean=mean,
        low=_lower(values, limit),
        high=-_lower(-values, limit),
        p_value=min(1.0, 2 * math.exp(-gained)) if gained > 0 else 1.0,
        n=len(values),
    )


def log_wealth(x: _Floats, m: float) -> _Floats:
    """The logarithm of the wealth, after each value, of the bet that values lie above m.

    With m = 0 it is the bet of the guard of a live adapter.
    """
    z = x - m
    past, squares = np.zeros((2, len(z)))
    past[1:], squares[1:] = np.cumsum(z)[:-1], np.cumsum(z * z)[:-1]
    share = np.clip(past / (squares + 0.5), 0.0, 0.5 / (1.0 + abs(m)))
    return np.cumsum(np.log1p(share * z))


def _lower(x: _Floats, limit: float) -> float:
    """The largest m such that the bet has won against it and all smaller ones."""
    low, high = -1.0, 1.0
    for _ in range(_ROUNDS):
        grid = np.linspace(low, high, _GRID)
        lost = (m for m, mean in enumerate(grid) if log_wealth(x, mean)[-1] < limit)
        first = next(lost, _GRID - 1)
        if first == 0:
            return low
        low, high = grid[first - 1], grid[first]
    return float(low)
