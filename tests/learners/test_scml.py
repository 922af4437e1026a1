"""SCML: against the linear program, where its directions come from, and odd input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import SCML, Pairs, Quadruplets, Triplets
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.batch.comparison_learner import ComparedRows
from samewise.learners.batch.local_directions import contrasts, local_discriminants, unit_rows
from samewise.learners.batch.scml import SmoothedHinge
from tests.reference import comparisons as reference


@pytest.mark.filterwarnings("ignore:SCML. no sum of directions")
@parametrize_with_checks([SCML(), SCML(tol=0.1, n_neighbors=1, n_impostors=2)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def few(labeled):
    drawn = Triplets.from_labels(*labeled, 80, random_state=0)
    return Triplets(
        drawn.X,
        drawn.anchor,
        drawn.positive,
        drawn.negative,
        sample_weight=np.linspace(0.2, 2, 80),
    )


def sides(t):
    share = t.sample_weight / t.sample_weight.sum()
    return t.X[t.anchor] - t.X[t.positive], t.X[t.anchor] - t.X[t.negative], share


@pytest.mark.parametrize("beta", [0.0, 1e-3, 0.1])
def test_the_loss_is_that_of_the_loop_and_near_that_of_the_linear_program(few, beta):
    B = unit_rows(np.random.default_rng(1).normal(size=(30, 5)))
    scml = SCML(beta, basis=3 * B, tol=1e-6).fit(few)
    np.testing.assert_allclose(scml.basis_, B, rtol=1e-12)
    loss = reference.scml_loss(scml.weights_, B, *sides(few), beta)
    assert scml.loss_ == pytest.approx(loss, rel=1e-9)
    least = reference.scml_least(B, *sides(few), beta)
    assert least - 1e-9 <= scml.loss_ <= least + 0.01
    assert SCML(beta, basis=B).fit(few).loss_ <= least + 0.02
    M = (B.T * scml.weights_) @ B
    np.testing.assert_allclose(scml.metric_.matrix, M, rtol=1e-8, atol=1e-10 * np.abs(M).max())


def test_weights_are_few_and_fewer_the_more_they_cost(few):
    counts = [
        np.count_nonzero(SCML(beta, tol=1e-5, random_state=0).fit(few).weights_)
        for beta in (1e-4, 0.3)
    ]
    assert 100 > counts[0] > counts[1] >= 1
    sparse = SCML(0.1, random_state=0).fit(few)
    if (n := np.count_nonzero(sparse.weights_)) < 5:
        assert sparse.components_.shape == (n, 5)
    with pytest.warns(SamewiseWarning, match="no sum of directions has a lower loss than none"):
        alike = SCML(1e6, random_state=0).fit(few)
    assert alike.components_.shape == (5, 5) and alike.loss_ > 1


def test_the_smoothed_gradient_by_differences(few, seed):
    rng = np.random.default_rng(seed)
    share = sides(few)[2]
    rows = ComparedRows(Quadruplets.from_triplets(few), "SCML")
    problem = SmoothedHinge(rows, share, unit_rows(rng.normal(size=(12, 5))), 0.01)
    for problem.width in (0.5, 0.1):
        p, D = rng.uniform(0.1, 1, 12), rng.normal(size=12)
        up, down = (problem.value_and_gradient(p + h * D).loss for h in (1e-6, -1e-6))
        slope = problem.value_and_gradient(p).gradient @ D
        assert (up - down) / 2e-6 == pytest.approx(slope, rel=1e-5, abs=1e-7)
        below = problem.loss(p * problem.unit) - problem.value_and_gradient(p).loss
        assert 0 <= below <= problem.width / 2


def test_local_discriminants_of_everything_are_fishers(labeled):
    """With as many neighbors as examples, each place is the whole set."""
    X, y = scale(labeled[0]), labeled[1]
    B = local_discriminants(X, y, 4, np.random.RandomState(0))
    lda = LinearDiscriminantAnalysis().fit(X, y).scalings_.T
    # The ridge turns them a little.
    for ours, theirs in zip(B[2:], lda, strict=True):
        assert abs(ours @ theirs) > 0.98 * np.linalg.norm(theirs)
    np.testing.assert_allclose(np.linalg.norm(B, axis=1), 1, rtol=1e-12)


def test_local_discriminants_look_at_the_nearest_of_each_class():
    X, y = scale(load_wine().data), load_wine().target
    random = np.random.RandomState(3)
    B = local_discriminants(X, y, 4, random)
    center = X[np.random.RandomState(3).permutation(178)[0]]
    rows = np.concatenate(
        [
            np.flatnonzero(y == c)[np.argsort(np.linalg.norm(X[y == c] - center, axis=1))[:10]]
            for c in range(3)
        ]
    )
    means = np.array([X[rows][y[rows] == c].mean(axis=0) for c in range(3)])
    inner = X[rows] - means[y[rows]]
    outer = np.sqrt(10) * (means - means.mean(axis=0))
    within = inner.T @ inner + 0.1 * np.trace(inner.T @ inner) / 13 * np.eye(13)
    values, axes = np.linalg.eig(np.linalg.solve(within, outer.T @ outer))
    for direction, k in zip(B[:2], np.argsort(-values.real), strict=False):
        assert abs(direction @ axes[:, k].real) == pytest.approx(1, abs=1e-9)


def test_contrasts_are_longer_in_far_pairs(few):
    rows = ComparedRows(Quadruplets.from_triplets(few), "SCML")
    B = contrasts(rows, 40, np.random.RandomState(0))
    assert B.shape == (40, 5)
    near, far, _ = sides(few)
    longer = ((far @ B.T) ** 2).sum(axis=0) > ((near @ B.T) ** 2).sum(axis=0)
    assert longer.mean() > 0.7
    random = unit_rows(np.random.default_rng(0).normal(size=(400, 5)))
    assert longer.mean() > np.mean(
        ((far @ random.T) ** 2).sum(axis=0) > ((near @ random.T) ** 2).sum(axis=0)
    )


def test_types_and_going_on(few, labeled):
    X, y = labeled
    scml = SCML(warm_start=True, random_state=0).fit(few)
    loss, n_iter, B = scml.loss_, scml.n_iter_, scml.basis_
    scml.fit(few)
    assert scml.n_iter_ < n_iter and scml.loss_ <= loss
    np.testing.assert_array_equal(scml.basis_, B)
    assert SCML().fit(X.astype(np.float32), y).components_.dtype == np.float32
    near, far = (SCML(0.0, random_state=0).fit(c * X, y) for c in (1.0, 1e12))
    np.testing.assert_allclose(1e12 * far.components_, near.components_, rtol=1e-3, atol=1e-3)
    seen = []
    SCML(callback=lambda info: seen.append(info) or len(seen) == 3).fit(X, y)
    assert len(seen) == 3 and seen[0]["components"].shape[1] == 5
    with pytest.warns(ConvergenceWarning, match="SCML has not converged to tol=1e-09 in 2 iter"):
        SCML(tol=1e-9, max_iter=2).fit(X, y)


def test_what_is_refused_changes_nothing(few, labeled):
    X, y = labeled
    scml = SCML(random_state=0).fit(few)
    before = scml.components_.tobytes()
    pairs = Pairs.from_labels(X, y, 10, random_state=0)
    worse = Triplets(np.array([[0.0], [1.0], [0.0]]), [0], [1], [2])
    for given, options, said in [
        ((pairs,), {}, "SCML is about what is closer: give Quadruplets, Triplets,"),
        ((X,), {}, "SCML requires y to be passed"),
        ((worse,), {}, "SCML found no direction in which far pairs are longer than near ones."),
        ((X, y), {"basis": np.ones((2, 4))}, "basis must be a finite array of shape (k, 5)."),
        ((X, y), {"basis": np.zeros((2, 5))}, "SCML found no direction"),
    ]:
        scml.set_params(**{"basis": None, **options})
        with pytest.raises(InvalidInputError, match=re.escape(said)):
            scml.fit(*given)
        assert scml.components_.tobytes() == before
