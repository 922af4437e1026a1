"""All that judged lists change: the linear part, the memory, the versions and the guard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.adapt.event_memory import EventMemory
from samewise.adapt.guard import PLACES, Guard
from samewise.adapt.item_units import ItemUnits
from samewise.adapt.linear_part import LinearPart, frozen, matrix_of
from samewise.files.state import Saved, State
from samewise.kernels.adapter_event import REST, embed_rows, hear_list
from samewise.kernels.adapter_loops import Linear, bet_on_wins, on_lines

ALPHA = 2.0
BETA = 14.0
CENTER = 0.95
"""The kernel of the memory: α, and β and c in units of g."""
NEAREST = 32
"""How many of the remembered lists near a query count."""
KEPT = 8
"""Versions that are kept; of those not served the oldest goes first."""
MANY = 32
"""From so many queries on, matrix products are faster than the loop over queries."""


@dataclass(frozen=True, eq=False)
class Version:
    """A frozen copy of the live form.

    Attributes
    ----------
    number : int
        Its number, from 1; 0 is the start.
    event : int
        After how many events it was made.
    """

    number: int
    event: int
    D: Array
    window: tuple[int, int, int]

    @property
    def linear(self) -> Linear:
        """What compiled code takes."""
        return frozen(self.D)

    def __repr__(self) -> str:
        return f"Version(number={self.number}, event={self.event})"


class AdapterCourse:
    """What an adapter has learned, and what of it is served.

    Parameters
    ----------
    units : ItemUnits
    level : float or None
        The guard's; None serves the live form.
    margin : float
        In units of the gap.
    memory : int
        How many events are remembered.
    half_life : float or None
        After how many events what was learned counts half.
    """

    def __init__(
        self,
        units: ItemUnits,
        level: float | None,
        margin: float,
        memory: int,
        half_life: float | None,
    ) -> None:
        self.units = units
        self.linear = LinearPart(units.L.shape[1], units.n_features, margin * units.gap, half_life)
        self.memory = EventMemory(units, memory)
        self.guard = None if level is None else Guard(level)
        self.versions: dict[int, Version] = {}
        self.n_versions = 0
        self.n_events = 0
        self._prepare()

    def _prepare(self) -> None:
        # What the newest list said before it was learned from, of start, served and live: its AUC,
        # and whether the first place is liked.
        self.tested = np.full((3, 2), math.nan)
        self.compiled_units = self.units.compiled
        gap, half_life = self.units.gap, self.linear.half_life
        rate = 0.0 if half_life is None else math.log(2.0) / half_life
        center = self.units.mean_similarity + CENTER * gap
        self.kernel = (ALPHA, BETA / gap, center, rate, NEAREST)
        self._start = frozen(np.empty((0, self.units.n_features), dtype=np.float32))
        self._look()

    def _look(self) -> None:
        """What compiled code takes of what is served; the live form's window is filled in."""
        versions = [self.version(place) for place in PLACES]
        rest, first = (self._start if v is None else v.linear for v in versions)
        self._linears = (self.linear.compiled, rest, first)
        windows = [(0, 0, 0) if version is None else version.window for version in versions]
        self._views = np.array([(0, 0, 0), *windows], dtype=np.int64)
        if versions[0] is versions[1]:
            self._views = self._views[:2].copy()
        guard = Guard(1.0) if self.guard is None else self.guard
        self._bets = (guard.bets, guard.recent, guard.limits(), self.tested)

    def version(self, place: str) -> Version | None:
        """The version that is served there; None is the start."""
        number = 0 if self.guard is None else self.guard.served[place]
        return self.versions[number] if number else None

    # Learning

    def hear(
        self,
        query: Array,
        base: Array,
        shown: Array,
        grades: NDArray[np.int64],
        weight: float,
        tests: tuple[bool, float, int],
    ) -> None:
        """Test, then train: a list that has items of two kinds.

        `tests` says whether it compares the forms, the lead of the live form in an interleaved list
        (0 in others), and the place of its candidate (−1 if there is none).
        """
        views = self._views
        views[0] = self.memory.window
        place = self.memory.next_place()
        due, full = hear_list(
            (query, base),
            shown,
            grades,
            self.compiled_units,
            self._linears,
            (self.memory.compiled, views, self.kernel),
            self._bets,
            (int(tests[0]) * (1 if self.guard is None else 2), *tests[1:]),
            self.linear.lesson(weight),
            place,
        )
        if full:
            self.memory.widen()
        if due and self.guard is not None:
            self._decide(self.guard)

    def hear_lead(self, lead: float) -> None:
        """Bet on an interleaved list from which there is nothing to learn."""
        if self.guard is not None:
            bet_on_wins(self.guard.bets[REST], lead)
            if self.guard.bets[REST, 0] >= self._bets[2][REST]:
                self._decide(self.guard)

    def _decide(self, guard: Guard) -> None:
        for place in PLACES:
            due = guard.due(place)
            if due:
                number = self.freeze() if due == "promote" else 0
                self.serve((place,), number, due)

    def begin(self, D: Array, places: tuple[str, ...]) -> None:
        """Begin at D, before any event, and serve it for some places as version 1."""
        self.linear.begin(D)
        if places and self.guard is not None:
            self.serve(places, self.freeze(), "warm start")

    def freeze(self) -> int:
        """Make a version of the live form; its number. Two at the same event are one."""
        newest = self.versions.get(self.n_versions)
        if newest is None or newest.event != self.n_events:
            self.n_versions += 1
            copy = Version(self.n_versions, self.n_events, self.linear.mean(), self.memory.window)
            self.versions[self.n_versions] = copy
        return self.n_versions

    def serve(self, places: tuple[str, ...], number: int, why: str) -> None:
        """Serve a version that is kept, or 0, the start."""
        assert self.guard is not None
        for place in places:
            self.guard.serve(place, number, self.n_events, why)
        served = {0, *self.guard.served.values()}
        for old in [n for n in self.versions if n not in served and n != number]:
            if len(self.versions) > KEPT:
                del self.versions[old]
        self.memory.hold([version.window[:2] for version in self.versions.values()])
        self._look()

    # Using

    def embed(self, Q: Array, base: Array, linear: Linear, window: tuple[int, int, int]) -> Array:
        """Queries under a form: their base under the start plus what the form adds."""
        out = base.copy()
        learned, remembered = linear[2][0] != 0.0, window[0] < window[1]
        if not learned and not remembered:
            return out
        F = Q[:0]
        if len(Q) >= MANY:
            F = (Q - self.units.mu) @ self.units.L
            if learned:
                out += F @ matrix_of(linear)
                linear = self._start
        view = np.array([window], dtype=np.int64)
        embed_rows(Q, F, self.compiled_units, linear, self.memory.compiled, view, self.kernel, out)
        return out

    def form(self, which: str, place: str) -> tuple[Linear, tuple[int, int, int]]:
        """The linear part and the window of a form: "start", "live" or "served"."""
        if which == "live" or (which == "served" and self.guard is None):
            return self.linear.compiled, self.memory.window
        version = self.version(place) if which == "served" else None
        if version is None:
            return self._start, (0, 0, 0)
        return version.linear, version.window

    # Files

    def state(self) -> State:
        """All that the next event meets."""
        state = State(values={"n_events": self.n_events, "n_versions": self.n_versions})
        state.values["versions"] = list(self.versions)
        state.add("units", self.units.state()).add("linear", self.linear.state())
        state.add("memory", self.memory.state())
        if self.guard is not None:
            state.add("guard", self.guard.state())
        for number, version in self.versions.items():
            values = {"event": version.event, "window": list(version.window)}
            state.add(f"version {number}", State({"D": version.D}, values))
        return state

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The course of that state."""
        course = object.__new__(cls)
        course.units = units = ItemUnits.restore(saved.part("units"))
        r, d = units.L.shape[1], units.n_features
        course.linear = LinearPart.restore(saved.part("linear"), r, d)
        course.memory = EventMemory.restore(saved.part("memory"), units)
        course.guard = Guard.restore(saved.part("guard")) if saved.has("guard") else None
        course.n_events, course.n_versions = saved.count("n_events"), saved.count("n_versions")
        numbers = saved.value("versions")
        right = isinstance(numbers, list) and len(numbers) <= KEPT + len(PLACES)
        saved.check(right, "versions must be numbers")
        course.versions = {}
        for number in numbers:
            right = type(number) is int and 1 <= number <= course.n_versions
            saved.check(right and number not in course.versions, "versions must be numbers")
            course.versions[number] = _restored_version(saved, number, r, d, course.memory.count)
        if course.guard is not None:
            served = course.guard.served.values()
            saved.check(all(n == 0 or n in course.versions for n in served), "a version is missing")
        course.memory.hold([version.window[:2] for version in course.versions.values()])
        course._prepare()
        return course


def _restored_version(saved: Saved, number: int, r: int, d: int, count: int) -> Version:
    part = saved.part(f"version {number}")
    D = part.array("D", r, d, dtypes=["float32"])
    window: Any = part.value("window")
    right = isinstance(window, list) and len(window) == 3 and all(type(n) is int for n in window)
    saved.check(right and 0 <= window[0] <= window[1] <= window[2] <= count, "window is wrong")
    return Version(number, part.count("event"), on_lines(D), (window[0], window[1], window[2]))
