"""The loop: examples in, a moved matrix out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
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
from samewise.engine.progress import Progress
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.supervision import Pairs, Triplets
from samewise.supervision.containers import passes


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
            done = slice(start, start + trace.done)
            if keep:
                rows = trace.updates
                met = trace.threshold[rows]
                self.average.observe(self.mover.store, trace.done, rows, met, trace.b, trace.terms)
            taus[done] = trace.tau[: trace.done]
            violation = trace.violation[: trace.done]
            target, sign = directions.target[done], directions.sign[done]
            self.history.record(violation, target, sign, taus[done])
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

    def run(self, course: Course) -> None:
        """Go through examples as the course says."""
        total = course.n_passes * len(course.examples)
        with Progress(course.name, total, course.verbose) as progress:
            examples: Any = course.examples
            orders = passes(examples, course.n_passes, course.shuffle, course.random)
            for n, ordered in enumerate(orders, 1):
                stopped = self._pass(course, ordered, progress)
                if course.done(n) or stopped:
                    break

    def _pass(self, course: Course, examples: Pairs | Triplets, progress: Progress) -> bool:
        """Go through the examples once; whether to stop before the end of all passes."""
        with few_threads(examples.X.shape[1]):
            for part in portions(examples, *course.sizes):
                course.show(examples[part])
                progress.report(self.history)
                if progress.interrupted or course.enough(self):
                    return True
        return False

    def state(self) -> State:
        """All that the next example meets."""
        assert isinstance(self.mover, Storable)
        state = State().add("mover", stored(self.mover))
        return state.add("average", self.average.state()).add("history", self.history.state())

    @classmethod
    def restore(cls, saved: Saved, kind: type) -> Online:
        """The loop of that state; `kind` is the class of its mover."""
        online = cls(restored(saved.part("mover"), kind))
        online.average = Average.restore(saved.part("average"), online.mover.store)
        online.history = History.restore(saved.part("history"))
        return online


@dataclass
class Course:
    """How examples are gone through.

    Parameters
    ----------
    name : str
        Who learns, for messages.
    examples : Pairs or Triplets
    show : callable
        Learns from a portion of the examples.
    random : RandomState
        For shuffling.
    n_passes : int, default=1
        How often the examples are gone through.
    shuffle : bool, default=False
        Whether each pass has a new random order.
    verbose : bool or int, default=False
        Whether to print progress.
    sizes : tuple of int, default=(256, 8192)
        The least and the most examples of a portion. A run can be interrupted between portions.
    enough : callable, optional
        Called with the loop after each portion: whether to stop.
    done : callable, optional
        Called with its number after each pass: whether to stop.
    """

    name: str
    examples: Pairs | Triplets
    show: Callable[[Any], object]
    random: np.random.RandomState
    n_passes: int = 1
    shuffle: bool = False
    verbose: int | bool = False
    sizes: tuple[int, int] = (256, 8192)
    enough: Callable[[Online], bool] = lambda online: False
    done: Callable[[int], bool] = lambda n: False


def portions(examples: Pairs | Triplets, least: int = 256, most: int = 8192) -> Iterator[slice]:
    """Slices of a run of examples whose directions take a few megabytes."""
    items = examples.items if isinstance(examples, Triplets) else examples.X
    width = max(_row_size(examples.X), _row_size(items))
    size = min(max(least, int(2**18 / max(width, 1))), most)
    for start in range(0, len(examples), size):
        yield slice(start, min(start + size, len(examples)))


def _row_size(X: Matrix) -> float:
    """Numbers that a row holds."""
    return X.nnz / max(X.shape[0], 1) if sp.issparse(X) else X.shape[1]


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(d: int) -> AbstractContextManager[object]:
    """One BLAS thread while blocks are small: two threads then mostly wait for each other."""
    return nullcontext() if d >= 1024 else _pools().limit(limits=1, user_api="blas")
