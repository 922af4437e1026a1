"""The two profiles: a short one that always tries the same, and a long one (`make fuzz`)."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.hostile.outcomes import EXPECTED, FUZZ, counts

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
    "fuzz", settings.get_profile("hostile"), derandomize=False, max_examples=50
)
settings.load_profile("fuzz" if FUZZ else "hostile")


@pytest.fixture(autouse=True)
def _expected_warnings():
    """Whoever hands in such things is warned, and that is right."""
    with warnings.catch_warnings():
        for each in EXPECTED:
            warnings.simplefilter("ignore", each)
        yield


def pytest_runtest_setup(item):
    """A long run ends in time, between two properties."""
    if FUZZ and time.time() > float(Path(FUZZ, "end").read_text()):
        item.session.shouldstop = "the time is over"


def pytest_sessionfinish():
    """Leave the counts of a long run to whoever started it."""
    if FUZZ:
        found = [[*key, number] for key, number in counts.items()]
        Path(FUZZ, "counts").write_text(json.dumps(found))
