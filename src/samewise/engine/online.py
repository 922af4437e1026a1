"""The loop: examples in, a moved matrix out."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from samewise._rollback import Interrupted
from samewise._typing import Array, Matrix
from samewise.engine.averaging import Average, Spec
from samewise.engine.directions import Directions
from samewise.engine.history import History
from samewise.engine.mover import Mover
from samewise.engine.progress import Progress
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.kernels.scales import largest
from samewise.supervision import Pairs, Triplets
from samewise.supervision.row_numbers import passes
from samewise.supervision.supervision_checks import LARGEST

SMALLEST = {np.dtype(np.float64): 1e-70, np.dtype(np.float32): 1e-18}
"""Below this, what a vector's squared length is multiplied with or divided by gets lost."""
ORDINARY = {np.dtype(np.float64): 1e8, np.dtype(np.float32): 1e6}
"""Vectors of at most this length, and of at least its inverse, move a matrix without overflow. A
passive–aggressive step projects the matrix on a half-space, which adds at most target/‖G‖ to its
norm, squares added; variances and covariances only shrink; what is divided by is not lost. Sizes
further apart than float64 has digits are not ordinary: rounding may make an inverse singular."""
MODERATE = {np.dtype(np.float64): 1e30, np.dtype(np.float32): 1e12}
"""The same for the matrix and for what it was made with."""
WIDE = 1024
"""Dimensions from which blocks are worth sharing between threads."""
SHARED_WORK = 2**19
"""Multiplications of one product from which BLAS may share it."""
TYPICAL = 256
"""Examples of a portion, where nobody says."""


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
        # Whether the present numbers may lead out of range; None where it is not known.
        self._extreme: bool | None = None
        # What to go back to: None outside of `whole`, and empty where nothing is kept yet.
        self._kept: dict[str, Any] | None = None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What is learned inside is learned as a whole or, if an error is raised, not at all.

        A copy of the state is kept only where it may be needed. To copy a matrix takes as long as
        to learn from an example of as many dimensions, and one example, or one portion, of
        ordinary numbers cannot fail once it has been looked at.
        """
        self._kept = {}
        try:
            yield
            if self._kept:
                self.check()
        except Interrupted:
            raise
        except BaseException:
            vars(self).update(self._kept)
            raise
        finally:
            self._kept = None

    def hold(self) -> None:
        """Keep a copy of the state until `whole` is left, unless there is one."""
        if self._kept is not None and not self._kept:
            kept = {"mover": self.mover, "average": self.average, "_extreme": self._extreme}
            self._kept = {**copy.deepcopy(kept), "history": self.history.copy()}

    def check(self) -> None:
        """Refuse a state that is not finite."""
        arrays = self.state().arrays.values()
        with np.errstate(over="ignore", invalid="ignore"):
            finite = all(math.isfinite(array.sum()) for array in arrays)
        if not finite and not all(np.isfinite(array).all() for array in arrays):
            raise out_of_range(self.mover.store.dtype)

    def learn(self, directions: Directions) -> NDArray[np.float64]:
        """Go through the directions in order; returns the τ of each.

        Directions that are not finite, too large or too small are refused before anything moves.
        """
        if not self._ordinary(directions):
            self.hold()
            self._extreme = True
        # What overflows is refused below; NumPy need not warn of it.
        quiet = np.errstate(over="ignore", invalid="ignore") if self._extreme else nullcontext()
        try:
            with quiet:
                return self._learn(directions)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise out_of_range(self.mover.store.dtype) from error

    def _ordinary(self, directions: Directions) -> bool:
        """Whether nothing can overflow."""
        dtype = self.mover.store.dtype
        most, least, others = directions.scale()
        if not math.isfinite(most) or not math.isfinite(others):
            raise InvalidInputError(
                "An example or its weight is NaN or infinite, but every value must be finite. "
                "Values may have been changed since they were checked, or differences overflow."
            )
        if most > LARGEST[dtype] or least < SMALLEST[dtype]:
            raise InvalidInputError(
                f"Examples or differences of examples have sizes from {least:.3g} to {most:.3g}, "
                f"but {dtype} holds the products of those from {SMALLEST[dtype]:g} to "
                f"{LARGEST[dtype]:g}; scale the features, for instance with "
                "sklearn.preprocessing.StandardScaler."
            )
        if self._extreme is None and self._kept is not None:
            self._extreme = not self._moderate()
        limit = ORDINARY[dtype]
        return not self._extreme and most <= limit and least * limit >= 1 and others <= limit

    def _moderate(self) -> bool:
        """Whether the matrix, and what it was made with, have ordinary sizes."""
        assert isinstance(self.mover, Storable)
        state = stored(self.mover)
        # gCosLA's step as the thesis prints it has no bound.
        right = not state.values.get("printed", False)
        limit = MODERATE[np.dtype(np.float64)]
        for value in state.values.values():
            if isinstance(value, float):
                right &= value == 0 or 1 / limit <= abs(value) <= limit
        limit = MODERATE[self.mover.store.dtype]
        return right and all(np.abs(a).max(initial=0.0) <= limit for a in state.arrays.values())

    def _learn(self, directions: Directions) -> NDArray[np.float64]:
        taus = np.zeros(len(directions))
        keep = self.average.kind != "last"
        start = 0
        while start < len(directions):
            trace = self.mover.advance(directions, start, keep)
            if not math.isfinite(largest(trace.violation, trace.tau)):
                raise out_of_range(self.mover.store.dtype)
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
        # Sums that were read from a file may be larger than learning leaves them.
        with np.errstate(over="ignore", invalid="ignore"):
            W, b = self.average.solution(self.mover.store, self.mover.b)
        if not np.isfinite(W).all() or not math.isfinite(b):
            raise out_of_range(self.mover.store.dtype)
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
        with few_threads(examples.X.shape[1], len(examples)):
            parts = list(portions(examples, *course.sizes))
            if len(parts) > 1 or course.n_passes > 1:
                self.hold()
            for part in parts:
                course.show(examples if len(parts) == 1 else examples[part])
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


def out_of_range(dtype: np.dtype[Any]) -> InvalidInputError:
    """What to raise where learning has led to numbers that are not finite."""
    return InvalidInputError(
        f"Learning has left the range of {dtype}: values or parameters are too large, too small or "
        "of too different sizes. Scale the features, for instance with "
        "sklearn.preprocessing.StandardScaler."
    )


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


def few_threads(d: int, n: int = TYPICAL) -> AbstractContextManager[object]:
    """One BLAS thread while blocks are small: two threads then mostly wait for each other.

    Nothing is asked for where n examples are so few and so short that BLAS would not share them
    anyway: to ask takes as long as to learn from one of them.
    """
    if d >= WIDE or max(n, d) * d**2 < SHARED_WORK:
        return nullcontext()
    return _pools().limit(limits=1, user_api="blas")
