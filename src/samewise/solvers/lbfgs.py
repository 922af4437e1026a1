"""L-BFGS over a matrix, with a line search that suits functions with kinks."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

import numpy as np

from samewise.solvers.evaluation import LossAndGradient, Matrix64, Objective

MEMORY = 10
DECREASE, SLOPE = 1e-4, 0.9
TRIALS = 20

E = TypeVar("E", bound=LossAndGradient)


class LBFGS(Generic[E]):
    """Steps of a limited-memory quasi-Newton method.

    References
    ----------
    Nocedal and Wright, *Numerical Optimization*, algorithm 7.4; Lewis and Overton, *Nonsmooth
    optimization via quasi-Newton methods*, 2013, for the line search.
    """

    def __init__(self, objective: Objective[E]) -> None:
        self._objective = objective
        self._pairs: deque[tuple[Matrix64, Matrix64, float]] = deque(maxlen=MEMORY)

    def step(self, L: Matrix64, value: E) -> tuple[Matrix64, E] | None:
        """The next matrix and its value, or None if no decrease can be found."""
        p = self._direction(value.gradient, L)
        slope = float(np.vdot(value.gradient, p))
        if not slope < 0:
            return self._again(L, value)
        low, high, t = 0.0, np.inf, 1.0
        best: tuple[Matrix64, E] | None = None
        for _ in range(TRIALS):
            trial = L + t * p
            there = self._objective.value_and_gradient(trial)
            if not there.loss <= value.loss + DECREASE * t * slope:
                high = t
            else:
                best = (trial, there)
                if np.vdot(there.gradient, p) >= SLOPE * slope:
                    break
                low = t
            t = (low + high) / 2 if high < np.inf else 2 * low
        if best is None:
            return self._again(L, value)
        self._note(best[0] - L, best[1].gradient - value.gradient)
        return best

    def forget(self) -> None:
        """Start anew, without memory."""
        self._pairs.clear()

    def _again(self, L: Matrix64, value: E) -> tuple[Matrix64, E] | None:
        """What was learned about the curvature misleads here: try without it."""
        if not self._pairs:
            return None
        self.forget()
        return self.step(L, value)

    def _note(self, s: Matrix64, y: Matrix64) -> None:
        sy = float(np.vdot(s, y))
        if sy > 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self._pairs.append((s, y, sy))

    def _direction(self, g: Matrix64, L: Matrix64) -> Matrix64:
        """−Hg; without memory, down the gradient by a tenth of the length of L."""
        if not self._pairs:
            return g * (-0.1 * np.linalg.norm(L) / max(float(np.linalg.norm(g)), 1e-300))
        q = -g
        alphas = []
        for s, y, sy in reversed(self._pairs):
            alphas.append(np.vdot(s, q) / sy)
            q = q - alphas[-1] * y
        _, y, sy = self._pairs[-1]
        q *= sy / np.vdot(y, y)
        for (s, y, sy), alpha in zip(self._pairs, reversed(alphas), strict=True):
            q += (alpha - np.vdot(y, q) / sy) * s
        return q
