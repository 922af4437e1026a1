"""One pass of LMNN: points and targets in the coordinates in which it is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from samewise._typing import Array
from samewise.kernels.lmnn_loops import Costs
from samewise.kernels.nearest_rows import BLOCK_BYTES, center
from samewise.kernels.pairwise import row_slices
from samewise.learners.batch.lmnn.objective import Hinge, LMNNObjective, target_scatter
from samewise.learners.batch.lmnn.start import automatic, row_space
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.whitened_basis import WhitenedBasis
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers


class LMNNBasis(WhitenedBasis):
    """Coordinates in which targets have unit scatter, and where a solver may start in them.

    A subclass has the objective.
    """

    objective: Any

    def start(self, n_components: int | None) -> Matrix64:
        """Where to begin when nothing is known."""
        known = self.objective
        n = n_components or len(self.lengths)
        return automatic(known.start_sample(), known.mu, known.covariance, self, n)

    def principal(self, n_components: int | None) -> Matrix64:
        """The leading principal directions of the points, as they are given."""
        C = self._inverse @ self.objective.covariance @ self._inverse.T
        V = np.linalg.eigh(C)[1][:, ::-1][:, : n_components or len(self.lengths)]
        return self.coordinates(V.T)


class LMNNProblem(LMNNBasis):
    """The objective in coordinates x′ = Bᵀ(x − mean), where targets have unit scatter.

    L′ in these coordinates is L = L′Bᵀ in the given ones. Where there are fewer points than
    features, x′ has as many entries as the points span.

    Parameters
    ----------
    X : array of shape (n, d)
        In the order given.
    targets : array of shape (n, k)
        Among the sorted rows.
    dtype : float32 or float64
        Type of the work.
    costs : Costs, default=None
        How often terms count; once each by default.
    """

    def __init__(
        self,
        X: Array,
        classes: Classes,
        targets: NDArray[np.int32],
        mu: float,
        hinge: Hinge,
        dtype: DTypeLike,
        workers: Workers,
        costs: Costs | None = None,
    ) -> None:
        S, unit = _sorted(X, classes, dtype, costs)
        span = None
        # A point of weight 2 is two points here too.
        if (len(X) if costs is None else costs.points.sum()) <= X.shape[1]:
            span = row_space(S)
            S = S @ span.astype(dtype)
        # The sum of squared distances to targets becomes n k ‖L′‖²: as well conditioned as can be.
        counted = None if costs is None else costs.targets
        n_targets = float(np.count_nonzero(targets >= 0) if counted is None else counted.sum())
        scatter = target_scatter(S, targets, workers, counted)
        super().__init__(scatter / (n_targets or 1.0), unit, span)
        S = _mapped(S, self.whitener.astype(dtype))
        self.objective = LMNNObjective(S, targets, classes, mu, hinge, workers, costs)

    def losses(
        self, L: Matrix64, targets: NDArray[np.int32], costs: Costs | None = None
    ) -> NDArray[np.float64]:
        """The terms of the loss at L′ of each point that has targets, over all its triplets."""
        known = self.objective
        objective = LMNNObjective(
            known.X, targets, known.classes, known.mu, known.hinge, known.workers, costs
        )
        objective.slack = 0.0
        objective.search(L)
        return objective.losses(L)


def _sorted(
    X: Array, classes: Classes, dtype: DTypeLike, costs: Costs | None
) -> tuple[Array, float]:
    """Rows by class, centered and divided by the largest value, which is returned too."""
    weight = None
    if costs is not None:
        weight = np.empty(len(X))
        weight[classes.order] = costs.points
    mean, unit = center(X, weight)
    S = np.empty(X.shape, dtype=dtype)
    for rows in row_slices(len(X), 8 * X.shape[1], BLOCK_BYTES):
        S[rows] = (X[classes.order[rows]] - mean) / unit
    return S, unit


def _mapped(S: Array, A: Array) -> Array:
    """SA, in the place of S."""
    for rows in row_slices(len(S), 8 * S.shape[1], BLOCK_BYTES):
        S[rows] = S[rows] @ A
    return S
