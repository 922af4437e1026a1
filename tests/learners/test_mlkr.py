"""MLKR: its loss and gradient against the loops, what it learns, and odd input."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNRegressor, load
from samewise.exceptions import InvalidInputError
from samewise.learners.batch import mlkr as module
from samewise.learners.batch.mlkr import MLKR, KernelErrors
from samewise.solvers import workers as team_of_workers
from samewise.solvers.workers import workers
from tests.reference import labels as reference


@parametrize_with_checks([MLKR(), MLKR(n_components=1, init="pca")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def numbered():
    """60 rows in 5 dimensions of which the first two matter: (X, y), read-only."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 5)) * [1.0, 2.0, 1.0, 3.0, 0.5]
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=60)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.mark.parametrize("r", [1, 3, 5])
@pytest.mark.parametrize("shared", [10, 1000])
def test_the_loss_and_its_gradient(numbered, r, shared, seed, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * 60 * 17)
    monkeypatch.setattr(team_of_workers, "SHARED", shared)
    X, y = numbered
    L = np.random.default_rng(seed).normal(size=(r, 5)) / 2
    with workers() as team:
        problem = KernelErrors(X - X.mean(axis=0), y, team)
        found = problem.value_and_gradient(L)
        assert found.loss == pytest.approx(reference.mlkr(L, X, y), rel=1e-10)
        small = problem.__class__(problem.X.astype(np.float32), y, team).value_and_gradient(L)
        assert small.loss == pytest.approx(found.loss, rel=1e-4)
        step = 1e-6
        for i in range(r):
            for j in range(5):
                E = np.zeros_like(L)
                E[i, j] = step
                there, back = (problem.value_and_gradient(L + s * E).loss for s in (1, -1))
                assert found.gradient[i, j] == pytest.approx((there - back) / 2 / step, abs=1e-5)


@pytest.mark.parametrize("init", ["auto", "pca", "identity", np.eye(5)[:2] / 3])
def test_it_lowers_the_loss_of_its_start(numbered, init):
    X, y = numbered
    n_components = None if isinstance(init, str) else 2
    learner = MLKR(n_components, init=init, tol=1e-6, max_iter=500).fit(X, y)
    assert learner.converged_
    losses = learner.history_["loss"]
    assert np.all(np.diff(losses) <= 0) and len(losses) == learner.n_iter_
    assert learner.loss_ == losses[-1]
    assert learner.loss_ == pytest.approx(reference.mlkr(learner.components_, X, y), rel=1e-8)
    L = np.eye(5) if isinstance(init, str) else init
    assert learner.loss_ < 0.8 * reference.mlkr(L, X, y)


def test_features_that_do_not_matter_lose_their_weight(numbered):
    X, y = numbered
    learner = MLKR(tol=1e-4).fit(X, y)
    weight = np.diagonal(learner.metric_.matrix) * X.var(axis=0)
    assert weight[:2].min() > 5 * weight[2:].max()


def test_the_score_is_leave_one_out_kernel_regression(numbered):
    X, y = numbered
    learner = MLKR().fit(X[:40], y[:40])
    loss = reference.mlkr(learner.components_, X[40:], y[40:])
    total = np.sum((y[40:] - y[40:].mean()) ** 2)
    assert learner.score(X[40:], y[40:]) == pytest.approx(1 - loss / total, rel=1e-9)


def test_units_types_and_sparse_rows(numbered, tmp_path):
    X, y = numbered
    learner = MLKR(2).fit(X, y)
    scaled = MLKR(2).fit(X * [1e3, 1e-3, 7.0, 1.0, 1e5] + 4, 1e20 * y + 3e20)
    np.testing.assert_allclose(
        scaled.metric_.pairs(X[:9] * [1e3, 1e-3, 7.0, 1.0, 1e5], X[9:18] * [1e3, 1e-3, 7, 1, 1e5]),
        learner.metric_.pairs(X[:9], X[9:18]),
        rtol=1e-4,
    )
    assert scaled.loss_ == pytest.approx(1e40 * learner.loss_, rel=1e-5)
    np.testing.assert_allclose(
        MLKR(2).fit(sp.csr_array(X), y).components_, learner.components_, rtol=1e-12
    )
    small = MLKR(2).fit(X.astype(np.float32), y)
    assert small.components_.dtype == np.float32
    assert small.loss_ == pytest.approx(learner.loss_, rel=0.05)
    learner.save(tmp_path / "mlkr.samewise")
    assert load(tmp_path / "mlkr.samewise").metric_ == learner.metric_


def test_warm_start_and_callback(numbered):
    X, y = numbered
    learner = MLKR(tol=1e-6, warm_start=True).fit(X, y)
    n_iter, loss = learner.n_iter_, learner.loss_
    assert learner.fit(X, y).n_iter_ < n_iter
    assert learner.loss_ <= loss
    seen = []
    stopped = MLKR(tol=0, callback=lambda info: seen.append(info) or len(seen) == 3).fit(X, y)
    assert stopped.n_iter_ == 3 and not stopped.converged_
    np.testing.assert_array_equal(seen[-1]["components"], stopped.components_)
    with pytest.warns(ConvergenceWarning, match="MLKR has not converged to tol=0 in 2 iterations"):
        MLKR(tol=0, max_iter=2).fit(X, y)


def test_what_is_refused_changes_nothing(numbered, pairs):
    X, y = numbered
    learner = MLKR(2).fit(X, y)
    before = vars(learner).copy()
    for given, said in (
        ((X, np.full(60, 0.1)), "MLKR needs targets that differ. All are 0.1;"),
        ((X, np.array(["a", "b"] * 30)), "MLKR predicts numbers. Got targets of the type <U1;"),
        ((X, 1e200 * y), "Targets must be finite numbers below 1e+70."),
        ((X[:, :1], y), "n_components must be at most the number of features, 1. Got 2"),
        ((pairs, None), "MLKR learns from numbers: give a matrix of examples and y."),
    ):
        with pytest.raises(InvalidInputError, match=re.escape(said)):
            learner.fit(*given)
        assert vars(learner) == before


def test_a_regressor_with_it_is_better_than_without(numbered):
    X, y = numbered
    scores = [
        KNNRegressor(metric, n_neighbors=3).fit(X[:40], y[:40]).score(X[40:], y[40:])
        for metric in (MLKR(), None)
    ]
    assert scores[0] > scores[1] + 0.05


def test_memory_grows_with_the_rows_only():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.normal(size=3000)
    tracemalloc.start()
    MLKR(tol=1).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 3
