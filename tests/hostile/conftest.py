"""The two profiles: a short one that always tries the same, and a long one (`make fuzz`)."""

from __future__ import annotations

import json
import random
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.hostile.outcomes import EXPECTED, FUZZ, counts

MEMORY = 8 * 2**30

settings.register_profile(
    "hostile",
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=8,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "fuzz", settings.get_profile("hostile"), derandomize=False, max_examples=25
)
settings.load_profile("fuzz" if FUZZ else "hostile")


@pytest.fixture(autouse=True)
def _expected_warnings():
    """Whoever hands in such things is warned, and that is right."""
    with warnings.catch_warnings():
        for each in EXPECTED:
            warnings.simplefilter("ignore", each)
        yield


# What follows serves `tests.hostile.fuzz`.

failed: dict[str, str] = {}


def pytest_configure(config):
    """Hold a long run to some memory: what allocates without bound shall fail, not swap."""
    if FUZZ and find_spec("resource"):
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def pytest_collection_modifyitems(config, items):
    """Another order for each seed, so that a short run reaches every property at times."""
    if FUZZ:
        random.Random(config.getoption("--hypothesis-seed")).shuffle(items)


def pytest_runtest_logreport(report):
    """Keep what failed and the counts, whatever happens later."""
    if FUZZ and report.failed:
        failed[report.nodeid.split("::")[-1]] = report.longreprtext
    if FUZZ and report.when == "teardown":
        found = [[*key, number] for key, number in counts.items()]
        Path(FUZZ, "counts").write_text(json.dumps(found))


def pytest_runtest_setup(item):
    """End in time, between two properties."""
    if FUZZ and time.time() > float(Path(FUZZ, "end").read_text()):
        item.session.shouldstop = "the time is over"
        pytest.skip("the time is over")


def pytest_sessionfinish():
    """Say that the end was reached, and what failed."""
    if FUZZ:
        Path(FUZZ, "ended").write_text(json.dumps(failed))
