"""Work in blocks: the same as at once, in less memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Pairs
from samewise.exceptions import InvalidInputError
from samewise.learners.batch import pair_differences as differences
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.pair_differences import Differences
from samewise.learners.closed import scatter_matrices as scatter
from samewise.learners.closed.closed_form import centered, differences_within
from samewise.learners.closed.rca import RCA
from samewise.learners.online.lego import LEGO


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(differences, "BLOCK_BYTES", 1)
    monkeypatch.setattr(scatter, "BLOCK_BYTES", 1)
    monkeypatch.setattr(scatter, "LEAST_ROWS", 16)


def peak(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_differences_are_those_of_the_pairs(pairs, kind, small_blocks):
    X = sp.csr_array(pairs.X) if kind == "sparse" else pairs.X.astype(kind)
    some = Pairs(X, pairs.left, pairs.right, pairs.y)
    V = Differences.of(some, "a test")
    rows = np.arange(0, 400, 3)
    part = V.only(rows, np.full(len(rows), 2.0))
    blocks = list(part.blocks())
    assert len(blocks) > 1
    wanted = 2 * (pairs.X[pairs.left] - pairs.X[pairs.right])[rows]
    atol = 1e-6 if kind == "float32" else 0
    np.testing.assert_allclose(np.concatenate([part[b] for b in blocks]), wanted, atol=atol)
    np.testing.assert_allclose(part.scatter(), wanted.T @ wanted, rtol=1e-5, atol=1e-5)
    assert part[:].dtype == np.float64
    assert V.differ().all()
    assert not Differences(pairs.X, pairs.left, pairs.left).differ().any()


def test_itml_and_mmc_do_not_depend_on_the_blocks(pairs, monkeypatch):
    whole = [ITML().fit(pairs), MMC("full").fit(pairs), MMC("diagonal").fit(pairs)]
    monkeypatch.setattr(differences, "BLOCK_BYTES", 1)
    parts = [ITML().fit(pairs), MMC("full").fit(pairs), MMC("diagonal").fit(pairs)]
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.metric_.matrix, two.metric_.matrix, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_covariances_are_those_of_the_definition(labeled, dtype, small_blocks):
    X = (1e3 + np.insert(labeled[0], 1, 0.3, axis=1)).astype(dtype)
    groups = np.random.default_rng(0).integers(-1, 25, 60)
    groups[:20] = 3  # more rows than a block has
    Z, within = centered(X), differences_within(X, groups)
    C, inner = scatter.covariances(X, groups)
    np.testing.assert_allclose(C, Z.T @ Z / 60, atol=1e-9)
    np.testing.assert_allclose(inner, within.T @ within / len(within), atol=1e-9)
    assert not C[1].any()
    assert scatter.covariances(X, np.arange(60))[1] is None
    with pytest.raises(InvalidInputError, match="whose squares overflow"):
        RCA().fit(X.astype(np.float64) * 1e80, chunklets=groups)


def test_memory_is_less_than_that_of_the_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20000, 20)), rng.integers(0, 5, 20000)
    pairs = Pairs.from_labels(X, y, 20000, random_state=0)
    chunklets = np.arange(20000) // 4
    ITML(tol=1.0, gamma=1e-3).fit(pairs[:100])
    assert peak(lambda: RCA().fit(X, chunklets=chunklets)) < X.nbytes / 2
    assert peak(lambda: ITML(bounds=(9.0, 90.0), tol=1.0, gamma=1e-3).fit(pairs)) < X.nbytes
    assert peak(lambda: MMC(tol=0.5).fit(pairs)) < 2 * X.nbytes


def test_lego_with_awkward_pairs(labeled):
    X, y = labeled
    rng = np.random.default_rng(0)
    for rows in (np.column_stack([X, np.ones(60)]), rng.normal(size=(60, 100))):
        A = LEGO(0.1, random_state=0).fit(rows, y).metric_.matrix
        assert np.isfinite(A).all()
        assert np.linalg.eigvalsh(A)[0] > 0
    drawn = Pairs.from_labels(X, y, 200, random_state=0)
    for sign in (1, -1):
        assert LEGO(0.1).fit(drawn[drawn.y == sign]).n_updates_ > 0
