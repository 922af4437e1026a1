"""Stochastic neighbors: p(j|i) ∝ exp(−‖L(x_i − x_j)‖²), in blocks of rows.

NCA and MCML are sums over points i of a function of the row p(·|i). With W the derivative of the
sum by −D, D_ij = ‖L(x_i − x_j)‖²,

    ∂/∂M = −Σ_ij W_ij v vᵀ = −Xᵀ(C − W − Wᵀ)X,   C = diag of W1 + Wᵀ1,
    ∂/∂L = 2 L ∂/∂M = −2 (C Z − (W + Wᵀ) Z)ᵀ X,   Z = XLᵀ.

A block of rows of W is used and forgotten: by one product with X or, if L has few rows, by two
with Z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.nearest_rows import center
from samewise.kernels.pairwise import squared_distances, squared_norms
from samewise.kernels.soft_loops import LEAST, soften, weigh
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.whitened_basis import WhitenedBasis
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers

BLOCK_BYTES = 2**20
"""A block of rows of p(·|i), which should stay in the cache."""

LEAST_ROWS = 16
"""Rows of a block at least: products with fewer are slow."""

WIDEST = 10.0
"""Scales looked at: e^±WIDEST times that at which nearest neighbors are at a distance of 1."""

FAR = 1e30

FEW = 100
"""Points whose distances decide about the scale of a start."""

SAMPLE = 400
"""Points that the starts are compared on."""
Vector = NDArray[np.float64]
Rule = Callable[[Vector, Vector, Vector, Vector], tuple[Vector, Vector, Vector]]
"""From the number of others in the class, log Σ_k exp(−D_ik), p(same|i) and p(others|i) of some
rows: the loss of each row, and the factors of p(j|i) in W_ij for j of the same class and of
others."""


class Coordinates(WhitenedBasis):
    """x′ = Bᵀ(x − mean), in which the scatter within classes is that of the unit ball.

    Parameters
    ----------
    X : array of shape (n, d)
        In the order given; its type is that of the work.
    classes : Classes

    Attributes
    ----------
    rows : array of shape (n, d)
        x′, sorted by class.
    """

    def __init__(self, X: Array, classes: Classes) -> None:
        S, unit = centered(X, classes)
        means = np.add.reduceat(S, classes.bounds[:-1], axis=0) / classes.sizes[:, None]
        within = S - np.repeat(means, classes.sizes, axis=0).astype(S.dtype)
        super().__init__((within.T @ within).astype(np.float64) / len(S), unit)
        self.rows = S @ self.whitener.astype(S.dtype)

    def principal(self, n_components: int, power: float = 0.0) -> Matrix64:
        """The leading directions of the points, see `leading`."""
        return self.leading(covariance(self.rows), n_components, power)


def centered(X: Array, classes: Classes) -> tuple[Array, float]:
    """The points sorted by class, less their mean, over the largest value, and that value."""
    mean, unit = center(X)
    S = X[classes.order]
    S -= mean.astype(X.dtype)
    S /= X.dtype.type(unit)
    return S, unit


def covariance(X: Array) -> Matrix64:
    """That of the rows, in float64."""
    d = X.shape[1]
    return np.asarray(np.cov(X.T, dtype=np.float64), dtype=np.float64).reshape(d, d)


class SoftNeighbors:
    """The points of a problem, sorted by class, and how a rule is summed over them.

    Parameters
    ----------
    X : array of shape (n, d)
        Centered, in the order of `classes`; its type is that of the work.
    classes : Classes
    workers : Workers
    span : pair of ints, default=None
        The first row whose terms are summed, and the first that is not; by default all are.
    """

    def __init__(
        self,
        X: Array,
        classes: Classes,
        workers: Workers,
        span: tuple[int, int] | None = None,
    ) -> None:
        self.X, self.classes, self.workers = X, classes, workers
        self.span = span or (0, len(X))
        self.partners = (classes.ends - classes.starts - 1).astype(np.float64)

    def sum(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over the rows of the span, and ∂/∂L."""
        if 2 * len(L) >= self.X.shape[1]:
            loss, by_M = self.scatter(L, rule)
            return loss, 2 * L @ by_M
        Z = self.X @ L.T.astype(self.X.dtype)
        loss, rows, WZ, back = self._products(Z, Z, np.column_stack([Z, _ones(Z)]), rule)
        C = rows + back[:, -1]
        moved = Z * C[:, None] - WZ - back[:, :-1]
        return loss, -2 * (moved.T @ self.X).astype(np.float64)

    def scatter(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over the rows of the span, and ∂/∂M, M = LᵀL."""
        X = self.X
        loss, rows, WX, back = self._products(X @ L.T.astype(X.dtype), X, _ones(X), rule)
        C = rows + back[:, 0]
        G = (X.T @ (X * (C / 2)[:, None] - WX)).astype(np.float64)
        return loss, -(G + G.T)

    def every(self, step: int) -> SoftNeighbors:
        """The problem of one in so many points."""
        known = self.classes.sizes
        classes = Classes(np.repeat(np.arange(len(known)), known)[::step], len(known))
        return SoftNeighbors(np.ascontiguousarray(self.X[::step]), classes, self.workers)

    def _products(
        self, Z: Array, R: Array, B: Array, rule: Rule
    ) -> tuple[float, Array, Array, Array]:
        """The loss, W1, WR and WᵀB."""
        norms = squared_norms(Z)
        # Rows of −D up to what is the same in a row: 2 z_i·z_j − ‖z_j‖².
        left = np.column_stack([2 * Z, -_ones(Z)])
        right = np.column_stack([Z, norms]).T
        sums, WR = np.zeros(len(Z), Z.dtype), np.zeros_like(R)
        n_rows = max(LEAST_ROWS, BLOCK_BYTES // (Z.itemsize * len(Z)))
        starts, ends = self.classes.starts, self.classes.ends

        def part(span: tuple[int, int]) -> tuple[float, Array]:
            """The loss of some rows, and what they add to WᵀB."""
            loss, WtB = 0.0, np.zeros_like(B)
            room = np.empty((min(n_rows, span[1] - span[0]), len(Z)), Z.dtype)
            for start in range(*span, n_rows):
                rows = slice(start, min(start + n_rows, span[1]))
                E = room[: rows.stop - start]
                np.matmul(left[rows], right, out=E)
                E[np.arange(len(E)), np.arange(start, rows.stop)] = -np.inf
                most, by_class = E.max(axis=1), np.empty((2, len(E)))
                soften(E, start, starts, ends, most, LEAST[Z.dtype], by_class)
                total = by_class.sum(axis=0)
                same, others = by_class / total
                log_total = (most - norms[rows]).astype(np.float64) + np.log(total)
                losses, f, g = rule(self.partners[rows], log_total, same, others)
                loss += float(losses.sum())
                sums[rows] = f * same + g * others
                weigh(E, start, starts, ends, *((w / total).astype(Z.dtype) for w in (f, g)))
                np.matmul(E, R, out=WR[rows])
                WtB += E.T @ B[rows]
            return loss, WtB

        first, end = self.span
        spans = [(first + a, first + b) for a, b in self.workers.cut(end - first)]
        losses, parts = zip(*self.workers.map(part, spans), strict=True)
        return sum(losses), sums, WR, np.add.reduce(parts)


class Sorted(Protocol):
    """Coordinates of points that are sorted by class."""

    rows: Array


PointsOf = Callable[[Sorted, Classes, Workers], SoftNeighbors]
"""How a learner makes the sums over its points."""


def in_memory(where: Sorted, classes: Classes, team: Workers) -> SoftNeighbors:
    """The sums over points that are at hand."""
    return SoftNeighbors(where.rows, classes, team)


class Points(Protocol):
    """Centered points of a problem."""

    X: Array


def at_scale(points: Points, L: Matrix64, scale: Callable[[Array], float]) -> Matrix64:
    """L at the scale of D that `scale` names.

    D are squared distances from the points of a sample to all others.
    """
    Z = points.X @ L.T.astype(points.X.dtype)
    step = len(Z) // FEW + 1
    D = squared_distances(Z[::step], Z)
    D[np.arange(len(D)), np.arange(len(Z))[::step]] = np.inf
    return np.sqrt(scale(D)) * L


def near_at_one(D: Array) -> float:
    """The scale at which nearest neighbors are at a distance of 1, by the median."""
    near = D.min(axis=1)
    near = near[near > 0]
    return 1 / float(np.median(near)) if len(near) else 1.0


def spread_over(D: Array, n_neighbors: float) -> float:
    """The scale at which the perplexity of p(·|i), exp(−Σ_j p(j|i) log p(j|i)), is n_neighbors.

    By the median over rows. Points at a distance of 0 are left out: no scale moves them.
    """
    D = np.where(D > 0, D, np.inf)
    D = D[np.isfinite(D).any(axis=1)]
    if not len(D):
        return 1.0
    unit = 1 / float(np.median(D.min(axis=1)))
    D = unit * (D - D.min(axis=1, keepdims=True))
    # float32 is enough, and quick; FAR has p = 0 at every scale, and 0·FAR = 0.
    D = np.minimum(D, FAR).astype(np.float32)
    E = np.empty_like(D)
    low, high, half = -WIDEST, WIDEST, len(D) // 2
    while high - low > 0.01:
        middle = (low + high) / 2
        np.exp(np.multiply(D, -np.float32(np.exp(middle)), out=E), out=E)
        total = E.sum(axis=1)
        inner = np.einsum("ij,ij->i", E, D) * np.exp(middle)
        entropy = np.sort(np.log(total) + inner / total)
        # Of so few numbers np.median takes longer than all the rest.
        if (entropy[half] + entropy[~half]) / 2 > np.log(n_neighbors):
            low = middle
        else:
            high = middle
    return unit * float(np.exp(low))


def _ones(X: Array) -> Array:
    return np.ones((len(X), 1), X.dtype)
