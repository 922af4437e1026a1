"""What pytest does for `tools/mutants.py`: it notes how long each test takes, or runs some only.

A plugin (`-p tools.mutant_tests`) that is set by the environment. With MUTANTS_NOTE, the seconds of
all tests that passed are written to that file. With MUTANTS_RUN, the tests in that file are run, in
its order; each process may use MUTANTS_SECONDS. Seconds are those of the processor, and those of
what a test has started count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

MOST_MEMORY = 8 * 2**30
"""An error may make memory grow for ever."""

SECONDS = "seconds of the processor"

_last = [0.0]
_seconds: dict[str, float] = {}
_failed: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Bound memory and time, where that is possible."""
    if "MUTANTS_RUN" in os.environ:
        seconds = int(os.environ["MUTANTS_SECONDS"])
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        except (ImportError, ValueError):
            pass


def _used() -> float:
    """Seconds of the processor that this process and those it has waited for have used."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Measure one stage of a test, from the end of the one before."""
    report = yield
    now = _used()
    report.user_properties.append((SECONDS, now - _last[0]))
    _last[0] = now
    return report


def pytest_runtest_logstart() -> None:
    """Begin to measure a test."""
    _last[0] = _used()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the time of one stage of a test."""
    used = dict(report.user_properties)[SECONDS]
    assert isinstance(used, float)
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + used
    if not report.passed:
        _failed.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[Any]:
    """Write what was noted; with pytest-xdist, only once."""
    result = yield
    if "MUTANTS_NOTE" in os.environ and not hasattr(session.config, "workerinput"):
        passed = {name: s for name, s in _seconds.items() if name not in _failed}
        Path(os.environ["MUTANTS_NOTE"]).write_text(json.dumps(passed), encoding="utf-8")
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave only the tests to run, in their order."""
    if "MUTANTS_RUN" in os.environ:
        names = json.loads(Path(os.environ["MUTANTS_RUN"]).read_text(encoding="utf-8"))
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in names if name in found]
