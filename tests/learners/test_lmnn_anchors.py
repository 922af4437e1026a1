"""LMNN on a sample of anchors: its terms, its estimate of the whole loss, and its options."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import LMNN
from samewise.exceptions import SamewiseWarning
from samewise.learners.batch.lmnn.anchors import Anchors
from samewise.learners.batch.lmnn.impostors import search
from samewise.learners.batch.lmnn.objective import LINEAR, SQUARED, LMNNObjective
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.solvers.workers import Workers, workers
from tests.pairwise import SEEDS, pairwise
from tests.reference.lmnn import loss_and_gradient, target_neighbors


@pytest.fixture(scope="module")
def thousands():
    """Five overlapping classes, 3000 points."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, 3000)
    X = rng.normal(size=(3000, 10))
    X[:, :5] += 1.5 * rng.normal(size=(5, 5))[y]
    return X, y


# The terms


# Thinned from 24 cases to 12.
@pairwise(seed=SEEDS, n_anchors=[1, 12, 40, 60], hinge={"linear": LINEAR, "squared": SQUARED})
def test_terms_and_gradient_are_those_of_all_triplets_of_the_anchors(
    labeled, hinge, n_anchors, seed
):
    X, y = labeled
    rng = np.random.default_rng(seed)
    L = 0.5 * rng.normal(size=(4, 5))
    classes = Classes(y, 3)
    anchors = np.sort(rng.choice(60, n_anchors, replace=False)).astype(np.int32)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team, anchors)
        objective = LMNNObjective(X[classes.order], targets, classes, 0.3, hinge, team)
        objective.search(L)
        value, terms = objective.value_and_gradient(L), objective.losses(L)
    rows = classes.order[anchors]
    wanted = target_neighbors(X, y, 3)
    wanted = [wanted[i] if i in rows else [] for i in range(60)]
    loss, gradient, active, _ = loss_and_gradient(L, X, y, wanted, 0.3, hinge is SQUARED)
    assert value.loss == pytest.approx(loss, rel=1e-10)
    assert value.active == active
    np.testing.assert_allclose(value.gradient, gradient, atol=1e-10 * abs(gradient).max())
    for i, term in zip(rows, terms, strict=True):
        alone = [wanted[i] if i == j else [] for j in range(60)]
        loss = loss_and_gradient(L, X, y, alone, 0.3, hinge is SQUARED)[0]
        assert term == pytest.approx(loss, rel=1e-10)


# Thinned from 18 cases to 9.
@pairwise(seed=SEEDS, part=[0.02, 0.4, 0.6], n_threads=[1, 2])
def test_search_for_a_few_finds_each_pair_once(part, n_threads, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(1500, 20)) * np.linspace(3, 0.1, 20)
    classes = Classes(np.sort(rng.integers(0, 4, 1500)), 4)
    reach = np.where(rng.random(1500) < part, rng.uniform(1, 30, 1500), -np.inf)
    with workers() as team:
        found = search(Z, reach, classes, Workers(n_threads, team._pool))
    rows = np.repeat(np.arange(1500), np.diff(found.indptr))
    D = ((Z[:, None] - Z) ** 2).sum(axis=2)
    wanted = (np.maximum(reach[:, None], reach) > D) & (classes.ends[:, None] != classes.ends)
    pairs = np.sort(np.column_stack([rows, found.columns]), axis=1)
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    np.testing.assert_array_equal(pairs, np.argwhere(np.triu(wanted)))


# The sample


def test_every_point_is_drawn_as_often_and_every_class_in_proportion():
    y = np.repeat([0, 1, 2, 3], [50, 30, 19, 1])
    classes = Classes(y, 4)
    random = np.random.RandomState(0)
    drawn = np.zeros(100)
    for _ in range(2000):
        sample = Anchors(classes, None, 20, random)
        assert sample.factor == 99 / 20
        assert len(np.unique(sample.chosen)) == 20
        shares = np.bincount(y[sample.chosen], minlength=4)
        assert (abs(shares - np.array([50, 30, 19, 0]) * 20 / 99) < 1).all()
        others = sample.others(random)
        assert len(others) == 20 and not set(others) & set(sample.chosen)
        drawn[sample.chosen] += 1
    # The class of one point has no targets.
    assert drawn[99] == 0
    assert abs(drawn[:99] / 2000 - 20 / 99).max() < 5 * np.sqrt(20 / 99 * 79 / 99 / 2000)


def test_estimate_is_unbiased_and_so_is_its_error():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    classes = Classes(y, 3)
    terms = rng.exponential(size=200)
    random = np.random.RandomState(0)
    found = []
    for _ in range(2000):
        sample = Anchors(classes, None, 20, random)
        loss = terms[sample.chosen].sum()
        found.append(sample.estimate(loss, terms[sample.others(random)]))
    loss, error = np.array(found).T
    assert loss.mean() == pytest.approx(terms.sum(), abs=4 * loss.std() / np.sqrt(2000))
    assert np.sqrt(np.mean(error**2)) == pytest.approx(loss.std(), rel=0.1)


# The estimator


def test_with_as_many_anchors_as_points_nothing_changes(labeled):
    X, y = labeled
    plain = LMNN(n_target_searches=2).fit(X, y)
    for n_anchors in (60, 1000):
        every = LMNN(n_target_searches=2, max_anchors=n_anchors, random_state=1).fit(X, y)
        np.testing.assert_array_equal(every.components_, plain.components_)
        assert every.loss_ == plain.loss_ == every.anchor_loss_
        assert every.loss_std_ == plain.loss_std_ == 0
        np.testing.assert_array_equal(every.history_["loss"], plain.history_["loss"])


OPTIONS = {
    "plain": {},
    "two passes": {"n_target_searches": 2},
    "squared": {"hinge": "squared"},
    "low rank": {"n_components": 2, "init": "pca"},
    "convex": {"solver": "M", "max_iter": 5000},
    "identity": {"init": "identity", "push_weight": 0.3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_loss_is_exact_if_at_most_half_is_left_out(labeled, options):
    X, y = labeled
    lmnn = LMNN(max_anchors=31, random_state=0, **options).fit(X, y)
    squared, mu = lmnn.hinge == "squared", lmnn.push_weight
    targets = target_neighbors(X, y, 3)
    if lmnn.n_target_searches == 2:
        once = LMNN(max_anchors=31, random_state=0).fit(X, y)
        targets = target_neighbors(X @ once.components_.T, y, 3)
    loss = loss_and_gradient(lmnn.components_, X, y, targets, mu, squared)[0]
    assert lmnn.loss_ == pytest.approx(loss, rel=1e-9)
    assert lmnn.loss_std_ == 0
    assert lmnn.anchor_loss_ < lmnn.loss_
    if lmnn.solver == "M":
        assert 0 <= lmnn.gap_ <= 2e-4 * lmnn.anchor_loss_


def test_given_targets_are_sampled(labeled):
    X, y = labeled
    targets = np.array(target_neighbors(X, y, 3))
    found = LMNN(max_anchors=20, random_state=0).fit(X, y)
    given = LMNN(max_anchors=20, random_state=0, targets=targets).fit(X, y)
    assert given.loss_ == found.loss_ and given.loss_std_ == found.loss_std_ > 0
    # Points without targets are no anchors: here there are 15, and 10 are taken.
    targets[15:] = -1
    few = LMNN(max_anchors=10, targets=targets, random_state=0).fit(X, y)
    wanted = [list(row) if i < 15 else [] for i, row in enumerate(targets)]
    assert few.loss_ == pytest.approx(loss_and_gradient(few.components_, X, y, wanted, 0.5)[0])


def test_held_out_points_small_classes_warm_start_and_callback(labeled):
    X, y = labeled
    seen = []
    lmnn = LMNN(
        max_anchors=10, validation_fraction=0.3, random_state=0, warm_start=True, max_iter=50,
        tol=0, callback=lambda info: seen.append(info["loss"]),
    )  # fmt: skip
    lmnn.fit(X, y)
    assert np.isfinite(lmnn.history_["validation_error"]).any()
    np.testing.assert_array_equal(lmnn.history_["loss"], seen)
    assert np.isfinite([lmnn.loss_, lmnn.loss_std_]).all()
    lmnn.set_params(max_iter=1, callback=lambda info: True).fit(X, y)
    assert lmnn.n_iter_ == 1
    small = np.array([0] * 50 + [1] * 6 + [2] * 3 + [3])
    with pytest.warns(SamewiseWarning, match="2 of 4 classes have no more than n_neighbors=3"):
        lmnn = LMNN(max_anchors=40, random_state=0).fit(X, small)
    wanted = loss_and_gradient(lmnn.components_, X, small, target_neighbors(X, small, 3), 0.5)[0]
    assert lmnn.loss_ == pytest.approx(wanted, rel=1e-9)


def test_one_anchor_is_enough_but_tells_no_error(labeled):
    lmnn = LMNN(max_anchors=1, random_state=0, push_weight=0.5).fit(*labeled)
    assert np.isfinite(lmnn.components_).all()
    assert np.isfinite(lmnn.loss_) and np.isnan(lmnn.loss_std_)


def test_the_sample_is_drawn_by_random_state(labeled):
    first, again, other = (
        LMNN(max_anchors=15, random_state=state).fit(*labeled) for state in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.components_, again.components_)
    assert (first.loss_, first.loss_std_) == (again.loss_, again.loss_std_)
    assert not np.allclose(first.components_, other.components_)


def test_a_quarter_of_the_anchors_comes_close_to_the_whole_loss(thousands):
    X, y = thousands
    full = LMNN().fit(X, y)
    part = LMNN(max_anchors=750, random_state=0).fit(X, y)
    classes = Classes(y, 5)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team)
        objective = LMNNObjective(X[classes.order], targets, classes, 0.5, LINEAR, team)
        objective.search(part.components_)
        loss = objective.value_and_gradient(part.components_).loss
    assert full.loss_ < loss < 1.05 * full.loss_
    assert abs(part.loss_ - loss) < 4 * part.loss_std_ < 0.2 * loss
    assert part.anchor_loss_ < loss


def test_bad_number_of_anchors(labeled):
    with pytest.raises(ValueError, match="The 'max_anchors' parameter of LMNN must be"):
        LMNN(max_anchors=0).fit(*labeled)
