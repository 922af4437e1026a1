"""Compiled code shared by the processes that run the tests."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

PATIENCE = 120.0


def compile_once(folder: Path) -> None:
    """Let no two processes with the same `folder` compile the same function at the same time.

    numba looks into its cache before it compiles and writes to it afterwards: whoever waited for
    another process finds there what that process has compiled.
    """
    compile_or_load = Dispatcher.compile
    mine: set[str] = set()

    def alone(self, signature):
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        with global_compiler_lock:
            if name in mine:
                return compile_or_load(self, signature)
            with _lock(folder / name):
                mine.add(name)
                try:
                    return compile_or_load(self, signature)
                finally:
                    mine.remove(name)

    folder.mkdir(exist_ok=True)
    Dispatcher.compile = alone


@contextlib.contextmanager
def _lock(path: Path):
    """A folder that only one process can make; one left behind is respected for a while only."""
    end = time.monotonic() + PATIENCE
    made = False
    while not made and time.monotonic() < end:
        try:
            path.mkdir()
            made = True
        except FileExistsError:
            time.sleep(0.02)
    try:
        yield
    finally:
        if made:
            path.rmdir()
