"""Where LMNN starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.pairwise import squared_distances
from samewise.learners.batch.lmnn.objective import LMNNObjective
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


def automatic(objective: LMNNObjective, basis: WhitenedBasis, n_components: int) -> Matrix64:
    """The best of a few starts at their best scale, by the loss on a sample."""
    starts = []
    for power in POWERS:
        L = basis.leading(objective.covariance, n_components, power)
        loss, s = best_scale(objective, L)
        starts.append((loss, s * L))
    return min(starts, key=lambda start: start[0])[1]


def best_scale(objective: LMNNObjective, L: Matrix64) -> tuple[float, float]:
    """The s for which sL has the least loss on a sample, and that loss, up to a factor.

    With t = s², ε(t) = (1−μ) t Σ D_ij + μ Σ [1 + t (D_ij − D_il)]₊ is convex.
    """
    targets, ends, mu = objective.targets, objective.classes.ends, objective.mu
    having = np.flatnonzero(targets[:, 0] >= 0)
    anchors = having[:: len(having) // ANCHORS + 1]
    step = len(targets) // OTHERS + 1
    others = np.arange(0, len(targets), step)
    near = targets[anchors]
    mapped = L.T.astype(objective.X.dtype)
    Z = objective.X[anchors] @ mapped
    V = Z[:, None] - (objective.X[near.ravel()] @ mapped).reshape(*near.shape, -1)
    T = np.where(near >= 0, np.einsum("ijc,ijc->ij", V, V), np.nan)
    D = squared_distances(Z, objective.X[others] @ mapped)
    D[ends[anchors][:, None] == ends[others]] = np.inf
    # Only the nearest impostors are ever reached, and they decide.
    nearest = min(NEAREST, D.shape[1] - 1)
    n_near, count = np.count_nonzero(near >= 0), np.ones(1)
    if objective.costs is None:
        D = np.partition(D, nearest, axis=1)[:, :NEAREST]
    else:
        kept = np.argpartition(D, nearest, axis=1)[:, :NEAREST]
        D = np.take_along_axis(D, kept, axis=1)
        cost = objective.costs.targets[anchors]
        count = cost[:, :, None] * objective.costs.points[others[kept]][:, None]
        n_near = cost.sum()
    margins = (T[:, :, None] - D[:, None]).astype(np.float64)
    finite = np.isfinite(margins)
    margins, count = margins[finite], np.broadcast_to(count, finite.shape)[finite]
    pulled = float(np.nansum(T if objective.costs is None else cost * T))
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
