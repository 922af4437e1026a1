"""Convex problems over M = LᵀL ⪰ 0, solved over L, with a proof of how near the minimum is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from samewise.learners.batch.lmnn.objective import Value
from samewise.solvers.lbfgs import LBFGS, Matrix64

__all__ = ["Problem", "Solution", "solve"]

LOOK = 10
"""Iterations between two proofs."""

STALLED = 1e-2
"""An iteration that lowers the loss by this part of tol, or less, leads nowhere."""

TRIALS = 40


class Problem(Protocol):
    """What is minimized."""

    def value(self, L: Matrix64) -> Value:
        """The loss of M = LᵀL, and its gradient by L."""

    def proof(self, L: Matrix64) -> tuple[float, NDArray[np.float64]]:
        """How far the minimum can be at most, and an R for which M + ε RᵀR is better, if any."""


@dataclass
class Solution:
    """Where it ended."""

    L: Matrix64
    value: Value
    gap: float
    converged: bool = False


def solve(
    problem: Problem,
    L: Matrix64,
    *,
    max_iter: int,
    tol: float,
    watch: Callable[[Solution], bool],
) -> Solution:
    """L-BFGS over L until the gap is at most tol.

    Over L the problem is not convex, but a point where L-BFGS ends and that is no minimum over M
    has lost rank, and adding ε RᵀR leads on from there.
    """
    lbfgs = LBFGS(problem.value)
    found = Solution(L, problem.value(L), np.inf)
    for iteration in range(1, max_iter + 1):
        step = lbfgs.step(found.L, found.value)
        stalled = step is None or found.value.loss - step[1].loss <= STALLED * tol
        if step is not None:
            found.L, found.value = step
        if stalled or iteration % LOOK == 0:
            found.gap, R = problem.proof(found.L)
            found.converged = found.gap <= tol
        if watch(found) or found.converged:
            break
        if stalled:
            onward = _widened(problem, found, R)
            if onward is None and step is None:
                break
            if onward is not None:
                found.L, found.value = onward
                lbfgs.forget()
    else:
        found.gap = problem.proof(found.L)[0]
        found.converged = found.gap <= tol
    return found


def _widened(
    problem: Problem, found: Solution, R: NDArray[np.float64]
) -> tuple[Matrix64, Value] | None:
    """A better M + ε RᵀR, if there is one."""
    if not R.any():
        return None
    R = R * (float(np.linalg.norm(found.L)) / np.linalg.norm(R))
    for k in range(TRIALS):
        L = np.linalg.qr(np.vstack([found.L, 2.0**-k * R])).R
        value = problem.value(L)
        if value.loss < found.value.loss:
            return L, value
    return None
