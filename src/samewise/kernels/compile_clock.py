"""When loops are compiled, and how long it takes; to ask takes no numba."""

from __future__ import annotations

import time
from collections.abc import Callable


class CompileClock:
    """Wall time of compiling in this process; a function that another one calls is within it.

    Attributes
    ----------
    seconds : float
        Spent so far. Loading machine code is not compiling.
    announce : callable or None
        Called once, when the next loop is compiled.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.announce: Callable[[], object] | None = None
        self._depth, self._began = 0, 0.0

    def now(self) -> float:
        """Seconds, of which those of compiling do not count: for differences."""
        return time.perf_counter() - self.seconds

    def start(self) -> None:
        """A function is being compiled; numba compiles in one thread at a time."""
        if self._depth == 0:
            self._began = time.perf_counter()
            announce, self.announce = self.announce, None
            if announce is not None:
                announce()
        self._depth += 1

    def end(self) -> None:
        """It is compiled."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began


CLOCK = CompileClock()
"""That of this process."""
