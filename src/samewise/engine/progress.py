"""Long runs: a line now and then, and Ctrl-C that waits for a sound state."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from samewise._rollback import Interrupted
from samewise.engine.history import History
from samewise.engine.progress_line import ProgressLine


class Progress:
    """Around a run that can be stopped between blocks.

    Inside, Ctrl-C is only noted: `interrupted` becomes true, the run stops after the block it is
    in, and leaving the context raises KeyboardInterrupt with everything learned so far in place.
    """

    def __init__(self, label: str, total: int, verbose: int | bool) -> None:
        self.label, self.total, self.verbose = label, total, verbose
        self.interrupted = False
        self._start = time.monotonic()
        self._line = ProgressLine(total, self._start)
        self._before: Any = None
        self._history: History | None = None
        self._said = -1

    def __enter__(self) -> Progress:
        # Handlers can only be set in the main thread; elsewhere Ctrl-C does not arrive anyway.
        # A handler that was not set from Python (None) could not be put back.
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is not None:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.interrupted = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self._say(time.monotonic())
        self._line.close()
        if self.interrupted and kind is None:
            raise Interrupted(f"{self.label} was interrupted; what it had learned is kept.")

    def report(self, history: History) -> None:
        """Say where the run is, now and then; the last word comes when it ends."""
        self._history = history
        now = time.monotonic()
        if self._line.due(now):
            self._say(now)

    def _say(self, now: float) -> None:
        history = self._history
        if not self.verbose or history is None or history.rounds == self._said:
            return
        self._said = history.rounds
        self._line.say(
            f"{self.label}: {history.rounds:,} examples seen (at most {self.total:,} in this run), "
            f"{history.mistakes:,} mistakes, {history.updates:,} updates, mean loss "
            f"{history.loss / max(history.rounds, 1):.4g}, {now - self._start:.0f} s",
            history.rounds,
        )
