"""What is seen of a run while it goes: its history, held-out error, and reasons to stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.engine.progress import Progress
from samewise.learners.lmnn.lbfgs import Matrix64
from samewise.learners.lmnn.objective import Value
from samewise.learners.lmnn.points import nearest_rows
from samewise.learners.lmnn.workers import Workers

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


class Watch:
    """Sees every iteration of every pass.

    Parameters
    ----------
    progress : Progress
        Knows of Ctrl-C.
    callback : callable or None
        Called with a dict; stops the run if it returns true.
    verbose : int or bool
        Whether to print a line, at most once a second.
    held_out : HeldOut or None
    """

    FIELDS = ("pass", "loss", "n_active", "n_candidates", "validation_error", "seconds")

    def __init__(
        self,
        progress: Progress,
        callback: Callable[[dict[str, Any]], object] | None,
        verbose: int | bool,
        held_out: HeldOut | None,
    ) -> None:
        self.progress, self.callback, self.verbose = progress, callback, verbose
        self.held_out = held_out
        self.rows: list[tuple[float, ...]] = []
        self.stopped = False
        self._start = time.monotonic()
        self._said = -np.inf

    def look(
        self,
        n_pass: int,
        components: Callable[[], Matrix64],
        value: Value,
        n_candidates: int,
    ) -> bool:
        """Take in an iteration; True to stop the run."""
        error = np.nan
        if self.held_out is not None and len(self.rows) % EVERY == EVERY - 1:
            error = self.held_out.look(components())
            self.stopped |= self.held_out.enough
        seconds = time.monotonic() - self._start
        self.rows.append((n_pass, value.loss, value.active, n_candidates, error, seconds))
        if self.verbose and seconds - self._said >= 1.0:
            self.say()
        if self.callback is not None:
            info: dict[str, Any] = dict(zip(self.FIELDS, self.rows[-1], strict=True))
            info |= {"iteration": len(self.rows), "components": components()}
            self.stopped |= bool(self.callback(info))
        self.stopped |= self.progress.interrupted
        return self.stopped

    def say(self) -> None:
        """Print where the run is."""
        if not self.verbose or not self.rows:
            return
        _, loss, active, candidates, error, seconds = self.rows[-1]
        self._said = seconds
        held_out = "" if np.isnan(error) else f", held-out error {error:.2%}"
        print(
            f"LMNN: iteration {len(self.rows):,}, loss {loss:.6g}, {active:,.0f} active triplets, "
            f"{candidates:,.0f} candidate pairs{held_out}, {seconds:.0f} s",
            file=sys.stderr,
        )

    @property
    def history(self) -> dict[str, NDArray[np.float64]]:
        """One array for each field, one entry for each iteration."""
        columns = np.array(self.rows).reshape(-1, len(self.FIELDS)).T
        return dict(zip(self.FIELDS, columns, strict=True))
