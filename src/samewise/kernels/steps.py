"""How far an online learner moves: τ from the violation and the squared norm of the direction."""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

ROUNDING = 1e-12
"""A violation below this is rounding, not a violation: an uncapped step makes the loss exactly 0,
so a repeated example would otherwise update or not by the last bit."""


class Step(NamedTuple):
    """τ = min(cap · w, p / (‖G‖² + o² + relax / w)) for an example of weight w.

    p is the violation; unless `signed`, only p > 0 moves anything.
    """

    cap: float
    relax: float
    signed: bool


def pa() -> Step:
    """Passive–aggressive for the separable case: τ = [p]₊ / ‖G‖²."""
    return Step(float("inf"), 0.0, False)


def pa1(C: float) -> Step:
    """PA-I, linear slack: τ = min(C, [p]₊ / ‖G‖²)."""
    return Step(C, 0.0, False)


def pa2(C: float) -> Step:
    """PA-II, quadratic slack: τ = [p]₊ / (‖G‖² + 1/(2C))."""
    return Step(float("inf"), 1.0 / (2.0 * C), False)


def pals(C: float) -> Step:
    """Least squares: τ = p / (‖G‖² + 1/(2C)), of either sign."""
    return Step(float("inf"), 1.0 / (2.0 * C), True)


@njit(cache=True)
def step_size(
    p: float,
    sq_norm: float,
    weight: float,
    cap: float,
    relax: float,
    signed: bool,
    tolerance: float,
) -> float:
    """τ of one example; 0 where it is passive."""
    if weight == 0.0 or (p <= ROUNDING and not (signed and p < -ROUNDING)):
        return 0.0
    # The smaller of the two: cap·w is infinite wherever the violation is signed.
    tau = min(cap * weight, p / (sq_norm + relax / weight))
    return tau if abs(tau) >= tolerance else 0.0
