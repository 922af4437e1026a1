"""A log of events through an adapter, measured before each event is learned from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.adapt.event_lines import EventReader
from samewise.adapt.event_log import Heard
from samewise.adapt.feedback_events import Click, Judged, RankedList, Thumb
from samewise.adapt.live_adapter import LiveAdapter
from samewise.exceptions import InvalidInputError
from samewise.files.json_lines import json_object
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.kernels.adapter_loops import agreement, products
from samewise.scores import SignTest, s_test

KINDS = {Judged: "judged lists", RankedList: "ranked lists", Click: "clicks", Thumb: "thumbs"}
FORMS = ("start", "served", "live")
PORTION, MOST_PORTIONS = 50, 10
"""Lists of a portion to begin with; when there are more than ten, two become one."""
MOST_PROBLEMS = 20
"""Lines that cannot be used and are described; the others are counted."""


class LogReplay(Storable):
    """A replay, which can be kept in a file and gone on with.

    Parameters
    ----------
    adapter : LiveAdapter
        Fitted, with the items of the log as its item store.
    given : dict of str to str
        What the replay depends on, by name.

    Attributes
    ----------
    n_lines : int
        Lines that were read.
    counts : dict of str to int
        Events of each kind, events seen before, and lines that could not be used.
    problems : list of str
        What is wrong with the first of these.
    """

    def __init__(self, adapter: LiveAdapter, given: dict[str, str]) -> None:
        self.adapter, self.given = adapter, given
        self.n_lines = 0
        self.counts = dict.fromkeys((*KINDS.values(), "seen before", "skipped"), 0)
        self.problems: list[str] = []
        self.prefix = hashlib.sha256()
        self._known = ""
        self._size = PORTION
        self._sums = np.zeros((MOST_PORTIONS, 8))
        self._signs = np.zeros((4, 2), dtype=np.int64)

    # Lines

    def skip(self, line: bytes) -> None:
        """A line that was taken before the replay was kept."""
        self.prefix.update(line + b"\n")

    def check_prefix(self) -> None:
        """That the lines that were skipped are those that were taken."""
        if self.prefix.hexdigest() != self._known:
            raise InvalidInputError(
                f"The first {self.n_lines:,} lines of the log are not those that were replayed "
                "before."
            )

    def take(
        self, line: bytes, where: str, reader: EventReader, problem: Callable[[str], None]
    ) -> None:
        """Replay a line; `problem` is called with a sentence if it cannot be used."""
        self.prefix.update(line + b"\n")
        self.n_lines += 1
        if not line.strip():
            return
        try:
            entry = json_object(line, f"{where}:{self.n_lines}")
            self._event(entry, reader)
        except (ValueError, TypeError, OverflowError) as error:
            # Whatever JSON may hold: nothing was changed by an event that is refused.
            text = " ".join(str(error).split())
            at = f"{where}:{self.n_lines}"
            self.counts["skipped"] += 1
            sentence = text if text.startswith(at) else f"{at}: {text}"
            if len(self.problems) < MOST_PROBLEMS:
                self.problems.append(sentence)
            problem(sentence)

    def _event(self, entry: dict[str, Any], reader: EventReader) -> None:
        said = reader.event(entry)
        weight = entry.get("weight", 1.0)
        found = self.adapter._read(said, weight, entry.get("user"), entry.get("event"))
        if found is None:
            self.counts["seen before"] += 1
            return
        heard, vectors = found
        if heard.tested and heard.two_kinds:
            self._measure(heard, vectors)
        self.adapter._take(self.adapter._fitted, heard, vectors)
        self.counts[KINDS[type(said)]] += 1

    # Measures

    def _measure(self, heard: Heard, vectors: Array) -> None:
        """AUC, and whether the first item is liked, under start, served and live."""
        adapter, course = self.adapter, self.adapter._fitted
        query = heard.query[None]
        base = adapter._base(query)
        found: dict[int, tuple[float, float]] = {}
        scores = np.empty(len(vectors), dtype=np.float32)

        def ranked(which: str, place: str = "rest") -> tuple[float, float]:
            linear, window = course.form(which, place)
            # Forms that are one are ranked once.
            if id(linear[0]) not in found:
                products(vectors, course.embed(query, base, linear, window)[0], scores)
                found[id(linear[0])] = agreement(scores, heard.grades, heard.candidate)
            return found[id(linear[0])]

        start, rest, first, live = (
            ranked("start"),
            ranked("served"),
            ranked("served", "first"),
            ranked("live"),
        )
        auc, liked = (start[0], rest[0], live[0]), (start[1], first[1], live[1])
        self._add(auc, liked)

    def _add(self, auc: tuple[float, ...], liked: tuple[float, ...]) -> None:
        full = self._sums[:, 0] >= self._size
        if full.all():
            self._sums[: MOST_PORTIONS // 2] = self._sums.reshape(-1, 2, 8).sum(axis=1)
            self._sums[MOST_PORTIONS // 2 :] = 0.0
            self._size *= 2
            full = self._sums[:, 0] >= self._size
        row = self._sums[int(full.sum())]
        row[0] += 1
        row[5:] += liked
        for k, which in enumerate((1, 2)):
            self._sign(k, 1, liked[which] - liked[0])
        # The candidate alone may be what was liked, or not: then there is no pair.
        if auc[0] == auc[0]:
            row[1] += 1
            row[2:5] += auc
            for k, which in enumerate((1, 2)):
                self._sign(k, 0, auc[which] - auc[0])

    def _sign(self, form: int, measure: int, difference: float) -> None:
        if difference:
            self._signs[2 * form + measure, int(difference < 0)] += 1

    @property
    def portions(self) -> list[dict[str, Any]]:
        """For each portion its lists, and the means of AUC and of first places that are liked."""
        table, last = [], 0
        for row in self._sums[self._sums[:, 0] > 0]:
            n = int(row[0])
            auc = row[2:5] / row[1] if row[1] else np.full(3, np.nan)
            entry: dict[str, Any] = {"first_list": last + 1, "last_list": last + n}
            entry["auc"] = dict(zip(FORMS, map(float, auc), strict=True))
            entry["first_liked"] = dict(zip(FORMS, map(float, row[5:] / n), strict=True))
            table.append(entry)
            last += n
        return table

    def test(self, form: str, measure: str) -> SignTest:
        """The s-test of "served" or "live" against the start, by "auc" or "first_liked"."""
        better, worse = self._signs[2 * FORMS[1:].index(form) + (measure != "auc")]
        wins: NDArray[np.bool_] = np.arange(better + worse) < better
        return s_test(wins, ~wins)

    # Files

    def state(self) -> State:
        """All that the next line meets."""
        values = {
            "n_lines": self.n_lines,
            "given": self.given,
            "counts": self.counts,
            "problems": self.problems,
            "prefix": self.prefix.hexdigest(),
            "size": self._size,
        }
        state = State({"sums": self._sums, "signs": self._signs}, values)
        return state.add("adapter", stored(self.adapter))

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The replay of that state; lines that were taken must be skipped, then checked."""
        adapter = restored(saved.part("adapter"), LiveAdapter)
        given, problems = saved.value("given"), saved.value("problems")
        right = isinstance(given, dict) and all(isinstance(v, str) for v in given.values())
        saved.check(right, "given must be texts")
        right = isinstance(problems, list) and all(isinstance(text, str) for text in problems)
        saved.check(right and len(problems) <= MOST_PROBLEMS, "problems must be texts")
        replay = cls(adapter, given)
        counts = saved.part("counts")
        replay.counts = {name: counts.count(name) for name in replay.counts}
        replay.n_lines, replay.problems = saved.count("n_lines"), problems
        replay._known, replay._size = str(saved.value("prefix")), saved.count("size", least=PORTION)
        replay._sums = saved.array("sums", MOST_PORTIONS, 8, dtypes=["float64"])
        replay._signs = saved.array("signs", 4, 2, dtypes=["int64"])
        return replay
