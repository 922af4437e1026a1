"""gCosLA equals its formulas, and says what it cannot use."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import samewise
from samewise import GeneralizedCosine, Pairs, Triplets
from samewise.decide.per_class import PerClassClassifier
from samewise.exceptions import InvalidInputError
from samewise.learners.online.gcosla import GCosLA
from samewise.supervision.purposes import sampled_pairs
from tests.reference import labels as reference

MARGINS = [(0.1, None), (0.2, 0.1), (0.1, -0.3)]


def same_run(learner, run, kind="uniform", number=0, rtol=1e-8):
    assert learner.n_seen_ == run.seen
    updates = np.diff(learner.history_["updates"], prepend=0)
    np.testing.assert_array_equal(np.flatnonzero(updates), run.rounds)
    A, b = reference.averaged(run, kind, number)
    np.testing.assert_allclose(learner.metric_.matrix, A, rtol=0, atol=rtol * np.abs(A).max())
    assert learner.threshold_ == pytest.approx(b, abs=1e-7)
    losses = np.maximum(run.violations, 0).sum()
    assert learner.loss_ == pytest.approx(losses, rel=1e-7)


def run_of(pairs, gamma, beta, X=None, **given):
    X = pairs.X if X is None else X
    beta = gamma if beta is None else beta
    return reference.gcosla(X, pairs.left, pairs.right, pairs.y, gamma, beta, **given)


# Equality with the formulas, round by round


@pytest.mark.parametrize("psd", ["each", "end", 5])
@pytest.mark.parametrize("update", ["projection", "thesis"])
@pytest.mark.parametrize("gamma, beta", MARGINS)
def test_updates(gamma, beta, update, psd, pairs):
    learner = GCosLA(gamma, beta, update=update, psd=psd).fit(pairs)
    run = run_of(pairs, gamma, beta, update=update, psd=psd)
    same_run(learner, run)
    assert learner.n_updates_ > 20


@pytest.mark.parametrize(
    "average", ["last", "uniform", "survival", ("suffix", 7), ("cutoff", 1), ("decay", 20)]
)
@pytest.mark.parametrize("psd", ["each", 5])
def test_averages(average, psd, pairs):
    learner = GCosLA(0.2, None, average=average, psd=psd).fit(pairs)
    kind, number = (average, 0) if isinstance(average, str) else average
    same_run(learner, run_of(pairs, 0.2, None, psd=psd), kind, number)


def test_sparse_rows(sparse_pairs):
    dense, sparse = sparse_pairs
    lengths = np.linalg.norm(dense.X, axis=1)
    keep = (lengths[dense.left] > 0) & (lengths[dense.right] > 0)
    learner = GCosLA(0.2, None).fit(sparse[keep])
    same_run(learner, run_of(dense[keep], 0.2, None))
    scores = learner.pair_score(sparse[keep])
    np.testing.assert_allclose(scores, learner.pair_score(dense[keep]), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 30])
def test_dimensions(d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, d)) * rng.uniform(0.1, 3, d) + 0.3
    pairs = Pairs.from_labels(X, rng.integers(0, 2, 80), n_pairs=250, random_state=seed)
    same_run(GCosLA(0.1, 0.05).fit(pairs), run_of(pairs, 0.1, 0.05), rtol=1e-6)


def test_float32_is_learned_in_float64(pairs):
    single = Pairs(pairs.X.astype(np.float32), pairs.left, pairs.right, pairs.y)
    learner = GCosLA(0.2, None).fit(single)
    run = run_of(single, 0.2, None, X=single.X.astype(np.float64))
    assert learner.n_updates_ == len(run.rounds)
    assert learner.metric_.matrix.dtype == np.float32
    A = reference.averaged(run, "uniform")[0]
    np.testing.assert_allclose(learner.metric_.matrix, A, atol=1e-5 * np.abs(A).max())


def test_pairs_of_weight_zero_are_passed_over(pairs):
    keep = np.arange(len(pairs)) % 3 > 0
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, keep * 2.0)
    one, other = GCosLA(0.2, None, average="last").fit(weighted), GCosLA(0.2, None, average="last")
    other.fit(pairs[keep])
    np.testing.assert_allclose(one.metric_.matrix, other.metric_.matrix, atol=1e-9)


def test_from_labels_pairs_are_the_nearest(labeled):
    X, y = labeled
    learner = GCosLA(average="last", random_state=0).fit(X, y)
    form = GeneralizedCosine(np.eye(5))
    how = {"purpose": "neighbors", "n_neighbors": 10, "n_pairs": None, "random_state": 0}
    nearest, held_out = sampled_pairs(X, y, form=form, **how)
    assert learner.n_seen_ == len(nearest)
    expected = GCosLA(average="last").fit(nearest)
    assert learner.metric_ == expected.metric_
    assert learner.threshold_ == expected._calibrated(held_out)


# Streams


def test_portions_equal_one_fit(pairs):
    whole = GCosLA(0.2, None).fit(pairs)
    parts = GCosLA(0.2, None)
    for part in (pairs[:7], pairs[7:150], pairs[150:]):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.metric_.matrix, whole.metric_.matrix, atol=1e-9)
    assert parts.n_updates_ == whole.n_updates_
    assert parts.threshold_ == pytest.approx(whole.threshold_)
    again = GCosLA(0.2, None).partial_fit(iter([pairs[:200], pairs[200:]]))
    assert again.n_updates_ == whole.n_updates_


def test_what_is_handed_out(pairs, labeled):
    X, y = labeled
    learner = GCosLA(0.2, None, n_passes=5).fit(pairs)
    form, b = learner.metric_, learner.threshold_
    assert isinstance(form, GeneralizedCosine) and -0.8 <= b <= 0.8
    assert learner.closeness_threshold_ == b
    E = learner.transform(X)
    np.testing.assert_allclose(E @ E.T, form.cross(X), atol=1e-12)
    scores = learner.pair_score(pairs)
    np.testing.assert_allclose(scores, form.pairs(X[pairs.left], X[pairs.right]))
    np.testing.assert_array_equal(learner.predict(pairs), np.where(scores >= b, 1, -1))
    np.testing.assert_array_equal(learner.decision_function(pairs), scores - b)
    assert learner.score(pairs) == np.mean((scores >= b) == (pairs.y > 0))
    stacked = np.stack([X[pairs.left], X[pairs.right]], axis=1)
    assert learner.score(stacked, pairs.y) == learner.score(pairs)
    assert 0 < learner.score(X, y) <= 1


def test_one_similarity_for_each_class(labeled):
    X, y = labeled
    for c, form in enumerate(PerClassClassifier(GCosLA(random_state=0)).fit(X, y).metrics_):
        assert form == GCosLA(random_state=0).fit(X, y == c).metric_


def test_saved_and_loaded_it_goes_on(pairs, tmp_path):
    for psd in ("each", 5):
        learner = GCosLA(0.2, None, psd=psd, average=("suffix", 5)).partial_fit(pairs[:150])
        learner.save(tmp_path / "file")
        again = samewise.load(tmp_path / "file")
        assert again.partial_fit(pairs[150:]).metric_ == learner.partial_fit(pairs[150:]).metric_
        assert again.threshold_ == learner.threshold_


@parametrize_with_checks([GCosLA(n_neighbors=2)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# Zero vectors


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_nothing_is_learned_from_pairs_with_a_zero_vector(method, kind, pairs):
    X = pairs.X.copy()
    X[[4, 9]] = 0
    zero = np.isin(pairs.left, [4, 9]) | np.isin(pairs.right, [4, 9])
    assert 0 < zero.sum() < len(pairs)
    given = Pairs(kind(X), pairs.left, pairs.right, pairs.y)
    learner = getattr(GCosLA(0.2, None, average="last"), method)(given)
    other = getattr(GCosLA(0.2, None, average="last"), method)(given[~zero])
    np.testing.assert_allclose(learner.metric_.matrix, other.metric_.matrix, atol=1e-9)
    assert learner.threshold_ == pytest.approx(other.threshold_)
    assert learner.n_updates_ == other.n_updates_
    assert learner.n_seen_ == len(pairs)
    nothing = getattr(GCosLA(), method)(given[zero])
    assert nothing.n_updates_ == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_zero_vector_is_similar_to_nothing(kind, labeled):
    X, y = labeled
    X = X.copy()
    X[[4, 9]] = 0
    learner = GCosLA().fit(kind(X), y)
    with_zero = Pairs(kind(X), [4, 1, 4], [2, 9, 9], [1, -1, 1])
    np.testing.assert_array_equal(learner.pair_score(with_zero), 0)
    assert not learner.transform(kind(X))[[4, 9]].any()
    # The rows of a matrix are paired with the zero vector.
    np.testing.assert_array_equal(learner.decision_function(kind(X)), -learner.threshold_)


# What is refused


def refused(match, call, error=InvalidInputError):
    with pytest.raises(error, match=re.escape(match)):
        call()


def test_margins_out_of_range(pairs):
    for wrong in (
        {"margin": 0.0},
        {"margin": 1.0},
        {"step_margin": -2.0},
        {"step_margin": 1.5},
        {"psd": "never"},
        {"psd": 1},
    ):
        name = next(iter(wrong))
        refused(f"The {name!r} parameter", lambda w=wrong: GCosLA(**w).fit(pairs), ValueError)
    refused("step_margin must be at most margin=0.1", lambda: GCosLA(0.1, 0.2).fit(pairs))
    refused("'average' parameter", lambda: GCosLA(average="median").fit(pairs))


def test_supervision_of_another_kind(labeled):
    X, y = labeled
    refused("at least two classes. Got one class", lambda: GCosLA().fit(X, y * 0))
    refused("learns from pairs. Got Triplets", lambda: GCosLA().fit(Triplets(X, [0], [1], [2])))
