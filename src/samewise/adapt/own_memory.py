"""What one user's newest judged lists add to a query, on top of any form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.adapt.adapter_course import AdapterCourse
from samewise.adapt.event_memory import EventMemory
from samewise.adapt.linear_part import frozen
from samewise.kernels.adapter_event import embed_rows, remember_list


class OwnMemory:
    """The memory of a `LiveAdapter` for the lists of one user.

    It adds 2 Σ K_i v_i / (Σ K_i + 1) over these lists, with the kernel of the adapter; the ages of
    events, for a half-life, are counted in events of this user.

    Parameters
    ----------
    course : AdapterCourse
        Of the adapter: its units and its kernel.
    capacity : int
        How many lists are remembered.
    """

    def __init__(self, course: AdapterCourse, capacity: int) -> None:
        self._units, self._kernel = course.compiled_units, course.kernel
        self._memory = EventMemory(course.units, capacity)
        self._no_linear = frozen(np.empty((0, course.units.n_features), dtype=np.float32))

    def _view(self) -> NDArray[np.int64]:
        return np.array([self._memory.window], dtype=np.int64)

    def hear(self, query: Array, shown: Array, grades: NDArray[np.int64], weight: float) -> None:
        """Remember a list that has items of two kinds."""
        view, place = self._view(), self._memory.next_place()
        # Only now: the arrays may just have grown.
        seen = (self._memory.compiled, view, self._kernel)
        if remember_list(query, shown, grades, self._units, seen, place, weight):
            self._memory.widen()

    def added(self, query: Array) -> Array:
        """What is added to a query."""
        rows, out = query[None], np.zeros((1, len(query)), dtype=np.float32)
        memory, view = self._memory.compiled, self._view()
        embed_rows(rows, rows[:0], self._units, self._no_linear, memory, view, self._kernel, out)
        return out[0]
