from statistics import multimode

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from samewise.decide import KNNClassifier
from samewise.decide.classifier import _with_largest_at
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear, GeneralizedCosine, Mahalanobis

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
B = np.random.default_rng(0).normal(size=(4, 4))
FORMS = [None, Mahalanobis(B.T @ B), Bilinear(B.T @ B), GeneralizedCosine(np.eye(4))]


class Scaled(BaseEstimator):
    """A learner in miniature: the inverse variances of the features."""

    def __init__(self, power=1.0):
        self.power = power

    def fit(self, X, y):
        self.metric_ = Mahalanobis(np.diag(np.var(X, axis=0) ** -self.power))
        self.n_fits_ = getattr(self, "n_fits_", 0) + 1
        return self


class Plain(BaseEstimator):
    """A learner for any data: the Euclidean distance as a form."""

    def fit(self, X, y):
        self.metric_ = Mahalanobis.identity(X.shape[1])
        return self


def closeness_to_all(form, q, X):
    form = Mahalanobis.identity(X.shape[1]) if form is None else form
    return form.pair_closeness(np.repeat(q[None], len(X), axis=0), X)


def naive_sknn(form, Q, X, y, k):
    answers = []
    for q in Q:
        c = closeness_to_all(form, q, X)
        sums = {label: sum(sorted(c[y == label], reverse=True)[:k]) for label in np.unique(y)}
        answers.append(max(sums, key=sums.get))
    return np.array(answers)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *estimator_checks_generator(KNNClassifier()),
        *estimator_checks_generator(KNNClassifier(Plain())),
        *estimator_checks_generator(KNNClassifier(n_neighbors=1, rule="sknn")),
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", None),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 4, 7])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_knn_against_a_loop(form, k):
    # Not iris: its rounded values tie up to the last digit, which a loop computes otherwise.
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=120)
    X = rng.normal(size=(3, 4))[y] + rng.normal(size=(120, 4))
    model = KNNClassifier(form, n_neighbors=k).fit(X[:70], y[:70])
    for q, answer in zip(X[70:], model.predict(X[70:]), strict=True):
        c = closeness_to_all(form, q, X[:70])
        nearest = [int(label) for label in y[:70][np.argsort(-c)]]
        votes = k
        while len(leaders := multimode(nearest[:votes])) > 1:
            votes -= 1
        assert answer == leaders[0]


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_sknn_against_a_loop(form, k):
    model = KNNClassifier(form, n_neighbors=k, rule="sknn").fit(X[::2], NAMES[::2])
    np.testing.assert_array_equal(
        model.predict(X[1::2]), naive_sknn(form, X[1::2], X[::2], NAMES[::2], k)
    )


@pytest.mark.parametrize("rule", ["knn", "sknn"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: type(form).__name__)
def test_probabilities_agree_with_predictions(form, rule):
    model = KNNClassifier(form, n_neighbors=4, rule=rule).fit(X[::2], NAMES[::2])
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_sknn_probabilities_are_those_of_the_mean_closeness():
    model = KNNClassifier(n_neighbors=2, rule="sknn").fit(
        [[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]
    )
    means = np.array([-(2 + 1) / 2, -(2 + 3) / 2])
    found = model.predict_proba([[2.0]])
    np.testing.assert_allclose(found, [np.exp(means) / np.exp(means).sum()], rtol=1e-12)


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_the_winner_has_the_largest_probability(winner):
    equal = np.full((1, 3), 1 / 3)
    assert _with_largest_at(equal, np.array([winner])).argmax() == winner


def test_sknn_probabilities_keep_a_winner_that_rounding_would_hide():
    train = np.array([[0.0], [2.0 - 2.0**-52]])
    model = KNNClassifier(n_neighbors=1, rule="sknn").fit(train, [0, 1])
    assert model.predict([[1.0]]) == [1]
    assert model.predict_proba([[1.0]]).argmax() == 1


def test_neighbors_as_in_scikit_learn():
    X = np.random.default_rng(1).normal(size=(80, 5))
    y = np.arange(80) % 2
    ours, theirs = KNNClassifier().fit(X, y), KNeighborsClassifier().fit(X, y)
    for Q in (None, X[:9] + 0.1):
        for one, other in zip(ours.kneighbors(Q, 6), theirs.kneighbors(Q, 6), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
    np.testing.assert_array_equal(
        ours.kneighbors(return_distance=False), theirs.kneighbors(None, 3, False)
    )


def test_neighbors_of_a_similarity_come_with_similarities():
    values, indices = KNNClassifier(Bilinear(np.eye(4))).fit(X, Y).kneighbors(X[:5])
    np.testing.assert_allclose(values, np.take_along_axis(X[:5] @ X.T, indices, axis=1))
    assert np.all(np.diff(values, axis=1) <= 0)


def test_distances_have_no_negative_zeros_and_keep_float32():
    values, _ = KNNClassifier().fit(X.astype(np.float32), Y).kneighbors(X.astype(np.float32)[:3])
    assert values.dtype == np.float32
    assert not np.signbit(values).any()


@pytest.mark.parametrize("rule", ["knn", "sknn"])
def test_sparse_input_gives_the_same_answers(rule):
    dense = KNNClassifier(rule=rule).fit(X[::2], NAMES[::2])
    sparse = KNNClassifier(rule=rule).fit(sp.csr_matrix(X[::2]), NAMES[::2])
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csc_matrix(X)))


def test_an_unfitted_learner_is_cloned_and_fitted():
    learner = Scaled()
    model = KNNClassifier(learner).fit(X, Y)
    assert not hasattr(learner, "metric_")
    assert model.learner_.n_fits_ == 1
    assert model.metric_ == Scaled().fit(X, Y).metric_
    assert model.score(X, Y) > 0.9


def test_a_fitted_learner_is_used_as_it_is():
    learner = Scaled().fit(X[:50], Y[:50])
    model = KNNClassifier(learner).fit(X, Y)
    assert model.learner_ is learner
    assert learner.n_fits_ == 1
    assert model.metric_ is learner.metric_


def test_parameters_of_the_learner_can_be_searched():
    search = GridSearchCV(
        KNNClassifier(Scaled()), {"metric__power": [0.0, 1.0], "n_neighbors": [1, 5]}, cv=3
    ).fit(X, Y)
    assert search.best_score_ > 0.9


def test_a_form_survives_cloning():
    form = Mahalanobis(B.T @ B)
    assert clone(KNNClassifier(form)).metric == form


def test_feature_names_are_kept():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = KNNClassifier().fit(frame, NAMES)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_one_class_is_always_the_answer():
    for rule in ("knn", "sknn"):
        model = KNNClassifier(rule=rule).fit(X[:10], NAMES[:10])
        assert set(model.predict(X)) == {"setosa"}


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (KNNClassifier(n_neighbors=0), "'n_neighbors' parameter of KNNClassifier must be an int"),
        (KNNClassifier(n_neighbors=1.5), "'n_neighbors' parameter of KNNClassifier must be an int"),
        (KNNClassifier(rule="all"), "'rule' parameter of KNNClassifier must be a str among"),
        (KNNClassifier(metric="cosine"), "'metric' parameter of KNNClassifier must be"),
        (KNNClassifier(KNeighborsClassifier()), "Got KNeighborsClassifier, which learns no metric"),
        (KNNClassifier(n_neighbors=13), r"n_neighbors=13 is more than .*n_samples = 12"),
        (
            KNNClassifier(n_neighbors=6, rule="sknn"),
            r"n_neighbors=6 is more than the class 'versicolor' has members \(2\)",
        ),
        (KNNClassifier(Mahalanobis(np.eye(3))), "X has 4 features, but 3 are expected"),
    ],
)
def test_bad_parameters_are_named(model, text):
    with pytest.raises(ValueError, match=text):
        model.fit(X[40:52], NAMES[40:52])


def test_bad_calls_are_named():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        KNNClassifier().kneighbors(X)
    model = KNNClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="from 1 to 149"):
        model.kneighbors(n_neighbors=150)
    with pytest.raises(ValueError, match="X has 2 features, but KNNClassifier is expecting 4"):
        model.predict(X[:, :2])


# Weights are for the learner


class Weighted(BaseEstimator):
    """A learner in miniature that takes weights: the inverse weighted squares of the features."""

    def fit(self, X, y, sample_weight=None):
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        self.metric_ = Mahalanobis(np.diag(1 / (weight @ X**2)))
        return self


WEIGHTS = np.random.default_rng(0).uniform(0, 2, len(X))


def test_weights_go_to_the_learner_and_not_to_the_votes():
    metric = Weighted().fit(X, Y, WEIGHTS).metric_
    model = KNNClassifier(Weighted()).fit(X, Y, sample_weight=WEIGHTS)
    assert model.metric_ == metric != KNNClassifier(Weighted()).fit(X, Y).metric_
    assert KNNClassifier(Weighted()).fit(X, Y, sample_weight=None).metric_ == (
        Weighted().fit(X, Y).metric_
    )
    np.testing.assert_array_equal(model.predict(X), KNNClassifier(metric).fit(X, Y).predict(X))
    search = GridSearchCV(KNNClassifier(Weighted()), {"n_neighbors": [1, 3]}, cv=3)
    assert search.fit(X, Y, sample_weight=WEIGHTS).best_estimator_.metric_ == metric


def test_weights_are_routed_as_the_learner_requests():
    metric = Weighted().fit(X, Y, WEIGHTS).metric_
    with config_context(enable_metadata_routing=True):
        model = KNNClassifier(Weighted().set_fit_request(sample_weight=True))
        assert clone(model).fit(X, Y, sample_weight=WEIGHTS).metric_ == metric
        search = GridSearchCV(model, {"n_neighbors": [1, 3]}, cv=3)
        with pytest.raises(UnsetMetadataPassedError, match=r"requested for KNNClassifier\.score"):
            search.fit(X, Y, sample_weight=WEIGHTS)
        model.set_score_request(sample_weight=False)
        assert search.fit(X, Y, sample_weight=WEIGHTS).best_estimator_.metric_ == metric
        with pytest.raises(UnsetMetadataPassedError, match=r"requested for Weighted\.fit"):
            KNNClassifier(Weighted()).fit(X, Y, sample_weight=WEIGHTS)
        with pytest.raises(TypeError, match="not routed to any object"):
            KNNClassifier().fit(X, Y, sample_weight=WEIGHTS)


def test_weights_are_routed_through_a_pipeline_whose_score_takes_none_or_its_own():
    with config_context(enable_metadata_routing=True):
        learner = Weighted().set_fit_request(sample_weight=True)
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            KNNClassifier(learner).set_score_request(sample_weight=True),
        ).fit(X, Y, sample_weight=WEIGHTS)
        wrong = model.predict(X) != Y
        assert wrong.any()
        assert model.score(X, Y) == np.mean(~wrong)
        assert model.score(X, Y, sample_weight=np.where(wrong, 0.0, 1.0)) == 1.0


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (None, "there is no learner; leave sample_weight out"),
        (FORMS[1], "there is no learner"),
        (Weighted().fit(X, Y), "this Weighted is fitted already"),
        (Plain(), r"Plain\.fit does not take it; leave sample_weight out, or give a learner that"),
    ],
)
def test_weights_that_nobody_takes_are_refused(metric, reason):
    with pytest.raises(InvalidInputError, match=f"sample_weight is for the fit .*, but {reason}"):
        KNNClassifier(metric).fit(X, Y, sample_weight=WEIGHTS)
