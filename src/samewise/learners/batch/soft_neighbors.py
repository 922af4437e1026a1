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

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.pairwise import squared_distances, squared_norms
from samewise.learners.batch.points_by_class import Classes, center
from samewise.learners.batch.whitened_basis import POWERS, WhitenedBasis
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers

BLOCK_BYTES = 2**20
"""A block of rows of p(·|i), which should stay in the cache."""

LEAST_ROWS = 16
"""Rows of a block at least: products with fewer are slow."""

WIDEST = 10.0
"""Scales looked at: e^±WIDEST times that at which nearest neighbors are at a distance of 1."""

FAR = 1e30

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
        mean, unit = center(X)
        S = X[classes.order]
        S -= mean.astype(X.dtype)
        S /= X.dtype.type(unit)
        means = np.add.reduceat(S, classes.bounds[:-1], axis=0) / classes.sizes[:, None]
        within = S - np.repeat(means, classes.sizes, axis=0).astype(S.dtype)
        super().__init__((within.T @ within).astype(np.float64) / len(S), unit)
        self.rows = S @ self.whitener.astype(S.dtype)

    def principal(self, n_components: int, power: float = 0.0) -> Matrix64:
        """The leading directions of the points, see `leading`."""
        d = len(self.lengths)
        C = np.cov(self.rows.T, dtype=np.float64).reshape(d, d)
        return self.leading(C, n_components, power)


class SoftNeighbors:
    """The points of a problem, sorted by class, and how a rule is summed over them.

    Parameters
    ----------
    X : array of shape (n, d)
        Centered, in the order of `classes`; its type is that of the work.
    classes : Classes
    workers : Workers
    """

    def __init__(self, X: Array, classes: Classes, workers: Workers) -> None:
        self.X, self.classes, self.workers = X, classes, workers
        self.partners = (classes.ends - classes.starts - 1).astype(np.float64)

    def sum(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over all rows, and ∂/∂L."""
        if 2 * len(L) >= self.X.shape[1]:
            loss, by_M = self.scatter(L, rule)
            return loss, 2 * L @ by_M
        Z = self.X @ L.T.astype(self.X.dtype)
        loss, rows, WZ, back = self._products(Z, Z, np.column_stack([Z, _ones(Z)]), rule)
        C = rows + back[:, -1]
        moved = Z * C[:, None] - WZ - back[:, :-1]
        return loss, -2 * (moved.T @ self.X).astype(np.float64)

    def scatter(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over all rows, and ∂/∂M, M = LᵀL."""
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
        right = np.column_stack([Z, norms])
        sums, WR = np.empty(len(Z), Z.dtype), np.empty_like(R)

        def part(span: tuple[int, int]) -> tuple[float, Array]:
            """The loss of some rows, and what they add to WᵀB."""
            loss, WtB = 0.0, np.zeros_like(B)
            n_rows = max(LEAST_ROWS, BLOCK_BYTES // (Z.itemsize * len(Z)))
            room = np.empty((min(n_rows, span[1] - span[0]), len(Z)), Z.dtype)
            # Of numbers near the least that there are, products take a hundred times as long.
            least = 0.4 * np.log(np.finfo(Z.dtype).tiny)
            for start in range(*span, n_rows):
                rows = slice(start, min(start + n_rows, span[1]))
                E = room[: rows.stop - start]
                own = np.arange(len(E)), np.arange(start, rows.stop)
                np.matmul(left[rows], right.T, out=E)
                E[own] = -np.inf
                most = E.max(axis=1)
                E -= most[:, None]
                np.maximum(E, least, out=E)
                np.exp(E, out=E)
                E[own] = 0
                losses, sums[rows], f, g = self._weights(E, start, most - norms[rows], rule)
                loss += losses
                # W is g E, and f E within the class.
                WR[rows] = g * (E @ R)
                WtB += E.T @ (g * B[rows])
                for a, b, first, last in self._runs(start, rows.stop):
                    inner, more = E[a:b, first:last], (f - g)[a:b]
                    WR[start + a : start + b] += more * (inner @ R[first:last])
                    WtB[first:last] += inner.T @ (more * B[start + a : start + b])
            return loss, WtB

        losses, parts = zip(*self.workers.map(part, self.workers.cut(len(Z))), strict=True)
        return sum(losses), sums, WR, np.add.reduce(parts)

    def _weights(
        self, E: Array, start: int, most: Array, rule: Rule
    ) -> tuple[float, Vector, Array, Array]:
        """The loss of rows of E, their sums in W, and what makes W of E: in the class, outside."""
        # Both sums, and not one less the other: either may be all there is.
        same, others = np.empty((2, len(E)))
        for a, b, first, last in self._runs(start, start + len(E)):
            rows = E[a:b]
            same[a:b] = rows[:, first:last].sum(axis=1)
            others[a:b] = rows[:, :first].sum(axis=1) + rows[:, last:].sum(axis=1)
        total = same + others
        log_total = most.astype(np.float64) + np.log(total)
        same, others = same / total, others / total
        partners = self.partners[start : start + len(E)]
        loss, of_same, of_others = rule(partners, log_total, same, others)
        f, g = ((w / total)[:, None].astype(E.dtype) for w in (of_same, of_others))
        return float(loss.sum()), of_same * same + of_others * others, f, g

    def _runs(self, start: int, stop: int) -> list[tuple[int, int, int, int]]:
        """Rows of one class after the other within a block, and where that class stands."""
        runs = []
        at = start
        while at < stop:
            first, last = int(self.classes.starts[at]), int(self.classes.ends[at])
            runs.append((at - start, min(last, stop) - start, first, last))
            at = min(last, stop)
        return runs


def starts(
    points: SoftNeighbors,
    where: Coordinates,
    n_components: int,
    loss: Callable[[SoftNeighbors, Matrix64], float],
    scale: Callable[[Array], float],
) -> list[Matrix64]:
    """A few maps to start from, the one with the least loss on a sample first.

    Each is taken at the scale of D, squared distances from the points of a sample to all others,
    that `scale` names.
    """
    step = len(points.X) // SAMPLE + 1
    sample = points.every(step)
    tried = []
    for power in POWERS:
        L = where.principal(n_components, power)
        Z = points.X @ L.T.astype(points.X.dtype)
        D = squared_distances(Z[::step], Z)
        D[np.arange(len(D)), np.arange(len(Z))[::step]] = np.inf
        L = np.sqrt(scale(D)) * L
        tried.append((loss(sample, L), L))
    return [L for _, L in sorted(tried, key=lambda tried: tried[0])]


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
    low, high = -WIDEST, WIDEST
    while high - low > 0.01:
        middle = (low + high) / 2
        np.exp(np.multiply(D, -np.float32(np.exp(middle)), out=E), out=E)
        total = E.sum(axis=1)
        inner = np.einsum("ij,ij->i", E, D) * np.exp(middle)
        if np.median(np.log(total) + inner / total) > np.log(n_neighbors):
            low = middle
        else:
            high = middle
    return unit * float(np.exp(low))


def _ones(X: Array) -> Array:
    return np.ones((len(X), 1), X.dtype)
