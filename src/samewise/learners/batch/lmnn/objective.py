"""LMNN's loss and its gradient, over the pairs of points that can matter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels import lmnn_loops as kernel
from samewise.kernels.nearest_rows import BLOCK_BYTES
from samewise.kernels.pairwise import row_slices, squared_distances
from samewise.learners.batch.lmnn.impostors import Candidates, search
from samewise.learners.batch.lmnn.start import OTHERS, StartSample, start_rows
from samewise.learners.batch.points_by_class import Classes
from samewise.solvers.evaluation import LossAndGradient
from samewise.solvers.workers import Workers, spans

SLACK = 0.15
"""Least part by which pairs are kept beyond the reach that matters, in squared distance."""

SAMPLE = 64
"""Points whose impostors are counted to see whether candidates have become stale."""

BLOCK = 2**15
"""Points they are compared with at once."""


def looked_at(look: int, n_anchors: int) -> slice:
    """The anchors of a look; others every time, so that what is missing in a few places comes to
    light.
    """
    step = n_anchors // SAMPLE + 1
    return slice(look * 31 % step, None, step)


class Hinge(NamedTuple):
    """φ(h) for h > 0: quadratic·h² below σ, linear·h − constant from there on."""

    sigma: float
    quadratic: float
    linear: float
    constant: float

    @classmethod
    def smooth(cls, sigma: float) -> Hinge:
        """The hinge, rounded off between 0 and σ; it is below the hinge by at most σ/2."""
        return cls(sigma, 0.5 / sigma, 1.0, sigma / 2)

    def values(self, h: Array) -> Array:
        """φ(h), 0 for h ≤ 0."""
        h = np.maximum(h, 0)
        if self.sigma == np.inf:
            return self.quadratic * h * h
        return np.where(h < self.sigma, self.quadratic * h * h, self.linear * h - self.constant)

    def slopes(self, h: Array) -> Array:
        """φ′(h) for h > 0."""
        return np.where(h < self.sigma, 2 * self.quadratic * h, self.linear)


LINEAR = Hinge(0.0, 0.0, 1.0, 0.0)
SQUARED = Hinge(np.inf, 1.0, 0.0, 0.0)


@dataclass
class HingeEvaluation(LossAndGradient):
    """ε, its gradient by L (by M for `LMNNObjective.scatter`), and sums over the hinges.

    Attributes
    ----------
    pushed : float
        Σ φ(h) without its factor μ.
    slope : float
        Σ φ′(h).
    active : int
        Number of triplets with h > 0.
    """

    pushed: float
    slope: float
    active: int


class Watched(NamedTuple):
    """Some anchors, of which all triplets are looked at.

    Attributes
    ----------
    Z : array of shape (n, r)
        Mapped.
    reach : array of shape (n, k)
    furthest : array of shape (n,)
        The largest reach.
    kind : array of shape (n,)
        The same for anchors of the same class.
    """

    Z: Array
    reach: Array
    furthest: NDArray[np.float64]
    kind: Indices

    def hinges(self, Z: Array, kind: Indices) -> tuple[Indices, Indices, Array]:
        """The pairs of an anchor and one of other rows in its reach, and h for each target."""
        D = squared_distances(self.Z, Z)
        rows, columns = np.divmod(np.flatnonzero(D < self.furthest[:, None]), D.shape[1])
        other = self.kind[rows] != kind[columns]
        rows, columns = rows[other], columns[other]
        return rows, columns, self.reach[rows] - D[rows, columns, None]


class LMNNObjective:
    """ε(L) = (1−μ) Σ_{j⇝i} D_ij + μ Σ_{j⇝i} Σ_l φ(1 + D_ij − D_il), D_ij = ‖L(x_i − x_j)‖².

    The sum is over the anchors i, the points that have targets; l may be any point.

    With z = Lx and w_ab the derivative of ε by D_ab, the gradient is 2 Σ_ab w_ab (z_a − z_b)(x_a −
    x_b)ᵀ: one sum of differences of z for each point, and one product with X.

    With costs, the term of i, j counts costs_ij times, and in it that of l costs_l times.

    Parameters
    ----------
    X : array of shape (n, d)
        Sorted by class and centered; its type is that of the work.
    targets : array of shape (n, k)
        Rows of X, −1 for none.
    costs : Costs, default=None
        How often terms count; once each by default.

    Attributes
    ----------
    anchors : array
        The rows that have targets.
    candidates : Candidates
        The pairs over which the loss is taken.
    """

    def __init__(
        self,
        X: Array,
        targets: NDArray[np.int32],
        classes: Classes,
        mu: float,
        hinge: Hinge,
        workers: Workers,
        costs: kernel.Costs | None = None,
    ) -> None:
        self.X, self.targets, self.classes = X, targets, classes
        self.mu, self.hinge, self.workers, self.costs = mu, hinge, workers, costs
        self.anchors = np.flatnonzero((targets >= 0).any(axis=1)).astype(np.int32)
        self.covariance = np.zeros((X.shape[1], X.shape[1]))
        for a, b in workers.cut(len(X)):
            part = X[a:b]
            counted = part if costs is None else (part.T * costs.points[a:b].astype(X.dtype)).T
            self.covariance += counted.T @ part
        self._reach = np.empty(targets.shape, dtype=X.dtype)
        self._Z = np.empty((len(X), 0), dtype=X.dtype)
        self._G: list[Array] = []
        self._weights = [np.empty(targets.shape) for _ in range(spans(len(X)))]
        self.slack, self._looks = SLACK, 0
        self.candidates: Candidates

    def search(self, L: NDArray[np.float64]) -> None:
        """Find all pairs that matter at L, and those that nearly do."""
        # Turned so that the columns of Z go by decreasing variance: the search looks at the
        # first ones first, and distances stay as they are.
        turn = np.linalg.eigh(L @ self.covariance @ L.T)[1][:, ::-1]
        Z, furthest = self.reaches(turn.T @ L)
        reach = (1 + self.slack) * furthest
        self.candidates = search(Z, reach, self.classes, self.workers)

    def value_and_gradient(self, L: NDArray[np.float64]) -> HingeEvaluation:
        """ε over the candidates, and ∂ε/∂L."""
        Z = self._mapped(L)
        value = self._evaluated(Z, Z)
        value.gradient *= 2.0
        return value

    def scatter(self, L: NDArray[np.float64]) -> HingeEvaluation:
        """ε over the candidates, and ∂ε/∂M = Σ_ab w_ab (x_a − x_b)(x_a − x_b)ᵀ."""
        return self._evaluated(self._mapped(L), self.X)

    def missing(self) -> float:
        """The part of Σ φ′(h) at the last L that is not among the candidates, on a sample."""
        self._looks += 1
        sample = self.anchors[looked_at(self._looks, len(self.anchors))]
        slope = sum(self.workers.map(partial(self._slope, sample), self._column_blocks()))
        return 1 - float(self._weights[0][sample].sum()) / slope if slope > 0 else 0.0

    def watched(self, anchors: Indices, kind: Indices) -> tuple[Watched, float]:
        """Some anchors at the last L, and their Σ φ′(h) over the candidates."""
        watched = Watched(self._Z[anchors], self._reach[anchors], self._furthest[anchors], kind)
        return watched, float(self._weights[0][anchors].sum())

    def reaches(self, L: NDArray[np.float64]) -> tuple[Array, NDArray[np.float64]]:
        """The points under L, and how far each reaches: 1 + D to its farthest target."""
        Z = self._mapped(L)
        self._pull(Z)
        return Z, self._furthest

    def _slope(self, anchors: NDArray[np.int32], block: slice) -> float:
        """Σ φ′(h) at the last L over all triplets of the anchors with l in a block of rows."""
        ends = self.classes.ends
        watched, _ = self.watched(anchors, ends[anchors])
        rows, columns, h = watched.hinges(self._Z[block], ends[block])
        slopes = self.hinge.slopes(h[h > 0])
        if self.costs is not None:
            cost = self.costs.targets[anchors[rows]] * self.costs.points[block][columns, None]
            slopes = slopes * cost[h > 0]
        return float(slopes.sum())

    def _column_blocks(self) -> list[slice]:
        return [slice(at, at + BLOCK) for at in range(0, len(self.X), BLOCK)]

    def losses(self, L: NDArray[np.float64]) -> NDArray[np.float64]:
        """The terms of ε of each anchor, over the candidates."""
        Z, k = self._mapped(L), self.targets.shape[1]
        self._pull(Z)
        cost = 1.0 if self.costs is None else self.costs.targets
        pulled = cost * np.maximum(self._reach - 1.0, 0)
        out = (1 - self.mu) * pulled.sum(axis=1, dtype=np.float64)
        pairs = self.candidates
        for block in row_slices(len(pairs.columns), 8 * (Z.shape[1] + k), BLOCK_BYTES):
            b = pairs.columns[block]
            a = np.searchsorted(pairs.indptr, np.arange(block.start, block.stop), side="right") - 1
            V = Z[a] - Z[b]
            D = np.einsum("ij,ij->i", V, V)[:, None]
            for i, impostor in ((a, b), (b, a)):
                pushed = self.hinge.values(self._reach[i] - D)
                if self.costs is not None:
                    pushed = pushed * self.costs.targets[i] * self.costs.points[impostor, None]
                np.add.at(out, i, self.mu * pushed.sum(axis=1, dtype=np.float64))
        return out[self.anchors]

    def start_sample(self) -> StartSample:
        """Some anchors and other points, by which a start is chosen."""
        anchors, others = start_rows(np.flatnonzero(self.targets[:, 0] >= 0), len(self.X))
        near, ends = self.targets[anchors], self.classes.ends
        costs = None
        if self.costs is not None:
            costs = kernel.Costs(self.costs.targets[anchors], self.costs.points[others])
        same = ends[anchors][:, None] == ends[others]
        X, step = self.X, len(self.X) // OTHERS + 1
        return StartSample(X[anchors], near >= 0, X[near.ravel()], X[others], same, costs, step)

    def pull_scatter(self) -> NDArray[np.float64]:
        """(1−μ) Σ (x_i − x_j)(x_i − x_j)ᵀ over the targets j of i."""
        return (1 - self.mu) * target_scatter(
            self.X, self.targets, self.workers, self._target_costs
        )

    @property
    def _target_costs(self) -> NDArray[np.float64] | None:
        return None if self.costs is None else self.costs.targets

    def _mapped(self, L: NDArray[np.float64]) -> Array:
        # In the same place every time: fresh memory costs more than the product.
        if self._Z.shape[1] != len(L):
            self._Z = np.empty((len(self.X), len(L)), dtype=self.X.dtype)
        Z = self._Z
        Lt = L.T.astype(self.X.dtype)
        self.workers.map(
            lambda rows: np.dot(self.X[slice(*rows)], Lt, out=Z[slice(*rows)]),
            self.workers.cut(len(Z)),
        )
        return Z

    def _pull(self, Z: Array) -> float:
        """Σ D_ij over the targets; the reach of each point is noted."""
        sums = self.workers.map(
            lambda rows: kernel.reaches(
                Z, self.targets, rows[0], rows[1], self._reach, self._target_costs
            ),
            self.workers.cut(len(Z)),
        )
        self._furthest = self._reach.max(axis=1).astype(np.float64)
        return sum(sums)

    def _evaluated(self, Z: Array, V: Array) -> HingeEvaluation:
        """ε, and Σ_ab w_ab (v_a − v_b)(x_a − x_b)ᵀ."""
        costs = self._target_costs
        pulled = self._pull(Z)
        if not self._G or self._G[0].shape != V.shape:
            self._G = [np.empty_like(V) for _ in self._weights]

        reach = kernel.Reach(self._reach, self._furthest)
        pairs = kernel.PairList(self.candidates.indptr, self.candidates.columns)
        cuts = self.candidates.cut(len(self._G), self.targets.shape[1])
        # What a span adds to: the first one has a place for every point.
        places = [(0, len(V)), *map(self._touched, cuts[1:])]

        def push(
            G: Array,
            weights: NDArray[np.float64],
            rows: tuple[int, int],
            place: tuple[int, int],
        ) -> tuple[float, float, int]:
            G[slice(*place)] = 0
            weights[:] = 0
            return kernel.push(
                Z, V, reach, pairs, self.hinge, self.mu, rows, G, weights, self.costs
            )

        sums = self.workers.map(push, self._G, self._weights, cuts, places)
        pushed, slope, active = map(sum, zip(*sums, strict=True))
        weights = self._weights[0]
        for more in self._weights[1:]:
            weights += more
        self.workers.map(
            lambda G, rows: kernel.pull(
                V, self.targets, weights, 1 - self.mu, self.mu, rows[0], rows[1], G, costs
            ),
            self._G,
            cuts,
        )
        loss = (1 - self.mu) * pulled + self.mu * pushed
        return HingeEvaluation(loss, self._times_X(places), pushed, slope, active)

    def _touched(self, rows: tuple[int, int]) -> tuple[int, int]:
        """The range of the points in the pairs of some rows, and of their classes."""
        if rows[0] == rows[1]:
            return rows
        low, high = self.candidates.touched(rows)
        starts, ends = self.classes.starts, self.classes.ends
        return min(low, int(starts[rows[0]])), max(high, int(ends[rows[1] - 1]))

    def _times_X(self, places: list[tuple[int, int]]) -> NDArray[np.float64]:
        """(Σ G)ᵀ X, each G in its place."""

        def part(rows: tuple[int, int]) -> NDArray[np.float64]:
            G = self._G[0]
            for more, (low, high) in zip(self._G[1:], places[1:], strict=True):
                both = slice(max(low, rows[0]), max(min(high, rows[1]), rows[0]))
                G[both] += more[both]
            return (G[slice(*rows)].T @ self.X[slice(*rows)]).astype(np.float64)

        return np.sum(self.workers.map(part, self.workers.cut(len(self.X))), axis=0)


def target_scatter(
    X: Array,
    targets: NDArray[np.int32],
    workers: Workers,
    costs: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Σ (x_i − x_j)(x_i − x_j)ᵀ over the targets j of i, times the costs if there are any."""
    weights = np.zeros(targets.shape)

    def part(rows: tuple[int, int]) -> NDArray[np.float64]:
        G, (low, high) = np.zeros_like(X), rows
        kernel.pull(X, targets, weights, 1.0, 0.0, low, high, G, costs)
        known = targets[low:high]
        known = known[known >= 0]
        place = slice(known.min(initial=low), max(high, known.max(initial=low) + 1))
        return (G[place].T @ X[place]).astype(np.float64)

    scatter = np.sum(workers.map(part, workers.cut(len(X))), axis=0)
    return (scatter + scatter.T) / 2
