"""What warm_up compiles, and where that is kept."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import samewise
from samewise import LMNN, OASIS, LiveAdapter, Pairs, PassiveAggressive, kernels
from samewise.kernels.compile_clock import CLOCK, CompileClock
from samewise.kernels.compiling import code_directory

NOT_COMPILED = {"_move_by_mistake"}
"""For steps of a learner that nobody but a test sets."""


@pytest.fixture(scope="module")
def warm():
    seen = []
    assert samewise.warm_up(seen.append) >= 0.0
    return seen


def test_all_loops_are_compiled(warm):
    folder = code_directory()
    kept = {path.name.rsplit("-", 1)[0] for path in folder.rglob("*.nbi")}
    for found in pkgutil.iter_modules(kernels.__path__):
        module = importlib.import_module(f"samewise.kernels.{found.name}")
        for name, value in vars(module).items():
            inner = isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__
            if inner and name not in NOT_COMPILED and value.targetoptions.get("inline") is None:
                assert f"{found.name}.{name}" in kept
    assert "LiveAdapter" in warm and "LMNN" in warm


def test_afterwards_a_first_update_compiles_nothing(warm, labeled):
    rng = np.random.default_rng(5)
    items = rng.normal(size=(700, 24)).astype(np.float32)
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    before = CLOCK.seconds
    adapter = LiveAdapter(items=items, random_state=1).fit(items)
    adapter.feedback(items[3], adapter.rank(items[3], k=10), [1, 1] + [-1] * 8)
    X, y = (part.copy() for part in labeled)
    LMNN().fit(X, y)
    PassiveAggressive().fit(Pairs.from_labels(X, y, n_pairs=100, random_state=1))
    OASIS().fit(X.astype(np.float32), y)
    assert CLOCK.seconds == before


def test_the_folder_is_named_by_what_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    code_directory.cache_clear()
    try:
        folder = code_directory()
    finally:
        code_directory.cache_clear()
    assert folder.parent == tmp_path / "compiled"
    assert folder.name.startswith(f"{samewise.__version__}-")


CHANGED = """
from samewise.kernels.compiling import code_directory
from samewise.kernels.steps import step_size
print(step_size(1.0, 1.0, 1.0, (0.5, 0.0, False, 0.0)), code_directory().name)
"""


def test_code_of_a_changed_callee_is_compiled_anew(tmp_path):
    """numba looks only at the file of the function itself."""
    package = Path(samewise.__file__).parent
    copy = tmp_path / "src" / "samewise"
    (copy / "kernels").mkdir(parents=True)
    for name in ("__init__.py", "catalog.py", "_typing.py"):
        (copy / name).write_bytes((package / name).read_bytes())
    for name in ("__init__", "steps", "compiling", "compile_clock"):
        path = Path("kernels", f"{name}.py")
        (copy / path).write_bytes((package / path).read_bytes())
    caller = copy / "kernels" / "steps.py"
    called = copy / "kernels" / "called.py"
    called.write_text(
        "from samewise.kernels.compiling import compiled\n\n\n"
        "@compiled\ndef half(x):\n    return x / 2\n"
    )
    text = caller.read_text().replace("return tau if", "return half(tau) if")
    imported = "from samewise.kernels.called import half\nfrom samewise.kernels.compiling"
    caller.write_text(text.replace("from samewise.kernels.compiling", imported))
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "code"), "PYTHONPATH": str(copy.parent)}

    def run():
        command = [sys.executable, "-c", CHANGED]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    value, first = run().split()
    assert value == "0.25"
    called.write_text(called.read_text().replace("x / 2", "x / 4"))
    value, second = run().split()
    assert value == "0.125" and second != first


def test_a_clock_announces_once_and_counts_the_outermost():
    clock, said = CompileClock(), []
    clock.announce = lambda: said.append("compiling")
    began = clock.now()
    clock.start()
    clock.start()
    clock.end()
    assert clock.seconds == 0.0
    clock.end()
    clock.start()
    clock.end()
    assert said == ["compiling"] and clock.seconds > 0.0
    assert clock.now() >= began - 1e-3
