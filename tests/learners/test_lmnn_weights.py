"""Weights of examples in LMNN: one of weight 2 is two."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from samewise import LMNN
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.batch.lmnn.objective import LINEAR, SQUARED, LMNNObjective
from samewise.learners.batch.lmnn.weighted_targets import weighted_targets
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.solvers.workers import workers
from tests.pairwise import SEEDS, pairwise
from tests.reference import lmnn as reference


def whole(n, seed):
    return np.random.default_rng(seed).integers(0, 4, n).astype(float)


def fractions(n, seed):
    return np.random.default_rng(seed).uniform(0.05, 2.5, n)


def objective_of(X, y, weight, k, hinge, team, dtype=np.float64, anchors=None):
    classes = Classes(y, 3)
    sorted_weight = weight[classes.order]
    targets, costs = weighted_targets(
        lambda k: nearest_targets(X, classes, k, team, anchors), sorted_weight, k, anchors
    )
    S = X[classes.order].astype(dtype)
    return LMNNObjective(S, targets, classes, 0.3, hinge, team, costs)


# Thinned from 32 cases to 8.
@pairwise(
    seed=SEEDS,
    k=[1, 3],
    dtype=[np.float64, np.float32],
    hinge={"linear": LINEAR, "squared": SQUARED},
    weights={"whole": whole, "fractions": fractions},
)
def test_loss_and_gradient_equal_the_plain_loops(labeled, hinge, dtype, k, weights, seed):
    X, y = labeled
    weight = weights(60, seed)
    X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    L = 0.5 * np.random.default_rng(seed).normal(size=(4, 5))
    with workers() as team:
        objective = objective_of(X, y, weight, k, hinge, team, dtype)
        objective.search(L)
        value, terms = objective.value_and_gradient(L), objective.losses(L)
    targets = reference.weighted_target_neighbors(X, y, weight, k)
    wanted = reference.weighted_loss_and_gradient(
        L, X, y, weight, targets, 0.3, squared=hinge is SQUARED
    )
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    assert value.loss == pytest.approx(wanted[0], rel=rtol)
    np.testing.assert_allclose(value.gradient, wanted[1], atol=rtol * abs(wanted[1]).max())
    np.testing.assert_allclose(terms.sum(), wanted[0], rtol=rtol)
    by_point = wanted[2][np.argsort(y, kind="stable")]
    np.testing.assert_allclose(terms, by_point, atol=rtol * by_point.max())


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_plain_loops_of_repeated_points_are_those_of_weights(labeled, k, seed):
    X, y = labeled
    weight = whole(60, seed)
    L = 0.5 * np.random.default_rng(seed).normal(size=(4, 5))
    targets = reference.weighted_target_neighbors(X, y, weight, k)
    one = reference.weighted_loss_and_gradient(L, X, y, weight, targets, 0.3)
    rows = np.repeat(np.arange(60), weight.astype(int))
    repeated = reference.target_neighbors(X[rows], y[rows], k)
    other = reference.loss_and_gradient(L, X[rows], y[rows], repeated, 0.3)
    assert one[0] == pytest.approx(other[0], rel=1e-10)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.* classes have no more than n_neighbors")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hinge": "squared", "n_target_searches": 2},
        {"init": "identity", "n_neighbors": 2, "push_weight": 0.7},
        {"init": "pca", "n_components": 2},
        {"solver": "M"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_an_example_of_weight_two_equals_two(labeled, settings, kind, seed):
    """Step by step, for a few steps: later ones may depend on rounding."""
    X, y = labeled[0][:36], labeled[1][:36]
    weight = whole(36, seed)
    rows = np.repeat(np.arange(36), weight.astype(int))
    learner = LMNN(**settings, max_iter=3, tol=0)
    one = clone(learner).fit(kind(X), y, sample_weight=weight)
    other = clone(learner).fit(kind(X[rows]), y[rows])
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-9)
    np.testing.assert_allclose(one.history_["loss"], other.history_["loss"], rtol=1e-9)
    np.testing.assert_allclose(one.transform(X), other.transform(X), rtol=1e-7, atol=1e-8)
    assert not np.allclose(learner.fit(X, y).transform(X), one.transform(X), rtol=1e-2)


def test_of_many_points_the_convex_problem_has_one_minimum(labeled, seed):
    X, y = labeled
    weight = whole(60, seed)
    rows = np.repeat(np.arange(60), weight.astype(int))
    with pytest.warns(ConvergenceWarning):
        one = LMNN(solver="M", max_iter=150, tol=1e-9).fit(X, y, sample_weight=weight)
        other = LMNN(solver="M", max_iter=150, tol=1e-9).fit(X[rows], y[rows])
    # Neither goes below what the other proves to be the least.
    slack = 1e-9 * one.loss_
    assert one.loss_ >= other.loss_ - other.gap_ - slack
    assert other.loss_ >= one.loss_ - one.gap_ - slack
    assert max(one.gap_, other.gap_) < 0.05 * one.loss_


def test_weights_of_one_are_no_weights(labeled):
    X, y = labeled
    one, other = LMNN().fit(X, y, sample_weight=np.ones(60)), LMNN().fit(X, y)
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-6, atol=1e-9)
    assert one.n_active_ == other.n_active_


def test_given_targets_count_once_for_each_copy(labeled, seed):
    X, y = labeled
    weight = whole(60, seed)
    targets = np.array([t + [-1] * (2 - len(t)) for t in reference.target_neighbors(X, y, 2)])
    learner = LMNN(targets=targets, max_iter=3, tol=0, init="identity")
    with pytest.warns(ConvergenceWarning):
        one = learner.fit(X, y, sample_weight=weight)
    counted = [
        [(j, 1.0) for j in mine if weight[j] > 0] if weight[i] else []
        for i, mine in enumerate(targets)
    ]
    L = one.components_
    wanted = reference.weighted_loss_and_gradient(L, X, y, weight, counted, 0.5)
    assert one.loss_ == pytest.approx(wanted[0], rel=1e-9)
    # With the targets among repeated rows: the first copy of each.
    rows = np.repeat(np.arange(60), weight.astype(int))
    first = np.append(np.searchsorted(rows, np.arange(60)), -1)
    named = np.where(weight[targets] > 0, first[targets], -1)[rows]
    with pytest.warns(ConvergenceWarning):
        other = LMNN(targets=named, max_iter=3, tol=0, init="identity").fit(X[rows], y[rows])
    assert other.loss_ == pytest.approx(one.loss_, rel=1e-9)


def test_small_weights_take_more_targets(labeled):
    """Ten points of weight 0.1 are a target like one of weight 1."""
    X, y = labeled
    classes = Classes(y, 3)
    with workers() as team:

        def find(k):
            return nearest_targets(X, classes, k, team)

        targets, costs = weighted_targets(find, np.full(60, 0.1), 1, None)
        nearest = find(10)
    np.testing.assert_array_equal(targets, nearest)
    np.testing.assert_allclose(costs.targets, 0.01, rtol=1e-12)


def test_a_sample_of_anchors_is_an_unbiased_estimate(labeled, seed):
    X, y = labeled
    weight = fractions(60, seed)
    L = np.eye(5)
    targets = reference.weighted_target_neighbors(X, y, weight, 3)
    terms = reference.weighted_loss_and_gradient(L, X, y, weight, targets, 0.3)[2]
    anchors = np.array([2, 5, 30, 31], dtype=np.int32)
    with workers() as team:
        objective = objective_of(X, y, weight, 3, LINEAR, team, anchors=anchors)
        objective.slack = 0.0
        objective.search(L)
        some = objective.losses(L)
    chosen = np.argsort(y, kind="stable")[anchors]
    np.testing.assert_allclose(some, terms[chosen], rtol=1e-9)
    sampled = LMNN(max_anchors=59, tol=0.1, init="identity", random_state=0)
    sampled.fit(X, y, sample_weight=weight)
    assert sampled.loss_std_ == 0.0
    counted = reference.weighted_loss_and_gradient(sampled.components_, X, y, weight, targets, 0.5)
    assert sampled.loss_ == pytest.approx(counted[0], rel=1e-9)


@pytest.mark.filterwarnings("ignore:1 of 4 classes have no more than n_neighbors=3")
def test_a_class_of_one_row_has_its_copies_as_targets(labeled):
    X, y = np.vstack([labeled[0], labeled[0][:1] + 0.1]), np.append(labeled[1], 3)
    weight = np.append(np.ones(60), 3.0)
    learner = LMNN(max_anchors=59, tol=0.1, init="identity", random_state=0)
    learner.fit(X, y, sample_weight=weight)
    targets = reference.weighted_target_neighbors(X, y, weight, 3)
    assert targets[60] == [(60, 2.0)]
    wanted = reference.weighted_loss_and_gradient(learner.components_, X, y, weight, targets, 0.5)
    assert wanted[2][60] > 0
    # The two that were not learned from are all sampled afterwards.
    assert learner.loss_std_ == 0.0
    assert learner.loss_ == pytest.approx(wanted[0], rel=1e-9)


def test_bad_weights(labeled):
    X, y = labeled
    for weight, said in (
        (np.ones(59), r"one weight for each of the 60 examples. Got an array of shape \(59,\)"),
        (np.full(60, -1.0), "finite and not negative"),
        (np.full(60, np.nan), "finite and not negative"),
        (np.zeros(60), "sample_weight must not be zero for every example"),
        ((y == 0).astype(float), "LMNN needs labels of at least two classes"),
    ):
        learner = LMNN()
        with pytest.raises(InvalidInputError, match=said):
            learner.fit(X, y, sample_weight=weight)
        assert vars(learner) == vars(LMNN())
    with pytest.raises(InvalidInputError, match="Got sample_weight too; use only one"):
        LMNN(validation_fraction=0.2).fit(X, y, sample_weight=np.ones(60))
    with pytest.warns(SamewiseWarning, match="1 of 3 classes have no more than n_neighbors=3"):
        LMNN(tol=0.1).fit(X, y, sample_weight=np.where(y == 0, 0.1, 1.0))
