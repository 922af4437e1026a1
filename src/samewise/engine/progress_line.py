"""What a long run says of itself: a bar that is drawn anew, or a line now and then."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

BAR = 24
"""Characters of the bar."""

EVERY, EVERY_LIVE = 1.0, 0.2
"""Seconds between two lines, and between two states of a bar."""


class ProgressLine:
    """Says where a run is, on standard error.

    In a terminal or a notebook it is one line with a bar, which is written over; elsewhere, as in a
    file or a pipe, a line of its own, at most once a second.

    Parameters
    ----------
    total : int
        How many steps the run has at most; 0 if that is not known.
    start : float
        The time at the beginning, on the caller's clock, in seconds.
    stream : file, optional
        By default standard error.

    Examples
    --------
    >>> import sys
    >>> ProgressLine(10, 0.0, sys.stdout).end("done: 10 steps", 10)
    done: 10 steps
    """

    def __init__(self, total: int, start: float, stream: TextIO | None = None) -> None:
        self.total = total
        self._stream = sys.stderr if stream is None else stream
        self.live = is_live(self._stream)
        self._last = start
        self._width = 0

    def due(self, now: float) -> bool:
        """Whether enough time has passed since this was last true; then it begins anew."""
        if now - self._last < (EVERY_LIVE if self.live else EVERY):
            return False
        self._last = now
        return True

    def say(self, text: str, done: int) -> None:
        """Say where the run is now."""
        if not self.live:
            print(text, file=self._stream)
            return
        shown = f"{self._bar(done)}{text}"[: shutil.get_terminal_size().columns - 1]
        # Spaces cover what was longer before; not every notebook knows a sign for that.
        self._stream.write("\r" + shown.ljust(self._width))
        self._stream.flush()
        self._width = len(shown)

    def end(self, text: str, done: int) -> None:
        """Say where the run ended, and leave the line."""
        self.say(text, done)
        self.close()

    def close(self) -> None:
        """Leave the line, if it is written over."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def _bar(self, done: int) -> str:
        if not self.total:
            return ""
        filled = BAR * min(done, self.total) // self.total
        return "█" * filled + "░" * (BAR - filled) + " "


def is_live(stream: TextIO) -> bool:
    """Whether what is written can be written over: a terminal, or the output of a notebook."""
    notebook = type(stream).__module__.startswith("ipykernel")
    return notebook or bool(getattr(stream, "isatty", lambda: False)())
