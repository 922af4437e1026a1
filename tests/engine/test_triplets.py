"""OASIS takes the same steps as the plain loop, round by round."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import OASIS, Triplets, load
from samewise.engine.directions import triplet_ranking
from tests.reference import triplets as reference

PATHS = ("auto", "compiled", "blocked", "plain")


def make_triplets(m: int, n: int, n_triplets: int, seed: int, *, sparse: bool = False) -> Triplets:
    """Queries of m and items of n features; with m == n the items are the queries."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, 90)
    X = rng.randn(90, m) / np.sqrt(m)
    X[:, :2] += np.eye(4)[labels][:, :2]
    items = None if m == n else np.hstack([X, rng.randn(90, max(n - m, 0))])[:, :n].copy()
    if sparse:
        X[rng.rand(*X.shape) > 0.3] = 0.0
        items = None if items is None else np.where(rng.rand(*items.shape) > 0.3, 0.0, items)
    drawn = Triplets.from_labels(X, labels, n_triplets, random_state=seed)
    rows = (drawn.anchor, drawn.positive, drawn.negative)
    if sparse:
        X = sp.csr_array(X)
        items = None if items is None else sp.csr_array(items)
    return Triplets(X, *rows, items=items)


def run_reference(t: Triplets, *args, **kwargs):
    Q, P = (M.toarray() if sp.issparse(M) else M for M in (t.X, t.items))
    return reference.oasis(Q, P, t.anchor, t.positive, t.negative, *args, **kwargs)


def assert_same(learner, run, *, tol: float = 1e-10) -> None:
    assert learner.n_updates_ == len(run.rounds)
    assert learner.n_mistakes_ == run.mistakes
    scale = np.abs(run.M).max()
    np.testing.assert_allclose(learner.metric_.matrix, run.M, rtol=0, atol=tol * scale)
    assert learner.loss_ == pytest.approx(sum(run.losses), rel=tol)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("m", "n"), [(7, 7), (5, 11), (13, 4), (1, 6)])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_every_path_equals_the_loop(path, m, n, sparse, seed):
    if m < 2:
        triplets = make_triplets(2, n, 300, seed, sparse=sparse)
        triplets = Triplets(
            triplets.X[:, :1],
            triplets.anchor,
            triplets.positive,
            triplets.negative,
            items=triplets.items,
        )
    else:
        triplets = make_triplets(m, n, 300, seed, sparse=sparse)
    learner = OASIS(C=0.2, path=path).fit(triplets)
    assert_same(learner, run_reference(triplets, 0.2))


@pytest.mark.parametrize(("m", "n"), [(150, 150), (520, 130)])
def test_wide_matrices_and_blocks(m, n):
    triplets = make_triplets(m, n, 600, seed=0)
    assert_same(OASIS(C=0.1).fit(triplets), run_reference(triplets, 0.1))


@pytest.mark.parametrize("margin", [0.1, 3.0])
@pytest.mark.parametrize("init", ["zero", "identity", "array"])
def test_margin_and_start(margin, init, seed):
    triplets = make_triplets(6, 9, 200, seed)
    W = {"zero": np.zeros((6, 9)), "identity": np.eye(6, 9)}.get(
        init, np.random.RandomState(seed).randn(6, 9)
    )
    learner = OASIS(0.1, margin, init=W if init == "array" else init).fit(triplets)
    assert_same(learner, run_reference(triplets, 0.1, margin, W=W))


@pytest.mark.parametrize("path", PATHS)
def test_weights_scale_the_cap(path, seed):
    triplets = make_triplets(6, 6, 200, seed)
    weights = np.random.RandomState(seed).choice([0.0, 0.5, 2.0], 200)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    weighted = Triplets(triplets.X, *rows, sample_weight=weights)
    learner = OASIS(C=0.05, path=path).fit(weighted)
    assert_same(learner, run_reference(triplets, 0.05, weights=weights))
    assert learner.n_skipped_ == np.count_nonzero(weights == 0)
    members = zip((triplets.X, triplets.items, triplets.items), rows, strict=True)
    array = np.stack([matrix[each] for matrix, each in members], axis=1)
    again = OASIS(C=0.05, path=path).fit(array, sample_weight=weights)
    assert_same(again, run_reference(triplets, 0.05, weights=weights))
    assert again.n_skipped_ == learner.n_skipped_


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("sparse", [False, True])
def test_triplets_that_teach_nothing_are_skipped_and_counted(path, sparse):
    triplets = make_triplets(5, 5, 60, seed=0, sparse=sparse)
    negative = np.where(np.arange(60) % 4 == 0, triplets.positive, triplets.negative)
    triplets = Triplets(triplets.X, triplets.anchor, triplets.positive, negative)
    learner = OASIS(path=path).fit(triplets)
    assert_same(learner, run_reference(triplets, 0.1))
    zero = triplet_ranking(triplets, 1.0).weight == 0
    assert learner.n_skipped_ == np.count_nonzero(zero) >= 15


@pytest.mark.parametrize(
    "average",
    [
        "last",
        "uniform",
        "survival",
        ("suffix", 7),
        ("suffix", 999),
        ("cutoff", 1),
        ("decay", 1),
        ("decay", 30),
    ],
)
@pytest.mark.parametrize("path", ["auto", "blocked", "plain"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("psd", [None, 5])
def test_averages_and_portions(average, path, sparse, psd):
    triplets = make_triplets(8, 8, 240, seed=2, sparse=sparse)
    learner = OASIS(C=0.1, path=path, average=average, psd=psd)
    for start, stop in ((0, 3), (3, 100), (100, 240)):
        learner.partial_fit(triplets[start:stop])
    run = run_reference(triplets, 0.1, psd=psd)
    W = reference.average(run, *(average if isinstance(average, tuple) else (average,)))
    W = W if psd is None else reference.project(W)
    np.testing.assert_allclose(learner.metric_.matrix, W, rtol=0, atol=1e-10)


def test_an_average_that_forgets_nothing_is_that_over_rounds():
    triplets = make_triplets(8, 8, 240, seed=2)
    survival = OASIS(average="survival").fit(triplets).get_bilinear_matrix()
    slow = OASIS(average=("decay", 10**12)).fit(triplets).get_bilinear_matrix()
    np.testing.assert_allclose(slow, survival, rtol=0, atol=1e-9)
    # Far beyond its half-life, nothing is left of the past but rounding.
    stream = OASIS(average=("decay", 2)).fit(triplets)
    solved = Triplets(np.eye(8), *(np.zeros(5000, dtype=int) for _ in range(3)))
    stream.partial_fit(solved)
    assert stream.n_updates_ < stream.n_seen_ - 5000
    last = OASIS().fit(triplets).get_bilinear_matrix()
    np.testing.assert_allclose(stream.get_bilinear_matrix(), last, rtol=0, atol=1e-12)


def test_psd_may_be_a_number_of_numpys(tmp_path):
    triplets = make_triplets(6, 6, 150, seed=0)
    learner = OASIS(psd=np.int64(5)).fit(triplets)
    expected = OASIS(psd=5).fit(triplets).metric_
    assert learner.metric_ == expected != OASIS(psd="end").fit(triplets).metric_
    learner.save(tmp_path / "oasis")
    assert load(tmp_path / "oasis").metric_ == expected


def test_symmetric_and_psd_concern_only_what_is_handed_out():
    triplets = make_triplets(6, 6, 150, seed=0)
    W = OASIS().fit(triplets).metric_.matrix
    np.testing.assert_allclose(
        OASIS(symmetric=True).fit(triplets).metric_.matrix, (W + W.T) / 2, atol=1e-14
    )
    learner = OASIS(psd="end").fit(triplets[:70]).partial_fit(triplets[70:])
    np.testing.assert_allclose(learner.metric_.matrix, reference.project(W), atol=1e-12)


def test_float32_stays(seed):
    triplets = make_triplets(150, 150, 300, seed)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    learner = OASIS().fit(Triplets(triplets.X.astype(np.float32), *rows))
    exact = OASIS().fit(triplets)
    assert learner.metric_.matrix.dtype == np.float32
    np.testing.assert_allclose(learner.metric_.matrix, exact.metric_.matrix, atol=1e-4)


def test_dense_queries_with_sparse_items(seed):
    triplets = make_triplets(6, 9, 200, seed)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    mixed = Triplets(triplets.X, *rows, items=sp.csr_array(triplets.items))
    assert_same(OASIS().fit(mixed), run_reference(triplets, 0.1))
    # And from one kind to the other in mid-stream.
    learner = OASIS().partial_fit(mixed[:90]).partial_fit(triplets[90:])
    assert_same(learner, run_reference(triplets, 0.1))


@pytest.mark.parametrize("average", ["last", "uniform", ("suffix", 4)])
def test_old_sparse_matrices_are_taken_like_sparse_arrays(average):
    triplets = make_triplets(6, 6, 100, seed=0, sparse=True)
    rows = (triplets.anchor, triplets.positive, triplets.negative)
    learners = [
        OASIS(average=average, psd=4).fit(Triplets(kind(triplets.X), *rows))
        for kind in (sp.csr_array, sp.csr_matrix)
    ]
    np.testing.assert_array_equal(*(learner.metric_.matrix for learner in learners))


def test_scores_and_queries(seed):
    triplets = make_triplets(6, 9, 200, seed)
    learner = OASIS().fit(triplets)
    W, t = learner.get_bilinear_matrix(), triplets
    difference = t.items[t.positive] - t.items[t.negative]
    margins = np.einsum("ij,jk,ik->i", t.X[t.anchor], W, difference)
    np.testing.assert_allclose(learner.triplet_margin(t), margins, atol=1e-12)
    assert learner.score(t) == np.mean(margins > 0)
    np.testing.assert_allclose(learner.transform(t.X), t.X @ W, atol=1e-12)
    assert learner.get_feature_names_out().shape == (9,)


def test_a_pickled_learner_goes_on_where_it_stopped():
    triplets = make_triplets(6, 9, 200, seed=0)
    half = pickle.loads(pickle.dumps(OASIS(average="survival").partial_fit(triplets[:90])))
    whole = OASIS(average="survival").partial_fit(triplets[:90]).partial_fit(triplets[90:])
    np.testing.assert_array_equal(
        half.partial_fit(triplets[90:]).metric_.matrix, whole.metric_.matrix
    )
