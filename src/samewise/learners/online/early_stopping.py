"""Early stopping: the best state on held-out examples, and when to give up on a better one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from samewise.engine.online import Online


class Watch:
    """Scores the state every so many examples and keeps the best.

    Parameters
    ----------
    score : callable () → float
        How good the present state is.
    every : int
        Examples between two looks.
    patience : int
        Looks without a better score after which to stop.
    """

    def __init__(self, score: Callable[[], float], every: int, patience: int) -> None:
        self._score, self.every, self._patience = score, every, patience
        self._next = every
        self._best: Any = None
        self._best_score = -float("inf")
        self._in_vain = 0
        self.curve: list[tuple[int, float]] = []

    def look(self, online: Online) -> bool:
        """Score the state if it is time to; whether to stop."""
        if online.history.rounds < self._next:
            return False
        self._next = online.history.rounds + self.every
        self.note(online)
        return self._in_vain >= self._patience

    def note(self, online: Online) -> None:
        """Score the state now."""
        rounds = online.history.rounds
        if self.curve and self.curve[-1][0] == rounds:
            return
        score = self._score()
        self.curve.append((rounds, score))
        self._in_vain += 1
        if score > self._best_score:
            self._best_score, self._best, self._in_vain = score, copy.deepcopy(online), 0

    @property
    def best(self) -> Online:
        """The state of the best score."""
        return self._best
