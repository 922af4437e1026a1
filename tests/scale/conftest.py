"""One cluster of two processes for all tests, and a small part of the letters."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import Pairs
from samewise.datasets import load
from samewise.exceptions import DatasetNotFoundError


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
    try:
        data = load("letter")
    except DatasetNotFoundError:
        pytest.skip("the data set letter is not here")
    return data.data[:600].astype(np.float64), data.target[:600]


@pytest.fixture(scope="session")
def letter_pairs(letters):
    """(X, y): 800 pairs of letters, of shape (800, 2, 16)."""
    pairs = Pairs.from_labels(*letters, n_pairs=800, random_state=0)
    X = np.stack([pairs.X[pairs.left], pairs.X[pairs.right]], axis=1)
    return X, pairs.y.astype(np.int64)
