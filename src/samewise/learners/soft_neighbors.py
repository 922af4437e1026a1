"""Stochastic neighbors: p(j|i) ∝ exp(−‖L(x_i − x_j)‖²), in blocks of rows.

NCA and MCML are sums over points i of a function of the row p(·|i). With W the derivative of the
sum by −D, D_ij = ‖L(x_i − x_j)‖²,

    ∂/∂L = −2 L Σ_ij W_ij v vᵀ = −2 (C Z − (W + Wᵀ) Z)ᵀ X,   Z = XLᵀ, C = diag of W1 + Wᵀ1,

so that a block of rows of W is used by two products and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.pairwise import squared_distances, squared_norms
from samewise.learners.lmnn.lbfgs import Matrix64
from samewise.learners.lmnn.objective import Value
from samewise.learners.lmnn.points import Classes, center
from samewise.learners.lmnn.workers import Workers

__all__ = ["Coordinates", "SoftNeighbors", "start", "value"]

BLOCK_BYTES = 2**20
"""A block of rows of p(·|i), which should stay in the cache."""

LEAST_ROWS = 16
"""Rows of a block at least: products with fewer are slow."""

FLOOR = 1e-3
"""The least scatter of a direction, relative to the mean: what hardly varies is not blown up."""

POWERS = (0.0, 0.25, 0.5)
"""Starts tried: from the given coordinates (0) to those with unit scatter within classes (1/2)."""

NEAR = 0.25
"""The median of the squared distances to the nearest neighbor at the start. Below, p(·|i) spreads
over many neighbors and tells little; above, few have a say, the gradient vanishes, and runs end in
poor minima."""

SAMPLE = 400
"""Points that the starts are compared on."""

Vector = NDArray[np.float64]
Rule = Callable[[Vector, Vector, Vector, Vector], tuple[Vector, Vector, Vector]]
"""From the number of others in the class, log Σ_k exp(−D_ik), p(same|i) and p(others|i) of some
rows: the loss of each row, and the factors of p(j|i) in W_ij for j of the same class and of
others."""


class Coordinates:
    """x′ = Bᵀ(x − mean), in which the scatter within classes is that of the unit ball.

    Steps are then of a similar size in all directions. L′ in these coordinates is L = L′Bᵀ in the
    given ones.

    Parameters
    ----------
    X : array of shape (n, d)
        In the order given; its type is that of the work.
    classes : Classes

    Attributes
    ----------
    rows : array of shape (n, d)
        x′, sorted by class.
    lengths : array of shape (d,)
        What the axes were divided by.
    """

    def __init__(self, X: Array, classes: Classes) -> None:
        mean, unit = center(X)
        S = X[classes.order]
        S -= mean.astype(X.dtype)
        S /= X.dtype.type(unit)
        means = np.add.reduceat(S, classes.bounds[:-1], axis=0) / classes.sizes[:, None]
        within = S - np.repeat(means, classes.sizes, axis=0).astype(S.dtype)
        values, axes = np.linalg.eigh((within.T @ within).astype(np.float64) / len(S))
        average = values.mean()
        self.lengths = np.ones(len(values))
        if average > 0:
            self.lengths = np.sqrt(np.maximum(values, FLOOR * average))
        self.rows = S @ (axes / self.lengths).astype(S.dtype)
        self._B = axes / self.lengths / unit
        self._inverse = axes * self.lengths * unit

    def components(self, L: Matrix64) -> Matrix64:
        """L′ as a map of the given features."""
        return L @ self._B.T

    def coordinates(self, L: Matrix64) -> Matrix64:
        """A map of the given features, in these coordinates."""
        return L @ self._inverse

    def principal(self, n_components: int, power: float = 0.0) -> Matrix64:
        """The leading principal directions, after axes were scaled by lengths^(−2·power).

        For the power 0 these are principal components, for 1/2 discriminant ones.
        """
        f = self.lengths ** (1 - 2 * power)
        C = np.cov(self.rows.T, dtype=np.float64).reshape(len(f), len(f))
        V = np.linalg.eigh(f[:, None] * C * f)[1][:, ::-1]
        return V[:, :n_components].T * f


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
        loss, G = self._sums(L, rule, None)
        return loss, -2 * G

    def scatter(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over all rows, and ∂/∂M, M = LᵀL."""
        loss, G = self._sums(L, rule, self.X)
        return loss, -(G + G.T) / 2

    def _sums(self, L: Matrix64, rule: Rule, R: Array | None) -> tuple[float, Matrix64]:
        """The loss and Σ_ij W_ij r vᵀ with r differences of rows of R, or of Z."""
        Z = self.X @ L.T.astype(self.X.dtype)
        norms = squared_norms(Z)
        # Rows of −D up to what is the same in a row: 2 z_i·z_j − ‖z_j‖².
        left = np.column_stack([2 * Z, np.full(len(Z), -1, Z.dtype)])
        right = np.column_stack([Z, norms])
        R = Z if R is None else R
        with_ones = np.column_stack([R, np.ones(len(R), R.dtype)])
        parts = self.workers.map(
            lambda span: self._part(span, left, right, norms, with_ones, rule),
            self.workers.cut(len(Z)),
        )
        # The last column has C: W1 + Wᵀ1.
        T = np.add.reduce([T for _, T in parts])
        moved = R * T[:, -1:] - T[:, :-1]
        return sum(loss for loss, _ in parts), (moved.T @ self.X).astype(np.float64)

    def _part(
        self, span: tuple[int, int], left: Array, right: Array, norms: Array, R: Array, rule: Rule
    ) -> tuple[float, Array]:
        """The loss of some rows, and what they add to (W + Wᵀ)[R, 1]."""
        n = len(right)
        loss, T = 0.0, np.zeros_like(R)
        rows = max(LEAST_ROWS, BLOCK_BYTES // (right.itemsize * n))
        room = np.empty((min(rows, span[1] - span[0]), n), right.dtype)
        for start in range(*span, rows):
            stop = min(start + rows, span[1])
            E = room[: stop - start]
            np.matmul(left[start:stop], right.T, out=E)
            E[np.arange(stop - start), np.arange(start, stop)] = -np.inf
            most = E.max(axis=1)
            E -= most[:, None]
            np.exp(E, out=E)
            loss += self._weigh(E, start, most - norms[start:stop], rule)
            T[start:stop] += E @ R
            T += E.T @ R[start:stop]
        return loss, T

    def _weigh(self, E: Array, start: int, most: Array, rule: Rule) -> float:
        """E becomes W; returns the loss of its rows."""
        runs = self._runs(start, start + len(E))
        # Both sums, and not one less the other: either may be all there is.
        same, others = np.empty((2, len(E)))
        for a, b, first, last in runs:
            rows = E[a:b]
            same[a:b] = rows[:, first:last].sum(axis=1)
            others[a:b] = rows[:, :first].sum(axis=1) + rows[:, last:].sum(axis=1)
        total = same + others
        log_total = most.astype(np.float64) + np.log(total)
        partners = self.partners[start : start + len(E)]
        loss, of_same, of_others = rule(partners, log_total, same / total, others / total)
        f, g = ((w / total)[:, None].astype(E.dtype) for w in (of_same, of_others))
        for a, b, first, last in runs:
            rows = E[a:b]
            rows[:, :first] *= g[a:b]
            rows[:, first:last] *= f[a:b]
            rows[:, last:] *= g[a:b]
        return float(loss.sum())

    def _runs(self, start: int, stop: int) -> list[tuple[int, int, int, int]]:
        """Rows of one class after the other within a block, and where that class stands."""
        runs = []
        at = start
        while at < stop:
            first, last = int(self.classes.starts[at]), int(self.classes.ends[at])
            runs.append((at - start, min(last, stop) - start, first, last))
            at = min(last, stop)
        return runs


def start(
    points: SoftNeighbors,
    where: Coordinates,
    n_components: int,
    loss: Callable[[SoftNeighbors, Matrix64], float],
) -> Matrix64:
    """The best of a few maps by the loss on a sample, each at the scale that `NEAR` names."""
    step = len(points.X) // SAMPLE + 1
    known = points.classes.sizes
    classes = Classes(np.repeat(np.arange(len(known)), known)[::step], len(known))
    sample = SoftNeighbors(np.ascontiguousarray(points.X[::step]), classes, points.workers)
    tried = []
    for power in POWERS:
        L = where.principal(n_components, power)
        Z = points.X @ L.T.astype(points.X.dtype)
        D = squared_distances(Z[::step], Z)
        D[np.arange(len(D)), np.arange(len(Z))[::step]] = np.inf
        near = D.min(axis=1)
        near = near[near > 0]
        if len(near):
            L = np.sqrt(NEAR / float(np.median(near))) * L
        tried.append((loss(sample, L), L))
    return min(tried, key=lambda start: start[0])[1]


def value(loss: float, gradient: Matrix64) -> Value:
    """What L-BFGS asks for."""
    nothing: Any = 0
    return Value(loss, nothing, nothing, nothing, gradient)
