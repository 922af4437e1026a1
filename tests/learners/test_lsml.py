"""LSML: against the published method, its own proof, where it starts, and odd input."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import LSML, Mahalanobis, Pairs, Quadruplets, Triplets
from samewise.exceptions import InvalidInputError
from samewise.learners.batch.comparison_learner import ComparedRows
from samewise.learners.batch.lsml import Residuals
from tests.reference import comparisons as reference


@parametrize_with_checks([LSML(), LSML(10.0, prior="covariance", purpose="verification")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def few(labeled):
    drawn = Quadruplets.from_labels(*labeled, 60, random_state=0)
    return Quadruplets(drawn.X, drawn.a, drawn.b, drawn.c, drawn.d, np.linspace(0.2, 2, 60))


def sides(quadruplets):
    X, q = quadruplets.X, quadruplets
    return X[q.a] - X[q.b], X[q.c] - X[q.d], q.sample_weight / q.sample_weight.sum()


@pytest.mark.parametrize("gamma", [1.0, 100.0])
@pytest.mark.parametrize("prior", ["identity", "array"])
def test_the_loss_is_that_of_the_loop_and_below_the_published_method(few, gamma, prior):
    M0 = np.eye(5) if prior == "identity" else np.cov(few.X.T) + np.eye(5)
    given = prior if prior == "identity" else Mahalanobis(M0)
    lsml = LSML(gamma, prior=given, tol=1e-6).fit(few)
    assert lsml.converged_
    M, weights = lsml.metric_.matrix, sides(few)
    assert lsml.loss_ == pytest.approx(reference.lsml_loss(M, *weights, gamma, M0), rel=1e-8)
    theirs = reference.lsml(*weights, gamma, M0, 15)[1]
    assert lsml.loss_ - 1e-9 <= theirs
    assert theirs < 1.2 * reference.lsml_loss(M0, *weights, gamma, M0)


def test_no_other_metric_is_better_than_the_proof_says(few, seed):
    rows = ComparedRows(few, "LSML")
    problem = Residuals(rows, 50 * sides(few)[2])
    rng = np.random.default_rng(seed)
    least = LSML(50.0, tol=1e-9).fit(few).loss_
    shown = 0
    best = LSML(50.0).fit(few).components_
    for size in (1e-3, 1e-2, 1e-1):
        L = best + size * np.linalg.norm(best) * rng.normal(size=(5, 5))
        gap = problem.proof(L)[0]
        assert problem.value_and_gradient(L).loss - gap <= least + 1e-9
        shown += np.isfinite(gap)
    assert shown


def test_the_gradient_by_differences(few, seed):
    problem = Residuals(ComparedRows(few, "LSML"), 50 * sides(few)[2])
    rng = np.random.default_rng(seed)
    L, D = np.eye(5) + 0.3 * rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    up, down = (problem.value_and_gradient(L + h * D).loss for h in (1e-6, -1e-6))
    slope = np.vdot(problem.value_and_gradient(L).gradient, D)
    assert (up - down) / 2e-6 == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_a_far_pair_of_equal_rows_and_a_singular_map_cost_what_they_should(labeled):
    X, _ = labeled
    same = Quadruplets(X, [0], [1], [2], [2])
    u = X[0] - X[1]
    problem = Residuals(ComparedRows(same, "LSML"), np.ones(1))
    assert problem.value_and_gradient(np.eye(5)).loss == pytest.approx(u @ u)
    assert problem.value_and_gradient(np.zeros((5, 5))).loss == np.inf
    assert LSML(1.0).fit(same).loss_ < u @ u


def test_where_all_is_right_already_the_prior_stays():
    X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [9.0, 0.0]])
    lsml = LSML().fit(Quadruplets(X, [0], [1], [2], [3]))
    np.testing.assert_allclose(lsml.metric_.matrix, np.eye(2), atol=1e-12)
    assert lsml.loss_ == pytest.approx(0, abs=1e-12) and lsml.gap_ == 0 and lsml.converged_


def test_all_kinds_of_comparisons_are_one(few, labeled):
    X, y = labeled
    drawn = Triplets.from_labels(X, y, 50, random_state=0)
    one = LSML().fit(drawn).components_
    stacked = np.stack([X[drawn.anchor], X[drawn.positive], X[drawn.negative]], axis=1)
    four = np.insert(stacked, 2, X[drawn.anchor], axis=1)
    two_matrices = Triplets(X, drawn.anchor, drawn.positive, drawn.negative, items=X.copy())
    for same in (stacked, four, two_matrices, Quadruplets.from_triplets(drawn)):
        np.testing.assert_allclose(LSML().fit(same).components_, one, rtol=1e-6, atol=1e-9)
    again = Quadruplets(sp.csr_array(few.X), few.a, few.b, few.c, few.d, few.sample_weight)
    np.testing.assert_allclose(
        LSML().fit(again).components_, LSML().fit(few).components_, rtol=1e-9, atol=1e-12
    )


def test_margins_and_scores_are_those_of_distances(few, labeled):
    lsml = LSML().fit(few)
    near, far, _ = sides(few)
    M = lsml.metric_.matrix
    expected = [np.sqrt(v @ M @ v) - np.sqrt(u @ M @ u) for u, v in zip(near, far, strict=True)]
    np.testing.assert_allclose(lsml.comparison_margin(few), expected, rtol=1e-9)
    assert lsml.score(few) == np.mean(np.array(expected) > 0)
    assert 0.4 < lsml.score(*labeled) <= 1
    assert lsml.score(few) >= LSML(1e-9).fit(few).score(few)


def test_weights_of_zero_and_copies(few):
    weight = np.arange(60) % 3
    X = few.X
    weighted = Quadruplets(X, few.a, few.b, few.c, few.d, weight)
    copies = weighted[np.repeat(np.arange(60), weight)]
    plain = Quadruplets(X, copies.a, copies.b, copies.c, copies.d)
    np.testing.assert_allclose(
        LSML(tol=1e-8).fit(weighted).metric_.matrix,
        LSML(tol=1e-8).fit(plain).metric_.matrix,
        rtol=1e-4,
        atol=1e-6,
    )


def test_scales_types_and_going_on(few, labeled):
    X, y = labeled
    lsml = LSML(tol=1e-5, warm_start=True).fit(few)
    loss, n_iter = lsml.loss_, lsml.n_iter_
    assert lsml.fit(few).n_iter_ < n_iter and lsml.loss_ <= loss + 1e-9
    assert LSML().fit(X.astype(np.float32), y).components_.dtype == np.float32
    for factor in (1e-30, 1e30):
        far = LSML(prior="covariance").fit(factor * X, y).components_
        near = LSML(prior="covariance").fit(X, y).components_
        np.testing.assert_allclose(factor * far, near, rtol=1e-6, atol=1e-8)
    with pytest.warns(ConvergenceWarning, match="LSML has not converged to tol=0 in 2 iterations"):
        LSML(tol=0, max_iter=2).fit(X, y)


def test_what_is_refused_changes_nothing(few, labeled):
    X, y = labeled
    lsml = LSML().fit(few)
    before = lsml.components_.tobytes()
    pairs = Pairs.from_labels(X, y, 10, random_state=0)
    wide = Triplets(X, [0], [1], [2], items=np.ones((60, 3)))
    none = Quadruplets(X, few.a, few.b, few.c, few.d, np.zeros(60))
    for given, said in [
        ((pairs,), "LSML is about what is closer: give Quadruplets, Triplets, .* Got Pairs."),
        ((X,), "LSML requires y to be passed, but the target y is None"),
        ((few, y), "Quadruplets and Triplets have no labels, their order says it all"),
        ((few[:0],), "LSML needs at least one quadruplet. Got none."),
        ((none,), "LSML needs quadruplets of a weight above 0. Got 0 for all."),
        ((wide,), "queries of 5 features and items of 3; use OASIS"),
        ((np.zeros((2, 5, 3)),), "must have shape (n_quadruplets, 4, n_features)"),
        ((X, np.zeros(60)), "needs examples of at least two classes"),
    ]:
        said = said if ".*" in said else re.escape(said)
        with pytest.raises(InvalidInputError, match=said):
            lsml.fit(*given)
        assert lsml.components_.tobytes() == before
