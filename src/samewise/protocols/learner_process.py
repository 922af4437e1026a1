"""Learners in processes of their own: several at a time, each for so long at most."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import numpy as np
from numba import config
from threadpoolctl import threadpool_limits

from samewise.exceptions import InvalidInputError
from samewise.protocols.trials import Trial, try_learner

_PATIENCE = 10
"""Seconds after which a learner that is not done is named."""


@dataclass(frozen=True, eq=False)
class ProcessLimits:
    """What a learner may use, and the processes that run."""

    threads: int | None
    seconds: float | None
    processes: set[SpawnProcess] = field(default_factory=set)

    @classmethod
    def checked(cls, n_jobs: int, seconds: float | None) -> ProcessLimits:
        """The limits of each of so many jobs."""
        if not isinstance(n_jobs, int) or n_jobs < 1:
            raise InvalidInputError(f"n_jobs must be a positive integer. Got {n_jobs!r}.")
        if seconds is not None and not seconds > 0:
            raise InvalidInputError(f"time_limit must be a positive number. Got {seconds!r}.")
        return cls(None if n_jobs == 1 else max(1, (os.cpu_count() or 1) // n_jobs), seconds)


@contextmanager
def side_by_side(n_jobs: int, limits: ProcessLimits) -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for a process each; whoever leaves early ends the processes."""
    pool = ThreadPoolExecutor(n_jobs)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(limits.processes):
            process.terminate()
        pool.shutdown()


def awaited(name: str, future: Future[Trial], watch: Callable[[str], object] | None) -> Trial:
    """What a learner found; every ten seconds `watch` hears that it is not done."""
    for waited in count(_PATIENCE, _PATIENCE):
        try:
            return future.result(timeout=_PATIENCE if watch is not None else None)
        except TimeoutError:
            if future.done():
                raise
            assert watch is not None
            watch(f"{name}: still learning after {waited} s")
    raise AssertionError("Counting never ends.")


def learn_alone(name: str, *work: Any, limits: ProcessLimits) -> Trial:
    """Learn in a new process, whose memory is then that of this learner."""
    # Not forked: a child would begin with the memory, and the locks, of this process.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there,))
    with _deaf_to_interrupts():
        process.start()
    limits.processes.add(process)
    there.close()
    try:
        here.send((limits.threads, name, *work))
        # Its libraries are loaded: what comes now is the work.
        here.recv()
        if not here.poll(limits.seconds):
            refused = f"it was stopped after the time limit of {limits.seconds:g} s"
            return Trial(name, {}, np.nan, np.nan, refused, memory=0)
        found = here.recv()
    except (EOFError, OSError):
        refused = "its process was killed, perhaps for want of memory"
        return Trial(name, {}, np.nan, np.nan, refused, memory=0)
    finally:
        here.close()
        process.terminate()
        process.join()
        limits.processes.discard(process)
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Trial)
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


@contextmanager
def _at_most(threads: int | None) -> Iterator[None]:
    """So many threads for BLAS and for learners; as many as there are for None."""
    if threads is None:
        yield
        return
    settings: Any = config
    settings.NUMBA_NUM_THREADS = min(threads, settings.NUMBA_NUM_THREADS)
    with threadpool_limits(threads):
        yield


def _answer(there: Connection) -> None:
    """What runs in the other process: learn what comes, and send what was found."""
    threads, *work = there.recv()
    there.send(None)
    try:
        with _at_most(threads):
            found: Trial | Exception = try_learner(*work)
    except Exception as error:
        found = error
    # If nobody waits for it any more, it is not missed.
    with suppress(OSError):
        there.send(found)
