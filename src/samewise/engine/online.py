"""The loop: examples in, a moved matrix out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from samewise._typing import Array, Matrix
from samewise.engine.averaging import Average, Spec
from samewise.engine.directions import Directions
from samewise.engine.history import History
from samewise.engine.mover import Mover
from samewise.files.state import Saved, State


class Online:
    """What an online learner has learned so far: a mover, the average of its hypotheses, counters.

    Parameters
    ----------
    mover : Mover
        The matrix and the threshold, and how examples move them.
    average : str or tuple, default="last"
        See `averaging`.
    """

    def __init__(self, mover: Mover, average: Spec = "last") -> None:
        self.mover = mover
        self.average = Average(average)
        self.history = History()

    def learn(self, directions: Directions) -> NDArray[np.float64]:
        """Go through the directions in order; returns the τ of each."""
        taus = np.zeros(len(directions))
        keep = self.average.kind != "last"
        start = 0
        while start < len(directions):
            trace = self.mover.advance(directions, start, keep)
            done, rows = slice(start, start + trace.done), trace.updates
            if keep:
                met = trace.threshold[rows]
                self.average.observe(
                    self.mover.store, trace.done, rows, met, trace.b, trace.terms
                )
            taus[done] = trace.tau[: trace.done]
            violation = trace.violation[: trace.done]
            self.history.record(violation, directions.target[done], directions.sign[done], taus[done])
            if trace.settle is not None:
                self.average.correct(*trace.settle())
            start = done.stop
        return taus

    def solution(self) -> tuple[Array, float]:
        """The matrix and threshold to be used, averaged.

        b is admissible; W ⪰ 0 is left to whoever makes a form of it, which factors W anyway.
        """
        W, b = self.average.solution(self.mover.store, self.mover.b)
        return W, max(b, self.mover.least_b)

    def state(self) -> State:
        """All that the next example meets."""
        state = State()
        for name in ("mover", "average", "history"):
            state.add(name, getattr(self, name).state())
        return state

    @classmethod
    def restore(cls, saved: Saved, kind: Any) -> Online:
        """The loop of that state; `kind` is the class of its mover."""
        online = cls(kind.restore(saved.part("mover")))
        online.average = Average.restore(saved.part("average"), online.mover.store)
        online.history = History.restore(saved.part("history"))
        return online


def chunks(n: int, *matrices: Matrix, least: int = 256, most: int = 8192) -> Iterator[slice]:
    """Slices of a run of n examples whose directions, rows of `matrices`, take a few megabytes."""
    width = max(M.nnz / max(M.shape[0], 1) if sp.issparse(M) else M.shape[1] for M in matrices)
    size = min(max(least, int(2**18 / max(width, 1))), most)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(d: int) -> AbstractContextManager[object]:
    """One BLAS thread while blocks are small: two threads then mostly wait for each other."""
    return nullcontext() if d >= 1024 else _pools().limit(limits=1, user_api="blas")
