"""Remembered events, and the kernel regression on the ones near a query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.adapt.item_units import ItemUnits
from samewise.files.state import Saved, State
from samewise.kernels.adapter_event import fill_cells, no_sketches
from samewise.kernels.event_cells import ENDED, NEVER, seen_by_none, take_out

HEAVIEST = 1e6
"""The largest weight of an event."""
ROOM = 256
WIDTH = 16
"""Slots, and slots in a cell, to begin with; they double."""


class EventMemory:
    """Judged lists that are remembered: queries q_i and which way the liked items lie, v_i.

    Events are numbered. The live form sees the newest `capacity` of them; a version sees those that
    were remembered when it was made, for as long as it is kept. An event that a later one
    contradicts is no longer seen by the live form; a version made before goes on seeing it.

    Parameters
    ----------
    units : ItemUnits
    capacity : int
        How many events the live form sees.
    """

    def __init__(self, units: ItemUnits, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        self._width = units.n_features
        n = len(units.pivots)
        self._members, self._counts = np.zeros((n, WIDTH), np.int32), np.zeros(n, np.int64)
        self._n_slots = 0
        self._free: list[int] = []
        self._held: list[tuple[int, int]] = []
        self._ring = np.full(capacity, -1, dtype=np.int64)
        self._allocate(min(ROOM, capacity) if capacity else 1)

    def _allocate(self, room: int) -> None:
        self._of_slot = np.full(room, -1, dtype=np.int64)
        # A query and its direction together: who needs the one needs the other.
        vectors = np.empty((room, 2, self._width), dtype=np.float32)
        self._events: Any = vectors, np.zeros(room, dtype=np.int64), np.zeros(room)
        self._sketches: Any = no_sketches(room)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy: the three views of sketches are to share their memory again."""
        self.__dict__.update(state)
        codes = self._sketches[0]
        self._sketches = no_sketches(len(codes))
        self._sketches[0][:] = codes

    @property
    def compiled(self) -> Any:
        """What compiled code takes."""
        return (self._members, self._counts, self._of_slot), self._events, self._sketches

    @property
    def events(self) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.float64]]:
        """Queries, directions, numbers and weights of all slots."""
        vectors, numbers, weights = self._events
        return vectors[:, 0], vectors[:, 1], numbers, weights

    def used_slots(self) -> NDArray[np.int64]:
        """The slots that hold events."""
        return np.flatnonzero(self._of_slot[: self._n_slots] >= 0)

    @property
    def window(self) -> tuple[int, int, int]:
        """What the live form sees: the first number, the one after the last, and now."""
        return max(self.count - self.capacity, 0), self.count, self.count

    def next_place(self) -> tuple[int, int]:
        """The slot for the next event, and its number; a slot of −1 if nothing is remembered.

        Until it is written, the slot may hold the event that leaves.
        """
        if self.capacity == 0:
            return -1, 0
        slot, number = self._slot(), self.count
        self._ring[number % self.capacity] = slot
        self.count += 1
        return slot, number

    def _slot(self) -> int:
        """A slot for the next event: that of the event which leaves, if no version sees it."""
        leaving = self.count - self.capacity
        if leaving >= 0 and not any(first <= leaving < last for first, last in self._held):
            return int(self._ring[self.count % self.capacity])
        if self._free:
            return self._free.pop()
        if self._n_slots == len(self._of_slot):
            self._grow()
        self._n_slots += 1
        return self._n_slots - 1

    def _grow(self) -> None:
        old = (self._of_slot, *self._events, self._sketches[0])
        n = self._n_slots
        # Beyond what the live form sees are only events that versions keep.
        self._allocate(self.capacity if n < self.capacity < 2 * n else 2 * n)
        grown = (self._of_slot, *self._events, self._sketches[0])
        for new, values in zip(grown, old, strict=True):
            new[:n] = values

    def widen(self) -> None:
        """Make room in the cells."""
        self._members = np.concatenate([self._members, np.zeros_like(self._members)], axis=1)

    def hold(self, windows: list[tuple[int, int]]) -> None:
        """Keep what these windows (first number, number after the last) see; free the rest."""
        self._held = windows
        views = np.array([self.window[:2], *windows], dtype=np.int64)
        unseen = seen_by_none(self._events[1], self._of_slot, views, self._n_slots)
        for slot in np.flatnonzero(unseen)[::-1].tolist():
            take_out(self.compiled[0], slot)
            self._free.append(slot)

    def state(self) -> State:
        """Events in the order of their numbers."""
        used = self.used_slots()
        order = used[np.argsort(self._events[1][used], kind="stable")]
        vectors, numbers, weights = (part[order] for part in self._events)
        arrays = {
            "queries": vectors[:, 0],
            "directions": vectors[:, 1],
            "numbers": numbers,
            "weights": weights,
            "cells": self._of_slot[order],
            "ended": self._sketches[2][order, ENDED],
        }
        return State(arrays, {"count": self.count, "capacity": self.capacity})

    @classmethod
    def restore(cls, saved: Saved, units: ItemUnits) -> Self:
        """The memory of that state; slots are those of the order of the numbers."""
        memory = cls(units, saved.count("capacity"))
        memory.count = saved.count("count")
        d = units.n_features
        numbers = saved.array("numbers", None, dtypes=["int64"], empty=True)
        n = len(numbers)
        float32: Any = {"dtypes": ["float32"], "empty": True}
        queries = saved.array("queries", n, d, **float32)
        directions = saved.array("directions", n, d, **float32)
        weights = saved.array("weights", n, dtypes=["float64"], empty=True)
        cells = saved.array("cells", n, dtypes=["int64"], empty=True)
        first = memory.window[0]
        live = numbers[numbers >= first]
        right = (
            bool((np.diff(numbers) > 0).all() and (weights > 0).all())
            and weights.max(initial=0.0) <= HEAVIEST
            and np.array_equal(live, np.arange(first, memory.count))
            and (
                n == 0
                or (numbers[0] >= 0 and 0 <= cells.min() <= cells.max() < len(memory._counts))
            )
        )
        saved.check(right, "numbers, weights and cells do not make a memory of events")
        memory._n_slots = n
        memory._allocate(max(n, len(memory._of_slot)))
        vectors, all_numbers, all_weights = memory._events
        vectors[:n, 0], vectors[:n, 1] = queries, directions
        all_numbers[:n], all_weights[:n] = numbers, weights
        while np.bincount(cells, minlength=1).max() >= memory._members.shape[1]:
            memory.widen()
        fill_cells(memory.compiled, cells, units.compiled)
        # Earlier files are without contradictions.
        if saved.has("ended"):
            ended = saved.array("ended", n, dtypes=["int64"], empty=True)
            right = (ended == NEVER) | ((ended > numbers) & (ended < memory.count))
            saved.check(bool(right.all()), "ended must be numbers of later events")
            memory._sketches[2][:n, ENDED] = ended
        seen = np.flatnonzero(numbers >= first)
        if len(seen):
            memory._ring[numbers[seen] % memory.capacity] = seen
        return memory
