"""MCML: its loss against the loops, its minimum from several starts, and odd input."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier
from samewise.exceptions import InvalidInputError
from samewise.learners.batch.mcml import MCML, Collapse
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.soft_neighbors import SoftNeighbors
from samewise.solvers.workers import Workers
from tests.reference import peers as reference


@parametrize_with_checks([MCML()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def collapse(X, y):
    classes = Classes(y, int(y.max()) + 1)
    return Collapse(SoftNeighbors(X[classes.order], classes, Workers(1, None)))


@pytest.fixture(scope="module")
def lonely(labeled):
    """40 points, one of them alone in its class."""
    X, y = labeled
    return X[:40], np.where(np.arange(40) == 11, 3, y[:40])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loss_and_gradients_equal_the_plain_loops(lonely, dtype, seed):
    X, y = lonely
    L = 0.5 * np.random.default_rng(seed).normal(size=(3, 5))
    problem = collapse(X.astype(dtype), y)
    value = problem.value_and_gradient(L)
    loss, G = reference.mcml(L, X, y)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    assert value.loss == pytest.approx(loss, rel=rtol)
    np.testing.assert_allclose(value.gradient, 2 * L @ G, atol=rtol * abs(G).max())
    values, vectors = np.linalg.eigh(G)
    gap, R = problem.proof(L)
    M = L.T @ L
    wanted = np.vdot(G, M) + 2 * max(0, -values[0]) * np.trace(M)
    assert gap * max(loss, 1) == pytest.approx(max(wanted, 0), rel=1e3 * rtol)
    below = (vectors * np.maximum(-values, 0)) @ vectors.T
    np.testing.assert_allclose(R.T @ R, below, atol=10 * rtol * abs(G).max())


def test_gradient_by_differences(lonely, seed):
    L, V = 0.5 * np.random.default_rng(seed).normal(size=(2, 5, 5))
    problem = collapse(*lonely)
    ahead, behind = (problem.value_and_gradient(L + t * V).loss for t in (1e-6, -1e-6))
    slope = np.vdot(problem.value_and_gradient(L).gradient, V)
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("name", ["labeled", "iris"])
def test_all_starts_lead_to_the_same_minimum(labeled, name, seed):
    X, y = labeled if name == "labeled" else load_iris(return_X_y=True)
    d = X.shape[1]
    rng = np.random.default_rng(seed)
    starts = ["auto", "identity", rng.normal(size=(d, d)), np.eye(1, d)]
    found = [MCML(init=init, tol=1e-5).fit(X, y) for init in starts]
    for mcml in found:
        assert mcml.converged_
        assert 0 <= mcml.gap_ <= 1e-5 * mcml.loss_
        assert mcml.loss_ == pytest.approx(found[0].loss_, rel=1e-5)
        np.testing.assert_allclose(
            mcml.metric_.matrix,
            found[0].metric_.matrix,
            atol=0.02 * np.abs(found[0].metric_.matrix).max(),
        )


def test_no_other_metric_is_better_than_the_proof_says(labeled, seed):
    X, y = labeled
    mcml = MCML(tol=0.1).fit(X, y)
    assert mcml.loss_ == pytest.approx(reference.mcml(mcml.components_, X, y)[0], rel=1e-9)
    bound = mcml.loss_ - mcml.gap_
    rng = np.random.default_rng(seed)
    for size in (0.03, 0.1, 0.3):
        L = mcml.components_ @ (np.eye(5) + size * rng.normal(size=(5, 5)) / np.sqrt(5))
        assert reference.mcml(L, X, y)[0] >= bound
    assert MCML(tol=1e-6).fit(X, y).loss_ >= bound


def test_sparse_and_float32_give_the_same(labeled):
    X, y = labeled
    wanted = MCML().fit(X, y)
    assert MCML().fit(sp.csr_array(X), y).loss_ == pytest.approx(wanted.loss_, rel=1e-9)
    single = MCML().fit(X.astype(np.float32), y)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.loss_ == pytest.approx(wanted.loss_, rel=1e-3)
    assert KNNClassifier(wanted).fit(X, y).score(X, y) > 0.6


def test_units_do_not_matter(labeled):
    X, y = labeled
    one, two = (MCML(tol=1e-5).fit(Z, y).loss_ for Z in (X, 5 + 1e4 * X))
    assert one == pytest.approx(two, rel=1e-4)


def test_it_goes_on_where_it_ended(labeled):
    mcml = MCML(tol=1e-4, warm_start=True).fit(*labeled)
    n_iter, loss = mcml.n_iter_, mcml.loss_
    assert mcml.fit(*labeled).n_iter_ < n_iter
    assert mcml.loss_ <= loss * (1 + 1e-9)


def test_ctrl_c_keeps_what_was_learned(labeled):
    def interrupt(info):
        if info["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    mcml = MCML(tol=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="MCML was interrupted"):
        mcml.fit(*labeled)
    assert mcml.n_iter_ == 3
    assert mcml.loss_ == pytest.approx(reference.mcml(mcml.components_, *labeled)[0], rel=1e-9)


def test_it_says_how_it_goes_and_that_it_did_not_end(labeled, capsys):
    with pytest.warns(
        ConvergenceWarning, match="MCML has not converged to tol=0 in 2 iter"
    ) as said:
        MCML(tol=0, max_iter=2, verbose=True).fit(*labeled)
    assert said[0].filename == __file__
    assert re.search(r"MCML: iteration 2, loss \S+, gap \S+, \d+ s", capsys.readouterr().err)


def test_awkward_data(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(24, 30)), np.arange(24) % 3
    X[:, 0] = 7.0
    # More features than points: the classes collapse, and the loss falls towards 0.
    mcml = MCML().fit(X, y)
    assert mcml.loss_ < 1
    assert np.isfinite(mcml.components_).all()
    same = MCML().fit(np.ones((6, 2)), np.arange(6) % 2)
    assert same.loss_ == pytest.approx(6 * np.log(5 / 2))


def test_bad_input_is_refused_and_changes_nothing(labeled, pairs):
    X, y = labeled
    mcml = MCML(max_iter=20).fit(X, y)
    before = vars(mcml).copy()
    with pytest.raises(InvalidInputError, match="at least two classes"):
        mcml.fit(X, np.zeros(60))
    with pytest.raises(InvalidInputError, match="learns from class labels"):
        mcml.fit(pairs, None)
    assert vars(mcml) == before
    with pytest.raises(InvalidInputError, match=r"init must be a finite array of shape \(4, 5\)"):
        MCML(init=np.eye(4)).fit(X, y)
