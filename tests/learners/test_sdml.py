"""SDML: against scikit-learn's graphical lasso, its own proof, and where there is no solution."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import SDML, Mahalanobis, Pairs, Triplets
from samewise.exceptions import DegenerateInputError, InvalidInputError, SamewiseWarning
from samewise.learners.batch.sdml import SparsePrecision, signed_scatter
from tests.reference import comparisons as reference


@parametrize_with_checks([SDML(), SDML(sparsity=0.5, prior="covariance", purpose="verification")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def weighted(pairs):
    few = pairs[:80]
    return Pairs(few.X, few.left, few.right, few.y, np.linspace(0, 2, 80))


def arguments(pairs):
    weight = np.ones(len(pairs)) if pairs.sample_weight is None else pairs.sample_weight
    return pairs.X[pairs.left] - pairs.X[pairs.right], pairs.y.astype(float), weight


@pytest.mark.parametrize("sparsity", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("prior", ["identity", "array"])
def test_the_loss_is_that_of_the_loop_and_the_minimum_scikit_learns(weighted, sparsity, prior):
    M0 = np.eye(5) if prior == "identity" else np.cov(weighted.X.T) + np.eye(5)
    given = prior if prior == "identity" else Mahalanobis(M0)
    sdml = SDML(sparsity=sparsity, prior=given, tol=1e-8).fit(weighted)
    assert sdml.converged_ and sdml.gap_ <= 5e-8
    M, V = sdml.metric_.matrix, arguments(weighted)
    loss = reference.sdml_loss(M, *V, sdml.balance_, sparsity, M0)
    assert sdml.loss_ == pytest.approx(loss, rel=1e-9)
    S = np.linalg.inv(M0) + sdml.balance_ * signed_scatter(weighted)
    # Without a penalty, scikit-learn inverts S.
    theirs = (
        graphical_lasso(S, sparsity, tol=1e-9, enet_tol=1e-9)[1] if sparsity else np.linalg.inv(S)
    )
    np.testing.assert_allclose(M, theirs, rtol=1e-3, atol=1e-4)
    assert sdml.loss_ <= reference.sdml_loss(theirs, *V, sdml.balance_, sparsity, M0) + 1e-7


def test_what_is_zero_is_exactly_zero(labeled):
    counts = [
        np.count_nonzero(SDML(sparsity=s, random_state=0).fit(*labeled).metric_.matrix)
        for s in (0.0, 0.1, 100.0)
    ]
    assert counts[0] == 25 > counts[1] > counts[2] == 5


def test_no_other_matrix_is_better_than_the_proof_says(weighted, seed):
    rng = np.random.default_rng(seed)
    sdml = SDML(sparsity=0.1, tol=1e-9).fit(weighted)
    S = np.eye(5) + sdml.balance_ * signed_scatter(weighted)
    problem = SparsePrecision(S, 0.1)
    for _ in range(10):
        E = np.triu(rng.uniform(-0.02, 0.02, (5, 5)), 1)
        found = problem.at(S + E + E.T)
        assert (
            found.loss == pytest.approx(problem.loss(found.M)) and found.loss >= sdml.loss_ - 1e-9
        )
        assert found.loss - found.gap <= sdml.loss_ + 1e-9
        A = rng.normal(size=(5, 5))
        assert problem.loss(A @ A.T) >= sdml.loss_ - sdml.gap_ - 1e-9


def test_where_dissimilar_pairs_outweigh_the_prior_the_balance_is_lowered(pairs):
    far = pairs[pairs.y < 0]
    with pytest.warns(
        SamewiseWarning, match="with balance=0.5 dissimilar pairs outweigh the prior"
    ):
        sdml = SDML(0.5).fit(far)
    assert sdml.balance_ == pytest.approx(SDML().fit(far).balance_)
    assert sdml.balance_ < 0.5
    assert sdml.converged_ and not hasattr(sdml, "threshold_")
    # Along the direction that is negative the loss falls without end, whatever the penalty says.
    S = np.eye(5) + 0.5 * signed_scatter(far)
    axis = np.linalg.eigh(S)[1][:, :1]
    losses = [SparsePrecision(S, 0.01).loss(np.eye(5) + t * axis @ axis.T) for t in (1, 1e3, 1e6)]
    assert losses[0] > losses[1] > losses[2]
    near = SDML(0.5).fit(pairs[pairs.y > 0])
    assert near.balance_ == 0.5


def test_scales_types_sparse_rows_and_going_on(weighted, labeled):
    X, y = labeled
    sdml = SDML(warm_start=True, tol=1e-7).fit(weighted)
    n_iter = sdml.n_iter_
    assert sdml.fit(weighted).n_iter_ < n_iter
    assert SDML().fit(X.astype(np.float32), y).components_.dtype == np.float32
    same = Pairs(
        sp.csr_array(weighted.X), weighted.left, weighted.right, weighted.y, weighted.sample_weight
    )
    np.testing.assert_allclose(
        SDML().fit(same).metric_.matrix, SDML().fit(weighted).metric_.matrix, rtol=1e-9
    )
    # With the identity as the prior, the pairs are in units of their own.
    near, far = (
        SDML(tol=1e-8).fit(Pairs(c * X, weighted.left, weighted.right, weighted.y)).metric_.matrix
        for c in (1.0, 1e20)
    )
    np.testing.assert_allclose(near, far, rtol=1e-4, atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="SDML has not converged to tol=1e-12 in 1 iter"):
        SDML(sparsity=0.05, tol=1e-12, max_iter=1).fit(weighted)
    seen = []
    SDML(
        sparsity=0.05, tol=1e-12, callback=lambda info: seen.append(info["loss"]) or len(seen) == 2
    ).fit(weighted)
    assert len(seen) == 2


def test_what_is_refused_changes_nothing(weighted, labeled):
    X, y = labeled
    sdml = SDML().fit(weighted)
    before = sdml.components_.tobytes()
    triplets = Triplets.from_labels(X, y, 10, random_state=0)
    both = Pairs(X, [0, 0], [1, 1], [1, -1])
    alike = Pairs(X, [0, 1], [0, 1], [1, -1])
    for given, error, said in [
        ((triplets,), InvalidInputError, "SDML learns from pairs. Got Triplets"),
        ((both,), DegenerateInputError, "Got pairs that say nothing; give others."),
        ((alike,), DegenerateInputError, "Got pairs that say nothing; give others."),
        ((X,), InvalidInputError, "SDML requires y to be passed"),
    ]:
        with pytest.raises(error, match=re.escape(said)):
            sdml.fit(*given)
        assert sdml.components_.tobytes() == before
