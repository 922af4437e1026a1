"""Which files of the package a call passes before the first number moves: `python -m tools.walk`.

A walk is traced with `sys.setprofile`: every Python function of samewise that is entered, in order,
from the call a user makes until the loop where the work begins. Comprehensions, lambdas and lengths
do not count, nor do functions that dataclasses write. Each call is made once before, untraced, so
that what is imported or compiled at first use is not part of it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import samewise

PACKAGE = Path(samewise.__file__).parent
NOT_CALLS = (
    "<genexpr>",
    "<listcomp>",
    "<dictcomp>",
    "<setcomp>",
    "<lambda>",
    "<module>",
    "__len__",
)


class _Arrived(BaseException):
    """The work begins. No Exception: the commands make a sentence of those."""


def traced(run: Callable[[], Any], ends: str) -> tuple[list[str], list[str]]:
    """Files and calls, in order, until `ends` (``file.py:function``) is entered."""
    calls: list[str] = []
    entered: set[FrameType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        name = frame.f_code.co_name
        if event != "call" or PACKAGE not in path.parents or name in NOT_CALLS:
            return
        if frame in entered:
            # A generator that goes on.
            return
        entered.add(frame)
        place = f"{path.relative_to(PACKAGE).as_posix()}:{name}"
        if place.endswith(ends):
            sys.setprofile(None)
            raise _Arrived
        calls.append(place)

    run()
    sys.setprofile(note)
    try:
        run()
    except _Arrived:
        pass
    else:
        raise RuntimeError(f"the walk never came to {ends}")
    finally:
        sys.setprofile(None)
    return list(dict.fromkeys(place.split(":")[0] for place in calls)), calls


def walk(kind: str = "pairs") -> tuple[list[str], list[str]]:
    """Files and calls of one of the `WALKS`."""
    with tempfile.TemporaryDirectory() as folder:
        run, ends = WALKS[kind](Path(folder))
        return traced(run, ends)


def _examples() -> tuple[Any, Any]:
    y = np.repeat([0, 1], 20)
    return np.random.RandomState(0).normal(size=(40, 3)) + y[:, None], y


def _pairs(folder: Path) -> tuple[Callable[[], Any], str]:
    X, y = _examples()
    pairs = samewise.Pairs.from_labels(X, y, 100, random_state=0)
    return lambda: samewise.PassiveAggressive().fit(pairs), "engine/online.py:run"


def _labels(folder: Path) -> tuple[Callable[[], Any], str]:
    X, y = _examples()
    return lambda: samewise.LMNN().fit(X, y), "solvers/lbfgs.py:step"


def _triplets(folder: Path) -> tuple[Callable[[], Any], str]:
    X, y = _examples()
    triplets = samewise.Triplets.from_labels(X, y, 100, random_state=0)
    return lambda: samewise.OASIS().fit(triplets), "engine/online.py:run"


def _table(folder: Path) -> tuple[Callable[[], Any], str]:
    from typer.testing import CliRunner

    from samewise.cli.app import app

    X, y = _examples()
    rows = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, y, strict=True)]
    table = folder / "table.csv"
    table.write_text("\n".join(["a,b,c,class", *rows]) + "\n", encoding="utf-8")
    words = ["fit", str(table), "--label", "class", "--learner", "lda"]

    def run() -> None:
        CliRunner().invoke(app, [*words, "--out", str(folder / "table.sw")])

    return run, "classical.py:fit"


def _document(folder: Path) -> tuple[Callable[[], Any], str]:
    filter = samewise.TopicFilter().fit({"cocoa": "cocoa beans", "gold": "gold mine"})
    return lambda: filter.observe("a harvest of cocoa beans"), "adaptive_filter.py:_go_through"


WALKS: dict[str, Callable[[Path], tuple[Callable[[], Any], str]]] = {
    "pairs": _pairs,
    "labels": _labels,
    "triplets": _triplets,
    "table": _table,
    "document": _document,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or WALKS:
        files, calls = walk(name)
        print(f"{name}: {len(files)} files, {len(calls)} calls")
        for file in files:
            print(f"    {file}")
