"""What is seen of a run while it goes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.engine.progress import Progress

__all__ = ["Callback", "Watch"]

Callback = Callable[[dict[str, Any]], object] | None


class Watch:
    """Sees every iteration: history, callback, progress, and reasons to stop.

    Parameters
    ----------
    owner : str
    fields : tuple of str
        What an iteration is described by.
    progress : Progress
        Knows of Ctrl-C.
    verbose : int or bool
        Whether to print a line, at most once a second.
    callback : callable or None
        Called with a dict; stops the run if it returns true.
    shown : str
        What the callback is shown beside the fields.
    """

    def __init__(
        self,
        owner: str,
        fields: tuple[str, ...],
        progress: Progress,
        verbose: int | bool,
        callback: Callback,
        shown: str = "components",
    ) -> None:
        self.shown = shown
        self.owner, self.fields = owner, (*fields, "seconds")
        self.progress, self.verbose, self.callback = progress, verbose, callback
        self.rows: list[tuple[float, ...]] = []
        self.stopped = False
        self._start = self._said = time.monotonic()

    def look(self, learned: Callable[[], Any], *values: float) -> bool:
        """Take in an iteration; True to stop the run."""
        now = time.monotonic()
        self.rows.append((*values, now - self._start))
        if self.verbose and now - self._said >= 1.0:
            self._said = now
            self.say()
        if self.callback is not None:
            info: dict[str, Any] = dict(zip(self.fields, self.rows[-1], strict=True))
            info |= {"iteration": len(self.rows), self.shown: learned()}
            self.stopped |= bool(self.callback(info))
        self.stopped |= self.progress.interrupted
        return self.stopped

    def say(self) -> None:
        """Print where the run is."""
        if self.verbose and self.rows:
            known = zip(self.fields[:-1], self.rows[-1], strict=False)
            told = ", ".join(_told(name, value) for name, value in known if value == value)
            print(
                f"{self.owner}: iteration {len(self.rows):,}, {told}, {self.rows[-1][-1]:.0f} s",
                file=sys.stderr,
            )

    @property
    def history(self) -> dict[str, NDArray[np.float64]]:
        """One array for each field, one entry for each iteration."""
        columns = np.array(self.rows).reshape(-1, len(self.fields)).T
        return dict(zip(self.fields, columns, strict=True))


def _told(name: str, value: float) -> str:
    """A field and its value; those named n_… are counts."""
    count = name.startswith("n_")
    return f"{name.removeprefix('n_').replace('_', ' ')} {value:{',.0f' if count else '.6g'}}"
