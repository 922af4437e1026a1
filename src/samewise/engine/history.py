"""Counters and the learning curve of a run, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from samewise.files.state import Saved, State
from samewise.kernels.round_counts import count_rounds

LENGTH = 2048
"""Most points a curve keeps; a longer one is thinned to every second point."""


FIELDS = ("rounds", "loss", "mistakes", "updates")
"""What a curve has, in this order."""


@dataclass
class History:
    """Rounds, updates, mistakes and hinge loss, in all and along the way.

    `curve` has the running totals after every `every` rounds: each single round for streams of up
    to 2048 examples, then every second, every fourth, … so that memory stays bounded.
    """

    rounds: int = 0
    loss: float = 0.0
    mistakes: int = 0
    updates: int = 0
    every: int = 1
    _points: list[NDArray[np.float64]] = field(default_factory=list)

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
        self.loss, self.mistakes, self.updates = count_rounds(
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

    def copy(self) -> History:
        """The same history, which does not go on with this one."""
        return replace(self, _points=list(self._points))

    def joined(self, streams: Sequence[History]) -> History:
        """What streams that went on with this one side by side have counted, in all.

        Their curves have no common order and are left out.
        """
        total = self.copy()
        for name in FIELDS:
            start = getattr(self, name)
            setattr(total, name, start + sum(getattr(one, name) - start for one in streams))
        while total.rounds // total.every > 0:
            total.every *= 2
        total._points = []
        return total

    @property
    def curve(self) -> dict[str, NDArray[np.float64]]:
        """Running totals: arrays "rounds", "loss", "mistakes", "updates" of equal length."""
        return dict(zip(FIELDS, self._all_points(), strict=True))

    def _all_points(self) -> NDArray[np.float64]:
        return np.concatenate([np.empty((4, 0)), *self._points], axis=1)

    def state(self) -> State:
        """Counters and curve."""
        counters = {name: getattr(self, name) for name in (*FIELDS, "every")}
        return State({"points": self._all_points()}, counters)

    @classmethod
    def restore(cls, saved: Saved) -> History:
        """The history of that state."""
        rounds, every = saved.count("rounds"), saved.count("every", least=1)
        loss = saved.number("loss", least=0.0)
        mistakes, updates = (saved.count(name, most=rounds) for name in ("mistakes", "updates"))
        points = saved.array("points", 4, rounds // every, dtypes=["float64"], empty=True)
        numbers = every * np.arange(1, rounds // every + 1)
        rising = np.diff(points, prepend=0.0).min(initial=0.0) >= 0
        saved.check(np.array_equal(points[0], numbers) and rising, "points are no running totals")
        return cls(rounds, loss, mistakes, updates, every, [points])
