"""Modules that load at their first use."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.metrics.pairwise import kernel_metrics

from samewise.cli.app import _COMMANDS
from samewise.forms.kernel_mahalanobis import KERNELS


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_deferred_module_becomes_itself():
    code = """
import sys
from samewise.cli.deferring import defer
defer("scipy.stats")
import scipy.stats
from scipy import stats
print("scipy.stats._stats_py" in sys.modules, hasattr(stats, "__path_like__"))
print(stats.rankdata([3, 1, 2]).tolist() == [3, 1, 2], "scipy.stats._stats_py" in sys.modules)
import scipy.stats.mstats
from scipy.stats import norm
print(scipy.stats is sys.modules["scipy.stats"], type(scipy.stats).__name__, norm.sf(0.0))
"""
    assert printed(code) == ["False", "False", "True", "True", "True", "module", "0.5"]


def test_what_is_loaded_or_missing_is_left_alone():
    code = """
import sys, json.decoder
from samewise.cli.deferring import defer
defer("json.decoder"), defer("json.no_such_module")
print(type(sys.modules["json.decoder"]).__name__, "json.no_such_module" in sys.modules)
"""
    assert printed(code) == ["module", "False"]


HEAVY = {
    "inspect": {"sklearn", "pandas", "numba", "scipy.stats._stats_py"},
    "learners": {"sklearn", "pandas", "numba", "scipy.stats._stats_py"},
    "search": {"numba", "sklearn.metrics", "scipy.stats._stats_py"},
    "transform": {"numba", "sklearn.metrics", "scipy.stats._stats_py"},
    "fit": {
        "samewise.adapt",
        "samewise.filtering",
        "scipy.interpolate",
        "sklearn.feature_extraction",
        "sklearn.metrics",
        "sklearn.linear_model",
        "scipy.stats._stats_py",
    },
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_command_loads_little(name):
    code = f"import sys; from samewise.cli import app; app._loaded({name!r}); print(*sys.modules)"
    assert name in _COMMANDS and not HEAVY[name] & set(printed(code))


def test_the_names_of_kernels_are_those_of_scikit_learn():
    assert list(kernel_metrics()) == list(KERNELS)
