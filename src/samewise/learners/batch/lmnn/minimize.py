"""Minimize LMNN's loss: over L, or over M ⪰ 0 with a proof of how far the minimum can be."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np
import scipy.linalg

from samewise.learners.batch.lmnn.objective import LINEAR, Hinge, HingeEvaluation, LMNNObjective
from samewise.solvers.evaluation import Matrix64, Objective
from samewise.solvers.lbfgs import LBFGS
from samewise.solvers.run_log import RunLog

STALE, IDLE, LATE = 0.5, 10.0, 30
"""Candidates are searched anew when this part of the push is missing, or so many times the part
by which the last step lowered the loss, or after so many steps."""

ASTRAY = 0.6
"""A step after which this part of the push is missing has gone too far."""

SOON, MOST_SLACK = 4, 0.8
"""Candidates that are stale within so many steps make the slack double, up to so much."""

PATIENCE = 2

SIGMAS = tuple(10.0 ** -np.arange(0.5, 7.0, 0.5))
STATIONARY = 1e-13
"""Relative decrease at which a smooth problem counts as solved: its gradient must be small."""

Look = Callable[[Matrix64, HingeEvaluation], bool]
"""Sees L and its value after every iteration; True to stop."""


class CandidatePairs(Sized, Protocol):
    """Pairs of points that can matter."""

    def union(self, other: Self) -> Self:
        """The pairs of both."""


C = TypeVar("C", bound=CandidatePairs)


class SearchedObjective(Objective[HingeEvaluation], Protocol[C]):
    """A loss over candidate pairs, which are searched anew now and then."""

    slack: float
    candidates: C

    def search(self, L: Matrix64) -> None:
        """Find all pairs that matter at L, and those that nearly do."""

    def missing(self) -> float:
        """The part of the push at the last L that is not among the candidates."""


def logged(
    log: RunLog,
    stage: int,
    objective: SearchedObjective[C],
    components: Callable[[Matrix64], Matrix64],
    factor: float = 1.0,
) -> Look:
    """Notes each iteration: the loss times a factor, and L as a map of the given features."""

    def look(L: Matrix64, value: HingeEvaluation) -> bool:
        known = stage, factor * value.loss, value.active, len(objective.candidates)
        return log.look(partial(components, L), *known)

    return look


@dataclass
class LMNNSolution:
    """Where a solver ended.

    `value` is over all triplets; `bound` is a loss that no M ⪰ 0 goes below.
    """

    L: Matrix64
    value: HingeEvaluation
    converged: bool = False
    bound: float = 0.0


def solve(
    objective: SearchedObjective[C], L: Matrix64, *, max_iter: int, tol: float, look: Look
) -> LMNNSolution:
    """L-BFGS over L, on candidates that are searched anew now and then.

    It has converged when two iterations in a row lower the loss by no more than tol·loss, and a
    fresh search over all triplets raises it by no more than that.
    """
    lbfgs = LBFGS(objective)
    value = _searched(objective, L)
    best = LMNNSolution(L, value)
    since = small = 0
    for iteration in range(max_iter):
        before, known = L, value.loss
        step = lbfgs.step(L, value)
        L, value, missing = _tempered(objective, lbfgs, before, step or (L, value))
        fell = (known - value.loss) / max(known, 1e-300)
        small = small + 1 if fell <= tol else 0
        since += 1
        stop = look(L, value) or iteration == max_iter - 1
        ready = step is None or small >= PATIENCE
        stale = missing > min(STALE, IDLE * max(fell, 0.0))
        if not (stop or ready or stale or since >= LATE):
            continue
        if stale and since < SOON:
            objective.slack = min(2 * objective.slack, MOST_SLACK)
        known, pairs = value.loss, objective.candidates
        value = _searched(objective, L)
        since = small = 0
        improved = value.loss <= best.value.loss
        if improved:
            best = LMNNSolution(L, value)
        if ready and value.loss - known <= tol * known:
            best.converged = True
            break
        if stop:
            break
        if ready or not improved:
            objective.candidates = pairs.union(objective.candidates)
        if not improved:
            # What was not among the candidates misled the last step: back before it.
            L, value = before, objective.value_and_gradient(before)
    return best


def _tempered(
    objective: SearchedObjective[C],
    lbfgs: LBFGS[HingeEvaluation],
    before: Matrix64,
    step: tuple[Matrix64, HingeEvaluation],
) -> tuple[Matrix64, HingeEvaluation, float]:
    """A step, shortened until at most `ASTRAY` of the push is missing, and the part that is."""
    L, value = step
    missing = objective.missing()
    while missing > ASTRAY and not np.array_equal(L, before):
        lbfgs.forget()
        half = (before + L) / 2
        # Between neighboring numbers there is no other, and half of the step may be all of it.
        L = before if np.array_equal(half, L) else half
        value = objective.value_and_gradient(L)
        missing = objective.missing()
    return L, value, missing


def solve_convex(
    objective: LMNNObjective, L: Matrix64, *, max_iter: int, tol: float, look: Look
) -> LMNNSolution:
    """The minimum over M ⪰ 0, with a proof.

    The problem is convex. Its dual is max Σ α_t over 0 ≤ α_t ≤ μ with A + Σ α_t C_t ⪰ 0, where A is
    the scatter of the targets times 1 − μ and C_t that of triplet t. The hinge is rounded off below
    σ; the minimum of that smooth problem, found over square L with M = LᵀL, gives α_t = μ φ′(h_t),
    which only need to be scaled to be feasible (`dual_value`). σ shrinks until the gap between the
    best loss and the best dual value is at most tol·loss: whatever way M was found, nothing is
    better by more than the gap.
    """
    hinge = objective.hinge
    pull = objective.pull_scatter()
    best, bound, used, stopped = None, 0.0, 0, False

    def counted(L: Matrix64, value: HingeEvaluation) -> bool:
        nonlocal used, stopped
        used += 1
        stopped = look(L, value)
        return stopped

    for sigma in SIGMAS if hinge is LINEAR else (0.0,):
        objective.hinge = Hinge.smooth(sigma) if sigma else hinge
        L = solve(objective, L, max_iter=max_iter - used, tol=STATIONARY, look=counted).L
        objective.search(L)
        bound = max(bound, dual_value(objective, L, pull))
        objective.hinge = hinge
        value = objective.value_and_gradient(L)
        if best is None or value.loss < best.value.loss:
            best = LMNNSolution(L, value)
        best.bound = bound
        best.converged = best.value.loss - bound <= tol * best.value.loss
        if best.converged or stopped or used >= max_iter:
            break
    assert best is not None
    return best


def dual_value(objective: LMNNObjective, L: Matrix64, pull: Matrix64) -> float:
    """A lower bound of the loss over all M ⪰ 0, from the slopes of the hinges at L.

    With P = Σ α_t C_t, c = 1 / max(1, −λ_min(A^{-1/2} P A^{-1/2})) makes A + cP ⪰ 0. The dual of
    the hinge is Σ cα_t; that of the squared hinge has − (cα_t)²/4μ beside it.
    """
    value = objective.scatter(L)
    P = (value.gradient + value.gradient.T) / 2 - pull
    # Directions without any scatter of targets bound nothing, but must not stop the computation.
    pull = pull + np.diag(np.full(len(pull), 1e-14 * np.trace(pull) / len(pull) + 1e-300))
    least = scipy.linalg.eigh(P, pull, eigvals_only=True, subset_by_index=(0, 0))[0]
    c = 1.0 / max(1.0, -least)
    dual = c * value.slope
    if objective.hinge.linear == 0:
        dual -= c * c * value.pushed
    return max(0.0, objective.mu * float(dual))


def _searched(objective: SearchedObjective[C], L: Matrix64) -> HingeEvaluation:
    objective.search(L)
    return objective.value_and_gradient(L)
