"""From the log to the model: what each record does to the adapter.

There is one way, for the running service, for its next start and for the check of a folder, so that
all of them end in the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt import Click, Judged, LiveAdapter, RankedList, Thumb
from samewise.adapt.feedback_events import Event
from samewise.exceptions import InvalidInputError
from samewise.serve.event_store import EventStore, Record
from samewise.serve.learning_curve import LearningCurve
from samewise.serve.model_files import ModelFiles

Vectors = Callable[[Any], Array]
"""The vectors of rows."""


def as_event(record: Record) -> Event:
    """The feedback of a record; its items are rows of the segments."""
    body, query = record.body, record.query
    match body["type"]:
        case "judged":
            return Judged(query, body["rows"], body["y"], body["candidate"])
        case "click":
            return Click(query, body["rows"], np.array(body["clicked"], dtype=np.int64))
        case "ranked":
            return RankedList(query, body["rows"])
    return Thumb(query, body["rows"][0], body["up"], body["rows"][1:])


class RecordReplay:
    """An adapter on its way through the log.

    Parameters
    ----------
    files : ModelFiles
        What records name.
    vectors : callable
        The vectors of rows.
    seq : int, default=0
        The record after which it stands.
    adapter : LiveAdapter, default=None
        The adapter there.
    curve : LearningCurve, default=None
        What was measured until there.
    """

    def __init__(
        self,
        files: ModelFiles,
        vectors: Vectors,
        seq: int = 0,
        adapter: LiveAdapter | None = None,
        curve: LearningCurve | None = None,
    ) -> None:
        self._files, self._vectors = files, vectors
        self.seq, self.n_learned = seq, 0
        self.curve = LearningCurve() if curve is None else curve
        self.adapter: LiveAdapter | None = None
        if adapter is not None:
            self._take(adapter)

    def _take(self, adapter: LiveAdapter) -> None:
        adapter.items = self._vectors
        self.adapter = adapter

    def step(self, record: Record) -> Any:
        """Take the next record; what it returned, for who asked for it.

        What is refused, such as a promotion of a version that is not kept, changes nothing, and is
        refused again in every replay.
        """
        try:
            return self._step(record)
        finally:
            # Last: whoever waits for this number finds the model that follows from it.
            self.seq = record.seq

    def _step(self, record: Record) -> Any:
        if record.kind == "start":
            adapter = self._files.read_named(record.body["model"], LiveAdapter)
            self._take(adapter)
            self.curve = LearningCurve()
            self.curve.begin(adapter)
            return None
        if self.adapter is None:
            return None
        answer = self._moved(self.adapter, record)
        self.curve.follow(record, self.adapter)
        return answer

    def _moved(self, adapter: LiveAdapter, record: Record) -> Any:
        match record.kind:
            case "feedback":
                self.n_learned += 1
                adapter.feedback(as_event(record), weight=record.body["weight"])
            case "promote":
                return adapter.promote(record.body["version"])
            case "rollback":
                return adapter.rollback()
            case "reset":
                adapter.reset()
        return None


def replayed(
    events: EventStore, files: ModelFiles, vectors: Vectors, until: int, snapshots: bool = True
) -> RecordReplay:
    """The model after a record: from the newest good snapshot or start, and what came since."""
    seq, adapter = files.newest(until, events.all_of("forget")) if snapshots else (0, None)
    start = events.newest("start", until)
    if start is not None and start.seq > seq:
        seq, adapter = start.seq - 1, None
    curve = None if adapter is None else files.curve(seq)
    replay = RecordReplay(files, vectors, seq, adapter, curve)
    while replay.seq < until:
        records = [record for record in events.read(replay.seq) if record.seq <= until]
        if not records:
            break
        for record in records:
            try:
                replay.step(record)
            except InvalidInputError:
                # It was refused when it came, too.
                continue
    return replay
