"""One thread that writes: what many requests bring meanwhile is committed together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from samewise.exceptions import SamewiseError

MOST_TOGETHER = 256
"""Jobs of one transaction."""
MOST_WAITING = 4096
"""Jobs that may wait; beyond this, requests are refused."""


class BusyError(SamewiseError):
    """More was sent than can be written; try again later."""


@dataclass(eq=False)
class _Waiting:
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class GroupCommit:
    """The writer of a collection.

    Parameters
    ----------
    transaction : callable
        Returns a context in which jobs run; it commits when it is left.
    part : callable
        Returns a context around each job; it takes back a job that raises an error.
    after : callable
        Called after each commit, before anybody hears of it.
    """

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[None]],
        part: Callable[[], AbstractContextManager[None]],
        after: Callable[[], None],
    ) -> None:
        self._transaction, self._part, self._after = transaction, part, after
        self._jobs: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="samewise-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Run a job in the next transaction; its result is there after the commit."""
        job = _Waiting(work)
        with self._closing:
            if self._closed:
                raise BusyError("The collection is being closed; try again later.")
            if self._jobs.qsize() >= MOST_WAITING:
                raise BusyError("Too much is waiting to be written; try again later.")
            # Who does not wait any more takes nothing back.
            job.future.set_running_or_notify_cancel()
            self._jobs.put(job)
        return job.future

    def do(self, work: Callable[[], Any]) -> Any:
        """Run a job and wait for the commit; its result, or the error it raised."""
        return self.submit(work).result()

    def close(self) -> None:
        """Commit what is waiting, and end."""
        with self._closing:
            closed, self._closed = self._closed, True
        if not closed:
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        for jobs in self._groups():
            answers: list[tuple[_Waiting, Any, BaseException | None]] = []
            try:
                with self._transaction():
                    for job in jobs:
                        answers.append((job, *self._answer(job)))
                self._after()
            except BaseException as error:
                # The commit failed: nothing of the group was written.
                answers = [(job, None, error) for job in jobs]
            for job, result, refused in answers:
                if refused is None:
                    job.future.set_result(result)
                else:
                    job.future.set_exception(refused)

    def _answer(self, job: _Waiting) -> tuple[Any, BaseException | None]:
        try:
            with self._part():
                return job.work(), None
        except Exception as error:
            return None, error

    def _groups(self) -> Iterator[list[_Waiting]]:
        while (first := self._jobs.get()) is not None:
            jobs, ends = [first], False
            while len(jobs) < MOST_TOGETHER:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    ends = True
                    break
                jobs.append(job)
            yield jobs
            if ends:
                return
