"""Several learners on the same data: error, significance, time and memory."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Matrix
from samewise.protocols.choice import make_learner
from samewise.protocols.evaluation import knn_correct
from samewise.protocols.reduction import reduction_for
from samewise.scores import s_test

__all__ = ["BASELINES", "Compared", "compare"]

BASELINES = ("euclidean", "cosine")
"""What every learner is compared with."""


@dataclass(frozen=True, eq=False)
class Compared:
    """One line of `compare`.

    Attributes
    ----------
    name : str
    error : float
        k-NN error on the test part; NaN if the learner refused the data.
    marks : dict of str to str
        For each baseline, how this learner compares with it by the s-test: "≫", ">", "=", "<" or
        "≪"; "≫" is a gain.
    seconds : float
        Wall time of `fit`, with loading or compiling of code at its first use.
    memory : int or None
        Bytes: the most that the process held at once which learned and did nothing else, with
        data and libraries. None where the system does not tell.
    refused : str
        Why it could not learn, if it could not.
    correct : array of booleans of shape (n_test,)
    """

    name: str
    error: float
    marks: dict[str, str]
    seconds: float
    memory: int | None
    refused: str = ""
    correct: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool), repr=False)


def compare(
    names: Sequence[str],
    X: Matrix,
    y: ArrayLike,
    X_test: Matrix,
    y_test: ArrayLike,
    *,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    n_neighbors: int = 3,
    random_state: Any = 0,
) -> Iterator[Compared]:
    """Learn with each learner in a process of its own; the baselines come first.

    Learners that are slow in many features learn in the directions of `reduction_for`.

    Parameters
    ----------
    names : sequence of str
        Learners, as `make_learner` knows them.
    X, y : training rows and labels
    X_test, y_test : test rows and labels
    params : dict of dicts, optional
        Parameters of some learners, by name.
    n_neighbors : int, default=3
    random_state : int or None, default=0

    Yields
    ------
    Compared
        As soon as it is known, so that a run that is stopped has its first lines.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise.protocols import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> lines = list(compare([], X[::2], y[::2], X[1::2], y[1::2]))
    >>> [(line.name, round(line.error, 3)) for line in lines]
    [('euclidean', 0.04), ('cosine', 0.04)]
    """
    params = params or {}
    wanted = [*BASELINES, *dict.fromkeys(name for name in names if name not in BASELINES)]
    for name in wanted:
        # Refused before the first one learns, not after an hour.
        make_learner(name, params.get(name))
    y, y_test = np.asarray(y), np.asarray(y_test)
    baselines: dict[str, NDArray[np.bool_]] = {}
    for name in wanted:
        work = (name, dict(params.get(name, {})), X, y, X_test, y_test, n_neighbors, random_state)
        found = _alone(*work)
        if name in BASELINES:
            baselines[name] = found.correct
        marks = {
            against: s_test(found.correct, correct).mark
            for against, correct in baselines.items()
            if against != name and found.correct.shape == correct.shape
        }
        yield Compared(
            name, found.error, marks, found.seconds, found.memory, found.refused, found.correct
        )


def _alone(name: str, *work: Any) -> Compared:
    """Learn in a new process, whose memory is then that of this learner."""
    # Not forked: a child would begin with the memory, and the locks, of this process.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there,))
    with _deaf_to_interrupts():
        process.start()
    there.close()
    try:
        here.send((name, *work))
        found = here.recv()
    except (EOFError, OSError):
        refused = "its process was killed, perhaps for want of memory"
        return Compared(name, np.nan, {}, np.nan, 0, refused)
    finally:
        here.close()
        process.terminate()
        process.join()
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Compared)
    return found


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started within do not hear Ctrl-C, on systems with such signals.

    Ctrl-C goes to every process of a terminal. This one ends the other, which leaves no traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Python's helper of processes starts before: that would make this one listen again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(there: Connection) -> None:
    """What runs in the other process: learn what comes, and send what was found."""
    try:
        found: Compared | Exception = _learn(*there.recv())
    except Exception as error:
        found = error
    # If nobody waits for it any more, it is not missed.
    with suppress(OSError):
        there.send(found)


def _learn(
    name: str,
    params: dict[str, Any],
    X: Matrix,
    y: NDArray[Any],
    X_test: Matrix,
    y_test: NDArray[Any],
    n_neighbors: int,
    random_state: Any,
) -> Compared:
    learner = make_learner(name, params, random_state)
    start = time.perf_counter()
    try:
        reduction = reduction_for(learner, X)
        form = reduction.lift(learner.fit(reduction.rows(X), y).metric_)
        seconds, memory = time.perf_counter() - start, _peak()
        correct = knn_correct(form, X, y, X_test, y_test, n_neighbors)
    except (ValueError, MemoryError) as error:
        spent = time.perf_counter() - start
        return Compared(name, np.nan, {}, spent, _peak(), str(error))
    return Compared(name, float(np.mean(~correct)), {}, seconds, memory, correct=correct)


def _peak() -> int | None:
    """The most bytes this process held at once; None where the system does not tell."""
    try:
        # What getrusage says on Linux includes what the parent held when it started this process.
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
