"""What is known of a run while it goes on: history, callback, and reasons to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from samewise.engine.progress import Progress
from samewise.engine.progress_line import ProgressLine
from samewise.solvers.held_out import EVERY, HeldOut

Callback = Callable[[dict[str, Any]], object] | None


class Task(Protocol):
    """Hears when a run begins, of its iterations, and when it ends."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> None: ...

    def iteration(self) -> bool:
        """An iteration has ended; whether to stop."""


class RunLog:
    """Looks at every iteration: history, callback, a line now and then, and reasons to stop.

    It is used as a context: inside, Ctrl-C only stops the run, and is raised on leaving.

    Parameters
    ----------
    owner : str
        The name of the learner.
    fields : tuple of str
        What an iteration is described by. The last is the held-out error, if there may be one.
    verbose : int or bool
        Whether to say where the run is, see `ProgressLine`.
    callback : callable or None
        Called with a dict; stops the run if it returns true.
    shown : str, default="components"
        The name of what is learned in that dict.
    as_shown : callable, optional
        What the callback gets of what is learned; by default that itself.
    total : int, default=0
        How many iterations there are at most; 0 if that is not known.
    task : Task, optional
        Hears of each iteration as well.

    Attributes
    ----------
    rows : list of tuples
        The fields of each iteration, and the seconds since the start.
    held_out : HeldOut or None
        Looked at every fifth iteration.
    stopped : bool
        Whether the run was stopped from outside or by the held-out error.
    interrupted : bool
        Whether it was stopped from outside.
    """

    def __init__(
        self,
        owner: str,
        fields: tuple[str, ...],
        verbose: int | bool,
        callback: Callback,
        shown: str = "components",
        as_shown: Callable[[Any], Any] | None = None,
        total: int = 0,
        task: Task | None = None,
    ) -> None:
        self.owner, self.fields = owner, (*fields, "seconds")
        self.verbose, self.callback = verbose, callback
        self.shown, self.as_shown = shown, as_shown
        self._progress = Progress(owner, 0, verbose=False)
        self._total, self._task = total, task
        self.begin()

    def begin(self, held_out: HeldOut | None = None) -> None:
        """Forget all iterations: a run from another start."""
        self.rows: list[tuple[float, ...]] = []
        self.held_out = held_out
        self.stopped = self.interrupted = False
        self._start = time.monotonic()
        self._line = ProgressLine(self._total, self._start)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        if self._task is not None:
            self._task.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)
        if self._task is not None:
            self._task.__exit__(*error)

    def look(self, learned: Callable[[], Any], *values: float) -> bool:
        """Take in an iteration; True to stop the run.

        Parameters
        ----------
        learned : callable
            Returns what is learned up to here.
        *values : floats
            The fields, without the held-out error.
        """
        now = time.monotonic()
        held_out = self.held_out
        if len(values) + 2 == len(self.fields):
            error = np.nan
            if held_out is not None and len(self.rows) % EVERY == EVERY - 1:
                error = held_out.look(learned())
                self.stopped |= held_out.enough
            values = (*values, error)
        self.rows.append((*values, now - self._start))
        if self.verbose and self._line.due(now):
            self._line.say(self._state(), len(self.rows))
        if self.callback is not None:
            info: dict[str, Any] = dict(zip(self.fields, self.rows[-1], strict=True))
            present = learned() if self.as_shown is None else self.as_shown(learned())
            info |= {"iteration": len(self.rows), self.shown: present}
            self.interrupted |= bool(self.callback(info))
        if self._task is not None:
            self.interrupted |= self._task.iteration()
        self.interrupted |= self._progress.interrupted
        self.stopped |= self.interrupted
        return self.stopped

    def say(self) -> None:
        """Print where the run has ended."""
        if self.verbose and self.rows:
            self._line.end(self._state(), len(self.rows))

    def _state(self) -> str:
        """Where the run is, in a line."""
        known = zip(self.fields[:-1], self.rows[-1], strict=False)
        parts = ", ".join(_as_text(name, value) for name, value in known if value == value)
        return f"{self.owner}: iteration {len(self.rows):,}, {parts}, {self.rows[-1][-1]:.0f} s"

    @property
    def history(self) -> dict[str, NDArray[np.float64]]:
        """One array for each field, one entry for each iteration."""
        columns = np.array(self.rows).reshape(-1, len(self.fields)).T
        return dict(zip(self.fields, columns, strict=True))


def _as_text(name: str, value: float) -> str:
    """A field and its value; those named n_… are counts."""
    count = name.startswith("n_")
    return f"{name.removeprefix('n_').replace('_', ' ')} {value:{',.0f' if count else '.6g'}}"
