"""Both AROMAs take the same steps as the plain loops, round by round."""

from __future__ import annotations

import itertools
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import DiagonalAROMA, FactoredAROMA, Triplets
from samewise.engine.directions import triplet_ranking
from tests.engine.test_triplets import PATHS, make_triplets
from tests.reference import triplets as reference

MAKE = {
    "diagonal": partial(DiagonalAROMA, init="zero"),
    "factored": partial(FactoredAROMA, init="zero"),
    "mistake": partial(FactoredAROMA, update="mistake", init="zero"),
}
LOOP = {
    "diagonal": reference.diagonal_aroma,
    "factored": reference.factored_aroma,
    "mistake": partial(reference.factored_aroma, update="mistake"),
}


@pytest.fixture(params=MAKE)
def kind(request):
    return request.param


def rows_of(t: Triplets):
    return t.anchor, t.positive, t.negative


def run_reference(kind: str, t: Triplets, *args, **kwargs):
    Q, P = (M.toarray() if sp.issparse(M) else M for M in (t.X, t.items))
    return LOOP[kind](Q, P, *rows_of(t), *args, **kwargs)


def covariances(learner) -> list[np.ndarray]:
    if isinstance(learner, DiagonalAROMA):
        return [learner.variance_]
    return [learner.query_covariance_, learner.item_covariance_]


def expected_covariances(run) -> list[np.ndarray]:
    return [run.Sigma] if hasattr(run, "Sigma") else [run.Lambda, run.Omega]


def close(one, other, tol: float = 1e-10) -> None:
    scale = max(np.abs(other).max(), 1e-3)
    np.testing.assert_allclose(one, other, rtol=0, atol=tol * scale)


def assert_same(learner, run, *, tol: float = 1e-10) -> None:
    assert learner.n_updates_ == len(run.rounds) > 0
    assert learner.n_mistakes_ == run.mistakes
    assert learner.loss_ == pytest.approx(sum(run.losses), rel=tol)
    close(learner.metric_.matrix, run.M, tol)
    for mine, theirs in zip(covariances(learner), expected_covariances(run), strict=True):
        close(mine, theirs, tol)


def assert_equal(one, other, tol: float = 1e-10) -> None:
    """Two learners in the same state."""
    for count in ("n_seen_", "n_updates_", "n_mistakes_", "n_skipped_"):
        assert getattr(one, count) == getattr(other, count)
    assert one.loss_ == pytest.approx(other.loss_, rel=tol, abs=0)
    close(one.metric_.matrix, other.metric_.matrix, tol)
    for mine, theirs in zip(covariances(one), covariances(other), strict=True):
        close(mine, theirs, tol)


def portions(t: Triplets, seed: int, n: int = 9) -> list[Triplets]:
    cuts = np.unique(np.random.RandomState(seed).randint(1, len(t), n))
    return [t[a:b] for a, b in itertools.pairwise([0, *cuts, len(t)])]


# The same trajectory


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("m", "n"), [(7, 7), (5, 11), (13, 4)])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_every_path_equals_the_loop(kind, path, m, n, sparse, seed):
    triplets = make_triplets(m, n, 300, seed, sparse=sparse)
    learner = MAKE[kind](0.5, 1.0, path=path).fit(triplets)
    assert_same(learner, run_reference(kind, triplets, 0.5))


@pytest.mark.parametrize("path", PATHS)
def test_every_round(kind, path):
    """W and the covariances after each single triplet, shown alone."""
    triplets = make_triplets(4, 6, 50, seed=1)
    run = run_reference(kind, triplets, 0.3)
    history = [[Sigma] for Sigma in run.Sigmas] if kind == "diagonal" else run.factors
    learner = MAKE[kind](0.3, 1.0, path=path)
    for i in range(len(triplets)):
        learner.partial_fit(triplets[i : i + 1])
        updates = np.searchsorted(run.rounds, i, side="right")
        assert learner.n_updates_ == updates
        close(learner.metric_.matrix, run.hypotheses[updates][0])
        for mine, theirs in zip(covariances(learner), history[updates], strict=True):
            close(mine, theirs)
    for field, values in (("loss", np.cumsum(run.losses)), ("rounds", np.arange(1, 51))):
        np.testing.assert_allclose(learner.history_[field], values, rtol=1e-10)


def test_one_feature(kind, seed):
    rng = np.random.RandomState(seed)
    triplets = Triplets(
        rng.randn(20, 1),
        rng.randint(0, 20, 60),
        rng.randint(0, 15, 60),
        rng.randint(15, 30, 60),
        items=rng.randn(30, 3),
    )
    assert_same(MAKE[kind](0.2, 1.0).fit(triplets), run_reference(kind, triplets, 0.2))


@pytest.mark.parametrize(("m", "n", "r"), [(150, 150, 0.05), (150, 150, 2.0), (520, 130, 0.5)])
def test_wide_matrices_and_blocks(kind, m, n, r):
    triplets = make_triplets(m, n, 270, seed=0)
    assert_same(MAKE[kind](r, 1.0).fit(triplets), run_reference(kind, triplets, r))


@pytest.mark.parametrize(("r", "margin"), [(1e-3, 3.0), (10.0, 0.1)])
@pytest.mark.parametrize("init", ["zero", "identity", "array"])
def test_margin_and_start(kind, r, margin, init, seed):
    triplets = make_triplets(6, 9, 200, seed)
    W = {"zero": np.zeros((6, 9)), "identity": np.eye(6, 9)}.get(
        init, np.random.RandomState(seed).randn(6, 9)
    )
    learner = MAKE[kind](r, margin, init=W if init == "array" else init).fit(triplets)
    assert_same(learner, run_reference(kind, triplets, r, margin, W=W))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_weight_divides_r(kind, path, sparse):
    triplets = make_triplets(6, 6, 200, seed=0, sparse=sparse)
    weights = np.random.RandomState(0).choice([0.0, 0.25, 2.0], 200)
    weighted = Triplets(triplets.X, *rows_of(triplets), sample_weight=weights)
    learner = MAKE[kind](0.5, 1.0, path=path).fit(weighted)
    assert_same(learner, run_reference(kind, triplets, 0.5, weights=weights))
    # Rows of a sparse X may be empty: those are skipped as well.
    assert learner.n_skipped_ == np.count_nonzero(triplet_ranking(weighted, 1.0).weight == 0)
    assert learner.n_skipped_ >= np.count_nonzero(weights == 0)
    same = Triplets(triplets.X, *rows_of(triplets), sample_weight=np.full(200, 2.0))
    assert_equal(MAKE[kind](0.5, 1.0).fit(same), MAKE[kind](0.25, 1.0).fit(triplets))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_triplets_that_teach_nothing_are_skipped_and_counted(kind, path, sparse):
    triplets = make_triplets(5, 5, 60, seed=0, sparse=sparse)
    negative = np.where(np.arange(60) % 4 == 0, triplets.positive, triplets.negative)
    X = triplets.X.toarray() if sparse else triplets.X.copy()
    X[triplets.anchor[1]] = 0.0
    X = sp.csr_array(X) if sparse else X
    triplets = Triplets(X, triplets.anchor, triplets.positive, negative)
    learner = MAKE[kind](0.5, 1.0, path=path).fit(triplets)
    assert_same(learner, run_reference(kind, triplets, 0.5))
    dense = X.toarray() if sparse else X
    nothing = (dense[triplets.anchor] == 0).all(axis=1)
    nothing |= (dense[triplets.positive] == dense[triplets.negative]).all(axis=1)
    assert learner.n_skipped_ == np.count_nonzero(nothing) >= 16
    # They leave the state alone.
    kept = MAKE[kind](0.5, 1.0).fit(triplets[~nothing])
    close(learner.metric_.matrix, kept.metric_.matrix)
    assert learner.n_updates_ == kept.n_updates_


def test_only_skipped_triplets_leave_the_start(kind):
    X = np.eye(3)
    learner = MAKE[kind](init="identity").fit(Triplets(X, [0, 1], [2, 2], [2, 2]))
    assert (learner.n_skipped_, learner.n_updates_, learner.n_seen_) == (2, 0, 2)
    np.testing.assert_array_equal(learner.metric_.matrix, np.eye(3))
    expected = [np.ones((3, 3))] if kind == "diagonal" else [np.eye(3), np.eye(3)]
    for mine, start in zip(covariances(learner), expected, strict=True):
        np.testing.assert_array_equal(mine, start)


@pytest.mark.parametrize("sides", ["queries", "items"])
@pytest.mark.parametrize("path", PATHS)
def test_sparse_on_one_side_only(kind, path, sides):
    triplets = make_triplets(6, 9, 200, seed=0)
    X, items = triplets.X, triplets.items
    if sides == "queries":
        X = sp.csr_array(X)
    else:
        items = sp.csr_array(items)
    mixed = Triplets(X, *rows_of(triplets), items=items)
    run = run_reference(kind, triplets, 1.0)
    assert_same(MAKE[kind](1.0, 1.0, path=path).fit(mixed), run)
    # And from one kind to the other in mid-stream.
    learner = MAKE[kind](1.0, 1.0, path=path).partial_fit(mixed[:90]).partial_fit(triplets[90:])
    assert_same(learner, run)


def test_old_sparse_matrices_are_taken_like_sparse_arrays(kind):
    triplets = make_triplets(6, 6, 100, seed=0, sparse=True)
    learners = [
        MAKE[kind]().fit(Triplets(given(triplets.X), *rows_of(triplets)))
        for given in (sp.csr_array, sp.csr_matrix)
    ]
    assert_equal(*learners, tol=0.0)


AVERAGES = [
    (kind, average)
    for kind in MAKE
    for average in (
        *("last", "uniform", "survival"),
        *(("cutoff", 1), ("suffix", 7), ("suffix", 999), ("decay", 30)),
    )
    # A suffix of d-AROMA's steps would be that many matrices: there is none.
    if (kind, average[0]) != ("diagonal", "suffix")
]


@pytest.mark.parametrize(("kind", "average"), AVERAGES)
@pytest.mark.parametrize("path", ["auto", "blocked", "plain"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_averages_and_portions(kind, average, path, sparse):
    triplets = make_triplets(8, 5, 240, seed=2, sparse=sparse)
    learner = MAKE[kind](0.5, 1.0, path=path, average=average)
    for start, stop in ((0, 3), (3, 100), (100, 240)):
        learner.partial_fit(triplets[start:stop])
    run = run_reference(kind, triplets, 0.5)
    W = reference.average(run, *(average if isinstance(average, tuple) else (average,)))
    close(learner.metric_.matrix, W)
    # The average concerns only what is handed out.
    for mine, theirs in zip(covariances(learner), expected_covariances(run), strict=True):
        close(mine, theirs)


@pytest.mark.parametrize("average", ["survival", ("cutoff", 2), ("suffix", 30), ("decay", 50)])
def test_averages_over_blocks(average):
    triplets = make_triplets(110, 100, 300, seed=1)
    run = run_reference("factored", triplets, 0.5)
    W = reference.average(run, *(average if isinstance(average, tuple) else (average,)))
    learner = FactoredAROMA(0.5, 1.0, average=average, path="blocked").fit(triplets)
    close(learner.metric_.matrix, W)


def test_float32_stays(kind):
    triplets = make_triplets(120, 120, 200, seed=0)
    learner = MAKE[kind](1.0, 1.0).fit(Triplets(triplets.X.astype(np.float32), *rows_of(triplets)))
    exact = MAKE[kind](1.0, 1.0).fit(triplets)
    assert learner.metric_.matrix.dtype == np.float32
    close(learner.metric_.matrix, exact.metric_.matrix, 1e-4)
    for mine, theirs in zip(covariances(learner), covariances(exact), strict=True):
        close(mine, theirs, 1e-4)
    assert np.isfinite(learner.score_variance(triplets.X, triplets.X)).all()


def test_the_paper_s_margin_unless_unit_vectors_start_at_something(kind, seed):
    triplets = make_triplets(6, 6, 150, seed)
    unit = triplets.X / np.linalg.norm(triplets.X, axis=1, keepdims=True)
    on_unit = Triplets(unit, *rows_of(triplets))
    one = MAKE[kind](init="zero").fit(on_unit)
    assert_equal(one, MAKE[kind](margin=1.0, init="zero").fit(on_unit), tol=0.0)
    other = MAKE[kind](init="identity").fit(triplets)
    assert_equal(other, MAKE[kind](margin=1.0, init="identity").fit(triplets), tol=0.0)
    gram = unit @ unit.T
    products = gram[~np.eye(len(gram), dtype=bool)]
    # Of few rows, 100 products of 0.2 are counted as well.
    size = np.sqrt((np.sum(products**2) + 100 * 0.2**2) / (len(products) + 100))
    narrow = MAKE[kind](init="identity").fit(on_unit)
    assert_equal(narrow, MAKE[kind](margin=min(1.0, 0.05 / size), init="identity").fit(on_unit))


# Streams


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("path", PATHS)
def test_portions_give_what_one_fit_gives(kind, path, sparse, seed):
    triplets = make_triplets(6, 9, 300, seed, sparse=sparse)
    whole = MAKE[kind](path=path).fit(triplets)
    learner = MAKE[kind](path=path)
    for part in portions(triplets, seed):
        learner.partial_fit(part)
        learner.metric_  # noqa: B018 - looking at it on the way changes nothing.
    assert_equal(learner, whole)


def test_portions_across_blocks(kind):
    triplets = make_triplets(130, 150, 300, seed=3)
    learner = MAKE[kind]()
    for part in portions(triplets, 3, n=5):
        learner.partial_fit(part)
    assert_equal(learner, MAKE[kind]().fit(triplets))


def test_an_iterator_of_blocks(kind, seed):
    triplets = make_triplets(6, 9, 300, seed)
    whole = MAKE[kind](average="uniform").fit(triplets)
    blocks = (part for part in portions(triplets, seed))
    assert_equal(MAKE[kind](average="uniform").partial_fit(blocks), whole)


def test_passes(kind):
    triplets = make_triplets(5, 7, 120, seed=0)
    learner = MAKE[kind]()
    for _ in range(3):
        learner.partial_fit(triplets)
    assert_equal(MAKE[kind](n_passes=3).fit(triplets), learner)
    shuffled = MAKE[kind](n_passes=2, shuffle=True, random_state=3).fit(triplets)
    rng, expected = np.random.RandomState(3), MAKE[kind]()
    for _ in range(2):
        expected.partial_fit(triplets[rng.permutation(120)])
    assert_equal(shuffled, expected)


def test_fit_begins_anew(kind):
    triplets = make_triplets(5, 7, 120, seed=0)
    learner = MAKE[kind]().partial_fit(triplets[:50]).fit(triplets)
    assert_equal(learner, MAKE[kind]().fit(triplets), tol=0.0)


@pytest.mark.parametrize(("kind", "average"), AVERAGES)
@pytest.mark.parametrize("path", ["auto", "blocked"])
def test_a_pickled_learner_goes_on_where_it_stopped(kind, average, path):
    triplets = make_triplets(6, 9, 200, seed=0)
    whole = MAKE[kind](average=average, path=path).partial_fit(triplets[:90])
    half = pickle.loads(pickle.dumps(whole))
    assert_equal(half, whole, tol=0.0)
    assert_equal(half.partial_fit(triplets[90:]), whole.partial_fit(triplets[90:]), tol=0.0)


def test_what_is_handed_out_is_a_copy(kind):
    triplets = make_triplets(6, 9, 200, seed=0)
    learner = MAKE[kind]().partial_fit(triplets[:100])
    kept = [learner.metric_.matrix, learner.get_bilinear_matrix(), *covariances(learner)]
    before = [array.copy() for array in kept]
    learner.partial_fit(triplets[100:])
    for array, earlier in zip(kept, before, strict=True):
        np.testing.assert_array_equal(array, earlier)
    expected = covariances(MAKE[kind]().fit(triplets))
    for array in covariances(learner):
        array[:] = 0.0
    for mine, theirs in zip(covariances(learner), expected, strict=True):
        close(mine, theirs)


# Uncertainty


def fitted(kind, seed, **given):
    triplets = make_triplets(5, 8, 150, seed)
    return MAKE[kind](0.3, 1.0, **given).fit(triplets), triplets


def variance_by_hand(learner, Q, P):
    if isinstance(learner, DiagonalAROMA):
        return np.einsum("ik,jl,kl->ij", Q**2, P**2, learner.variance_)
    of_query = np.einsum("ik,kl,il->i", Q, learner.query_covariance_, Q)
    return np.outer(of_query, np.einsum("ik,kl,il->i", P, learner.item_covariance_, P))


def test_score_variance(kind, seed):
    learner, t = fitted(kind, seed)
    expected = variance_by_hand(learner, t.X[:20], t.items)
    np.testing.assert_allclose(learner.score_variance(t.X[:20], t.items), expected, rtol=1e-10)
    for Q, P in itertools.product(
        (t.X[:20], sp.csr_array(t.X[:20])), (t.items, sp.csr_array(t.items))
    ):
        given = learner.score_variance(Q, P)
        assert isinstance(given, np.ndarray) and given.shape == (20, 90)
        np.testing.assert_allclose(given, expected, rtol=1e-10)
    # What was seen is surer than at the start, where the variance is ‖q‖²‖p‖².
    start = np.outer(np.sum(t.X[:20] ** 2, axis=1), np.sum(t.items**2, axis=1))
    assert np.all(expected <= start * (1 + 1e-12)) and np.all(expected > 0)


def test_ask_orders_candidates(kind, seed):
    learner, t = fitted(kind, seed)
    q, candidates = t.X[0], t.items
    variance = variance_by_hand(learner, q[None], candidates)[0]
    upper = (q @ learner.metric_.matrix) @ candidates.T
    # How sure it is that the best candidate is ahead of each other one.
    best = upper.argmax()
    doubt = variance_by_hand(learner, q[None], candidates[best] - candidates)[0]
    doubt[best] = 1e-300
    sure = np.where(np.arange(90) == best, np.inf, (upper[best] - upper) / np.sqrt(doubt))
    assert learner.ask(q, candidates).tolist() == [sure.argmin()]
    np.testing.assert_array_equal(learner.ask(q, candidates, 10), np.argsort(sure)[:10])
    np.testing.assert_array_equal(learner.ask(q, candidates, 90), np.argsort(sure))
    np.testing.assert_array_equal(
        learner.ask(q, candidates, 10, by="upper"), np.argsort(-upper - np.sqrt(variance))[:10]
    )
    for width in (0.0, 0.2, 5.0):
        np.testing.assert_array_equal(
            learner.ask(q, candidates, 90, by="upper", width=width),
            np.argsort(-upper - width * np.sqrt(variance)),
        )
    np.testing.assert_array_equal(
        learner.ask(q, sp.csr_array(candidates), 10), learner.ask(q, candidates, 10)
    )


def test_feedback_about_what_was_asked_makes_it_surer(kind, seed):
    learner, t = fitted(kind, seed)
    q, asked = t.X[:1], learner.ask(t.X[0], t.items)
    before = learner.score_variance(q, t.items)
    # Shown with the sign the model gets wrong, so that every update learns from it.
    sign = -np.sign(q @ learner.metric_.matrix @ t.items[asked].T)[0]
    items = np.vstack([sign * t.items[asked], np.zeros((1, 8))])
    learner.partial_fit(Triplets(q, [0], [0], [1], items=items))
    after = learner.score_variance(q, t.items)
    assert after[0, asked] < 0.999 * before[0, asked]
    assert np.all(after <= before * (1 + 1e-12))


def test_sampled_scores_have_the_mean_and_covariance_of_the_model(kind):
    learner, t = fitted(kind, 0)
    Q, P = t.X[:2], t.items[:3]
    rng, n = np.random.RandomState(0), 1500
    draws = np.array([learner.sample_scores(Q, P, rng).ravel() for _ in range(n)])
    variance = variance_by_hand(learner, Q, P).ravel()
    mean = (Q @ learner.metric_.matrix @ P.T).ravel()
    deviation = (draws.mean(axis=0) - mean) / np.sqrt(variance)
    assert np.abs(deviation).max() < 5 / np.sqrt(n)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=5 * np.sqrt(2 / n))
    # All scores of a draw come from one matrix, so they vary together.
    if kind == "diagonal":
        joint = np.einsum("ik,jk,al,bl,kl->iajb", Q, Q, P, P, learner.variance_).reshape(6, 6)
    else:
        joint = np.kron(Q @ learner.query_covariance_ @ Q.T, P @ learner.item_covariance_ @ P.T)
    scale = np.sqrt(np.outer(variance, variance))
    assert np.abs((np.cov(draws.T) - joint) / scale).max() < 5 * np.sqrt(2 / n)


def test_sampled_scores_are_those_of_one_matrix(kind, seed):
    learner, t = fitted(kind, seed)
    Q = np.vstack([t.X[:3], t.X[0] + t.X[1], -2 * t.X[2]])
    P = np.vstack([t.items[:3], t.items[0] - t.items[1]])
    S = learner.sample_scores(Q, P, random_state=seed)
    assert S.shape == (5, 4)
    np.testing.assert_allclose(S[3], S[0] + S[1], atol=1e-10)
    np.testing.assert_allclose(S[4], -2 * S[2], atol=1e-10)
    np.testing.assert_allclose(S[:, 3], S[:, 0] - S[:, 1], atol=1e-10)
    np.testing.assert_array_equal(S, learner.sample_scores(Q, P, random_state=seed))
    assert np.abs(S - learner.sample_scores(Q, P, random_state=seed + 1)).max() > 1e-3
    sparse = learner.sample_scores(sp.csr_array(Q), sp.csr_array(P), random_state=seed)
    np.testing.assert_allclose(S, sparse, atol=1e-10)
    # Looking does not change what is learned next.
    assert_equal(learner.partial_fit(t), fitted(kind, seed)[0].partial_fit(t), tol=0.0)


def test_rare_features_stay_uncertain():
    """d-AROMA: a feature that was never seen keeps variance 1, a frequent one loses it."""
    rng = np.random.RandomState(0)
    X = np.hstack([rng.randn(60, 3), np.zeros((60, 1))])
    X[0, 3] = 1.0
    rows = rng.randint(1, 60, (3, 400))
    learner = DiagonalAROMA(0.1, 1.0).fit(Triplets(X, *rows))
    assert np.all(learner.variance_[:, 3] == 1.0) and np.all(learner.variance_[3] == 1.0)
    assert learner.variance_[:3, :3].max() < 0.1


def test_scores_and_queries(kind, seed):
    learner, t = fitted(kind, seed)
    W = learner.get_bilinear_matrix()
    difference = t.items[t.positive] - t.items[t.negative]
    margins = np.einsum("ij,jk,ik->i", t.X[t.anchor], W, difference)
    np.testing.assert_allclose(learner.triplet_margin(t), margins, atol=1e-12)
    assert learner.score(t) == np.mean(margins > 0)
    np.testing.assert_allclose(learner.transform(t.X), t.X @ W, atol=1e-12)
    np.testing.assert_allclose(learner.metric_.closeness(t.X, t.items), t.X @ W @ t.items.T)
    assert learner.get_feature_names_out().shape == (8,)
