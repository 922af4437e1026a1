"""The error under several metrics on points that are held out."""

from __future__ import annotations

from functools import partial

import numpy as np

from samewise._typing import Array, Indices
from samewise.kernels.lmnn_multi_loops import GroupMembers
from samewise.kernels.nearest_rows import BLOCK_BYTES, FARTHEST, center
from samewise.kernels.neighbors import first_k_per_row
from samewise.kernels.pairwise import row_slices
from samewise.learners.batch.lmnn.multi_objective import Maps, Room, in_reach
from samewise.learners.batch.neighbor_errors import NeighborErrors
from samewise.learners.batch.points_by_class import (
    nearest_rows,
)
from samewise.solvers.workers import Workers


class MultiNeighborErrors(NeighborErrors):
    """The part of held-out points whose k nearest neighbors by several metrics vote wrongly."""

    def __init__(
        self,
        X: Array,
        y: Indices,
        groups: Indices,
        Xv: Array,
        yv: Indices,
        k: int,
        workers: Workers,
    ) -> None:
        super().__init__(X, y, Xv, yv, k, workers)
        self._members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
        self.groups = groups
        mean, unit = center(X)
        self._center = mean.astype(X.dtype)
        scaled = (X - self._center) / X.dtype.type(unit)
        self._covariance = (scaled.T @ scaled).astype(np.float64)
        self._nearest: Indices | None = None

    def neighbors(self, components: Maps) -> Indices:
        """The k nearest for each point held out, ties to the smaller row.

        Those of the look before are k points, so none of the nearest is farther than all of them.
        """
        if self._nearest is None:
            # Any k points serve as well, but those in the given coordinates are likely to be near.
            self._nearest = nearest_rows(self.Xv, self.X, self.k, self.workers)
        limit = self._distances(components, self._nearest).max(axis=1)
        wanted = partial(self._within, components, limit)
        found = self.workers.map(wanted, range(len(self._members)))
        rows, columns, squared = (np.concatenate(parts) for parts in zip(*found, strict=True))
        self._nearest = first_k_per_row(rows, columns, squared, len(self.Xv), self.k)[1]
        return self._nearest

    def _distances(self, components: Maps, nearest: Indices) -> Array:
        """Squared distances of each point held out to some points."""
        D = np.empty(nearest.shape)
        for g in np.unique(self.groups[nearest]):
            at, slot = np.nonzero(self.groups[nearest] == g)
            V = (self.Xv[at] - self.X[nearest[at, slot]]) @ components[g].T.astype(self.X.dtype)
            D[at, slot] = np.einsum("ij,ij->i", V, V, dtype=np.float64)
        return D

    def _within(self, components: Maps, limit: Array, g: int) -> tuple[Indices, Indices, Array]:
        """Points held out, points of a group within their limit, and their squared distances."""
        members, L = self._members[g], components[g]
        m = len(members)
        if not m:
            return members, members, np.empty(0)
        turn = np.linalg.eigh(L @ self._covariance @ L.T)[1][:, ::-1]
        A = (turn.T @ L).T.astype(self.X.dtype)
        V = np.concatenate([self.X[members], self.Xv]) - self._center
        Z = V @ A
        # Room for the rounding of float32: a limit is that of a point which must be found. What
        # products lose counts where a map takes nearly all points to one.
        lost = np.finfo(V.dtype).eps ** 2 * V.shape[1] * np.sum(A**2, dtype=np.float64)
        lost *= np.einsum("ij,ij->i", V, V).max()
        slack = 1e-3 * limit + 1e-6 * np.einsum("ij,ij->i", Z, Z).max() + 1e3 * lost + 1e-30
        # A point that lies far outside must not overflow float32.
        unit = max(1.0, float(np.abs(Z).max()) / FARTHEST)
        reach = np.concatenate([np.full(m, -np.inf), (limit + slack) / unit**2]).astype(np.float32)
        none = np.zeros(len(Z), dtype=np.int64)
        group = GroupMembers(np.arange(m), none, none)
        Z32 = (Z / unit).astype(np.float32, copy=False)
        rows, places = in_reach(Z32, reach, group, 4 * len(Z), Room())
        squared = np.empty(len(rows))
        for at in row_slices(len(rows), Z.shape[1] * Z.itemsize, BLOCK_BYTES):
            V = Z[rows[at]] - Z[places[at]]
            squared[at] = np.einsum("ij,ij->i", V, V, dtype=np.float64)
        return rows - m, members[places], squared
