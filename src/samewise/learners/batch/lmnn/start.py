"""Where LMNN starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.lmnn_loops import Costs
from samewise.kernels.pairwise import squared_distances
from samewise.learners.batch.whitened_basis import POWERS, WhitenedBasis
from samewise.solvers.evaluation import Matrix64

ANCHORS, OTHERS, NEAREST = 256, 4096, 128
"""How many points, of how many of the others the nearest how many, tell the scale."""


def row_space(X: Array) -> NDArray[np.float64]:
    """An orthonormal basis, as columns, of the differences of centered rows."""
    _, singular, V = np.linalg.svd(X, full_matrices=False)
    eps = float(np.finfo(X.dtype).eps)
    kept = np.count_nonzero(singular > singular[0] * eps * max(X.shape)) if len(singular) else 0
    return V[: max(kept, 1)].T.astype(np.float64)


class StartSample(NamedTuple):
    """Anchors with their targets, and other points.

    Attributes
    ----------
    X : array of shape (n, d)
        The anchors.
    has : array of shape (n, k)
        Which targets they have.
    near : array of shape (n·k, d)
        Their targets; any rows where there are none.
    others : array of shape (m, d)
    same : array of shape (n, m)
        Which are of the same class.
    costs : Costs or None
        Those of the anchors' targets and of the others.
    step : int
        One in so many points is among the others.
    """

    X: Array
    has: NDArray[np.bool_]
    near: Array
    others: Array
    same: NDArray[np.bool_]
    costs: Costs | None
    step: int


def start_rows(having: Indices, n: int) -> tuple[Indices, Indices]:
    """The anchors of a sample, of those that have targets, and the others, of n points."""
    return having[:: len(having) // ANCHORS + 1], np.arange(0, n, n // OTHERS + 1)


def automatic(
    sample: StartSample,
    mu: float,
    covariance: Matrix64,
    basis: WhitenedBasis,
    n_components: int,
) -> Matrix64:
    """The best of a few starts at their best scale, by the loss on a sample."""
    starts = []
    for power in POWERS:
        L = basis.leading(covariance, n_components, power)
        loss, s = best_scale(sample, mu, L)
        starts.append((loss, s * L))
    return min(starts, key=lambda start: start[0])[1]


def best_scale(sample: StartSample, mu: float, L: Matrix64) -> tuple[float, float]:
    """The s for which sL has the least loss on a sample, and that loss, up to a factor.

    With t = s², ε(t) = (1−μ) t Σ D_ij + μ Σ [1 + t (D_ij − D_il)]₊ is convex.
    """
    step, has = sample.step, sample.has
    mapped = L.T.astype(sample.X.dtype)
    Z = sample.X @ mapped
    V = Z[:, None] - (sample.near @ mapped).reshape(*has.shape, -1)
    T = np.where(has, np.einsum("ijc,ijc->ij", V, V), np.nan)
    D = squared_distances(Z, sample.others @ mapped)
    D[sample.same] = np.inf
    # Only the nearest impostors are ever reached, and they decide.
    nearest = min(NEAREST, D.shape[1] - 1)
    n_near, count = np.count_nonzero(has), np.ones(1)
    if sample.costs is None:
        D = np.partition(D, nearest, axis=1)[:, :NEAREST]
    else:
        kept = np.argpartition(D, nearest, axis=1)[:, :NEAREST]
        D = np.take_along_axis(D, kept, axis=1)
        cost = sample.costs.targets
        count = cost[:, :, None] * sample.costs.points[kept][:, None]
        n_near = cost.sum()
    margins = (T[:, :, None] - D[:, None]).astype(np.float64)
    finite = np.isfinite(margins)
    margins, count = margins[finite], np.broadcast_to(count, finite.shape)[finite]
    pulled = float(np.nansum(T if sample.costs is None else cost * T))
    if not (pulled > 0 and len(margins)):
        return 0.0, 1.0

    def slope(t: float) -> float:
        return (1 - mu) * pulled + mu * step * float((count * margins)[1 + t * margins > 0].sum())

    unit = n_near / pulled
    low, high = -20.0, 20.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(unit * 2.0**middle) < 0 else (low, middle)
    t = unit * 2.0**high
    loss = (1 - mu) * t * pulled + mu * step * float((count * np.maximum(1 + t * margins, 0)).sum())
    return loss, float(np.sqrt(t))
