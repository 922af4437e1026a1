"""What was measured while a collection learned: each judged list, before it was learned from."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise.adapt import LiveAdapter
from samewise.adapt.event_memory import EventMemory
from samewise.adapt.guard import PLACES
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.serve.event_store import Record

PORTIONS = 240
"""Rows of the curve; when all are full, two become one."""
RECENT = 2000
"""Judged lists whose measures are kept one by one."""
MINUTES = 120
MARKS = 200
"""Minutes of which events are counted, and changes of what is served that are kept."""
COLUMNS = (
    *("lists", "orders"),
    *("auc_start", "auc_served", "auc_live", "first_start", "first_served", "first_live"),
    *("events", "time"),
    *("wealth_rest", "wealth_first", "needed_rest", "needed_first", "fall_rest", "fall_first"),
)
"""Of a portion: lists, those with an order, sums of the measures; and at its end the events so far,
the time, logarithms of the wealth and of what is needed, and of the shares for a fallback."""
_SUMS = 8


class LearningCurve(Storable):
    """Measures of a model on its way through the log, in bounded memory.

    It follows from the log, as the model does: what is forgotten there is not in it.
    """

    def __init__(self) -> None:
        self.n_events = 0
        self._size, self._n = 1, 0
        self._table = np.zeros((PORTIONS, len(COLUMNS)))
        self._recent = np.zeros((RECENT, 4))
        self._n_recent = 0
        self._minutes = np.zeros((MINUTES, 2), dtype=np.int64)
        self.marks: list[dict[str, Any]] = []
        self._n_changes = 0
        self._remembered, self._n_remembered = np.zeros(0, dtype=np.int64), 0

    def begin(self, adapter: LiveAdapter) -> None:
        """Nothing that the adapter remembers already is of this log."""
        self._n_remembered = adapter._fitted.memory.count

    def follow(self, record: Record, adapter: LiveAdapter) -> None:
        """Take a record that the adapter has just taken."""
        course = adapter._fitted
        self._remember(record.seq, course.memory)
        if record.kind == "feedback":
            self.n_events += 1
            self._count(int(record.time // 60))
            tested, liked = course.tested.T
            if not np.isnan(liked[0]):
                self._add(record, adapter, tested, liked)
            course.tested[:] = np.nan
        self._mark(record, adapter)

    def _remember(self, seq: int, memory: EventMemory) -> None:
        """Note which record the newest remembered list is of."""
        n, kept = memory.count, len(self._remembered)
        if n > self._n_remembered:
            if n > kept and kept < memory.capacity:
                longer = min(max(2 * n, 256), memory.capacity)
                self._remembered = np.concatenate(
                    [self._remembered, np.zeros(longer - kept, dtype=np.int64)]
                )
            self._remembered[(n - 1) % memory.capacity] = seq
        elif n < self._n_remembered:
            self._remembered[:] = 0
        self._n_remembered = n

    def record_of(self, number: int, memory: EventMemory) -> int | None:
        """The record of a remembered list; None of one that only older versions see, or that was
        learned elsewhere."""
        first, end, _ = memory.window
        known = first <= number < end and number % memory.capacity < len(self._remembered)
        return int(self._remembered[number % memory.capacity]) or None if known else None

    def _count(self, minute: int) -> None:
        row = self._minutes[minute % MINUTES]
        if row[0] != minute:
            row[:] = minute, 0
        row[1] += 1

    def _add(
        self,
        record: Record,
        adapter: LiveAdapter,
        auc: NDArray[np.float64],
        liked: NDArray[np.float64],
    ) -> None:
        if self._n and self._table[self._n - 1, 0] < self._size:
            row = self._table[self._n - 1]
        else:
            if self._n == PORTIONS:
                self._halve()
            row = self._table[self._n]
            self._n += 1
        row[0] += 1
        row[5:_SUMS] += liked
        if not np.isnan(auc[0]):
            row[1] += 1
            row[2:5] += auc
            self._recent[self._n_recent % RECENT] = record.seq, *auc
            self._n_recent += 1
        guard = adapter._fitted.guard
        assert guard is not None
        ends = [guard.log_wealth(place, True) for place in PLACES]
        ends += [guard.needed(place, True) for place in PLACES]
        ends += [
            guard.log_wealth(place, False) - guard.needed(place, False)
            if guard.served[place]
            else 0
            for place in PLACES
        ]
        row[_SUMS:] = self.n_events, record.time, *ends

    def _halve(self) -> None:
        """Two portions become one: sums are added, and what stood at the end stays."""
        pairs = self._table.reshape(-1, 2, len(COLUMNS))
        half = pairs[:, 1].copy()
        half[:, :_SUMS] += pairs[:, 0, :_SUMS]
        self._table[:] = 0.0
        self._table[: len(half)] = half
        self._n, self._size = len(half), 2 * self._size

    def _mark(self, record: Record, adapter: LiveAdapter) -> None:
        """Note what has changed in what is served."""
        guard = adapter._fitted.guard
        if guard is None:
            return
        if record.kind == "reset":
            self._n_changes = 0
            self._note(record, "both", 0, "reset")
        for change in guard.history[self._n_changes :]:
            self._note(record, change["place"], change["version"], change["why"])
        self._n_changes = len(guard.history)

    def _note(self, record: Record, place: str, version: int, why: str) -> None:
        when = {"seq": record.seq, "events": self.n_events, "time": record.time}
        self.marks = [*self.marks, {**when, "place": place, "version": version, "why": why}]
        del self.marks[:-MARKS]

    # What is shown

    def table(self) -> dict[str, list[float]]:
        """The portions by columns, with means in the place of sums."""
        table = self._table[: self._n]
        found = {name: table[:, k].copy() for k, name in enumerate(COLUMNS)}
        for name in COLUMNS[2:5]:
            found[name] /= np.maximum(found["orders"], 1)
            found[name][found["orders"] == 0] = np.nan
        for name in COLUMNS[5:_SUMS]:
            found[name] /= found["lists"]
        return {name: _plain(column) for name, column in found.items()}

    def per_minute(self, now: float) -> list[int]:
        """Events of the last minutes, the newest last."""
        minute = int(now // 60)
        counts = {int(minute): int(count) for minute, count in self._minutes.tolist()}
        return [int(counts.get(minute - k, 0)) for k in range(MINUTES - 1, -1, -1)]

    def recent(self) -> NDArray[np.float64]:
        """The record, and the AUC under start, served and live, of the newest judged lists."""
        return self._recent[: min(self._n_recent, RECENT)].copy()

    # Files

    def state(self) -> State:
        """All that the next record meets."""
        arrays: dict[str, Any] = {"table": self._table, "recent": self._recent}
        arrays |= {"minutes": self._minutes, "remembered": self._remembered}
        values = {
            "n_events": self.n_events,
            "size": self._size,
            "n": self._n,
            "n_recent": self._n_recent,
            "marks": self.marks,
            "n_changes": self._n_changes,
            "n_remembered": self._n_remembered,
        }
        return State(arrays, values)

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The curve of that state.

        Parameters
        ----------
        saved : Saved
            The state, read from a file.

        Returns
        -------
        LearningCurve
            The restored object.
        """
        curve = cls()
        curve.n_events, curve._size = saved.count("n_events"), saved.count("size", least=1)
        curve._n = saved.count("n", most=PORTIONS)
        curve._n_recent, curve._n_changes = saved.count("n_recent"), saved.count("n_changes")
        curve._table = saved.array("table", PORTIONS, len(COLUMNS), dtypes=["float64"])
        curve._recent = saved.array("recent", RECENT, 4, dtypes=["float64"])
        curve._minutes = saved.array("minutes", MINUTES, 2, dtypes=["int64"])
        # Earlier files do not say which records are remembered.
        if saved.has("remembered"):
            remembered = saved.array("remembered", None, dtypes=["int64"], empty=True)
            curve._remembered, curve._n_remembered = remembered, saved.count("n_remembered")
        marks = saved.value("marks")
        right = isinstance(marks, list) and all(isinstance(mark, dict) for mark in marks)
        saved.check(right and len(marks) <= MARKS, "marks must be changes of what is served")
        curve.marks = marks
        return curve


def _plain(column: NDArray[np.float64]) -> list[Any]:
    """Numbers as JSON has them; None where there is none."""
    rounded = [round(float(value), 5) for value in column]
    return [value if value == value else None for value in rounded]
