"""metric-learn's habits over samewise: tuples, preprocessors, thresholds, and the same learners."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import samewise
from samewise import Pairs, Quadruplets, Triplets
from samewise.compat import metric_learn
from samewise.exceptions import InvalidInputError, SamewiseWarning

LABELED = {
    "LMNN": {},
    "NCA": {},
    "LFDA": {},
    "Covariance": {},
    "RCA_Supervised": {"n_chunks": 10},
    "ITML_Supervised": {},
    "MMC_Supervised": {},
    "SDML_Supervised": {"balance_param": 1e-4},
    "LSML_Supervised": {},
    "SCML_Supervised": {},
}
PAIRED = {"ITML": {}, "MMC": {}, "SDML": {"balance_param": 1e-4}}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def indices(iris):
    drawn = Pairs.from_labels(*iris, 120, random_state=0)
    return np.stack([drawn.left, drawn.right], axis=1), drawn.y.astype(int)


def made(name, options, **more):
    learner = getattr(metric_learn, name)(**options, **more)
    if "random_state" in learner.get_params():
        learner.set_params(random_state=0)
    return learner


CHECKED = [made(name, LABELED[name]) for name in ("LMNN", "LFDA", "Covariance", "LSML_Supervised")]


@pytest.mark.filterwarnings("ignore::samewise.exceptions.SamewiseWarning")
@parametrize_with_checks(CHECKED)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_every_name_of_metric_learn_is_there():
    names = "Constraints Covariance ITML LMNN LSML SDML NCA LFDA RCA MLKR MMC SCML".split()
    twice = [f"{name}_Supervised" for name in ("ITML", "LSML", "SDML", "RCA", "MMC", "SCML")]
    assert set(metric_learn.__all__) == {*names, *twice, "__version__"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:SDML. with balance")
@pytest.mark.parametrize("name", LABELED)
def test_what_every_learner_of_labels_can_do(name, iris):
    X, y = iris
    learner = made(name, LABELED[name]).fit(X, y)
    L = learner.components_
    M = learner.get_mahalanobis_matrix()
    np.testing.assert_allclose(M, L.T @ L, rtol=1e-12)
    np.testing.assert_allclose(learner.transform(X), X @ L.T, rtol=1e-12)
    pairs = X[[[0, 1], [0, 100]]]
    D = learner.pair_distance(pairs)
    metric = learner.get_metric()
    np.testing.assert_allclose(D, [metric(a, b) for a, b in pairs], rtol=1e-9)
    assert metric(*pairs[1], squared=True) == pytest.approx(D[1] ** 2)
    np.testing.assert_array_equal(learner.pair_score(pairs), -D)
    with pytest.warns(FutureWarning, match="score_pairs is deprecated: use pair_distance"):
        np.testing.assert_array_equal(learner.score_pairs(pairs), D)
    np.testing.assert_allclose(learner.metric_.matrix, M, rtol=1e-9, atol=1e-12)
    # A preprocessor forms points of row numbers, given as an array or as a function.
    for preprocessor in (X, lambda rows: X[rows]):
        again = made(name, LABELED[name], preprocessor=preprocessor).fit(np.arange(150), y)
        np.testing.assert_allclose(again.components_, L, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(again.pair_distance([[0, 1], [0, 100]]), D, rtol=1e-9)
        np.testing.assert_allclose(again.transform([3]), X[[3]] @ L.T, rtol=1e-9)
    copy = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(copy.components_, L)
    assert not hasattr(clone(learner), "components_")
    with pytest.raises(NotFittedError):
        clone(learner).transform(X)
    knn = make_pipeline(made(name, LABELED[name]), KNeighborsClassifier(3))
    assert cross_val_score(knn, X, y, cv=3).mean() > 0.8
    before = metric(X[0], X[60])
    learner.fit(7 * X, y)
    assert metric(X[0], X[60]) == before


@pytest.mark.parametrize("name", PAIRED)
def test_what_every_learner_of_pairs_can_do(name, iris, indices):
    X, _ = iris
    rows, y = indices
    learner = made(name, PAIRED[name]).fit(X[rows], y)
    again = made(name, PAIRED[name], preprocessor=X).fit(rows, y)
    np.testing.assert_allclose(again.components_, learner.components_, rtol=1e-6, atol=1e-9)
    D = learner.pair_distance(X[rows])
    np.testing.assert_array_equal(learner.decision_function(X[rows]), -D)
    np.testing.assert_array_equal(
        learner.predict(X[rows]), np.where(D <= learner.threshold_, 1, -1)
    )
    assert learner.score(X[rows], y) == pytest.approx(roc_auc_score(y, -D))
    accuracy = np.mean(learner.predict(X[rows]) == y)
    best = max(np.mean(np.where(t >= D, 1, -1) == y) for t in [*D, D.min() - 1])
    assert accuracy == best
    learner.set_threshold(D.max())
    assert np.all(learner.predict(X[rows]) == 1)
    search = GridSearchCV(
        made(name, PAIRED[name], preprocessor=X), {"verbose": [False]}, cv=3, error_score="raise"
    )
    assert 0.5 < search.fit(rows, y).best_score_ <= 1


def test_thresholds_are_calibrated_as_their_strategy_says(iris, indices):
    X, rows, y = iris[0], *indices
    itml = metric_learn.ITML(preprocessor=X).fit(
        rows, y, calibration_params={"strategy": "max_tpr", "min_rate": 0.9}
    )
    said = itml.predict(rows)
    assert np.mean(said[y < 0] == -1) >= 0.9
    D = itml.pair_distance(rows)
    most = max(np.mean(t >= D[y > 0]) for t in D if np.mean(t < D[y < 0]) >= 0.9)
    assert np.mean(said[y > 0] == 1) == most
    itml.calibrate_threshold(rows, y, strategy="max_tnr", min_rate=0.95)
    assert np.mean(itml.predict(rows)[y > 0] == 1) >= 0.95
    itml.calibrate_threshold(rows, y, strategy="f_beta", beta=2.0)

    def f_beta(said):
        tp, fp = np.sum((said > 0) & (y > 0)), np.sum((said > 0) & (y < 0))
        return 5 * tp / (5 * tp + 4 * np.sum((said < 0) & (y > 0)) + fp)

    best = max(f_beta(np.where(t >= D, 1, -1)) for t in D)
    assert f_beta(itml.predict(rows)) == pytest.approx(best)
    for given, error in [
        ({"strategy": "best"}, "strategy must be one of 'accuracy', 'f_beta'"),
        ({"strategy": "max_tpr"}, "needs a min_rate from 0 to 1. Got None."),
        ({"strategy": "max_tnr", "min_rate": 2}, "needs a min_rate from 0 to 1. Got 2."),
        ({"strategy": "f_beta", "beta": "x"}, "beta must be a number. Got 'x'."),
    ]:
        with pytest.raises(ValueError, match=re.escape(error)):
            metric_learn.ITML(preprocessor=X).fit(rows, y, calibration_params=given)
        with pytest.raises(ValueError, match=re.escape(error)):
            itml.calibrate_threshold(rows, y, **given)
    with pytest.raises(ValueError, match="The threshold must be a number"):
        itml.set_threshold("far")
    one_kind = metric_learn.ITML(preprocessor=X).fit(rows[y > 0], y[y > 0])
    with pytest.raises(AttributeError, match="There is no threshold: call set_threshold"):
        one_kind.predict(rows)


@pytest.mark.parametrize("name, size", [("LSML", 4), ("SCML", 3)])
def test_comparisons(name, size, iris):
    X, y = iris
    cls = {4: Quadruplets, 3: Triplets}[size]
    drawn = cls.from_labels(X, y, 200, random_state=0)
    rows = np.stack([getattr(drawn, member) for member in drawn._members], axis=1)
    learner = made(name, {}).fit(X[rows])
    again = made(name, {}, preprocessor=X).fit(rows)
    if name == "LSML":
        np.testing.assert_allclose(again.components_, learner.components_, rtol=1e-5, atol=1e-7)
    last = rows[:, 2:] if size == 4 else rows[:, [0, 2]]
    margin = again.pair_distance(last) - again.pair_distance(rows[:, :2])
    np.testing.assert_allclose(again.decision_function(rows), margin, atol=1e-12)
    np.testing.assert_array_equal(again.predict(rows), np.sign(margin))
    assert again.score(rows) == pytest.approx(np.mean(margin > 0))
    assert again.score(rows) > 0.85
    both = np.concatenate([rows, rows[:, [0] * size]])
    # Of two equal distances it is said by neither; metric-learn counts triplets as wrong then.
    half = 200 / 400 * again.score(rows) + {4: 0.25, 3: 0.0}[size]
    assert again.score(both) == pytest.approx(half)


def test_they_learn_what_samewise_learns(iris, indices):
    X, y = iris
    rows, sign = indices
    pairs = Pairs(X, rows[:, 0], rows[:, 1], sign)
    for theirs, ours in [
        (metric_learn.ITML(preprocessor=X).fit(rows, sign), samewise.ITML(1.0).fit(pairs)),
        (metric_learn.LFDA(k=5).fit(X, y), samewise.LFDA(n_neighbors=5).fit(X, y)),
        (metric_learn.RCA().fit(X, y), samewise.RCA().fit(X, chunklets=y)),
        (
            metric_learn.LMNN(regularization=0.4, init="pca", random_state=0).fit(X, y),
            samewise.LMNN(3, init="pca", push_weight=0.6, max_iter=1000, random_state=0).fit(X, y),
        ),
    ]:
        np.testing.assert_allclose(theirs.components_, ours.components_, rtol=1e-8, atol=1e-10)
    covariance = metric_learn.Covariance().fit(X).get_mahalanobis_matrix()
    np.testing.assert_allclose(covariance, np.linalg.inv(np.cov(X.T)), rtol=1e-8)


@pytest.mark.parametrize("diagonal", [False, True])
def test_mmc_has_their_scale(iris, indices, diagonal):
    X, rows, y = iris[0], *indices
    M = metric_learn.MMC(diagonal=diagonal, preprocessor=X).fit(rows, y).get_mahalanobis_matrix()
    V = (X[rows[:, 0]] - X[rows[:, 1]])[y > 0]
    expected = 0.5 if diagonal else np.sum(V**2) / 100
    assert np.einsum("ij,jk,ik->", V, M, V) == pytest.approx(expected, rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("init", ["auto", "pca", "identity", "lda", "random"])
def test_starts_and_dimensions(iris, init):
    X, y = iris
    for cls in (metric_learn.LMNN, metric_learn.NCA):
        learner = cls(init=init, n_components=2, max_iter=20, random_state=0)
        assert learner.fit(X, y).components_.shape == (2, 4)


def test_regression():
    X, y = make_friedman1(80, 6, random_state=0)
    mlkr = metric_learn.MLKR(n_components=2, random_state=0).fit(X, y)
    assert mlkr.transform(X).shape == (80, 2)
    assert metric_learn.MLKR(tol=1.0).fit(X, y).n_iter_ <= mlkr.n_iter_ + 50


def test_constraints(iris):
    X, y = iris
    partly = np.where(np.arange(150) % 10 == 0, -1, y)
    constraints = metric_learn.Constraints(partly)
    a, b, c, d = constraints.positive_negative_pairs(50, random_state=0)
    assert [len(side) for side in (a, b, c, d)] == [50] * 4
    assert np.all(y[a] == y[b]) and np.all(y[c] != y[d]) and np.all(a != b)
    assert not np.isin(np.flatnonzero(partly < 0), [a, b, c, d]).any()
    few = metric_learn.Constraints([0, 0, 1, 1, 1])
    with pytest.warns(
        SamewiseWarning, match="100 .*similar pairs were asked for, but there are [46]"
    ):
        sides = few.positive_negative_pairs(100, random_state=0)
    assert [len(side) for side in sides] == [4, 4, 6, 6]
    with pytest.warns(SamewiseWarning):
        sides = few.positive_negative_pairs(100, same_length=True, random_state=0)
    assert [len(side) for side in sides] == [4] * 4
    triplets = constraints.generate_knntriplets(X, 2, 3)
    assert triplets.shape == (135 * 6, 3) and np.all(partly[triplets] >= 0)
    chunks = constraints.chunks(20, 3, random_state=0)
    assert np.all(np.bincount(chunks[chunks >= 0]) == 3) and chunks.max() == 19
    assert all(len(set(partly[chunks == chunk])) == 1 for chunk in range(20))
    with pytest.raises(ValueError, match="not enough points for n_chunks=100 chunks of 2"):
        constraints.chunks(100)


def test_what_is_refused(iris, indices):
    X, rows, y = iris[0], *indices
    for make, said in [
        (lambda: metric_learn.ITML().fit(rows, y), "Pairs of indices, of shape (120, 2), need a"),
        (lambda: metric_learn.ITML().fit(X[rows][:, :1], y), "of shape (n_pairs, 2, n_features)"),
        (lambda: metric_learn.ITML().fit(X, y), "of shape (n_pairs, 2, n_features)"),
        (lambda: metric_learn.ITML().fit(X[rows], 2 * y), "+1"),
        (lambda: metric_learn.ITML(preprocessor=X).fit(rows + 0.5, y), "must be whole numbers"),
        (lambda: metric_learn.ITML(preprocessor=X).fit(rows + 100, y), "150"),
        (lambda: metric_learn.LSML().fit(X[rows]), "of shape (n_quadruplets, 4, n_features)"),
        (lambda: metric_learn.SCML(basis="lda").fit(X[rows[:, [0, 1, 0]]]), "basis must be one of"),
        (lambda: metric_learn.ITML().fit(X[rows[:0]], y[:0]), "At least one of the pairs"),
    ]:
        with pytest.raises((InvalidInputError, ValueError), match=re.escape(said)):
            make()
