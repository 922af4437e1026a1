"""What is seen of a run while it goes, with the held-out error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from samewise._typing import Array, Indices
from samewise.engine.progress import Progress
from samewise.learners.batch.lmnn.objective import Value
from samewise.learners.batch.lmnn.points import nearest_rows
from samewise.solvers.lbfgs import Matrix64
from samewise.solvers.run_log import Callback, Watch
from samewise.solvers.workers import Workers

EVERY, PATIENCE = 5, 3
"""Iterations between two looks at the held-out error; looks without a new best before the end."""


class HeldOut:
    """k-NN error on points that were not learned from, and the best map by it."""

    def __init__(
        self, X: Array, y: Indices, Xv: Array, yv: Indices, k: int, workers: Workers
    ) -> None:
        self.X, self.y, self.Xv, self.yv = X, y, Xv, yv
        self.k, self.workers = min(k, len(X)), workers
        self.best: Matrix64 | None = None
        self.error, self._worse = np.inf, 0

    def look(self, components: Matrix64) -> float:
        """The error of a map; the best map is kept."""
        A = components.T.astype(self.X.dtype)
        found = nearest_rows(self.Xv @ A, self.X @ A, self.k, self.workers)
        error = float(np.mean(vote(self.y[found]) != self.yv))
        self._worse += 1
        if error < self.error:
            self.error, self.best, self._worse = error, components, 0
        return error

    @property
    def enough(self) -> bool:
        """Whether the error has not fallen for a while."""
        return self._worse >= PATIENCE


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


class HeldOutWatch(Watch):
    """Sees every iteration of every pass, and now and then the held-out error.

    Parameters
    ----------
    progress, verbose, callback
        As for `Watch`.
    held_out : HeldOut or None
    """

    def __init__(
        self,
        progress: Progress,
        verbose: int | bool,
        callback: Callback,
        held_out: HeldOut | None,
    ) -> None:
        fields = ("pass", "loss", "n_active", "n_candidates", "validation_error")
        super().__init__("LMNN", fields, progress, verbose, callback)
        self.held_out = held_out

    def iteration(
        self, n_pass: int, components: Callable[[], Matrix64], value: Value, n_candidates: int
    ) -> bool:
        """Take in an iteration; True to stop the run."""
        error = np.nan
        if self.held_out is not None and len(self.rows) % EVERY == EVERY - 1:
            error = self.held_out.look(components())
            self.stopped |= self.held_out.enough
        return self.look(components, n_pass, value.loss, value.active, n_candidates, error)
