"""SiLA equals its formulas, and says what it cannot use."""

from __future__ import annotations

import os
import re
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise.decide.per_class import PerClassClassifier
from samewise.exceptions import DegenerateInputError, InvalidInputError, SamewiseWarning
from samewise.forms import Bilinear, NormalizedBilinear
from samewise.learners.neighbors.sila import SiLA
from tests.pairwise import SEEDS, pairwise
from tests.reference import labels as reference


def problem(seed, n=60, d=5, classes=3, positive=False, holes=0.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % classes)
    X = rng.normal(size=(n, d))
    X[:, 0] += y
    if holes:
        X = np.where(rng.random(X.shape) < holes, 0.0, X)
        X[:, 1] += 0.1
    return (np.abs(X) / 5 if positive else X), y


def same_run(learner, run, kind="survival", number=0):
    assert learner.n_updates_ == len(run.rounds)
    assert learner.n_seen_ == run.seen
    updates = np.diff(learner.history_["updates"], prepend=0)
    np.testing.assert_array_equal(np.flatnonzero(updates), run.rounds)
    expected = reference.voted(run, kind, number)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(learner.metric_.matrix, expected, rtol=0, atol=1e-9 * scale)


# Equality with the formulas, round by round


# Thinned from 36 cases to 9.
@pairwise(
    seed=SEEDS,
    kind=[np.asarray, sp.csr_array],
    structure=["full", "symmetric", "diagonal"],
    psd=[None, "each"],
)
def test_structures(structure, psd, kind, seed):
    X, y = problem(seed, holes=0.3)
    learner = SiLA(2, structure=structure, psd=psd, n_passes=2).fit(kind(X), y)
    same_run(learner, reference.sila(X, y, 2, structure=structure, psd=psd, n_passes=2))
    if psd:
        assert np.linalg.eigvalsh(learner.metric_.matrix).min() > -1e-9


@pytest.mark.parametrize("structure", ["full", "symmetric", "diagonal"])
def test_it_starts_where_it_is_asked_to(structure):
    X, y = problem(0)
    runs = {}
    for init in ("identity", "zero"):
        learner = SiLA(2, structure=structure, init=init, n_passes=2).fit(X, y)
        runs[init] = reference.sila(X, y, 2, structure=structure, init=init, n_passes=2)
        same_run(learner, runs[init])
    assert runs["identity"].rounds != runs["zero"].rounds


# Thinned from 126 cases to 22.
@pairwise(
    seed=SEEDS,
    average=[
        "last",
        "uniform",
        "survival",
        ("suffix", 1),
        ("suffix", 4),
        ("suffix", 500),
        ("cutoff", 2),
        ("decay", 10),
    ],
    structure=["full", "symmetric", "diagonal"],
    psd=[None, "each"],
)
def test_averages(structure, psd, average, seed):
    X, y = problem(seed)
    learner = SiLA(2, structure=structure, psd=psd, n_passes=2, average=average).fit(X, y)
    run = reference.sila(X, y, 2, structure=structure, psd=psd, n_passes=2)
    kind, number = (average, 0) if isinstance(average, str) else average
    same_run(learner, run, kind, number)


def half_product(X, Y):
    return np.outer(1 + np.asarray(X.sum(axis=1)).ravel(), 2 + np.asarray(Y.sum(axis=1)).ravel())


# Thinned from 60 cases to 15.
@pairwise(
    seed=SEEDS,
    kind=[np.asarray, sp.csr_array],
    name=["cosine", "dice", "jaccard", None, half_product],
    pool=[None, 7],
)
def test_normalizers(name, pool, kind, seed):
    X, y = problem(seed, positive=True, holes=0.3)
    learner = SiLA(2, normalizer=name, impostors=pool or "exact", n_passes=2).fit(kind(X), y)
    same_run(learner, reference.sila(X, y, 2, name=name, pool=pool, n_passes=2))
    assert type(learner.metric_) is (Bilinear if name is None else NormalizedBilinear)


@pytest.mark.parametrize("structure", ["full", "symmetric", "diagonal"])
@pytest.mark.parametrize("step", ["pa1", "pa2"])
def test_steps(step, structure, seed):
    X, y = problem(seed)
    learner = SiLA(2, structure=structure, step=step, C=0.3, n_passes=2).fit(X, y)
    run = reference.sila(X, y, 2, structure=structure, step=step, C=0.3, n_passes=2)
    same_run(learner, run)
    assert learner.loss_ == pytest.approx(np.maximum(run.violations, 0).sum())
    # Some moves of A are no mistakes.
    assert 0 < learner.n_mistakes_ < learner.n_updates_


@pytest.mark.parametrize("structure", ["full", "symmetric", "diagonal"])
def test_an_uncapped_step_makes_the_margin_one(structure, seed):
    # Two classes of two, and the only impostor of the last example cannot change.
    X, y = problem(seed)[0][:4], np.array([0, 0, 1, 1])
    learner = SiLA(1, structure=structure, step="pa1", C=1e9, average="last", impostors=1)
    form = learner.set_params(n_passes=1).fit(X, y).metric_
    base = X / np.linalg.norm(X, axis=1, keepdims=True)
    impostor = int(np.argmax(base[:2] @ base[3]))
    margin = form.pairs(X[3:], X[[2]])[0] - form.pairs(X[3:], X[[impostor]])[0]
    assert margin >= 1 - 1e-9


# Thinned from 45 cases to 15.
@pairwise(
    seed=SEEDS,
    sort=[(np.float64, 0), (np.float32, 0), (np.float64, 1150)],
    d=[1, 7, 12, 13, 40],
)
def test_the_search_is_exact_in_any_dimension(d, sort, seed):
    dtype, first = sort
    # More rows than are looked at together, one far feature, and rows that occur twice; or a class
    # as large as all that are looked at together.
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(1300, d)) * rng.uniform(0.1, 3, d)).astype(dtype)
    X[::7, 0] += 20
    X[100:110] = X[200:210]
    y = rng.permutation(np.append(rng.integers(0, 4, 1300 - first), np.zeros(first, dtype=int)))
    exact = SiLA(3, n_passes=1, normalizer=None, step="pa1", C=0.1).fit(X, y)
    plain = SiLA(3, n_passes=1, normalizer=None, step="pa1", C=0.1, impostors=1300).fit(X, y)
    assert exact.n_updates_ == plain.n_updates_
    np.testing.assert_array_equal(exact.metric_.matrix, plain.metric_.matrix)
    assert exact.metric_.matrix.dtype == dtype


def test_small_classes_and_few_others(seed):
    X, y = problem(seed, n=14, classes=2)
    y = np.where(np.arange(14) < 2, 5, np.where(np.arange(14) == 2, 7, y))
    with pytest.warns(SamewiseWarning, match="2 of 4 classes have no more than n_neighbors=3"):
        learner = SiLA(3, n_passes=2).fit(X, y)
    same_run(learner, reference.sila(X, y, 3, n_passes=2))
    y = np.r_[0, np.ones(13, dtype=int)]
    with pytest.warns(SamewiseWarning):
        learner = SiLA(3, n_passes=2).fit(X, y)
    same_run(learner, reference.sila(X, y, 3, n_passes=2))


# Going on


def test_a_warm_start_goes_on(seed):
    X, y = problem(seed)
    for average in ("survival", ("suffix", 3)):
        learner = SiLA(2, n_passes=2, warm_start=True, average=average)
        learner.fit(X, y).set_params(n_passes=1).fit(X, y)
        whole = SiLA(2, n_passes=3, average=average).fit(X, y)
        scale = np.abs(whole.metric_.matrix).max()
        np.testing.assert_allclose(
            learner.metric_.matrix, whole.metric_.matrix, rtol=0, atol=1e-12 * scale
        )
        assert learner.n_seen_ == whole.n_seen_
    with pytest.raises(InvalidInputError, match="warm_start goes on with a matrix of shape"):
        learner.fit(X[:, :3], y)


def test_what_is_refused_on_the_way_leaves_a_warm_start_as_it_was(labeled):
    X, y = labeled
    calls = []

    def fails_later(A, B):
        calls.append(1)
        N = np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1))
        return N * (np.nan if len(calls) > limit else 1.0)

    limit = np.inf
    learner = SiLA(1, normalizer=fails_later, n_passes=3, warm_start=True).fit(X, y)
    A, last = learner.metric_.matrix, learner._run.store.matrix
    limit = len(calls) + len(calls) - 1
    with pytest.raises(DegenerateInputError):
        learner.fit(X, y)
    assert learner.metric_.matrix is A
    np.testing.assert_array_equal(learner._run.store.matrix, last)


def test_an_interrupted_run_keeps_what_it_learned(labeled):
    X, y = labeled
    calls = []

    def interrupts(A, B):
        calls.append(1)
        if len(calls) == limit:
            os.kill(os.getpid(), signal.SIGINT)
        return np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1))

    limit = np.inf
    SiLA(1, normalizer=interrupts, n_passes=1).fit(X, y)
    # In the second epoch.
    limit = 2 * len(calls) + 1
    learner = SiLA(1, normalizer=interrupts, n_passes=100)
    with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
        learner.fit(X, y)
    assert learner.n_seen_ == 2 * len(y)
    expected = SiLA(1, n_passes=2).fit(X, y).metric_.matrix
    np.testing.assert_allclose(learner.metric_.matrix, expected, atol=1e-9)


def test_shuffling_hangs_on_random_state_only(labeled):
    one, other, third = (
        SiLA(n_passes=2, shuffle=True, random_state=s).fit(*labeled).metric_ for s in (0, 0, 1)
    )
    assert one == other and one != third


def test_one_similarity_for_each_class(labeled):
    X, y = labeled
    names = np.array(["a", "b", "c"])[y]
    model = PerClassClassifier(SiLA(2, n_passes=2)).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    for c, form in zip("abc", model.metrics_, strict=True):
        assert form == SiLA(2, n_passes=2).fit(X, names == c).metric_


def test_margins_and_score(labeled):
    X, y = labeled
    learner = SiLA(1, n_passes=5).fit(X, y)
    S = learner.metric_.cross(X)
    np.fill_diagonal(S, -np.inf)
    assert learner.score(X, y) == np.mean(y[S.argmax(axis=1)] == y)
    base = X / np.linalg.norm(X, axis=1, keepdims=True)
    B = base @ base.T
    np.fill_diagonal(B, -np.inf)
    i = 7
    hit = np.where(y == y[i], B[i], -np.inf).argmax()
    miss = np.where(y != y[i], B[i], -np.inf).argmax()
    assert learner.margins(X, y)[i] == pytest.approx(S[i, hit] - S[i, miss])


# Among scikit-learn's tools


@parametrize_with_checks(
    [
        SiLA(n_passes=1),
        SiLA(normalizer=None, n_passes=1),
        SiLA(2, structure="diagonal", normalizer=None, n_passes=1),
        SiLA(normalizer="dice", n_passes=1),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamewiseWarning)
        check(estimator)


# Zero rows


@pytest.mark.parametrize("impostors", ["exact", 5])
@pytest.mark.parametrize("name", ["cosine", "dice", "jaccard"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_zero_row_has_similarity_zero_and_is_skipped(kind, name, impostors, seed):
    X, y = problem(seed, positive=True)
    zero = np.vstack([np.zeros((2, X.shape[1])), X])
    learner = SiLA(2, normalizer=name, impostors=impostors, n_passes=1)
    learner.fit(kind(zero), np.r_[0, 1, y])
    assert learner.n_seen_ == len(y)
    assert not learner.metric_.cross(kind(zero))[:, :2].any()
    assert learner.margins(zero, np.r_[0, 1, y])[:2].tolist() == [0, 0]
    assert 0 <= learner.score(zero, np.r_[0, 1, y]) <= 1


# What is refused


def refused(match, learner, X, y, error=InvalidInputError):
    before = vars(learner).copy()
    with pytest.raises(error, match=re.escape(match)):
        learner.fit(X, y)
    assert vars(learner).keys() == before.keys()
    assert all(vars(learner)[name] is value for name, value in before.items())


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_without_a_similarity(kind, fitted, labeled):
    X, y = labeled

    def learner(**given):
        made = SiLA(n_passes=1, **given)
        return made.fit(np.abs(X) / 9, y) if fitted else made

    for name in ("dice", "jaccard"):
        refused(
            f"Negative values in data: the {name} normalizer needs entries that are not negative. ",
            learner(normalizer=name),
            kind(X),
            y,
        )
    refused(
        "The jaccard normalizer |x|₁ + |x'|₁ − xᵀx' must be positive.",
        learner(normalizer="jaccard"),
        kind(np.abs(X) * 9),
        y,
        DegenerateInputError,
    )


@pytest.mark.parametrize("impostors", ["exact", 10])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_normalizer_that_fails(value, impostors, labeled):
    X, y = labeled

    def sometimes(A, B):
        N = np.ones((len(A), len(B)))
        N[(A[:, :1] > 2) & (B[:, 0] < -2)] = value
        return N

    refused(
        "The normalizer must return finite values that are not zero. Got",
        SiLA(normalizer=sometimes, impostors=impostors),
        X,
        y,
        DegenerateInputError,
    )
    refused(
        "The normalizer must return an array of shape",
        SiLA(normalizer=lambda A, B: np.ones(len(A)), impostors=impostors),
        X,
        y,
    )


def test_labels_that_say_nothing(labeled):
    X, y = labeled
    refused("SiLA needs labels of at least two classes", SiLA(), X, y * 0)
    refused("needs a class with at least two examples", SiLA(), X[:4], np.arange(4))


def test_parameters(labeled):
    refused("The 'psd' parameter of SiLA must be", SiLA(psd=True), *labeled, ValueError)
    refused("'average' parameter must be", SiLA(average="median"), *labeled)
    for wrong in ({"structure": "banded"}, {"step": "pa"}, {"C": 0.0}, {"impostors": 0}):
        refused(f"The {next(iter(wrong))!r} parameter", SiLA(**wrong), *labeled, ValueError)
    with pytest.raises(NotFittedError):
        clone(SiLA()).n_updates_  # noqa: B018
