"""What all learners of triplets take: low rank, early stopping, automatic margins."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import (
    OASIS,
    DiagonalAROMA,
    FactoredAROMA,
    Index,
    LowRankBilinear,
    Triplets,
)
from samewise.scores import retrieval_scores

LEARNERS = [OASIS, DiagonalAROMA, FactoredAROMA]


def examples(seed: int, n: int = 200, d: int = 12):
    """Classes that differ in the first features, under noise in all."""
    rng = np.random.RandomState(seed)
    y = rng.randint(0, 4, n)
    X = rng.randn(n, d)
    X[:, :4] += 2.0 * np.eye(4)[y]
    return X, y


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# Low rank


def leading(X, rank):
    return np.linalg.svd(X, full_matrices=False)[2][:rank].T


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("init", ["zero", "identity"])
def test_rank_is_exact_learning_on_projected_vectors(learner, init, seed):
    X, y = examples(seed)
    triplets = Triplets.from_labels(X, y, 500, random_state=seed)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    A = leading(X, 5)
    low = learner(rank=5, init=init, margin=1.0).fit(triplets)
    projected = learner(init=init, margin=1.0).fit(Triplets(X @ A, *rows))
    W = A @ projected.metric_.matrix @ A.T
    assert isinstance(low.metric_, LowRankBilinear)
    assert low.n_updates_ == projected.n_updates_
    np.testing.assert_allclose(low.get_bilinear_matrix(), W, atol=1e-9 * np.abs(W).max())
    np.testing.assert_allclose(
        low.transform(X) @ low.metric_.embed_item(X).T, X @ W @ X.T, atol=1e-8 * np.abs(W).max()
    )
    assert low.get_feature_names_out().shape == (5,)
    if learner is not OASIS:
        np.testing.assert_allclose(
            low.score_variance(X, X[:9]), projected.score_variance(X @ A, X[:9] @ A), atol=1e-9
        )
        assert low.sample_scores(X, X[:9], random_state=0).shape == (200, 9)
        assert len(set(low.ask(X[0], X, n=4, by="upper"))) == 4


@pytest.mark.parametrize("learner", LEARNERS)
def test_rank_with_items_of_their_own_and_sparse_rows(learner, seed):
    X, y = examples(seed)
    items = np.hstack([X, X[:, :3] ** 2])
    t = Triplets.from_labels(X, y, 300, random_state=seed)
    rows = (t.anchor, t.positive, t.negative)
    low = learner(rank=4, margin=1.0).fit(Triplets(X, *rows, items=items))
    A, B = leading(X, 4), leading(items, 4)
    start = np.eye(12, 15) if learner is OASIS else np.zeros((12, 15))
    projected = learner(init=A.T @ start @ B, margin=1.0).fit(
        Triplets(X @ A, *rows, items=items @ B)
    )
    W = A @ projected.metric_.matrix @ B.T
    np.testing.assert_allclose(low.get_bilinear_matrix(), W, atol=1e-9 * max(np.abs(W).max(), 1))
    sparse = learner(rank=4, margin=1.0).fit(
        Triplets(sp.csr_array(X), *rows, items=sp.csr_array(items))
    )
    np.testing.assert_allclose(sparse.get_bilinear_matrix(), W, atol=1e-8 * max(np.abs(W).max(), 1))


def test_rank_never_builds_the_whole_matrix():
    rng = np.random.RandomState(0)
    X = sp.random_array((400, 30_000), density=2e-3, format="csr", rng=rng)
    y = rng.randint(0, 5, 400)
    learner = OASIS(rank=20, n_triplets=500, random_state=0).fit(sp.csr_array(X), y)
    assert learner.metric_.left.shape == learner.metric_.right.shape == (30_000, 20)
    neighbors = Index(learner.metric_, sp.csr_array(X)).query(sp.csr_array(X)[:5], 3)[1]
    assert neighbors.shape == (5, 3)


def test_rank_in_portions_and_with_psd(seed):
    X, y = examples(seed)
    triplets = Triplets.from_labels(X, y, 400, random_state=seed)
    whole = OASIS(rank=6, psd="end", average="survival").fit(triplets)
    parts = OASIS(rank=6, psd="end", average="survival")
    for start in (0, 100, 101):
        parts.partial_fit(triplets[start : {0: 100, 100: 101, 101: 400}[start]])
    W = whole.get_bilinear_matrix()
    np.testing.assert_allclose(parts.get_bilinear_matrix(), W, atol=1e-10)
    np.testing.assert_allclose(W, W.T, atol=1e-10)
    assert np.linalg.eigvalsh((W + W.T) / 2)[0] > -1e-9


def test_a_rank_that_is_none_is_refused():
    X, y = examples(0, n=30)
    for rank, text in ((12, "rank=12 with 30 rows of 12 features"), (0, "The 'rank' parameter")):
        with pytest.raises(ValueError, match=re.escape(text)):
            OASIS(rank=rank).fit(X, y)


# Early stopping


def mean_average_precision(learner, X, y):
    blocks = learner.metric_.blocks(X, X)
    return retrieval_scores(blocks, y, y, ks=(1,), exclude_self=True).means["map"]


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_best_state_on_validation_examples_is_kept(learner, seed):
    X, y = examples(seed, n=400)
    triplets = Triplets.from_labels(X[:200], y[:200], 3000, random_state=seed)
    stopped = learner(evaluate_every=300, patience=2, n_passes=3, average="last")
    stopped.fit(triplets, validation=(X[200:], y[200:]))
    seen, scores = zip(*stopped.validation_curve_, strict=True)
    assert mean_average_precision(stopped, X[200:], y[200:]) == pytest.approx(max(scores))
    assert stopped.n_seen_ == seen[int(np.argmax(scores))]
    assert all(a < b <= a + 600 for a, b in itertools.pairwise(seen))
    # It stopped because two looks in a row found nothing better, or at the end.
    assert len(scores) - 1 - int(np.argmax(scores)) <= 2
    again = (
        learner(margin=1.0).fit(triplets[: stopped.n_seen_]) if stopped.n_seen_ <= 3000 else None
    )
    if again is not None:
        np.testing.assert_allclose(again.metric_.matrix, stopped.metric_.matrix, atol=1e-9)


def test_patience_ends_a_run_early():
    X, y = examples(0, n=300)
    noise = np.random.RandomState(1).randint(0, 4, 150)
    triplets = Triplets.from_labels(X[:150], noise, 20_000, random_state=0)
    learner = OASIS(evaluate_every=256, patience=3).fit(triplets, validation=(X[150:], y[150:]))
    assert learner.validation_curve_[-1][0] < 20_000
    assert len(learner.validation_curve_) < 20


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_fraction_is_held_out_from_labels(learner):
    X, y = examples(3, n=300)
    stopped = learner(validation_fraction=0.3, n_triplets=2000, random_state=0).fit(X, y)
    assert len(stopped.validation_curve_) >= 1
    same = learner(validation_fraction=0.3, n_triplets=2000, random_state=0).fit(X, y)
    np.testing.assert_array_equal(stopped.metric_.matrix, same.metric_.matrix)
    # partial_fit is a stream: it holds nothing out.
    stopped.partial_fit(X, y)
    assert learner(validation_fraction=0.3, random_state=0).partial_fit(X, y).n_seen_ == 6000


@pytest.mark.parametrize(
    ("fit", "text"),
    [
        (
            lambda X, y, t: OASIS(validation_fraction=0.2).fit(t),
            "give labeled examples to stop early on to fit(triplets, validation=(X, y))",
        ),
        (lambda X, y, t: OASIS().fit(t, validation=(X[:, :3], y)), "3 features"),
        (
            lambda X, y, t: OASIS().fit(t, validation=(X[:3], [0, 1, 2])),
            "validation needs two examples of some class to rank",
        ),
        (lambda X, y, t: OASIS(patience=0).fit(t), "The 'patience' parameter"),
        (lambda X, y, t: OASIS(validation_fraction=1.0).fit(X, y), "'validation_fraction'"),
        (
            lambda X, y, t: OASIS().fit(
                Triplets(X, [0], [1], [2], items=X[:, :3]), validation=(X, y)
            ),
            "queries and items need the same features. Got 12 and 3",
        ),
    ],
)
def test_bad_validation_is_named_and_changes_nothing(fit, text):
    X, y = examples(0)
    triplets = Triplets.from_labels(X, y, 50, random_state=0)
    with pytest.raises(ValueError, match=re.escape(text)):
        fit(X, y, triplets)
    learner = OASIS().fit(triplets)
    before = learner.get_bilinear_matrix()
    with pytest.raises(ValueError, match="3 features"):
        learner.fit(triplets, validation=(X[:, :3], y))
    np.testing.assert_array_equal(learner.get_bilinear_matrix(), before)


# Margins


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_papers_margin_unless_vectors_have_unit_length(learner):
    X, y = examples(0)
    triplets = Triplets.from_labels(X, y, 100, random_state=0)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    assert learner(init="identity").fit(triplets).margin_ == 1.0
    assert learner(init="zero").fit(Triplets(unit(X), *rows)).margin_ == 1.0
    assert learner(0.1, 0.3).fit(triplets).margin_ == 0.3
    U = unit(X)
    products = (U @ U.T)[~np.eye(len(U), dtype=bool)]
    rho = np.sqrt(np.mean(products**2))
    margin = learner(init="identity").fit(Triplets(U, *rows)).margin_
    assert margin == pytest.approx(min(1.0, 0.05 / rho)) and margin < 0.5
    scaled = learner(init=3.0 * np.eye(12)).fit(Triplets(U, *rows)).margin_
    assert scaled == pytest.approx(3.0 * margin)
    # Nearly orthogonal vectors do not disturb each other.
    assert learner(init="identity").fit(Triplets(np.eye(200)[:, :200], *rows)).margin_ == 1.0


def test_the_automatic_margin_depends_on_values_only():
    X, y = examples(0)
    X = unit(X)
    weights = np.random.RandomState(0).randint(0, 3, len(y))
    again = np.random.RandomState(1).permutation(np.repeat(np.arange(len(y)), weights))
    weighted = OASIS(random_state=0).fit(X, y, sample_weight=weights)
    repeated = OASIS(random_state=0).fit(X[again], y[again])
    assert weighted.margin_ == pytest.approx(repeated.margin_, rel=1e-12)
    sparse = OASIS(random_state=0).fit(sp.csr_array(X), y)
    assert sparse.margin_ == pytest.approx(OASIS(random_state=0).fit(X, y).margin_, rel=1e-12)


@pytest.mark.parametrize("X", [np.ones((4, 3)), np.repeat(np.eye(2, 320), 200, axis=0)])
def test_directions_that_rows_do_not_have_are_the_same_every_time(X):
    triplets = Triplets(X, [0, 0], [1, 1], [2, 2])
    forms = [DiagonalAROMA(rank=2).fit(triplets).metric_ for _ in range(3)]
    assert forms[0] == forms[1] == forms[2]
    np.testing.assert_allclose(forms[0].right.T @ forms[0].right, np.eye(2), atol=1e-12)
