"""What the filtering experiments have measured so far, kept in files."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments._common import in_processes


def measured(
    out: Path,
    function: Callable[..., Any],
    tasks: Mapping[str, tuple[Any, ...]],
    jobs: int,
    again: Sequence[str] = (),
) -> dict[str, Any]:
    """What `function(*task)` found, for each task by its name; read, where it was finished before.

    A function returns what it found and its CPU seconds, both as plain values: they are kept in
    `records/<name>.json` and `times/<name>.json`. `again` names tasks to do anew.
    """
    if unknown := set(again) - set(tasks):
        raise SystemExit(f"--only knows {', '.join(tasks)}; not {', '.join(sorted(unknown))}.")
    for name in again:
        _path(out, "records", name).unlink(missing_ok=True)
    missing = [
        (out, name, function, task)
        for name, task in tasks.items()
        if not _path(out, "records", name).exists()
    ]
    in_processes(_measure, missing, jobs)
    return {name: json.loads(_path(out, "records", name).read_text()) for name in tasks}


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Add the CPU seconds of what is inside."""
    start = time.process_time()
    yield
    seconds[name] = round(time.process_time() - start, 2)


def _measure(out: Path, name: str, function: Callable[..., Any], task: tuple[Any, ...]) -> None:
    found, seconds = function(*task)
    # The record last and whole: with it the task is finished.
    for kind, values in (("times", seconds), ("records", found)):
        path = _path(out, kind, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        new.replace(path)


def _path(out: Path, kind: str, name: str) -> Path:
    return out / kind / f"{name}.json"
