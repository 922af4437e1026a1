"""What pytest does for `tools/mutants.py`: it notes how long each test takes, or runs some only.

A plugin (`-p tools.mutant_tests`) that is set by the environment. With MUTANTS_NOTE, the seconds of
all tests that passed are written to that file. With MUTANTS_RUN, the tests in that file are run, in
its order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MOST_MEMORY = 8 * 2**30
"""An error may make memory grow for ever."""

_seconds: dict[str, float] = {}
_failed: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Bound the memory, where that is possible."""
    if "MUTANTS_RUN" in os.environ:
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        except (ImportError, ValueError):
            pass


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the time of one stage of a test."""
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
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
