"""The thread that learns: it follows the log, one record after the other, and writes snapshots."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from typing import Any

from samewise.adapt import LiveAdapter
from samewise.exceptions import InvalidInputError, SamewiseError
from samewise.serve.event_store import EventStore, Record, UnreachableError
from samewise.serve.learning_curve import LearningCurve
from samewise.serve.model_files import ModelFiles
from samewise.serve.replaying import Vectors, replayed
from samewise.serve.turns import Turns

SNAPSHOT_EVERY = 5000
"""Lessons between snapshots."""
_READ = 256
_PAUSE = 1.0
_LOG = logging.getLogger("samewise.serve")


class StoppedError(SamewiseError):
    """Learning has stopped; the service must be started again."""


class Learning:
    """The learner of a collection.

    Parameters
    ----------
    events : EventStore
        The log.
    files : ModelFiles
        Where snapshots go.
    vectors : callable
        The vectors of rows.
    snapshot_every : int, default=SNAPSHOT_EVERY
        Lessons between snapshots.
    writes : bool, default=True
        Whether it writes snapshots, or only follows what another process writes.
    """

    def __init__(
        self,
        events: EventStore,
        files: ModelFiles,
        vectors: Vectors,
        snapshot_every: int = SNAPSHOT_EVERY,
        writes: bool = True,
    ) -> None:
        self._writes = writes
        self._events, self._files, self._vectors = events, files, vectors
        self._every = snapshot_every
        self.turns = Turns()
        self._replay = replayed(events, files, vectors, events.last())
        # Lessons since the newest snapshot, also those that were replayed just now.
        self._saved_at = 0
        self._awaited: dict[int, Future[Any]] = {}
        self._changed = threading.Condition()
        self._committed = self._replay.seq
        self._ends = False
        self.failed: str | None = None
        self._thread = threading.Thread(target=self._run, name="samewise-learner", daemon=True)
        self._thread.start()

    @property
    def seq(self) -> int:
        """The record up to which it has learned."""
        return self._replay.seq

    @property
    def lag(self) -> int:
        """How many committed records wait to be learned from."""
        return max(self._committed - self._replay.seq, 0)

    @property
    def adapter(self) -> LiveAdapter | None:
        """The adapter; to be used in a turn of reading."""
        return self._replay.adapter

    @property
    def curve(self) -> LearningCurve:
        """What was measured; to be used in a turn of reading."""
        return self._replay.curve

    def awaited(self, seq: int) -> Future[Any]:
        """What the record of this number will return; asked for before it is committed."""
        self._awaited[seq] = Future()
        return self._awaited[seq]

    def committed(self, seq: int) -> None:
        """There are records up to this number."""
        with self._changed:
            self._committed = max(self._committed, seq)
            self._changed.notify_all()

    def wait(self, seq: int, seconds: float) -> bool:
        """Wait until it has learned from a record; whether it has."""
        with self._changed:
            self._changed.wait_for(lambda: self.seq >= seq or self.failed is not None, seconds)
            return self.seq >= seq

    def close(self) -> None:
        """Finish the record at hand, write a snapshot, and end."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join()
        if self.failed is None and self._replay.n_learned > self._saved_at:
            self._snapshot()

    # The thread

    def _run(self) -> None:
        try:
            while self._wait_for_more():
                for record in self._next():
                    if self._ends:
                        break
                    self._follow(record)
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop; whoever waits hears why."""
        _LOG.error("learning stopped", exc_info=error)
        with self._changed:
            self.failed = f"{type(error).__name__}: {error}"
            self._ends = True
            self._changed.notify_all()
        for future in list(self._awaited.values()):
            future.set_exception(StoppedError(f"Learning has stopped: {self.failed}."))

    def _next(self) -> list[Record]:
        """The records to learn from; none, after a while, where the log cannot be reached."""
        try:
            found = self._events.read(self._replay.seq, _READ)
            # Those after may name items that readers do not find yet.
            return [record for record in found if record.seq <= self._committed]
        except UnreachableError:
            _LOG.warning("the log cannot be reached; learning waits")
            time.sleep(_PAUSE)
            return []

    def _wait_for_more(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._ends or self._committed > self._replay.seq)
            return not self._ends

    def _follow(self, record: Record) -> None:
        answer, refused = None, None
        try:
            if record.kind == "forget" and record.body["first"]:
                self._forget(record)
            else:
                with self.turns.learning():
                    answer = self._replay.step(record)
        except InvalidInputError as error:
            refused = error
        if self._replay.n_learned - self._saved_at >= self._every:
            self._snapshot()
        with self._changed:
            self._changed.notify_all()
        future = self._awaited.pop(record.seq, None)
        if future is not None and refused is not None:
            future.set_exception(refused)
        elif future is not None:
            future.set_result(answer)

    def _forget(self, record: Record) -> None:
        """Build the model again from what is left; until then readers have the old one."""
        if self._writes:
            self._files.drop_unsound(self._events.last(), self._events.all_of("forget"))
        replay = replayed(self._events, self._files, self._vectors, record.seq)
        replay.seq = record.seq
        if replay.adapter is not None and self._writes:
            self._files.write_snapshot(replay.seq, replay.adapter, replay.curve)
        with self.turns.learning():
            self._replay, self._saved_at = replay, replay.n_learned

    def _snapshot(self) -> None:
        replay = self._replay
        if replay.adapter is not None and self._writes:
            self._files.write_snapshot(replay.seq, replay.adapter, replay.curve)
        self._saved_at = self._replay.n_learned
