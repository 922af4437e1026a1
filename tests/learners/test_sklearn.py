"""The learners among scikit-learn's tools."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import POLA, KernelPOLA, KNNClassifier, Mahalanobis, Pairs, PassiveAggressive, tune_C
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.srbs import SRBS
from samewise.protocols import neighbor_accuracies
from samewise.supervision.purposes import sampled_pairs

CHECKED = [PassiveAggressive(), PassiveAggressive(psd="end"), POLA(), KernelPOLA()]
CHECKED += [Relief(), RBS(normalizer=None), SRBS(normalizer=None)]


@pytest.mark.filterwarnings("ignore:SRBS has not converged")
@parametrize_with_checks(CHECKED)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


LEARNERS = {
    "pa each": lambda **given: PassiveAggressive(n_pairs=100, random_state=0, **given),
    "pa end": lambda **given: PassiveAggressive(
        "pa2", 0.5, psd="end", average="uniform", n_pairs=100, random_state=0, **given
    ),
    "pola": lambda **given: POLA(n_pairs=100, random_state=0, **given),
    "kernel": lambda **given: KernelPOLA(
        "rbf", {"gamma": 0.1}, n_pairs=100, random_state=0, **given
    ),
}
LINEAR = ["pa each", "pa end", "pola"]


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


@pytest.fixture(params=LINEAR)
def make_linear(request):
    return LEARNERS[request.param]


def stacked(pairs):
    return np.stack([pairs.X[pairs.left], pairs.X[pairs.right]], axis=1)


# Copies


def test_a_clone_is_unfitted_and_learns_the_same(make, labeled):
    learner = make().fit(*labeled)
    copy = clone(learner)
    assert not hasattr(copy, "n_seen_")
    assert copy.get_params() == learner.get_params()
    np.testing.assert_array_equal(copy.fit(*labeled).metric_.matrix, learner.metric_.matrix)


def test_a_clone_with_arrays_and_forms_as_parameters(pairs):
    M = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    for init in (M, Mahalanobis(M)):
        learner = clone(PassiveAggressive(init=init, average=("suffix", 3))).fit(pairs[:1])
        assert np.abs(learner.metric_.matrix - M).max() < 50
    tiny = PassiveAggressive(init=M, C=1e-12).fit(pairs)
    np.testing.assert_allclose(tiny.metric_.matrix, M, atol=1e-6)


@pytest.mark.parametrize("how", ["pickle", "joblib"])
@pytest.mark.parametrize("looked", [False, True])
def test_a_stored_learner_goes_on_identically(make, labeled, tmp_path, how, looked):
    learner = make().partial_fit(*labeled)
    if looked:
        learner.metric_  # noqa: B018 - the form may be remembered from here on.
    if how == "pickle":
        again = pickle.loads(pickle.dumps(learner))
    else:
        joblib.dump(learner, tmp_path / "learner")
        again = joblib.load(tmp_path / "learner")
    for _ in range(2):
        np.testing.assert_array_equal(again.metric_.matrix, learner.metric_.matrix)
        np.testing.assert_array_equal(again.transform(labeled[0]), learner.transform(labeled[0]))
        assert again.threshold_ == learner.threshold_
        assert again.n_updates_ == learner.n_updates_
        # With labels: the random numbers were stored too.
        learner.partial_fit(*labeled)
        again.partial_fit(*labeled)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_rows_of_a_matrix_are_paired_with_the_zero_vector(make, labeled, kind):
    X, y = labeled
    learner = make().fit(X, y)
    pairs = np.stack([X, np.zeros_like(X)], axis=1)
    for method in ("pair_distance", "pair_score", "decision_function", "predict"):
        use = getattr(learner, method)
        np.testing.assert_allclose(use(kind(X)), use(pairs), rtol=1e-9)


# Search and pipelines


def test_grid_search_over_labels(labeled):
    grid = {"C": [0.01, 1.0], "psd": ["each", "end"], "average": ["last", ("suffix", 5)]}
    search = GridSearchCV(LEARNERS["pa each"](), grid, cv=3, error_score="raise").fit(*labeled)
    assert set(search.best_params_) == set(grid)
    best = clone(LEARNERS["pa each"]()).set_params(**search.best_params_).fit(*labeled)
    np.testing.assert_array_equal(search.best_estimator_.metric_.matrix, best.metric_.matrix)
    assert 1 / 3 < search.best_score_ <= 1


def test_grid_search_over_arrays_of_pairs(pairs):
    search = GridSearchCV(
        PassiveAggressive(), {"C": [1e-4, 0.1]}, cv=KFold(3), error_score="raise"
    ).fit(stacked(pairs), pairs.y)
    # By hand, over the same folds.
    for i, C in enumerate([1e-4, 0.1]):
        accuracies = []
        for learn, test in KFold(3).split(pairs.y):
            fitted = PassiveAggressive(C=C).fit(pairs[learn])
            accuracies.append(np.mean(fitted.predict(pairs[test]) == pairs.y[test]))
        assert search.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(accuracies))


def test_grid_search_over_a_precomputed_kernel(labeled):
    X, y = labeled
    learner = KernelPOLA("precomputed", n_pairs=100, random_state=0)
    K = rbf_kernel(X, gamma=0.1)
    scores = cross_val_score(learner, K, y, cv=KFold(3), error_score="raise")
    by_hand = [
        clone(learner).fit(K[np.ix_(train, train)], y[train]).score(K[np.ix_(test, train)], y[test])
        for train, test in KFold(3).split(X)
    ]
    np.testing.assert_array_equal(scores, by_hand)


def test_a_kernel_matrix_may_have_columns_that_the_metric_does_not_need(labeled):
    """The last training points stand in no pair: the form needs fewer columns than there are."""
    X, y = labeled
    K = rbf_kernel(X, gamma=0.1)
    pairs = Pairs(K, [0, 1, 2], [3, 4, 5], [1, -1, 1])
    learner = KernelPOLA("precomputed").fit(pairs)
    assert learner.metric_.n_features_in < len(X)
    E = learner.metric_.embed(K)
    nearest = np.argsort(cdist(E, E) + np.diag(np.full(len(E), np.inf)), axis=1, kind="stable")
    assert learner.score(K, y) == np.mean(y[nearest[:, 0]] == y)
    np.testing.assert_array_equal(
        KNNClassifier(learner.metric_, n_neighbors=1).fit(K, y).predict(K), y
    )


def test_a_pipeline_from_scaling_to_neighbors(make, labeled):
    X, y = labeled
    pipeline = make_pipeline(StandardScaler(), make(), KNNClassifier(n_neighbors=3)).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    by_hand = KNNClassifier(n_neighbors=3).fit(make().fit(Z, y).transform(Z), y)
    mapped = make().fit(Z, y).transform(Z)
    np.testing.assert_array_equal(pipeline.predict(X), by_hand.predict(mapped))
    assert pipeline.score(X, y) > 0.5


def test_neighbors_under_a_learner_are_those_of_its_map(make, labeled):
    X, y = labeled
    through = KNNClassifier(make(), n_neighbors=3).fit(X, y)
    Z = make().fit(X, y).transform(X)
    expected = KNNClassifier(n_neighbors=3).fit(Z, y).kneighbors()
    np.testing.assert_array_equal(through.kneighbors()[1], expected[1])


# Names


def test_data_frames(make, labeled):
    pd = pytest.importorskip("pandas")
    X, y = labeled
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(60) + 100)
    learner = make().fit(frame, y)
    assert learner.feature_names_in_.tolist() == list("abcde")
    assert learner.n_features_in_ == 5
    names = learner.get_feature_names_out().tolist()
    prefix = type(learner).__name__.lower()
    assert names == [f"{prefix}{i}" for i in range(learner.transform(frame).shape[1])]
    Z = make().set_output(transform="pandas").fit(frame, y).transform(frame)
    assert Z.columns.tolist() == names and Z.index.equals(frame.index)
    np.testing.assert_array_equal(Z.to_numpy(), learner.transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        learner.transform(frame[list("edcba")])
    with pytest.raises(ValueError, match="feature names should match"):
        learner.partial_fit(frame[list("edcba")], y)
    # Pairs have no names: those of an earlier fit do not stay.
    learner.fit(Pairs(X, [0], [1], [1]))
    assert not hasattr(learner, "feature_names_in_")
    assert learner.n_features_in_ == 5


# Weights


@pytest.mark.parametrize("rule", ["pa", "pa1", "pa2", "pals"])
@pytest.mark.parametrize("psd", ["each", "end", 5])
def test_pairs_of_weight_zero_are_left_out(rule, psd, pairs, seed):
    keep = np.random.default_rng(seed).random(len(pairs)) < 0.6
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, keep.astype(float))
    # They count as rounds, which some averages weigh by.
    one = PassiveAggressive(rule, 0.1, psd=psd, average="last").fit(weighted)
    other = PassiveAggressive(rule, 0.1, psd=psd, average="last").fit(pairs[keep])
    np.testing.assert_allclose(one.metric_.matrix, other.metric_.matrix, rtol=1e-9, atol=1e-12)
    assert one.threshold_ == pytest.approx(other.threshold_, rel=1e-9)
    assert one.n_updates_ == other.n_updates_


def test_examples_of_weight_zero_are_left_out(make, labeled, seed):
    X, y = labeled
    keep = np.random.default_rng(seed).random(60) < 0.7
    one = make().fit(X, y, sample_weight=keep.astype(float))
    other = make().fit(X[keep], y[keep])
    np.testing.assert_allclose(one.transform(X), other.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", ["pa1", "pa2", "pals"])
@pytest.mark.parametrize("psd", ["each", "end"])
def test_a_weight_multiplies_C(rule, psd, pairs, seed):
    w = 0.3
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, np.full(len(pairs), w))
    one = PassiveAggressive(rule, 0.05, psd=psd).fit(weighted)
    other = PassiveAggressive(rule, 0.05 * w, psd=psd).fit(pairs)
    np.testing.assert_allclose(one.metric_.matrix, other.metric_.matrix, rtol=1e-9, atol=1e-12)
    assert one.n_updates_ == other.n_updates_
    # One by one too: each pair with its own C.
    weight = np.random.default_rng(seed).uniform(0.1, 2, 30)
    weighted = Pairs(pairs.X, pairs.left[:30], pairs.right[:30], pairs.y[:30], weight)
    one = PassiveAggressive(rule, 0.05, psd="end", average="last").fit(weighted)
    M, b = np.zeros((5, 5)), 0.0
    for v, y, C in zip(weighted.differences(), weighted.y, 0.05 * weight, strict=True):
        p = 1 - y * (b - v @ M @ v)
        p = p if rule == "pals" else max(p, 0.0)
        norm = 1 + (v @ v) ** 2
        tau = min(C, p / norm) if rule == "pa1" else p / (norm + 1 / (2 * C))
        M, b = M - tau * y * np.outer(v, v), b + tau * y
    values, vectors = np.linalg.eigh(M)
    M = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(one.metric_.matrix, M, rtol=0, atol=1e-10 * np.abs(M).max())


def test_weights_of_arrays_and_of_pairs_are_the_same(make, pairs):
    weight = np.random.default_rng(0).uniform(0, 2, len(pairs))
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, weight)
    one = make().fit(weighted)
    other = make().fit(stacked(pairs), pairs.y, sample_weight=weight)
    X = pairs.X
    np.testing.assert_allclose(one.transform(X), other.transform(X), rtol=1e-9, atol=1e-12)


# Tuning


@pytest.mark.parametrize("rule", ["pa1", "pa2", "pals"])
def test_tuning_by_loss_takes_the_least_accumulated(rule, pairs):
    Cs = [10.0, 0.001, 0.1]
    tuned = tune_C(PassiveAggressive(rule, n_passes=4), pairs, Cs=Cs)
    expected = [PassiveAggressive(rule, C).fit(pairs).loss_ for C in sorted(Cs)]
    np.testing.assert_allclose(tuned.values, expected, rtol=1e-12)
    assert tuned.criterion == "loss"
    assert tuned.Cs.tolist() == sorted(Cs)
    assert tuned.C == sorted(Cs)[int(np.argmin(expected))]


def test_tuning_by_accuracy_takes_the_best_neighbors(labeled, pairs):
    X, y = labeled
    Cs = [0.0001, 0.01, 1.0]
    tuned = tune_C(
        PassiveAggressive(), pairs, Cs=Cs, criterion="accuracy", labeled=labeled, max_neighbors=7
    )
    for C, value in zip(Cs, tuned.values, strict=True):
        Z = PassiveAggressive(C=C).fit(pairs).transform(X)
        distances = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        np.fill_diagonal(distances, np.inf)
        order = np.argsort(distances, axis=1)
        # Ties in the vote: fewer neighbors until there is a winner.
        best = max(
            np.mean([_vote(y[row[:k]]) == c for row, c in zip(order, y, strict=True)])
            for k in range(1, 8)
        )
        assert value == pytest.approx(best)
    assert tuned.C == Cs[int(np.argmax(tuned.values))]


def _vote(labels):
    while True:
        counts = np.bincount(labels)
        if np.count_nonzero(counts == counts.max()) == 1:
            return np.argmax(counts)
        labels = labels[:-1]


def test_tuning_on_labels_draws_once_and_fits_nothing(labeled):
    learner = LEARNERS["pa each"]()
    tuned = tune_C(learner, *labeled, Cs=[0.01, 1.0])
    how = {"purpose": "neighbors", "n_neighbors": 10, "n_pairs": 100, "random_state": 0}
    drawn, _ = sampled_pairs(*labeled, **how)
    np.testing.assert_array_equal(tuned.values, tune_C(learner, drawn, Cs=[0.01, 1.0]).values)
    assert not hasattr(learner, "n_seen_") and learner.C == 0.1
    by_accuracy = tune_C(learner, *labeled, Cs=[0.01, 1.0], criterion="accuracy")
    given = tune_C(learner, drawn, Cs=[0.01, 1.0], criterion="accuracy", labeled=labeled)
    np.testing.assert_array_equal(by_accuracy.values, given.values)


def test_tuning_on_an_array_of_pairs(pairs):
    one = tune_C(PassiveAggressive(), stacked(pairs), pairs.y, Cs=[0.01, 1.0])
    other = tune_C(PassiveAggressive(), pairs, Cs=[0.01, 1.0])
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)


def test_the_values_tried_unless_said(pairs):
    tuned = tune_C(PassiveAggressive(), pairs)
    np.testing.assert_allclose(tuned.Cs, 10.0 ** np.arange(-4, 2.01, 0.5), rtol=1e-12)


def test_of_equal_values_the_smallest_is_taken(labeled, pairs):
    # Every pair without loss: no step, whatever C.
    nothing = Pairs(np.zeros((2, 2)), [0], [1], [1])
    assert tune_C(PassiveAggressive("pa1"), nothing, Cs=[5.0, 3.0, 4.0]).C == 3.0


def test_neighbor_accuracies_count_no_more_neighbors_than_there_are(labeled):
    X, y = labeled
    assert neighbor_accuracies(None, X[:10], y[:10], 25).shape == (9,)


def test_sparse_examples_go_through_the_tools(labeled):
    X, y = labeled
    scores = cross_val_score(LEARNERS["pa each"](), sp.csr_array(X), y, cv=3, error_score="raise")
    dense = cross_val_score(LEARNERS["pa each"](), X, y, cv=3, error_score="raise")
    np.testing.assert_allclose(scores, dense)


def test_pairs_can_be_split_for_cross_validation(pairs):
    search = GridSearchCV(LEARNERS["pa each"](), {"C": [1e-6, 0.1]}, cv=3, error_score="raise").fit(
        pairs
    )
    assert search.best_params_ == {"C": 0.1}
    assert search.best_estimator_.n_seen_ == len(pairs)
    scores = cross_val_score(LEARNERS["pa each"](), pairs, cv=KFold(4), error_score="raise")
    first = LEARNERS["pa each"]().fit(pairs[100:]).score(pairs[:100])
    assert scores[0] == first
