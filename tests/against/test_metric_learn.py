"""Learners that metric-learn has too against it, where there is an environment that it works in.

`python -m benchmarks comparison` makes one; SAMEWISE_PEERS names another.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from benchmarks import comparison, peers
from samewise import Pairs, Quadruplets, Triplets
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.local_directions import local_discriminants
from samewise.learners.batch.lsml import LSML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.nca import NCA
from samewise.learners.batch.scml import SCML
from samewise.learners.batch.sdml import SDML
from samewise.learners.closed.rca import RCA


@pytest.fixture(scope="module")
def python():
    home = Path(os.environ.get("SAMEWISE_PEERS", peers.HOME))
    if not (home / "bin" / "python").exists():
        pytest.skip(f"metric-learn is not installed in {home}; SAMEWISE_PEERS names another place")
    return home / "bin" / "python"


@pytest.fixture(params=[load_iris, load_wine], ids=["iris", "wine"])
def given(request):
    X, y = request.param(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    pairs = Pairs.from_labels(X, y, 100, random_state=0)
    q = Quadruplets.from_labels(X, y, 200, random_state=0)
    t = Triplets.from_neighbors(X, y)
    return {
        "quadruplets": np.stack([q.a, q.b, q.c, q.d]),
        "triplets": np.stack([t.anchor, t.positive, t.negative]),
        "basis": local_discriminants(X, y, 10 * X.shape[1], np.random.RandomState(0)),
        "balance": np.array(SDML(tol=1e9).fit(pairs).balance_),
        "X": X,
        "y": y,
        "left": pairs.left,
        "right": pairs.right,
        "sign": pairs.y.astype(int),
        "bounds": np.percentile(((X[pairs.left] - X[pairs.right]) ** 2).sum(axis=1), (5, 95)),
        "gamma": np.array(comparison.GAMMA),
        "chunklets": comparison.chunklets(y, 3),
    }


def theirs(python, method, given):
    found = comparison.ran(python, "metric-learn", method, given, max_iter=100, repeats=1)
    return found["components"]


def pairs_of(given):
    return Pairs(given["X"], given["left"], given["right"], given["sign"])


def test_rca_is_the_same_matrix(python, given):
    ours = RCA().fit(given["X"], chunklets=given["chunklets"]).components_
    assert comparison.difference(theirs(python, "RCA", given), ours) < 1e-8


def test_itml_is_as_good(python, given):
    ours = ITML(comparison.GAMMA, bounds=given["bounds"], tol=1e-6, max_iter=10**5)
    L = ours.fit(pairs_of(given)).components_
    loss = comparison.itml_loss(L, given)
    assert ours.loss_ == pytest.approx(loss, rel=1e-8)
    assert loss <= comparison.itml_loss(theirs(python, "ITML", given), given) * (1 + 1e-6)


def test_mmc_is_as_good(python, given):
    ours = MMC(tol=1e-6).fit(pairs_of(given))
    objective = comparison.mmc_objective(ours.components_, given)
    assert ours.objective_ == pytest.approx(objective, rel=1e-8)
    assert objective >= comparison.mmc_objective(theirs(python, "MMC", given), given) * (1 - 1e-6)


def test_nca_is_as_good(python, given):
    ours = NCA().fit(given["X"], given["y"])
    loss = comparison.nca_loss(ours.components_, given)
    assert ours.loss_ == pytest.approx(loss, abs=1e-6)
    assert loss <= comparison.nca_loss(theirs(python, "NCA", given), given) + 1e-3


def test_lsml_is_as_good(python, given):
    ours = LSML(1.0, tol=1e-6).fit(Quadruplets(given["X"], *given["quadruplets"]))
    loss = comparison.lsml_loss(ours.components_, given)
    assert ours.loss_ == pytest.approx(loss, rel=1e-8)
    assert loss <= comparison.lsml_loss(theirs(python, "LSML", given), given) + 1e-6


def test_sdml_is_as_good(python, given):
    ours = SDML(float(given["balance"]), tol=1e-7).fit(pairs_of(given))
    loss = comparison.sdml_loss(ours.components_, given)
    assert ours.loss_ == pytest.approx(loss, rel=1e-8)
    assert loss <= comparison.sdml_loss(theirs(python, "SDML", given), given) + 1e-5


def test_scml_is_as_good(python, given):
    ours = SCML(basis=given["basis"]).fit(Triplets(given["X"], *given["triplets"]))
    loss = comparison.scml_loss(ours.components_, given)
    assert ours.loss_ == pytest.approx(loss, rel=1e-8)
    found = comparison.ran(python, "metric-learn", "SCML", given, max_iter=2000, repeats=1)
    assert loss <= comparison.scml_loss(found["components"], given)
