"""Labels and grades into pairs and triplets."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import GeneralizedCosine, Mahalanobis, NormalizedBilinear, Pairs, Triplets
from samewise.exceptions import DegenerateInputError, SamewiseWarning
from samewise.supervision.sampling import _equal_rows, _triangle

STRATEGIES = ["balanced", "random"]


def names(pairs):
    """Each pair as the set of its two rows."""
    return [frozenset(both) for both in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]


def examples(n=40, d=3, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.permutation(np.arange(n) % n_classes)


# Pairs from labels


@pytest.mark.parametrize("i", [1, 2, 3, 10**8, 2 * 10**8, 2 * 10**9])
def test_pairs_are_numbered_without_gaps(i):
    first = i * (i - 1) // 2
    codes = np.array([first, first + i - 1, first + i])
    left, right = _triangle(codes)
    np.testing.assert_array_equal(left, [i, i, i + 1])
    np.testing.assert_array_equal(right, [0, i - 1, 0])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pairs_are_distinct_truly_labeled_and_never_of_one_row(strategy, seed):
    X, y = examples(seed=seed)
    pairs = Pairs.from_labels(X, y, 300, strategy=strategy, random_state=seed)
    assert len(pairs) == 300
    assert len(set(names(pairs))) == 300
    assert all(len(both) == 2 for both in names(pairs))
    np.testing.assert_array_equal(pairs.y, np.where(y[pairs.left] == y[pairs.right], 1, -1))
    assert pairs.sample_weight is None


@pytest.mark.parametrize("n_pairs", [1, 2, 101, 150])
def test_balanced_is_half_and_half(n_pairs, seed):
    pairs = Pairs.from_labels(*examples(), n_pairs, random_state=seed)
    assert np.count_nonzero(pairs.y == 1) == (n_pairs + 1) // 2


def test_balanced_is_the_default():
    X, y = examples()
    given = Pairs.from_labels(X, y, 100, strategy="balanced", random_state=0)
    assert names(Pairs.from_labels(X, y, 100, random_state=0)) == names(given)


def test_balanced_fills_up_where_one_kind_runs_out():
    # 3 similar pairs and 12 dissimilar ones exist.
    X, y = np.zeros((6, 1)), [0, 0, 1, 1, 2, 2]
    few = Pairs.from_labels(X, y, 10, random_state=0)
    assert Counter(few.y.tolist()) == {1: 3, -1: 7}
    # 2 dissimilar and 1 similar: the other way round.
    few = Pairs.from_labels(np.zeros((3, 1)), [0, 0, 1], 3, random_state=0)
    assert Counter(few.y.tolist()) == {1: 1, -1: 2}


def test_random_is_as_similar_as_all_pairs_are(seed):
    X, y = np.zeros((200, 1)), np.repeat([0, 1, 2, 3], [100, 50, 30, 20])
    similar = sum(n * (n - 1) / 2 for n in (100, 50, 30, 20)) / (200 * 199 / 2)
    pairs = Pairs.from_labels(X, y, 4000, strategy="random", random_state=seed)
    # Five standard deviations of the share among 4000.
    assert abs(np.mean(pairs.y == 1) - similar) < 5 * np.sqrt(similar * (1 - similar) / 4000)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_pair_is_drawn_equally_often(strategy):
    # 1 similar pair of class 0, 3 of class 1, 2·3 = 6 dissimilar ones.
    X, y = np.zeros((5, 1)), [0, 1, 0, 1, 1]
    drawn = Counter()
    for seed in range(800):
        drawn.update(names(Pairs.from_labels(X, y, 2, strategy=strategy, random_state=seed)))
    every = {frozenset(both) for both in itertools.combinations(range(5), 2)}
    assert set(drawn) == every
    for similar in (True, False):
        group = [both for both in every if (len({y[i] for i in both}) == 1) == similar]
        counts = np.array([drawn[both] for both in group])
        expected = 1600 / 10 if strategy == "random" else 800 / len(group)
        # χ² with at most 6 degrees of freedom exceeds 27 in one of 7000 cases.
        assert np.sum((counts - expected) ** 2 / expected) < 27


def test_the_order_and_the_sides_carry_no_information(seed):
    X, y = np.zeros((300, 1)), np.arange(300) // 30
    pairs = Pairs.from_labels(X, y, 2000, random_state=seed)
    # Five standard deviations of a fair coin.
    assert abs(np.mean(pairs.left < pairs.right) - 0.5) < 5 * 0.5 / np.sqrt(2000)
    assert abs(np.mean(pairs.y[:1000] == 1) - 0.5) < 5 * 0.5 / np.sqrt(1000)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_pairs_when_as_many_as_exist_are_asked_for(strategy):
    X, y = examples(20, n_classes=3)
    pairs = Pairs.from_labels(X, y, 190, strategy=strategy, random_state=0)
    every = {frozenset(both) for both in itertools.combinations(range(20), 2)}
    assert len(pairs) == 190 and set(names(pairs)) == every


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_many_asked_for_gives_all_and_says_so(strategy):
    X, y = examples(20, n_classes=3)
    with pytest.warns(
        SamewiseWarning,
        match=r"500 pairs were asked for, but only 190 could be sampled without repeating one; "
        r"ask for fewer, or make several passes over them \(n_passes\)",
    ):
        pairs = Pairs.from_labels(X, y, 500, strategy=strategy, random_state=0)
    assert len(set(names(pairs))) == len(pairs) == 190


def test_twenty_per_example_unless_said():
    assert len(Pairs.from_labels(*examples(60), random_state=0)) == 1200


def test_whoever_asks_for_no_number_is_not_told_that_it_was_too_large():
    assert len(Pairs.from_labels(*examples(10, n_classes=2), random_state=0)) == 45


@pytest.mark.parametrize("strategy", [*STRATEGIES, "nearest"])
def test_the_same_random_state_gives_the_same_pairs(strategy):
    X, y = examples()

    def draw(state):
        pairs = Pairs.from_labels(X, y, 100, strategy=strategy, random_state=state)
        return pairs.left.tolist(), pairs.right.tolist()

    assert draw(3) == draw(3) == draw(np.random.RandomState(3))
    assert draw(3) != draw(4)
    # One generator goes on from draw to draw.
    state = np.random.RandomState(3)
    assert draw(state) != draw(state)


def test_labels_of_any_kind():
    X, y = examples(n_classes=3)
    expected = Pairs.from_labels(X, y, 100, random_state=0)
    as_strings = np.array(["ant", "bee", "cat"])[y]
    for labels in (as_strings, as_strings.astype(object), list(as_strings), y * 10 - 5, y == 1):
        pairs = Pairs.from_labels(X, labels, 100, random_state=0)
        labels = np.asarray(labels)
        same = labels[pairs.left] == labels[pairs.right]
        np.testing.assert_array_equal(pairs.y, np.where(same, 1, -1))
        if len(np.unique(labels)) == 3:
            assert names(pairs) == names(expected)


def test_many_small_classes_are_no_regression():
    y = np.r_[np.repeat(np.arange(15), 2), np.arange(15, 40)]
    pairs = Pairs.from_labels(np.zeros((len(y), 1)), y, 30, random_state=0)
    assert np.count_nonzero(pairs.y == 1) == 15


def test_sparse_rows_and_dense_rows_give_the_same_pairs():
    X, y = examples()
    for strategy in (*STRATEGIES, "nearest"):
        dense = Pairs.from_labels(X, y, 100, strategy=strategy, random_state=0)
        sparse = Pairs.from_labels(sp.csr_array(X), y, 100, strategy=strategy, random_state=0)
        assert names(dense) == names(sparse)
        assert sp.issparse(sparse.X)


def test_labeled_rows_are_shared():
    X, y = examples()
    assert np.shares_memory(Pairs.from_labels(X, y, 5, random_state=0).X, X)
    assert np.shares_memory(Triplets.from_labels(X, y, 5, random_state=0).X, X)


# Weights of examples


@pytest.mark.parametrize("strategy", [*STRATEGIES, "nearest"])
def test_rows_of_weight_zero_are_never_drawn(strategy, seed):
    X, y = examples(seed=seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    pairs = Pairs.from_labels(X, y, 100, strategy=strategy, sample_weight=weight, random_state=seed)
    assert np.all(weight[pairs.left] > 0) and np.all(weight[pairs.right] > 0)
    assert len(set(zip(pairs.left, pairs.right, strict=True))) == 100


def test_a_weight_of_zero_is_the_same_as_leaving_out(seed):
    X, y = examples(seed=seed)
    keep = np.random.default_rng(seed).random(len(y)) < 0.7
    left_out = Pairs.from_labels(X[keep], y[keep], 60, random_state=seed)
    weighted = Pairs.from_labels(X, y, 60, sample_weight=keep.astype(float), random_state=seed)
    np.testing.assert_array_equal(weighted.differences(), left_out.differences())
    np.testing.assert_array_equal(weighted.y, left_out.y)
    # "nearest" has no randomness at all.
    left_out = Pairs.from_labels(X[keep], y[keep], strategy="nearest")
    weighted = Pairs.from_labels(X, y, strategy="nearest", sample_weight=keep.astype(float))
    np.testing.assert_array_equal(weighted.differences(), left_out.differences())


def test_a_pair_weighs_the_product_of_its_members_with_mean_one(seed):
    X, y = examples(seed=seed)
    weight = np.random.default_rng(seed).uniform(0, 5, len(y))
    pairs = Pairs.from_labels(X, y, 200, sample_weight=weight, random_state=seed)
    product = [weight[i] * weight[j] for i, j in zip(pairs.left, pairs.right, strict=True)]
    np.testing.assert_allclose(pairs.sample_weight, product / np.mean(product), rtol=1e-12)
    triplets = Triplets.from_labels(X, y, 200, sample_weight=weight, random_state=seed)
    product = weight[triplets.anchor] * weight[triplets.positive] * weight[triplets.negative]
    np.testing.assert_allclose(triplets.sample_weight, product / product.mean(), rtol=1e-12)


def test_the_scale_of_the_weights_does_not_matter():
    X, y = examples()
    weight = np.random.default_rng(0).uniform(1, 2, len(y))
    one, ten = (
        Pairs.from_labels(X, y, 50, sample_weight=w, random_state=0) for w in (weight, 10 * weight)
    )
    np.testing.assert_allclose(one.sample_weight, ten.sample_weight, rtol=1e-12)


# The nearest of each kind


def nearest_by_loops(X, y, k, closeness):
    """(left, right) of the k closest of the same class and of the others, as sets per example."""
    found = set()
    for i in range(len(X)):
        for same in (True, False):
            others = [j for j in range(len(X)) if j != i and (y[j] == y[i]) == same]
            others.sort(key=lambda j: -closeness(X[i], X[j]))
            found |= {(i, j) for j in others[:k]}
    return found


def euclidean(a, b):
    return -np.sqrt(np.sum((a - b) ** 2))


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


METRIC = np.diag([4.0, 1.0, 0.1])

FORMS = {
    "none": (None, euclidean),
    "mahalanobis": (Mahalanobis(METRIC), lambda a, b: -((a - b) @ METRIC @ (a - b))),
    "cosine": (NormalizedBilinear(np.eye(3), "cosine"), cosine),
    "generalized cosine": (GeneralizedCosine(np.eye(3)), cosine),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [1, 5])
def test_nearest_is_what_a_loop_finds(form, k, seed):
    form, closeness = FORMS[form]
    # The last class has three members: two neighbors of the same class each, not five.
    y = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2], [12, 10, 3]))
    X = np.random.default_rng(seed).normal(size=(25, 3))
    pairs = Pairs.from_labels(X, y, strategy="nearest", n_neighbors=k, form=form)
    drawn = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) == nearest_by_loops(X, y, k, closeness)
    np.testing.assert_array_equal(pairs.y, np.where(y[pairs.left] == y[pairs.right], 1, -1))
    assert np.all(np.diff(pairs.left) >= 0)
    assert len(pairs) == (25 * 10 - 3 * 3 if k == 5 else 25 * 2)


def test_nearest_keeps_a_random_part_in_order(seed):
    X, y = examples(seed=seed)
    every = Pairs.from_labels(X, y, strategy="nearest")
    some = Pairs.from_labels(X, y, 50, strategy="nearest", random_state=seed)
    assert len(every) == 400 and len(some) == 50
    assert np.all(np.diff(some.left) >= 0)
    drawn = set(zip(some.left, some.right, strict=True))
    assert len(drawn) == 50
    assert drawn <= set(zip(every.left, every.right, strict=True))


def test_nearest_by_cosine_refuses_zero_rows():
    X, y = examples()
    X[7] = 0.0
    with pytest.raises(DegenerateInputError, match=r"no cosine.*\b7\b"):
        Pairs.from_labels(X, y, strategy="nearest", form=GeneralizedCosine(np.eye(3)))


# Triplets from labels


def test_triplets_rank_the_own_class_above_the_others(seed):
    X, y = examples(seed=seed)
    triplets = Triplets.from_labels(X, y, 500, random_state=seed)
    assert len(triplets) == 500
    assert np.all(triplets.anchor != triplets.positive)
    assert np.all(y[triplets.anchor] == y[triplets.positive])
    assert np.all(y[triplets.anchor] != y[triplets.negative])
    assert len(Triplets.from_labels(X, y, random_state=seed)) == 20 * len(y)


def test_triplets_are_uniform(seed):
    # Row 5 is alone in its class: a negative, never an anchor or a positive.
    y = np.array([0, 1, 0, 1, 0, 2, 1])
    n = 40_000
    t = Triplets.from_labels(np.zeros((7, 1)), y, n, random_state=seed)
    seen = Counter(zip(t.anchor.tolist(), t.positive.tolist(), t.negative.tolist(), strict=True))
    chance = {
        (a, p, q): 1 / 6 / 2 / np.sum(y != y[a])
        for a, p, q in itertools.product(range(7), repeat=3)
        if a != p and y[a] == y[p] and y[q] != y[a]
    }
    assert set(seen) == set(chance) and sum(chance.values()) == pytest.approx(1.0)
    chi_square = sum((seen[key] - n * p) ** 2 / (n * p) for key, p in chance.items())
    # 48 triplets: χ² with 47 degrees of freedom exceeds 100 about once in 10⁵.
    assert len(chance) == 48 and chi_square < 100


def test_triplets_are_deterministic_and_leave_weightless_rows_out():
    X, y = examples()
    one, same, other = (Triplets.from_labels(X, y, 50, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.negative, same.negative)
    assert not np.array_equal(one.negative, other.negative)
    weight = np.ones(len(y))
    weight[:10] = 0
    t = Triplets.from_labels(X, y, 500, sample_weight=weight, random_state=0)
    assert min(t.anchor.min(), t.positive.min(), t.negative.min()) >= 10


# Grades


def test_pairs_of_grades_are_the_judgments(seed):
    rng = np.random.default_rng(seed)
    judged = rng.random((8, 8)) < 0.4
    grades = rng.integers(0, 4, (8, 8)).astype(float)
    row, column = np.nonzero(judged)
    stored = sp.coo_array((grades[row, column], (row, column)), shape=(8, 8))
    pairs = Pairs.from_grades(np.zeros((8, 2)), stored, relevant=2)
    expected = {
        (i, j, 1 if grades[i, j] >= 2 else -1)
        for i, j in itertools.product(range(8), repeat=2)
        if judged[i, j] and i != j
    }
    drawn = list(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.y.tolist(), strict=True))
    assert len(drawn) == len(expected) and set(drawn) == expected


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_array])
def test_triplets_of_grades_rank_higher_grades_higher(kind, seed):
    grades = np.array([[2, 1, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 3, 0, 0], [1, 1, 1, 1, 1]])
    queries, items = np.zeros((4, 3)), np.zeros((5, 6))
    n = 20_000
    t = Triplets.from_grades(queries, items, kind(grades), n, random_state=seed)
    assert len(t) == n and t.X.shape == (4, 3) and t.items.shape == (5, 6)
    # Queries without anything to rank are left out; the rest is uniform as documented.
    good = [(q, i) for q in (0, 2) for i in range(5) if grades[q, i] > 0]
    chance = {}
    for q, i in good:
        below = [j for j in range(5) if grades[q, j] < grades[q, i]]
        # Half of the negatives are among the judged ones, where there are some.
        judged = [j for j in below if grades[q, j] != 0]
        half = 0.5 if judged else 1.0
        for j in below:
            share = half / len(below) + (j in judged) * 0.5 / max(len(judged), 1)
            chance[q, i, j] = share / len(good)
    seen = Counter(zip(t.anchor.tolist(), t.positive.tolist(), t.negative.tolist(), strict=True))
    assert set(seen) == set(chance)
    # 12 triplets: χ² with 11 degrees of freedom exceeds 43 about once in 10⁵.
    assert sum((seen[key] - n * p) ** 2 / (n * p) for key, p in chance.items()) < 43


def test_triplets_of_grades_are_deterministic_and_twenty_per_query():
    grades = sp.random_array((6, 9), density=0.4, rng=np.random.default_rng(0))
    one, same, other = (
        Triplets.from_grades(np.zeros((6, 2)), np.zeros((9, 4)), grades, random_state=s)
        for s in (1, 1, 2)
    )
    assert len(one) == 120
    np.testing.assert_array_equal(one.positive, same.positive)
    assert not np.array_equal(one.positive, other.positive)


def test_a_negative_grade_ranks_below_one_that_is_not_stored():
    grades = sp.coo_array(([1.0, -1.0], ([0, 0], [0, 1])), shape=(1, 3))
    t = Triplets.from_grades(np.zeros((1, 1)), np.zeros((3, 1)), grades, 100, random_state=0)
    assert set(t.positive) == {0} and set(t.negative) == {1, 2}


@pytest.mark.parametrize("strategy", ["balanced", "random", "nearest"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "CSR"])
def test_merged_examples_make_repeating_the_same_as_weighting(strategy, sparse, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 3)) * (rng.random((30, 3)) < 0.7), rng.integers(0, 3, 30)
    weights = rng.integers(0, 4, 30)
    again = rng.permutation(np.repeat(np.arange(30), weights))

    def drawn(rows, sample_weight):
        given = sp.csr_array(X[rows]) if sparse else X[rows]
        pairs = Pairs.from_labels(
            given,
            y[rows],
            None if strategy == "nearest" else 100,
            strategy=strategy,
            merge_duplicates=True,
            sample_weight=sample_weight,
            random_state=0,
        )
        V = pairs.differences()
        return V.toarray() if sparse else V, pairs.y, pairs.sample_weight

    order = rng.permutation(30)
    for one, two in zip(drawn(order, weights[order]), drawn(again, None), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_are_compared_one_by_one(kind):
    X = kind(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]]))
    equal = _equal_rows(X, np.array([0, 0, 2]), np.array([1, 2, 2]))
    assert equal.tolist() == [True, False, True]


def test_merging_tells_rows_and_classes_apart():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    y = np.array([0, 0, 0, 1, 1])
    pairs = Pairs.from_labels(X, y, n_pairs=6, merge_duplicates=True, random_state=0)
    # Four examples are left (two of each class), so six pairs, one of them between equal vectors.
    assert len({frozenset(pair) for pair in zip(pairs.left, pairs.right, strict=True)}) == 6
    assert np.count_nonzero(pairs.y == 1) == 2
    assert np.count_nonzero(~pairs.differences().any(axis=1)) == 1
    unweighted = Pairs.from_labels(X[2:], y[2:], n_pairs=3, merge_duplicates=True, random_state=0)
    assert unweighted.sample_weight is None


def test_unless_said_there_are_twenty_per_example_and_a_bounded_number_in_all():
    few, many = np.zeros((30, 1)), np.zeros((6000, 1))
    assert len(Pairs.from_labels(few, np.arange(30) % 2, random_state=0)) == 435  # all there are
    assert len(Triplets.from_labels(few, np.arange(30) % 2, random_state=0)) == 600
    assert len(Pairs.from_labels(many, np.arange(6000) % 2, random_state=0)) == 100_000
    assert len(Triplets.from_labels(many, np.arange(6000) % 2, random_state=0)) == 100_000
