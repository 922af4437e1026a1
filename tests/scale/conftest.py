"""One cluster of two processes for all tests, and small parts of the letters and of MNIST."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import Pairs
from samewise.datasets import load
from samewise.exceptions import DatasetNotFoundError
from tests.scale.parts import THOROUGH


@pytest.fixture(scope="session")
def client():
    pytest.importorskip("dask", reason="Dask is not installed (pip install 'samewise[scale]')")
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def letters():
    """(X, y) of the first 600 letters."""
    return first_of("letter", 600)


@pytest.fixture(scope="session")
def letter_pairs(letters):
    """(X, y): 800 pairs of letters, of shape (800, 2, 16)."""
    return pairs_of(*letters)


@pytest.fixture(scope="session", params=["letter", "mnist"] if THOROUGH else ["letter"])
def rows(request):
    """(X, y) of 600 letters, or of 1200 digits of MNIST in 6 × 6 squares."""
    if request.param == "letter":
        return first_of("letter", 600)
    X, y = first_of("mnist", 1200)
    middle = X.reshape(-1, 28, 28)[:, 2:26, 2:26]
    return middle.reshape(-1, 6, 4, 6, 4).mean(axis=(2, 4)).reshape(len(X), 36) / 255, y


@pytest.fixture(scope="session")
def row_pairs(rows):
    """(X, y): 800 pairs of the rows, of shape (800, 2, d)."""
    return pairs_of(*rows)


def first_of(name, n):
    try:
        data = load(name)
    except DatasetNotFoundError:
        pytest.skip(f"the data set {name} is not here")
    return data.data[:n].astype(np.float64), data.target[:n]


def pairs_of(X, y):
    pairs = Pairs.from_labels(X, y, n_pairs=800, random_state=0)
    return np.stack([pairs.X[pairs.left], pairs.X[pairs.right]], axis=1), pairs.y.astype(np.int64)
