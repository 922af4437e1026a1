"""The k-NN error on points that are held out."""

from __future__ import annotations

import numpy as np

from samewise._typing import Array, Indices
from samewise.learners.batch.points_by_class import nearest_rows
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers


class NeighborErrors:
    """The part of held-out points whose k nearest neighbors under a map vote for another class.

    Parameters
    ----------
    X, y : array of shape (n, d) and labels
        The points that are learned from, and among which neighbors are searched.
    Xv, yv : array of shape (n_held_out, d) and labels
        The points held out.
    k : int
    workers : Workers
    """

    def __init__(
        self, X: Array, y: Indices, Xv: Array, yv: Indices, k: int, workers: Workers
    ) -> None:
        self.X, self.y, self.Xv, self.yv = X, y, Xv, yv
        self.k, self.workers = min(k, len(X)), workers

    def __call__(self, components: Matrix64) -> float:
        """The error of a map."""
        return float(np.mean(vote(self.y[self.neighbors(components)]) != self.yv))

    def neighbors(self, components: Matrix64) -> Indices:
        """The k nearest points of each point held out, nearest first."""
        A = components.T.astype(self.X.dtype)
        return nearest_rows(self.Xv @ A, self.X @ A, self.k, self.workers)


def vote(labels: Indices) -> Indices:
    """The majority in each row, nearest first; on a tie, k shrinks by one until it breaks."""
    winners = labels[:, 0].copy()
    undecided = np.arange(len(labels))
    for k in range(labels.shape[1], 1, -1):
        rows = labels[undecided, :k]
        counts = (rows[:, :, None] == rows[:, None, :]).sum(axis=2)
        most = counts.max(axis=1, keepdims=True)
        # One winner if all columns with the most votes have the same label.
        first = np.take_along_axis(rows, counts.argmax(axis=1)[:, None], axis=1)
        clear = ((counts < most) | (rows == first)).all(axis=1)
        winners[undecided[clear]] = first[clear, 0]
        undecided = undecided[~clear]
    return winners
