"""What users said themselves, on top of what all have taught.

There is no state of its own: a user's memory follows from the newest lists of this user in the log,
so that a restart has the same bits, and who is forgotten there is forgotten here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from samewise._typing import Array
from samewise.adapt.adapter_course import AdapterCourse
from samewise.adapt.event_reading import ItemStore, read_event
from samewise.adapt.own_memory import OwnMemory
from samewise.serve.event_store import EventStore, UnreachableError
from samewise.serve.feedback_resolving import no_contrast
from samewise.serve.replaying import Vectors, as_event

USERS = 256
"""Users whose memories are kept; the least recently used goes, and is derived again when needed."""


class PersonalMemories:
    """Memories of the users of a collection.

    Parameters
    ----------
    events : EventStore
        The log.
    vectors : callable
        The vectors of rows.
    lists : int
        How many of a user's newest lists count; 0 for none.
    """

    def __init__(self, events: EventStore, vectors: Vectors, lists: int) -> None:
        self._events, self._vectors, self.lists = events, vectors, lists
        self._kept: OrderedDict[str, tuple[tuple[int, ...], OwnMemory]] = OrderedDict()
        self._turn = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def added(self, user: str | None, query: Array, course: AdapterCourse, seq: int) -> Array:
        """What a user's own lists up to a record add to his query; zeros for nobody."""
        if user is None or not self.lists:
            return np.zeros_like(query)
        try:
            memory = self._memory(user, course, seq)
        except UnreachableError:
            # A search is answered also while the log cannot be reached, without own lists.
            return np.zeros_like(query)
        return memory.added(query)

    def _memory(self, user: str, course: AdapterCourse, seq: int) -> OwnMemory:
        began = max(self._newest(kind, seq) for kind in ("start", "reset"))
        newest = self._events.newest_of(user, began, seq, 1)
        # What was said before may be gone, too: then there is a record that says so.
        key = (began, self._newest("forget", seq), newest[0].seq if newest else 0)
        with self._turn:
            kept = self._kept.get(user)
        if kept is None or kept[0] != key:
            kept = key, self._derived(user, course, began, seq)
        with self._turn:
            self._kept[user] = kept
            self._kept.move_to_end(user)
            if len(self._kept) > USERS:
                self._kept.popitem(last=False)
        return kept[1]

    def _newest(self, kind: str, seq: int) -> int:
        found = self._events.newest(kind, seq)
        return 0 if found is None else found.seq

    def _derived(self, user: str, course: AdapterCourse, began: int, seq: int) -> OwnMemory:
        memory = OwnMemory(course, self.lists)
        store = ItemStore(self._vectors, course.units.n_features)
        for record in self._events.newest_of(user, began, seq, self.lists):
            read, weight = read_event(as_event(record), store, no_contrast), record.body["weight"]
            if read.two_kinds and weight:
                memory.hear(read.query, read.vectors, read.grades, weight)
        return memory
