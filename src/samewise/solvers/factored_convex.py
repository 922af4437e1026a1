"""Convex problems over M = LᵀL ⪰ 0, solved over L, with a proof of how near the minimum is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from samewise.solvers.evaluation import LossAndGradient, Matrix64, Objective
from samewise.solvers.lbfgs import LBFGS

LOOK = 10
"""Iterations between two proofs."""

STALLED = 1e-2
"""An iteration that lowers the loss by this part of tol, or less, leads nowhere."""

TRIALS = 40


class ConvexObjective(Objective[LossAndGradient], Protocol):
    """What is minimized: a loss that is convex over M = LᵀL."""

    def proof(self, L: Matrix64, /) -> tuple[float, Matrix64]:
        """How far the minimum can be at most, and an R for which M + ε RᵀR is better, if any."""


@dataclass
class ProvenSolution:
    """Where it ended."""

    L: Matrix64
    value: LossAndGradient
    gap: float
    converged: bool = False


def solve(
    objective: ConvexObjective,
    L: Matrix64,
    *,
    max_iter: int,
    tol: float,
    look: Callable[[ProvenSolution], bool],
) -> ProvenSolution:
    """L-BFGS over L until the gap is at most tol.

    Over L the problem is not convex, but a point where L-BFGS ends and that is no minimum over M
    has lost rank, and adding ε RᵀR leads on from there.
    """
    lbfgs = LBFGS(objective)
    found = ProvenSolution(L, objective.value_and_gradient(L), np.inf)
    for iteration in range(1, max_iter + 1):
        step = lbfgs.step(found.L, found.value)
        stalled = step is None or found.value.loss - step[1].loss <= STALLED * tol
        if step is not None:
            found.L, found.value = step
        if stalled or iteration % LOOK == 0:
            found.gap, R = objective.proof(found.L)
            found.converged = found.gap <= tol
        if look(found) or found.converged:
            break
        if stalled:
            onward = _widened(objective, found, R)
            if onward is None and step is None:
                break
            if onward is not None:
                found.L, found.value = onward
                lbfgs.forget()
    else:
        found.gap = objective.proof(found.L)[0]
        found.converged = found.gap <= tol
    return found


def _widened(
    objective: ConvexObjective, found: ProvenSolution, R: Matrix64
) -> tuple[Matrix64, LossAndGradient] | None:
    """A better M + ε RᵀR, if there is one."""
    if not R.any():
        return None
    R = R * (float(np.linalg.norm(found.L)) / np.linalg.norm(R))
    for k in range(TRIALS):
        L = np.linalg.qr(np.vstack([found.L, 2.0**-k * R])).R
        value = objective.value_and_gradient(L)
        if value.loss < found.value.loss:
            return L, value
    return None
