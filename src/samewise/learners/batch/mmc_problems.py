"""What MMC minimizes: the length of similar pairs, over full matrices or weights of features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError
from samewise.kernels.pairwise import squared_norms
from samewise.kernels.psd import factor
from samewise.learners.batch.batch_learner import (
    SINGULAR,
    regularized,
)
from samewise.learners.batch.pair_differences import Differences
from samewise.solvers.evaluation import LossAndGradient, Matrix64
from samewise.solvers.factored_convex import ProvenSolution, solve
from samewise.solvers.run_log import RunLog
from samewise.supervision import Pairs
from samewise.supervision.supervision_checks import LARGEST

Vector = NDArray[np.float64]

LEAST = 1e-100
"""Distances below are taken for this: their square roots have no derivative, cubes vanish."""

SHRINK = 0.01
"""A weight shrinks to no less than this part of it in a step, so that none is lost by accident."""

IDLE = 1e-8
"""Weights whose part of Σ_S is below this, and that should fall further, only shrink."""


class Found(NamedTuple):
    """A learned metric, scaled to Σ_S = 1; its objective, and how much a better one can have."""

    components: Array
    objective: float
    gap: float


class FarPairs:
    """Sums over dissimilar pairs, of ‖Lu‖ and its derivatives; u = Bᵀv.

    Parameters
    ----------
    D : Differences
    B : array of shape (d, r)
    """

    def __init__(self, D: Differences, B: Vector) -> None:
        self.U = np.empty((len(D), B.shape[1]))
        for rows in D.blocks():
            self.U[rows] = D[rows] @ B

    def lengths(self, L: Matrix64) -> tuple[float, Vector]:
        """Σ ‖Lu‖, and Σ Lu uᵀ/‖Lu‖."""
        E = self.U @ L.T
        lengths = np.maximum(np.sqrt(squared_norms(E)), LEAST)
        E /= lengths[:, None]
        return float(lengths.sum()), E.T @ self.U

    def derivatives(self, L: Matrix64) -> tuple[float, Vector]:
        """Σ ‖Lu‖, and Σ u uᵀ/(2‖Lu‖)."""
        lengths = np.maximum(np.sqrt(squared_norms(self.U @ L.T)), LEAST)
        return float(lengths.sum()), (self.U.T / (2 * lengths)) @ self.U


class FarSquares:
    """Sums over dissimilar pairs, of √(Σ_k a_k w_k) and its derivatives; w = (v/units)².

    Parameters
    ----------
    D : Differences
    used : array
        The features in w.
    units : array
        One for each.
    """

    def __init__(self, D: Differences, used: Indices, units: Vector) -> None:
        self.W = np.empty((len(D), len(used)))
        for rows in D.blocks():
            self.W[rows] = (D[rows][:, used] / units) ** 2

    def roots(self, a: Vector) -> tuple[float]:
        """Σ √(aᵀw)."""
        return (float(np.sqrt(self.W @ a).sum()),)

    def derivatives(self, a: Vector) -> tuple[float, Vector]:
        """Σ √(aᵀw), and Σ w/(2√(aᵀw))."""
        roots = np.maximum(np.sqrt(self.W @ a), LEAST)
        return float(roots.sum()), (0.5 / roots) @ self.W

    def curvature(self, a: Vector) -> tuple[Vector]:
        """Σ w wᵀ/(4 (aᵀw)^(3/2))."""
        roots = np.maximum(np.sqrt(self.W @ a), LEAST)
        return ((self.W.T * (0.25 / roots**3)) @ self.W,)


class Sides(NamedTuple):
    """Similar and dissimilar pairs, by sums over them.

    Attributes
    ----------
    near, far : arrays of shape (d, d)
        Their scatters.
    dtype : the type of the rows
    far_sums : callable
        `FarPairs` or `FarSquares` and its arguments without D → the sums over dissimilar pairs.
    """

    near: Vector
    far: Vector
    dtype: np.dtype[Any]
    far_sums: Callable[..., Any]


def sides_of(pairs: Pairs) -> Sides:
    """The sides of pairs that are at hand."""
    S, D = split_sides(pairs)
    for name, side in (("similar", S), ("dissimilar", D)):
        check_side(name, len(side))
    return Sides(
        S.scatter(), D.scatter(), pairs.X.dtype, lambda kind, *arguments: kind(D, *arguments)
    )


def split_sides(pairs: Pairs) -> tuple[Differences, Differences]:
    """Differences of similar and of dissimilar pairs, times their weights (√ for similar ones)."""
    V = Differences.of(pairs, "MMC")
    weight = np.ones(len(pairs)) if pairs.sample_weight is None else pairs.sample_weight
    used = V.differ() & (weight > 0)
    similar, others = (np.flatnonzero(used & (pairs.y == sign)) for sign in (1, -1))
    # √(vᵀAv) is linear in the length of v.
    return V.only(similar, np.sqrt(weight[similar])), V.only(others, weight[others])


def check_side(name: str, n: int) -> None:
    """Refuse a side without pairs."""
    if not n:
        raise InvalidInputError(
            f"MMC needs similar and dissimilar pairs of rows that differ. Got no {name} pair; "
            "give some, or use ITML, which learns from either kind."
        )


def _sizes(near: Vector, far: Vector, dtype: np.dtype[Any]) -> Vector:
    """The size of the differences in each feature; 0 where a weight of 1/size² would overflow."""
    sizes = np.sqrt(np.diagonal(near) + np.diagonal(far))
    return np.where(sizes > 1 / LARGEST[dtype], sizes, 0.0)


class Stretch:
    """−log Σ_D ‖Lu‖ + ½ log tr LᵀL, in coordinates u = Bᵀv with Σ_S u uᵀ = I."""

    def __init__(self, sides: Sides) -> None:
        near, far = sides.near, sides.far
        sizes = _sizes(near, far, sides.dtype)
        unit = np.where(sizes > 0, sizes, 1.0)
        near, far = near / unit / unit[:, None], far / unit / unit[:, None]
        values, axes = np.linalg.eigh(near + far)
        basis = axes[:, values > SINGULAR * values[-1]]
        inner = regularized(basis.T @ near @ basis, "the scatter of similar pairs", "MMC")
        values, axes = np.linalg.eigh(inner)
        self.B = basis @ (axes / np.sqrt(values)) / unit[:, None]
        self.back = basis @ (axes * np.sqrt(values)) * unit[:, None]
        self.far: FarPairs = sides.far_sums(FarPairs, self.B)

    def solve(self, before: Array | None, max_iter: int, tol: float, log: RunLog) -> Found:
        """The best A, found over L."""
        r = self.B.shape[1]
        L = np.eye(r) / np.sqrt(r)
        if before is not None and (given := before.astype(np.float64) @ self.back).any():
            L = np.linalg.qr(np.vstack([given, np.zeros((r, r))])).R
        found = solve(
            self,
            L,
            max_iter=max_iter,
            tol=tol,
            look=lambda found: log.look(
                lambda: self._result(found).components, *self._result(found)[1:]
            ),
        )
        return self._result(found)

    def _result(self, found: ProvenSolution) -> Found:
        L = found.L / np.linalg.norm(found.L)
        objective = float(np.exp(-found.value.loss))
        M = self.B @ (L.T @ L) @ self.B.T
        return Found(factor((M + M.T) / 2)[0], objective, found.gap * objective)

    def value_and_gradient(self, L: Matrix64) -> LossAndGradient:
        """The loss and its gradient."""
        total, by_L = self.far.lengths(L)
        trace = float(np.vdot(L, L))
        loss = -np.log(total) + 0.5 * np.log(trace)
        return LossAndGradient(loss, L / trace - by_L / total)

    def proof(self, L: Matrix64) -> tuple[float, Vector]:
        """Part of the objective that is missing at most, and directions in which A should grow.

        With g concave, tr A = tr A′ = 1 and G = ∂g/∂A, g(A′) ≤ g(A) + ⟨G, A′ − A⟩
        ≤ g(A)/2 + λ_max(G), because ⟨G, A⟩ = g(A)/2.
        """
        total, G = self.far.derivatives(L / np.linalg.norm(L))
        values, vectors = np.linalg.eigh(G)
        values = values / total - 0.5
        R = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        return max(0.0, float(values[-1])), R


class Weights:
    """Σ_S vᵀAv − log Σ_D √(vᵀAv) over diagonal A (the paper's equation 6)."""

    def __init__(self, sides: Sides) -> None:
        near, far = sides.near, sides.far
        sizes = _sizes(near, far, sides.dtype)
        self.used = np.flatnonzero(sizes)
        self.units = sizes[self.used]
        self.n_features = len(near)
        self.far: FarSquares = sides.far_sums(FarSquares, self.used, self.units)
        scatter = np.diag(np.diagonal(near)[self.used] / self.units**2)
        self.s = regularized(scatter, "the scatter of similar pairs", "MMC").diagonal()

    def solve(self, before: Array | None, max_iter: int, tol: float, log: RunLog) -> Found:
        """The best weights: Newton's method, with steps that keep them positive."""
        a = 1 / (self.s * len(self.s))
        if before is not None:
            given = squared_norms(before.T.astype(np.float64))[self.used] * self.units**2
            a = np.maximum(given, IDLE * a) / (self.s @ given) if given.any() else a
        h, gradient, hessian = self._derivatives(a)
        found = self._found(a)
        while len(log.rows) < max_iter:
            if found.gap <= tol * found.objective and log.rows:
                break
            onward = self._step(a, h, gradient, hessian)
            if onward is not None:
                a = onward
                h, gradient, hessian = self._derivatives(a)
            found = self._found(a)
            if log.look(partial(getattr, found, "components"), *found[1:]) or onward is None:
                break
        return found

    def _cost(self, a: Vector) -> float:
        (total,) = self.far.roots(a)
        return float(self.s @ a - np.log(total))

    def _derivatives(self, a: Vector) -> tuple[float, Vector, Vector]:
        g, first = self.far.derivatives(a)
        (second,) = self.far.curvature(a)
        first, second = first / g, second / g
        return float(self.s @ a - np.log(g)), self.s - first, second + np.outer(first, first)

    def _step(self, a: Vector, h: float, gradient: Vector, hessian: Vector) -> Vector | None:
        free = ~((self.s * a <= IDLE) & (gradient > 0))
        p = np.full(len(a), np.inf)
        # In units of 1/s all weights are alike.
        unit = self.s[free]
        H = hessian[np.ix_(free, free)] / np.outer(unit, unit)
        H[np.diag_indices(len(H))] += 1e-12 * np.trace(H)
        p[free] = np.linalg.solve(H, gradient[free] / unit) / unit
        t = 1.0
        while t > 1e-12:
            trial = np.maximum(a - t * p, SHRINK * a)
            there = self._cost(trial)
            if there <= h + 1e-4 * gradient @ (trial - a) and there < h:
                return trial
            t /= 2
        return None

    def _found(self, a: Vector) -> Found:
        """Of Σ_S = 1, max_k (∂g/∂a)_k / s_k is what λ_max is for full matrices."""
        a = a / (self.s @ a)
        objective, first = self.far.derivatives(a)
        most = float((first / self.s).max())
        weights = np.zeros(self.n_features)
        weights[self.used] = a / self.units**2
        components = np.diag(np.sqrt(weights))[weights > 0]
        return Found(components, objective, max(0.0, most - objective / 2))


PROBLEMS: dict[str, type[Stretch] | type[Weights]] = {"full": Stretch, "diagonal": Weights}
"""What is solved, by the structure of A."""
