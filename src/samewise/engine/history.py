"""Counters and the learning curve of a run, in bounded memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LENGTH = 2048
"""Most points a curve keeps; a longer one is thinned to every second point."""


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
        self._length = 0

    def record(
        self,
        violation: NDArray[np.float64],
        mistake: NDArray[np.bool_],
        updated: NDArray[np.bool_],
    ) -> None:
        """Take in the next rounds."""
        n = len(violation)
        first = self.rounds
        loss = np.maximum(violation, 0.0)
        picked = np.arange(self.every - 1 - first % self.every, n, self.every)
        if len(picked):
            self._points.append(
                np.stack(
                    [
                        first + 1.0 + picked,
                        self.loss + np.cumsum(loss)[picked],
                        self.mistakes + np.cumsum(mistake)[picked],
                        self.updates + np.cumsum(updated)[picked],
                    ]
                )
            )
            self._length += len(picked)
        self.rounds += n
        self.loss += float(loss.sum())
        self.mistakes += int(np.count_nonzero(mistake))
        self.updates += int(np.count_nonzero(updated))
        while self._length > LENGTH:
            points = np.concatenate(self._points, axis=1)
            self.every *= 2
            points = points[:, points[0] % self.every == 0]
            self._points, self._length = [points], points.shape[1]

    @property
    def curve(self) -> dict[str, NDArray[np.float64]]:
        """Running totals: arrays "rounds", "loss", "mistakes", "updates" of equal length."""
        points = np.concatenate([np.empty((4, 0)), *self._points], axis=1)
        return dict(zip(self.FIELDS, points, strict=True))
