"""A process that is killed after some time, forked from one that has all imported."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Counts:
    """What happened, in the order of the table."""

    trials: int = 0
    amid_work: int = 0
    acknowledged: int = 0
    repeated: int = 0
    lost: int = 0
    differing: int = 0


@dataclass(frozen=True)
class Kind:
    """One kind of work, and its share of all kills."""

    name: str
    share: int
    run: Callable[[Path, int, int], Counts]


def forked(work: Callable[[], None]) -> int:
    """Start some work in a process of its own; its number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of a process; minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(work: Callable[[], None], seconds: float) -> bool:
    """Kill some work after a time; whether that was before its end."""
    child = forked(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    code = ended(child)
    if code > 0:
        raise RuntimeError("The work failed by itself; what it says is above.")
    return code == -signal.SIGKILL


def seconds_of(work: Callable[[], None]) -> float:
    """The time some work takes when nothing disturbs it."""
    start = time.monotonic()
    if ended(forked(work)):
        raise RuntimeError("The work failed by itself; what it says is above.")
    return time.monotonic() - start
