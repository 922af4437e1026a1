"""Shared fixtures: any seed, and small data that no test can change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Pairs
from tests.compiling import compile_once
from tests.pairwise import SEEDS


def pytest_configure(config):
    """With pytest-xdist, a function that one process compiles is loaded by the others."""
    if hasattr(config, "workerinput"):
        compile_once(Path(config.option.basetemp).parent / "compiling")


@pytest.fixture(params=SEEDS.values(), ids=SEEDS)
def seed(request):
    """Any seed: what a test claims must not depend on it."""
    return request.param


@pytest.fixture(scope="session")
def labeled():
    """Three overlapping classes of 20 in 5 dimensions: (X, y), read-only."""
    rng = np.random.default_rng(20)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 5)) * [2.0, 1.0, 1.0, 0.5, 0.5]
    X[:, 2] += y
    X[:, 3] -= 0.7 * y
    order = rng.permutation(60)
    return _frozen(X[order]), _frozen(y[order])


@pytest.fixture(scope="session")
def pairs(labeled):
    """A stream of 400 balanced pairs of the labeled examples."""
    return Pairs.from_labels(*labeled, n_pairs=400, random_state=0)


@pytest.fixture(scope="session")
def sparse_pairs(labeled):
    """(dense, CSR): the same 300 pairs over the same half-empty rows."""
    X, y = labeled
    X = _frozen(np.where(np.random.default_rng(1).random(X.shape) < 0.5, X, 0.0))
    drawn = Pairs.from_labels(X, y, n_pairs=300, random_state=0)
    return drawn, Pairs(sp.csr_array(X), drawn.left, drawn.right, drawn.y)


def _frozen(array):
    array.flags.writeable = False
    return array
