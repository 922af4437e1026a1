"""Counters and the learning curve of a run, in bounded memory."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from samewise.files.state import Saved, State

LENGTH = 2048
"""Most points a curve keeps; a longer one is thinned to every second point."""


@njit(cache=True)
def _count(
    violation: NDArray[np.float64],
    target: NDArray[np.float64],
    sign: NDArray[np.float64],
    tau: NDArray[np.float64],
    rounds: int,
    every: int,
    loss: float,
    mistakes: int,
    updates: int,
    points: NDArray[np.float64],
) -> tuple[float, int, int]:
    """Add up loss, mistakes and updates, noting the totals after every so many rounds."""
    k = 0
    left = every - rounds % every
    for i in range(violation.shape[0]):
        margin = target[i] - violation[i]
        loss += max(violation[i], 0.0)
        # A pair is called similar when vᵀMv ≤ b: on the border, similar is right.
        mistakes += margin < 0.0 or (margin == 0.0 and sign[i] > 0.0)
        updates += tau[i] != 0.0
        left -= 1
        if left == 0:
            points[0, k], points[1, k] = rounds + i + 1, loss
            points[2, k], points[3, k] = mistakes, updates
            k += 1
            left = every
    return loss, mistakes, updates


class History:
    """Rounds, updates, mistakes and hinge loss, in all and along the way.

    `curve` has the running totals after every `every` rounds: each single round for streams of up
    to 2048 examples, then every second, every fourth, … so that memory stays bounded.
    """

    FIELDS = ("rounds", "loss", "mistakes", "updates")

    def __init__(self) -> None:
        self.rounds = 0
        self.loss = 0.0
        self.mistakes = 0
        self.updates = 0
        self.every = 1
        self._points: list[NDArray[np.float64]] = []

    def record(
        self,
        violation: NDArray[np.float64],
        target: NDArray[np.float64],
        sign: NDArray[np.float64],
        tau: NDArray[np.float64],
    ) -> None:
        """Take in the next rounds."""
        n = len(violation)
        while (self.rounds + n) // self.every > LENGTH:
            self.every *= 2
            points = self._all_points()
            self._points = [points[:, points[0] % self.every == 0]]
        points = np.empty((4, (self.rounds + n) // self.every - self.rounds // self.every))
        self.loss, self.mistakes, self.updates = _count(
            violation,
            target,
            sign,
            tau,
            self.rounds,
            self.every,
            self.loss,
            self.mistakes,
            self.updates,
            points,
        )
        self.rounds += n
        if points.size:
            self._points.append(points)

    @property
    def curve(self) -> dict[str, NDArray[np.float64]]:
        """Running totals: arrays "rounds", "loss", "mistakes", "updates" of equal length."""
        return dict(zip(self.FIELDS, self._all_points(), strict=True))

    def _all_points(self) -> NDArray[np.float64]:
        return np.concatenate([np.empty((4, 0)), *self._points], axis=1)

    def state(self) -> State:
        """Counters and curve."""
        counters = {name: getattr(self, name) for name in (*self.FIELDS, "every")}
        return State({"points": self._all_points()}, counters)

    @classmethod
    def restore(cls, saved: Saved) -> History:
        """The history of that state."""
        history = cls()
        rounds = history.rounds = saved.count("rounds")
        history.loss = saved.number("loss", least=0.0)
        history.mistakes = saved.count("mistakes", most=rounds)
        history.updates = saved.count("updates", most=rounds)
        history.every = saved.count("every", least=1)
        n_points = rounds // history.every
        points = saved.array("points", 4, n_points, dtypes=["float64"], empty=True)
        numbers = history.every * np.arange(1, n_points + 1)
        rising = np.diff(points, prepend=0.0).min(initial=0.0) >= 0
        saved.check(np.array_equal(points[0], numbers) and rising, "points are no running totals")
        history._points = [points]
        return history
