"""RBS and sRBS against the loops, dense and sparse, and what they do with odd input."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, NormalizedBilinear
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.srbs import SRBS
from samewise.search import margins
from tests.reference import relief as reference

UNFINISHED = pytest.mark.filterwarnings("ignore:SRBS has not converged")


@UNFINISHED
@parametrize_with_checks(
    [
        RBS(),
        RBS(psd="end"),
        RBS(normalizer=None, psd="end"),
        RBS(normalizer="dice"),
        RBS(structure="diagonal", normalizer=None),
        SRBS(),
        SRBS(psd="each"),
        SRBS(normalizer=None, psd="each"),
        SRBS(normalizer=None, solver="lbfgs"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def small(labeled):
    """30 examples of three classes with entries in [0, 1], half of them zero."""
    X, y = labeled
    X = np.abs(X[:30]) / np.abs(X).max()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.3, 0.0, X)
    X[:, 0] += 0.01
    X[:, 1] = np.minimum(X[:, 1] + 0.3 * y[:30], 1)
    return X, y[:30]


@pytest.mark.parametrize("normalizer", ["cosine", "dice", "jaccard", None])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("psd", [None, "end"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rbs_is_the_loop(small, normalizer, k, diagonal, psd, sparse):
    X, y = small
    learner = RBS(
        k, structure="diagonal" if diagonal else "full", normalizer=normalizer, psd=psd
    ).fit(sp.csr_array(X) if sparse else X, y)
    expected = reference.rbs(X, y, k, normalizer, diagonal, psd)
    np.testing.assert_allclose(learner.metric_.matrix, expected, rtol=1e-9, atol=1e-12)
    assert learner.metric_.normalizer == normalizer
    found = reference.triples(X, y, k, normalizer)
    by_hand = [reference.margin(expected, X, i, found[i], normalizer) for i in range(len(X))]
    np.testing.assert_allclose(learner.margins(X, y), by_hand, rtol=1e-8, atol=1e-11)
    assert learner.margin_ == pytest.approx(np.sum(by_hand), rel=1e-9)


@pytest.mark.parametrize("normalizer", ["cosine", "jaccard", None])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("psd", [None, "each"])
@pytest.mark.parametrize("sparse", [False, True])
@UNFINISHED
def test_srbs_takes_the_steps_of_the_thesis(small, normalizer, diagonal, psd, sparse):
    X, y = small
    seen = []
    learner = SRBS(
        2,
        beta=20.0,
        regularization=0.5,
        structure="diagonal" if diagonal else "full",
        normalizer=normalizer,
        psd=psd,
        max_iter=8,
        tol=0.0,
        callback=lambda info: seen.append(info["matrix"]),
    ).fit(sp.csr_array(X) if sparse else X, y)
    path = reference.srbs(X, y, 2, normalizer, 20.0, 0.5, 8, 0.0, diagonal, psd)
    assert learner.n_iter_ == len(seen) == len(path) == 8
    for mine, expected in zip(seen, path, strict=True):
        mine = np.diag(mine) if diagonal else mine
        np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(
        learner.metric_.matrix, np.diag(seen[-1]) if diagonal else seen[-1]
    )
    expected = reference.cost(path[-1], X, y, 2, normalizer, 20.0, 0.5)
    assert learner.loss_ == pytest.approx(expected, rel=1e-9)
    assert learner.history_["loss"][-1] == pytest.approx(expected, rel=1e-9)


def test_the_schedule_stops_when_steps_are_small(small):
    X, y = small
    learner = SRBS(beta=5.0, tol=0.02).fit(X, y)
    path = reference.srbs(X, y, 1, "cosine", 5.0, 1e-3, 500, 0.02)
    assert learner.converged_ and learner.n_iter_ == len(path) < 500
    assert learner.history_["change"][-1] <= 0.02 < learner.history_["change"][-2]
    with pytest.warns(ConvergenceWarning, match="not converged to tol=0 in 3 iter") as said:
        short = SRBS(beta=5.0, tol=0.0, max_iter=3).fit(X, y)
    assert not short.converged_ and short.n_iter_ == 3 and said[0].filename == __file__


@pytest.mark.parametrize("solver", ["gradient", "lbfgs"])
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_psd_is_kept_and_embedded(labeled, solver, structure):
    X, y = labeled
    for normalizer in ("cosine", None):
        learner = SRBS(
            beta=3.0, psd="each", solver=solver, structure=structure, normalizer=normalizer
        ).fit(X, y)
        A = learner.metric_.matrix
        assert np.linalg.eigvalsh(A).min() >= -1e-10 * np.abs(A).max()
        np.testing.assert_array_equal(A, A.T)
        Z = learner.transform(X)
        np.testing.assert_allclose(Z @ Z.T, learner.metric_.cross(X), atol=1e-6)
        np.testing.assert_allclose(Z, learner.fit_transform(X, y))
    Z = RBS(psd="end").fit(X, y).transform(X)
    np.testing.assert_allclose(Z @ Z.T, RBS(psd="end").fit(X, y).metric_.cross(X), atol=1e-6)
    for without in (RBS(), SRBS(), RBS(psd="end", normalizer="dice")):
        with pytest.raises(AttributeError, match="transform"):
            without.transform(X)


def test_large_margins_do_not_overflow(labeled):
    X, y = labeled
    for solver in ("gradient", "lbfgs"):
        learner = SRBS(beta=1e6, solver=solver, normalizer=None, max_iter=30, tol=1e-2)
        A = learner.fit(X, y).metric_.matrix
        assert np.isfinite(A).all() and np.isfinite(learner.loss_)


def test_float32_stays(labeled):
    X, y = labeled
    for learner in (RBS(2), SRBS(2, beta=5.0)):
        single = learner.fit(X.astype(np.float32), y).metric_.matrix
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, learner.fit(X, y).metric_.matrix, atol=1e-4)


@pytest.mark.parametrize("rule", ["knn", "sknn"])
def test_without_pull_they_decide_as_the_cosine(labeled, rule):
    X, y = labeled
    learner = SRBS(beta=1e-9, regularization=0.0)
    models = [KNNClassifier(m, 3, rule) for m in (learner, NormalizedBilinear(np.eye(5)))]
    one, other = (model.fit(X[::2], y[::2]).predict(X[1::2]) for model in models)
    np.testing.assert_array_equal(one, other)


def test_margins_of_a_learner_have_the_base_neighbors(labeled):
    X, y = labeled
    learner = SRBS(2, beta=5.0).fit(X, y)
    base = NormalizedBilinear(np.eye(5))
    np.testing.assert_array_equal(
        learner.margins(X, y), margins(learner.metric_, X, y, 2, base=base)
    )


# Long runs


def test_callbacks_stop_and_ctrl_c_keeps(labeled):
    X, y = labeled
    for solver in ("gradient", "lbfgs"):
        options = {"solver": solver, "tol": 0.0, "beta": 10.0}
        stopped = SRBS(callback=lambda info: info["iteration"] == 3, **options).fit(X, y)
        assert stopped.n_iter_ == 3 and not stopped.converged_
        assert len(stopped.history_["loss"]) == 3

        def interrupt(info):
            if info["iteration"] == 3:
                signal.raise_signal(signal.SIGINT)

        learner = SRBS(callback=interrupt, **options)
        with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
            learner.fit(X, y)
        assert learner.metric_ == stopped.metric_ and learner.n_iter_ == 3


def test_an_error_in_a_callback_changes_nothing(labeled):
    X, y = labeled
    learner = SRBS().fit(X, y)
    before = dict(vars(learner))
    learner.callback = before["callback"] = lambda info: 1 / 0
    with pytest.raises(ZeroDivisionError):
        learner.fit(X[:, :3], y)
    assert vars(learner).keys() == before.keys()
    assert all(vars(learner)[name] is value for name, value in before.items())


@UNFINISHED
def test_it_says_how_far_it_is(labeled, capsys):
    SRBS(verbose=True, max_iter=5, tol=0.0).fit(*labeled)
    assert "SRBS: iteration 5, loss" in capsys.readouterr().err


def test_a_minimum_that_was_not_reached_is_said(labeled):
    with pytest.warns(ConvergenceWarning, match="not converged to tol=1e-09 in 2 it") as said:
        learner = SRBS(solver="lbfgs", max_iter=2, tol=1e-9, beta=50.0).fit(*labeled)
    assert not learner.converged_ and said[0].filename == __file__


# Odd input


@pytest.mark.parametrize("make", [RBS, SRBS])
def test_small_classes_are_said_once(make, labeled):
    X, y = labeled
    y = y.copy()
    y[:3], y[3] = 7, 8
    with pytest.warns(SamewiseWarning, match="2 of 5 classes have no more than") as said:
        learner = make(4).fit(X, y)
    assert len(said) == 1 and said[0].filename == __file__
    if make is RBS:
        expected = reference.rbs(X, y, 4)
        np.testing.assert_allclose(learner.metric_.matrix, expected, rtol=1e-9, atol=1e-12)
    assert np.isnan(learner.margins(X, y)[3])


def test_nothing_to_learn_is_said():
    X = np.tile([[1.0, 2.0]], (6, 1))
    with pytest.warns(SamewiseWarning, match="learned nothing"):
        learner = RBS(structure="diagonal", normalizer=None).fit(X, [0, 1] * 3)
    assert not learner.metric_.matrix.any()


@pytest.mark.parametrize("make", [RBS, SRBS])
@pytest.mark.parametrize("normalizer", ["cosine", "dice", "jaccard"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_zero_row_has_similarity_zero_and_contributes_nothing(make, normalizer, kind, small):
    X, y = small
    zero = np.vstack([np.zeros((2, X.shape[1])), X])
    # With positive entries a zero row is nobody's neighbor: all others are more similar.
    learner = make(normalizer=normalizer).fit(kind(zero), np.r_[0, 1, y])
    assert not learner.metric_.cross(kind(zero))[:2].any()
    assert not learner.metric_.pairs(zero[:2], zero[1:3]).any()
    assert learner.margins(kind(zero), np.r_[0, 1, y])[:2].tolist() == [0, 0]
    if make is RBS:
        expected = make(normalizer=normalizer).fit(kind(X), y).metric_.matrix
        np.testing.assert_allclose(learner.metric_.matrix, expected, rtol=1e-12, atol=1e-15)


def test_a_zero_row_is_mapped_to_zero(small):
    X, y = small
    learner = RBS(psd="end").fit(X, y)
    assert not learner.transform(np.zeros((1, X.shape[1]))).any()


def test_the_map_comes_as_a_table(small):
    pd = pytest.importorskip("pandas")
    X, y = small
    learner = RBS(psd="end").set_output(transform="pandas").fit(X, y)
    Z = learner.transform(X)
    assert isinstance(Z, pd.DataFrame)
    assert Z.columns.tolist() == [f"rbs{i}" for i in range(len(learner.components_))]


BAD = {
    "one class": ({}, lambda X, y: (X, np.zeros(60)), "at least two classes"),
    "singletons": ({}, lambda X, y: (X[:5], np.arange(5)), "at least two examples"),
    "negative dice": ({"normalizer": "dice"}, lambda X, y: (X, y), "not negative"),
    "negative jaccard": ({"normalizer": "jaccard"}, lambda X, y: (X, y), "not negative"),
    "jaccard": ({"normalizer": "jaccard"}, lambda X, y: (9 + np.abs(X), y), r"to \[0, 1\]"),
    "huge": ({}, lambda X, y: (X * 1e200, y), "overflow"),
}


@pytest.mark.parametrize("make", [RBS, SRBS])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", BAD)
def test_refused_input_changes_nothing(make, sparse, case, labeled):
    options, odd, message = BAD[case]
    learner = make().fit(*labeled).set_params(**options)
    before = dict(vars(learner))
    X, y = odd(*labeled)
    with np.errstate(over="ignore"), pytest.raises(InvalidInputError, match=message):
        learner.fit(sp.csr_array(X) if sparse else X, y)
    assert vars(learner).keys() == before.keys()
    assert all(vars(learner)[name] is value for name, value in before.items())


@pytest.mark.parametrize("options", [{"beta": 0.0}, {"regularization": -1.0}, {"solver": "adam"}])
def test_options_are_checked(options, labeled):
    with pytest.raises(ValueError, match=next(iter(options))):
        SRBS(**options).fit(*labeled)
