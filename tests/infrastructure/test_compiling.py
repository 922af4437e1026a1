"""Processes that run the tests wait for one another's compiled code."""

from __future__ import annotations

import threading
import time

from numba import njit
from numba.core.dispatcher import Dispatcher

from tests import compiling


def test_a_function_waits_while_another_process_compiles_it(tmp_path, monkeypatch):
    monkeypatch.setattr(Dispatcher, "compile", Dispatcher.compile)
    compiling.compile_once(tmp_path)

    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return 2 * inner(x)

    other = tmp_path / f"{__name__}.outer"
    other.mkdir()
    released = []

    def release():
        time.sleep(0.3)
        released.append(time.monotonic())
        other.rmdir()

    thread = threading.Thread(target=release)
    thread.start()
    assert outer(3) == 8
    assert released and time.monotonic() >= released[0]
    thread.join()
    assert not list(tmp_path.iterdir())


def test_a_lock_left_behind_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(Dispatcher, "compile", Dispatcher.compile)
    monkeypatch.setattr(compiling, "PATIENCE", 0.1)
    compiling.compile_once(tmp_path)

    @njit
    def doubled(x):
        return 2 * x

    (tmp_path / f"{__name__}.doubled").mkdir()
    assert doubled(3) == 6
    assert (tmp_path / f"{__name__}.doubled").exists()
