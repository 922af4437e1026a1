"""Who learns and who reads take turns, and a reader waits for one event at most."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock for one thread that learns without a pause and for many that read now and then.

    Without the gate, the learner would take the lock again before a waiting reader wakes up. A
    reader keeps the gate closed until it has the lock, and the learner passes the gate before each
    event.

    Examples
    --------
    >>> turns = Turns()
    >>> with turns.learning():
    ...     pass
    >>> with turns.reading():
    ...     pass
    """

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._lock = threading.Lock()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """The turn of the learner."""
        with self._gate:
            pass
        with self._lock:
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """The turn of a reader."""
        with self._gate:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()
