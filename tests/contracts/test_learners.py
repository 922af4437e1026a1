"""What every learner promises, whatever its rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import samewise
from samewise import (
    POLA,
    KernelMahalanobis,
    KernelPOLA,
    Mahalanobis,
    MultiMetric,
    Pairs,
    PassiveAggressive,
    catalog,
)
from samewise.supervision.purposes import sampled_pairs
from tests.pairwise import pairwise

LINEAR = {
    f"{rule} {psd} {average}": lambda r=rule, p=psd, a=average, **given: PassiveAggressive(
        r, 0.1, psd=p, average=a, **given
    )
    for (rule, psd), average in zip(
        itertools.product(["pa", "pa1", "pa2", "pals"], ["each", "end", 6]),
        # Not the cutoff for least squares, where hardly any hypothesis survives a round.
        itertools.cycle(["uniform", "survival", ("cutoff", 1), ("suffix", 4), "last"]),
        strict=False,
    )
} | {
    "pola": lambda **given: POLA(**given),
    "pola relaxed": lambda **given: POLA(0.5, average="uniform", **given),
    "pola from the identity": lambda **given: POLA(init="identity", **given),
}
KERNEL = {
    "kernel rbf": lambda **given: KernelPOLA("rbf", {"gamma": 0.1}, **given),
    "kernel linear": lambda **given: KernelPOLA("linear", **given),
    "kernel poly": lambda **given: KernelPOLA("poly", {"degree": 2}, relaxation=0.3, **given),
}
LEARNERS = LINEAR | KERNEL


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


@pytest.fixture(params=LINEAR)
def make_linear(request):
    return LINEAR[request.param]


def squared(form, A, B):
    """The squared distances by their definition."""
    if isinstance(form, Mahalanobis):
        return np.array([(a - b) @ form.matrix @ (a - b) for a, b in zip(A, B, strict=True)])
    kernel = {"rbf": rbf_kernel, "poly": polynomial_kernel, "linear": lambda A, B: A @ B.T}[
        form.kernel
    ]
    K = kernel(A, form.support, **form.kernel_params) - kernel(
        B, form.support, **form.kernel_params
    )
    return np.sum((K @ form.coefficients.T) ** 2, axis=1)


# What is learned


# Rounding decides whether the iterations of SNN suffice here.
@pytest.mark.filterwarnings("ignore:SNN has not converged")
@pytest.mark.parametrize("entry", catalog.LEARNERS, ids=lambda entry: entry.name)
def test_the_catalog_says_what_a_learner_gives(entry, labeled):
    learner = getattr(samewise, entry.name)()
    form = learner.fit(*labeled).metric_
    distances = {
        Mahalanobis: "distance",
        KernelMahalanobis: "kernel distance",
        MultiMetric: "distances",
    }
    assert entry.gives == distances.get(type(form), "similarity")


def test_what_is_handed_out(make, pairs):
    learner = make().fit(pairs)
    form = learner.metric_
    assert isinstance(form, Mahalanobis | KernelMahalanobis)
    assert learner.metric_ is form  # Computed once for a state.
    assert learner.threshold_ >= 1.0
    assert learner.closeness_threshold_ == -np.sqrt(learner.threshold_)
    assert learner.n_seen_ == len(pairs)
    assert 0 < learner.n_updates_ <= len(pairs)
    assert 0 < learner.n_mistakes_ <= len(pairs)
    assert learner.n_features_in_ == 5
    history = learner.history_
    assert set(history) == {"rounds", "loss", "mistakes", "updates"}
    np.testing.assert_array_equal(history["rounds"], np.arange(1, len(pairs) + 1))
    assert history["loss"][-1] == pytest.approx(learner.loss_)
    assert history["mistakes"][-1] == learner.n_mistakes_
    assert history["updates"][-1] == learner.n_updates_
    assert all(np.all(np.diff(values) >= 0) for values in history.values())


def test_the_metric_is_positive_semi_definite(make_linear, pairs):
    learner = make_linear().fit(pairs)
    M = learner.metric_.matrix
    values = np.linalg.eigvalsh(M)
    assert values[0] >= -1e-10 * values[-1]
    np.testing.assert_array_equal(M, M.T)
    L = learner.components_
    np.testing.assert_allclose(L.T @ L, M, atol=1e-10 * values[-1])
    copy = learner.get_mahalanobis_matrix()
    np.testing.assert_array_equal(copy, M)
    copy[:] = 0
    assert learner.metric_.matrix.any()


def test_the_pair_methods_are_one_distance(make, pairs):
    learner = make().fit(pairs)
    A, B = pairs.X[pairs.left], pairs.X[pairs.right]
    D = squared(learner.metric_, A, B)
    b = learner.threshold_
    scale = D.max()
    for given in (pairs, np.stack([A, B], axis=1), np.stack([A, B], axis=1).tolist()):
        np.testing.assert_allclose(
            learner.pair_distance(given) ** 2, D, rtol=1e-8, atol=1e-9 * scale
        )
        np.testing.assert_array_equal(learner.pair_score(given), -learner.pair_distance(given))
        np.testing.assert_allclose(
            learner.decision_function(given), b - D, rtol=1e-8, atol=1e-9 * scale
        )
        clear = np.abs(b - D) > 1e-8 * scale
        np.testing.assert_array_equal(learner.predict(given)[clear], np.where(D <= b, 1, -1)[clear])
        assert learner.predict(given).dtype.kind == "i"
    assert learner.score(pairs) == np.mean(learner.predict(pairs) == pairs.y)
    assert learner.score(np.stack([A, B], axis=1), pairs.y) == learner.score(pairs)


def test_transform_is_where_the_distance_is_euclidean(make, pairs):
    learner = make().fit(pairs)
    Z = learner.transform(pairs.X)
    D = squared(learner.metric_, pairs.X[pairs.left], pairs.X[pairs.right])
    euclidean = np.sum((Z[pairs.left] - Z[pairs.right]) ** 2, axis=1)
    np.testing.assert_allclose(euclidean, D, rtol=1e-8, atol=1e-9 * D.max())
    assert Z.shape[1] == len(learner.get_feature_names_out())


def test_differences_serve_as_pairs_where_the_metric_is_linear(make_linear, pairs):
    learner = make_linear().fit(pairs)
    V = pairs.differences()
    expected = learner.decision_function(pairs)
    for given in (V, sp.csr_array(V)):
        np.testing.assert_allclose(
            learner.decision_function(given), expected, atol=1e-9 * np.abs(expected).max()
        )


def test_the_score_of_examples_is_leave_one_out_nearest_neighbor_accuracy(make, labeled, pairs):
    X, y = labeled
    learner = make().fit(pairs)
    Z = learner.transform(X)
    distance = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert learner.score(X, y) == np.mean(y[distance.argmin(axis=1)] == y)


def test_many_pairs_are_judged_in_blocks(make, labeled, pairs):
    learner = make().fit(pairs)
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 60, (2, 9000))
    many = Pairs(labeled[0], left, right, np.ones(9000))
    judged = learner.pair_distance(many)
    assert judged.shape == (9000,)
    some = np.array([0, 4095, 4096, 8191, 8192, 8999])
    np.testing.assert_allclose(judged[some], learner.pair_distance(many[some]), rtol=1e-10)
    assert learner.predict(many[:0]).shape == (0,)


@pytest.mark.parametrize("name", [name for name in LEARNERS if "identity" not in name])
def test_a_stream_that_teaches_nothing(name):
    # Two equal rows called the same: b moves at most, and M stays zero.
    learner = LEARNERS[name]().fit(Pairs(np.ones((2, 5)), [0], [1], [1]))
    X = np.arange(10.0).reshape(2, 5)
    np.testing.assert_array_equal(learner.pair_distance(Pairs(X, [0], [1], [1])), [0.0])
    np.testing.assert_array_equal(learner.predict(Pairs(X, [0], [1], [1])), [1])
    assert learner.transform(X).shape[0] == 2


# Input


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_the_data_is_kept(make_linear, pairs, dtype):
    given = Pairs(pairs.X.astype(dtype), pairs.left, pairs.right, pairs.y)
    learner = make_linear().fit(given)
    assert learner.metric_.matrix.dtype == dtype
    assert learner.components_.dtype == dtype
    assert learner.get_mahalanobis_matrix().dtype == dtype
    assert learner.transform(given.X).dtype == dtype
    assert learner.transform(sp.csr_array(given.X)).dtype == dtype
    assert learner.pair_distance(given).dtype == dtype
    assert learner.decision_function(given).dtype == dtype
    assert learner.pair_distance(given.differences()).dtype == dtype
    # The two agree as far as float32 goes: an update near the border may differ.
    exact = make_linear().fit(pairs).metric_.matrix
    error = np.abs(learner.metric_.matrix - exact).max()
    assert error <= (2e-2 if dtype == np.float32 else 0.0) * np.abs(exact).max()


def test_sparse_rows_teach_what_dense_ones_do(make, sparse_pairs):
    dense, sparse = sparse_pairs
    one, other = make().fit(dense), make().fit(sparse)
    assert other.n_updates_ == one.n_updates_
    assert other.threshold_ == pytest.approx(one.threshold_, rel=1e-9)
    scale = one.pair_distance(dense).max()
    for learner, given in itertools.product((one, other), (dense, sparse)):
        np.testing.assert_allclose(
            learner.pair_distance(given), one.pair_distance(dense), rtol=1e-6, atol=1e-6 * scale
        )
    if isinstance(one.metric_, Mahalanobis):
        M = one.metric_.matrix
        np.testing.assert_allclose(other.metric_.matrix, M, rtol=0, atol=1e-9 * np.abs(M).max())


# Thinned from 72 cases to 36.
@pairwise(make=LEARNERS, order=["C", "F"], writeable=[True, False])
def test_any_layout_is_accepted_and_nothing_is_changed(make, labeled, order, writeable):
    X = np.array(labeled[0], order=order)
    y = np.array(labeled[1])
    weight = np.linspace(0, 2, 60)
    before = [a.copy() for a in (X, y, weight)]
    for array in (X, y, weight):
        array.flags.writeable = writeable
    learner = make(n_pairs=100, random_state=0)
    learner.fit(X, y, weight).partial_fit(X, y)
    learner.transform(X)
    learner.predict(X.reshape(30, 2, 5))
    learner.score(X, y)
    for array, old in zip((X, y, weight), before, strict=True):
        np.testing.assert_array_equal(array, old)
    contiguous = (
        make(n_pairs=100, random_state=0).fit(before[0], y, weight).partial_fit(before[0], y)
    )
    np.testing.assert_allclose(
        learner.metric_.matrix, contiguous.metric_.matrix, rtol=1e-9, atol=1e-12
    )


def test_sparse_input_is_not_changed(make, labeled):
    X, y = labeled
    given = sp.csr_array(np.where(X > 0, X, 0.0))
    before = given.copy()
    learner = make(n_pairs=100, random_state=0).fit(given, y)
    learner.transform(given)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(given, part), getattr(before, part))


def test_integers_and_lists_are_examples(make):
    X = [[0, 1, 2], [1, 0, 3], [5, 5, 5], [4, 6, 5]]
    one = make(n_pairs=6, random_state=0).fit(X, list("aabb"))
    other = make(n_pairs=6, random_state=0).fit(np.array(X, dtype=float), [0, 0, 1, 1])
    np.testing.assert_array_equal(one.metric_.matrix, other.metric_.matrix)


@pytest.mark.parametrize("purpose", ["neighbors", "verification"])
def test_labels_are_the_pairs_sampled_from_them(make, labeled, purpose):
    learner = make(n_pairs=90, purpose=purpose, random_state=4)
    if purpose == "neighbors" and isinstance(learner, KernelPOLA):
        pytest.skip("near under a kernel is not what near in the input is")
    learner.fit(*labeled)
    how = {"purpose": purpose, "n_neighbors": learner.n_neighbors, "n_pairs": 90}
    learned, held_out = sampled_pairs(*labeled, **how, random_state=4)
    expected = make().fit(learned)
    np.testing.assert_array_equal(learner.metric_.matrix, expected.metric_.matrix)
    assert learner.threshold_ == expected._calibrated(held_out)


def test_a_portion_with_labels_calibrates_and_one_of_pairs_does_not(make, labeled, pairs):
    learner = make(n_pairs=90, random_state=4).partial_fit(*labeled)
    assert learner.threshold_ == make(n_pairs=90, random_state=4).fit(*labeled).threshold_
    calibrated = learner.threshold_
    own = learner._solution()[1]
    assert calibrated != own
    learner.partial_fit(pairs[:1])
    assert learner.threshold_ == learner._solution()[1]
    learner.partial_fit(*labeled)
    assert learner.threshold_ != learner._solution()[1]


def test_the_same_seed_gives_the_same_metric(make, labeled):
    one, same, other = (make(n_pairs=90, random_state=s).fit(*labeled) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.metric_.matrix, same.metric_.matrix)
    assert one.loss_ == same.loss_ != other.loss_


@pytest.mark.parametrize("purpose", ["neighbors", "verification"])
def test_neither_order_nor_repetition_of_examples_matters(make, labeled, purpose):
    X, y = labeled
    rng = np.random.RandomState(0)
    weights = rng.randint(0, 4, len(y))
    again = rng.permutation(np.repeat(np.arange(len(y)), weights))
    weighted = make(purpose=purpose, random_state=3).fit(X, y, sample_weight=weights)
    repeated = make(purpose=purpose, random_state=3).fit(X[again], y[again])
    assert weighted.n_updates_ == repeated.n_updates_ > 0
    np.testing.assert_allclose(
        weighted.metric_.closeness(X), repeated.metric_.closeness(X), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(weighted.threshold_, repeated.threshold_, rtol=1e-9)


# Going on


def test_a_metric_handed_out_does_not_move(make, pairs):
    learner = make().fit(pairs[:200])
    form, b = learner.metric_, learner.threshold_
    before = form.matrix.copy(), form.cross(pairs.X[:5])
    learner.partial_fit(pairs[200:])
    assert learner.metric_ is not form
    assert learner.metric_.matrix.shape != form.matrix.shape or np.any(
        learner.metric_.matrix != form.matrix
    )
    np.testing.assert_array_equal(form.matrix, before[0])
    np.testing.assert_array_equal(form.cross(pairs.X[:5]), before[1])
    assert isinstance(b, float)
    with pytest.raises(ValueError, match="read-only"):
        form.matrix[0, 0] = 1.0


def test_the_past_cannot_be_written(make, pairs):
    learner = make().fit(pairs)
    learner.history_["loss"][:] = 0.0
    assert learner.history_["loss"][-1] == pytest.approx(learner.loss_)


def test_a_form_to_start_from_is_not_changed(pairs):
    form = Mahalanobis(np.eye(5))
    M = np.eye(5)
    for init in (form, M):
        for psd in ("each", "end", 3):
            PassiveAggressive("pa", psd=psd, init=init).fit(pairs)
    np.testing.assert_array_equal(form.matrix, np.eye(5))
    np.testing.assert_array_equal(M, np.eye(5))


def test_the_names_of_the_identity_are_the_identity(pairs):
    for init in (np.eye(5), Mahalanobis(np.eye(5)), np.eye(5).tolist()):
        one = PassiveAggressive(init=init).fit(pairs)
        other = PassiveAggressive(init="identity").fit(pairs)
        np.testing.assert_array_equal(one.metric_.matrix, other.metric_.matrix)


def test_averages_stay_metrics_when_almost_nothing_is_learned(pairs, seed):
    # Least squares moves on every pair but the first ten, which weigh nothing: the only hypothesis
    # that survives three rounds is M = 0, and its average is zero up to rounding.
    stream = pairs[np.random.default_rng(seed).permutation(len(pairs))]
    weight = (np.arange(len(pairs)) >= 10).astype(float)
    stream = Pairs(stream.X, stream.left, stream.right, stream.y, weight)
    for psd in ("each", "end", 6):
        learner = PassiveAggressive("pals", 0.1, psd=psd, average=("cutoff", 3)).fit(stream)
        assert np.abs(learner.metric_.matrix).max() < 1e-12


def degenerate_streams(seed):
    """Differences on which M keeps coming back to zero, or near it."""
    rng = np.random.default_rng(seed)
    return {
        "one feature": rng.normal(size=(60, 1)),
        "one direction": rng.normal(size=(60, 1)) * rng.normal(size=3),
        "small integers": rng.integers(-1, 2, size=(60, 3)).astype(float),
        "all scales": rng.normal(size=(60, 3)) * 10.0 ** rng.uniform(-3, 3, size=(60, 1)),
    }


def test_there_is_a_metric_after_every_portion(make_linear, seed):
    y = np.where(np.random.default_rng(seed).random(60) < 0.8, 1, -1)
    for V in degenerate_streams(seed).values():
        learner = make_linear()
        given = np.stack([V, np.zeros_like(V)], axis=1)
        for start in range(0, 60, 4):
            part = slice(start, start + 4)
            learner.partial_fit(given[part], y[part])
            assert np.all(np.isfinite(learner.metric_.matrix))
            assert learner.transform(V).shape[0] == 60


# A kernel matrix given instead of a kernel


def test_a_precomputed_kernel_is_the_kernel(labeled, pairs):
    X = labeled[0]
    direct = KernelPOLA("rbf", {"gamma": 0.1}).fit(pairs)
    K = rbf_kernel(X, gamma=0.1)
    given = Pairs(K, pairs.left, pairs.right, pairs.y)
    precomputed = KernelPOLA("precomputed").fit(given)
    np.testing.assert_allclose(
        precomputed.pair_distance(given), direct.pair_distance(pairs), rtol=1e-9
    )
    assert precomputed.n_updates_ == direct.n_updates_
    new = np.random.default_rng(0).normal(size=(4, 5))
    one = precomputed.transform(rbf_kernel(new, X, gamma=0.1))
    other = direct.transform(new)
    np.testing.assert_allclose(one @ one.T, other @ other.T, rtol=1e-9, atol=1e-12)


def test_a_callable_kernel(pairs):
    learner = KernelPOLA(lambda a, b: float(a @ b)).fit(pairs[:30])
    expected = KernelPOLA("linear").fit(pairs[:30])
    np.testing.assert_allclose(
        learner.pair_distance(pairs), expected.pair_distance(pairs), rtol=1e-9
    )
