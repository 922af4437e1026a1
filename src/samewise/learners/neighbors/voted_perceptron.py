"""The voted perceptron: its matrix, its average and what it counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.engine.averaging import Average, Spec, Terms
from samewise.engine.history import History
from samewise.engine.stores import Full
from samewise.files.state import Saved, State


class Voted(Average):
    """Averages as the voted perceptron counts: a hypothesis starts with one vote.

    A dead one's votes are its age; the one alive has one more than the rounds it has survived.
    """

    def __init__(self, average: Spec) -> None:
        super().__init__(average)
        self.ages: deque[float] = deque(maxlen=self.recent.maxlen)

    def observe(
        self,
        state: Any,
        n_rounds: int,
        rows: NDArray[np.intp],
        thresholds: NDArray[np.float64],
        b: float,
        terms: Iterable[Terms],
    ) -> None:
        """Take in a block; a suffix also keeps the ages of the hypotheses that died in it."""
        self.ages.extend(np.diff(rows, prepend=-1 - self.age).tolist())
        super().observe(state, n_rounds, rows, thresholds, b, terms)

    def solution(self, state: Any, b: float) -> tuple[Array, float]:
        """The averaged matrix, given the hypothesis alive."""
        self.age += 1
        try:
            return super().solution(state, b)
        finally:
            self.age -= 1

    def _suffix(self, state: Any, b: float) -> tuple[Array, float]:
        mean = state.copy()
        votes = np.cumsum(self.ages)
        total = self.age + (votes[-1] if len(votes) else 0.0)
        for m, (_, left, right, c) in enumerate(self.recent):
            # The hypotheses up to the m-th came before this update, and lack it.
            mean.add(left, right, -c * votes[m] / total)
        return mean.matrix, b

    def state(self) -> State:
        """The running sums; of a suffix also the ages."""
        state = super().state()
        state.arrays["ages"] = np.array(self.ages, dtype=np.float64)
        return state

    @classmethod
    def restore(cls, saved: Saved, store: Any) -> Self:
        """The average of that state, beside the matrix it averages."""
        average = super().restore(saved, store)
        ages = saved.array("ages", len(average.recent), dtypes=["float64"], empty=True)
        saved.check(bool(np.all(ages >= 0)), "ages must not be negative")
        average.ages.extend(ages.tolist())
        return average


class VotedRun(NamedTuple):
    """The state of the voted perceptron."""

    store: Full
    average: Voted
    history: History

    @classmethod
    def begin(cls, A: Array, average: Spec) -> VotedRun:
        """Before the first example."""
        return cls(Full(A), Voted(average), History())

    def state(self) -> State:
        """The three of them."""
        state = State().add("store", self.store.state())
        return state.add("average", self.average.state()).add("history", self.history.state())

    @classmethod
    def restore(cls, saved: Saved) -> VotedRun:
        """The run of that state."""
        store = Full.restore(saved.part("store"))
        saved.check(store.dtype == np.float64, "store must be of float64")
        average = Voted.restore(saved.part("average"), store)
        return cls(store, average, History.restore(saved.part("history")))
