"""Semi-hard negatives: closer than random ones, but not as close as the positive."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import OASIS, Bilinear, GeneralizedCosine, Mahalanobis, NormalizedBilinear, Triplets
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.supervision import negatives as module

SKEW = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [0.5, 0.0, 3.0]])
METRIC = np.diag([4.0, 1.0, 0.1])

FORMS = {
    "none": (None, lambda a, b: a @ b),
    "bilinear": (Bilinear(SKEW), lambda a, b: a @ SKEW @ b),
    "mahalanobis": (Mahalanobis(METRIC), lambda a, b: -((a - b) @ METRIC @ (a - b))),
    "cosine": (
        NormalizedBilinear(np.eye(3), "cosine"),
        lambda a, b: a @ b / np.sqrt((a @ a) * (b @ b)),
    ),
}


def examples(n=40, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % n_classes)


def rows(triplets):
    """The triplets as an array of shape (n_triplets, 3) of row numbers."""
    return np.stack([triplets.anchor, triplets.positive, triplets.negative], axis=1)


def semi_hard(anchor, positive, candidates, closeness):
    """The closest candidate below the positive, or the least close of all."""
    below = [j for j in candidates if closeness(anchor, j) < closeness(anchor, positive)]
    if below:
        return max(below, key=lambda j: closeness(anchor, j))
    return min(candidates, key=lambda j: closeness(anchor, j))


@pytest.mark.parametrize("form", FORMS)
def test_among_few_examples_all_are_candidates(form, seed):
    X, y = examples(seed=seed)
    form, compare = FORMS[form]
    t = Triplets.from_labels(X, y, 300, negatives="semi-hard", form=form, random_state=seed)

    def closeness(i, j):
        return compare(X[i], X[j])

    n_below = 0
    for a, p, q in rows(t).tolist():
        assert q == semi_hard(a, p, np.flatnonzero(y != y[a]).tolist(), closeness)
        n_below += closeness(a, q) < closeness(a, p)
    # Both cases were met.
    assert 0 < n_below < 300


def test_among_many_examples_a_lot_of_triplets_shares_a_pool(monkeypatch, seed):
    X, y = examples(700, 30, seed)
    pools, draw = [], module.distinct

    def recorded(*args):
        pools.append(draw(*args))
        return pools[-1]

    monkeypatch.setattr(module, "distinct", recorded)
    t = Triplets.from_labels(X, y, 300, negatives="semi-hard", random_state=seed)
    assert [len(set(pool.tolist())) for pool in pools] == [256] * 3
    for k, (a, p, q) in enumerate(rows(t).tolist()):
        pool = pools[k // 128]
        candidates = pool[y[pool] != y[a]].tolist()
        assert q == semi_hard(a, p, candidates, lambda i, j: X[i] @ X[j])


def test_anchors_and_positives_are_those_of_random_negatives(seed):
    X, y = examples(seed=seed)
    plain = rows(Triplets.from_labels(X, y, 500, random_state=seed))
    for kind in ("semi-hard", 0.3, 1):
        t = rows(Triplets.from_labels(X, y, 500, negatives=kind, random_state=seed))
        np.testing.assert_array_equal(t[:, :2], plain[:, :2])
        assert np.all(y[t[:, 2]] != y[t[:, 0]])
        assert np.any(t[:, 2] != plain[:, 2])


def test_random_negatives_are_the_default_and_need_no_form(seed):
    X, y = examples(seed=seed)
    plain = rows(Triplets.from_labels(X, y, 100, random_state=seed))
    for options in ({"negatives": "random"}, {"negatives": 0}, {"form": Bilinear(SKEW)}):
        t = Triplets.from_labels(X, y, 100, random_state=seed, **options)
        np.testing.assert_array_equal(rows(t), plain)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_part_of_the_negatives_is_semi_hard(part, seed):
    n = 2000
    X, y = examples(seed=seed)
    random, mixed, hard = (
        Triplets.from_labels(X, y, n, negatives=kind, random_state=seed).negative
        for kind in ("random", part, "semi-hard")
    )
    # Here every example is a candidate, so that a triplet has but one semi-hard negative.
    assert np.all((mixed == random) | (mixed == hard))
    differ = random != hard
    assert np.count_nonzero(mixed != random) <= round(part * n)
    assert np.count_nonzero(mixed != hard) <= round((1 - part) * n)
    # Five standard deviations, anywhere in the stream.
    for half in (slice(n // 2), slice(n // 2, n)):
        took = (mixed == hard)[half][differ[half]]
        assert abs(took.mean() - part) < 5 * np.sqrt(part * (1 - part) / len(took))


@pytest.mark.parametrize("kind", ["semi-hard", 0.5])
def test_the_same_random_state_gives_the_same_triplets(kind):
    X, y = examples(400, 20)

    def draw(state):
        return rows(Triplets.from_labels(X, y, 300, negatives=kind, random_state=state)).tolist()

    assert draw(3) == draw(3) == draw(np.random.RandomState(3))
    assert draw(3) != draw(4)


@pytest.mark.parametrize("form", FORMS)
def test_sparse_rows_and_single_precision_give_the_same_triplets(form):
    X, y = examples(400, 20)
    X[:, 0] *= X[:, 0] > 0
    form = FORMS[form][0]

    def draw(given):
        return Triplets.from_labels(given, y, 300, negatives=0.8, form=form, random_state=0)

    dense, sparse, single = draw(X), draw(sp.csr_array(X)), draw(X.astype(np.float32))
    assert sp.issparse(sparse.X) and single.X.dtype == np.float32
    np.testing.assert_array_equal(rows(sparse), rows(dense))
    # What is nearly as close may be told apart in double precision only.
    assert np.mean(rows(single) == rows(dense)) > 0.99


def test_weightless_examples_are_no_candidates(seed):
    X, y = examples(seed=seed)
    weight = np.random.default_rng(seed).integers(0, 3, len(y)).astype(float)
    t = Triplets.from_labels(
        X, y, 300, negatives="semi-hard", sample_weight=weight, random_state=seed
    )
    assert np.all(weight[rows(t)] > 0)
    product = weight[rows(t)].prod(axis=1)
    np.testing.assert_allclose(t.sample_weight, product / product.mean(), rtol=1e-12)
    left_out = Triplets.from_labels(
        X[weight > 0], y[weight > 0], 300, negatives="semi-hard", random_state=seed
    )
    np.testing.assert_array_equal(X[rows(t)], X[weight > 0][rows(left_out)])


@pytest.mark.parametrize("kind", ["semi-hard", 0.5])
def test_merged_examples_make_repeating_the_same_as_weighting(kind, seed):
    X, y = examples(300, 12, seed)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, 300)
    again = rng.permutation(np.repeat(np.arange(300), weights))
    order = rng.permutation(300)

    def drawn(chosen, sample_weight):
        t = Triplets.from_labels(
            X[chosen],
            y[chosen],
            200,
            negatives=kind,
            merge_duplicates=True,
            sample_weight=sample_weight,
            random_state=0,
        )
        return t.X[rows(t)], t.sample_weight

    for one, two in zip(drawn(order, weights[order]), drawn(again, None), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_where_the_pool_holds_no_other_class_the_random_negative_stays(seed):
    X, y = np.random.default_rng(seed).normal(size=(5000, 3)), np.zeros(5000, dtype=int)
    y[[17, 4000]] = 1
    random, hard = (
        Triplets.from_labels(X, y, 3000, negatives=kind, random_state=seed)
        for kind in ("random", "semi-hard")
    )
    assert np.all(y[hard.negative] != y[hard.anchor])
    assert set(hard.negative[y[hard.anchor] == 0]) == {17, 4000}
    # 256 of 5000 seldom hold one of the two.
    assert np.mean(random.negative == hard.negative) > 0.5


def test_a_negative_equal_to_the_positive_is_not_below_it():
    X = np.array([[1.0, 0.0], [0.8, 0.0], [0.8, 0.0], [0.1, 0.0], [0.9, 0.0]])
    y = np.array([0, 0, 1, 1, 1])
    t = Triplets.from_labels(X, y, 50, negatives="semi-hard", random_state=0)
    assert set(t.negative[t.anchor == 0]) == {3}


# Bad input


@pytest.mark.parametrize(
    "kind", ["hard", "semihard", None, True, -0.1, 1.5, np.nan, ("semi-hard", 0.5), np.ones(2)]
)
def test_unknown_negatives(kind):
    said = (
        "negatives must be 'random', 'semi-hard' or a number from 0 to 1, the part of them that is "
        f"semi-hard. Got {kind!r}."
    )
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        Triplets.from_labels(*examples(), 5, negatives=kind)


@pytest.mark.parametrize(
    "form", [Bilinear(np.eye(2)), Bilinear(np.ones((3, 2))), Mahalanobis.identity(1)]
)
@pytest.mark.parametrize("kind", ["random", "semi-hard"])
def test_a_form_for_other_rows(form, kind):
    said = f"form must compare examples of 3 features with each other. Got {form!r}."
    state = np.random.RandomState(0)
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        Triplets.from_labels(*examples(), 5, negatives=kind, form=form, random_state=state)
    assert state.randint(1000) == np.random.RandomState(0).randint(1000)


@pytest.mark.parametrize("form, name", [(OASIS(), "OASIS"), ("cosine", "str"), (SKEW, "ndarray")])
def test_what_is_no_form(form, name):
    said = (
        "form must be a form, such as the metric_ of a fitted learner, or None for the dot product."
        f" Got {name}."
    )
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        Triplets.from_labels(*examples(), 5, negatives="semi-hard", form=form)


@pytest.mark.parametrize("form", [GeneralizedCosine(np.eye(3)), NormalizedBilinear(np.eye(3))])
def test_rows_without_a_cosine_are_named(form):
    X, y = examples(200)
    X[173] = 0.0
    with pytest.raises(DegenerateInputError, match=r"\b173\b"):
        Triplets.from_labels(X, y, 50, negatives="semi-hard", form=form, random_state=0)
