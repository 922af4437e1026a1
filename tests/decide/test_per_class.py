"""One metric per class, and how the answers are combined."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import (
    GCosLA,
    GeneralizedCosine,
    KNNClassifier,
    Mahalanobis,
    PassiveAggressive,
    PerClassClassifier,
    SiLA,
)
from samewise.exceptions import InvalidInputError


class Weights(BaseEstimator):
    """A cosine whose weights differ from class to class."""

    def fit(self, X, y):
        assert set(y) == {0, 1}
        spread = X[y == 1].std(axis=0)
        self.metric_ = GeneralizedCosine(np.diag(1 / spread))
        return self


class Plain(BaseEstimator):
    """The Euclidean distance for every class."""

    def fit(self, X, y):
        self.metric_ = Mahalanobis.identity(X.shape[1])
        return self


def closeness_by_hand(X, y, Q, k):
    """(own, rest): the k largest similarities to each class and to the rest, under its metric."""
    own, rest = [], []
    for c in np.unique(y):
        S = Weights().fit(X, (y == c).astype(int)).metric_.cross(Q, X)
        own.append(np.sort(S[:, y == c], axis=1)[:, -k:])
        rest.append(np.sort(S[:, y != c], axis=1)[:, -k:])
    return np.stack(own, axis=1), np.stack(rest, axis=1)


@pytest.mark.parametrize("combine", ["claimed", "closest"])
@pytest.mark.parametrize("rule", ["knn", "sknn"])
def test_claims_and_winners_by_hand(rule, combine, labeled):
    X, y = labeled
    X, y, Q, truth = X[:40], y[:40], X[40:], y[40:]
    k = 3
    model = PerClassClassifier(Weights(), k, rule, combine).fit(X, y)
    own, rest = closeness_by_hand(X, y, Q, k)
    if rule == "sknn":
        claims = own.sum(axis=2) > rest.sum(axis=2)
    else:
        # Two of the three nearest belong to the class: its second is nearer than the rest's second.
        claims = own[..., 1] > rest[..., 1]
    np.testing.assert_array_equal(model.decisions(Q), claims)
    near = own.mean(axis=2)
    winners = []
    for i in range(len(Q)):
        among = np.flatnonzero(claims[i])
        if combine == "closest" or len(among) == 0:
            among = np.arange(3)
        winners.append(among[near[i, among].argmax()])
    np.testing.assert_array_equal(model.predict(Q), winners)
    assert model.binary_score(Q, truth) == np.mean(claims == (truth[:, None] == np.arange(3)))
    assert 0 < claims.sum() and not claims.sum(axis=1).all()


@pytest.mark.parametrize("k", [3, 151])
def test_of_equally_near_examples_those_of_the_rest_come_first(k):
    # Nearly half of the k nearest are of class 0, and it has many among the equal ones behind.
    nearest = (k - 1) // 2
    X = np.repeat([0.0, 1.0, 1.0], [nearest, k, k])[:, None]
    y = np.repeat([0, 0, 1], [nearest, k, k])
    model = PerClassClassifier(Plain(), k).fit(X, y)
    np.testing.assert_array_equal(model.decisions([[0.0]]), [[False, False]])


def test_any_learner_is_fitted_for_each_class(labeled):
    X, y = labeled
    learner = PassiveAggressive(n_pairs=100, random_state=0)
    model = PerClassClassifier(learner).fit(X, y)
    for c, form in enumerate(model.metrics_):
        assert isinstance(form, Mahalanobis)
        assert form == PassiveAggressive(n_pairs=100, random_state=0).fit(X, y == c).metric_
    assert not hasattr(learner, "n_seen_")


@pytest.mark.parametrize("learner", [GCosLA(step_margin=None, random_state=0), SiLA(2)])
def test_one_similarity_for_each_class(learner, labeled):
    X, y = labeled
    names = np.array(["a", "b", "c"])[y]
    model = PerClassClassifier(learner).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    single = [clone(learner).fit(X, names == c).metric_ for c in "abc"]
    assert model.metrics_ == single and single[0] != single[1]
    one_by_one = [KNNClassifier(form).fit(X, y == c).predict(X) for c, form in enumerate(single)]
    np.testing.assert_array_equal(model.decisions(X), np.column_stack(one_by_one))


def test_of_one_metric_a_claim_is_the_neighbors_vote(labeled):
    X, y = labeled

    class Plain(Weights):
        def fit(self, X, y):
            self.metric_ = Mahalanobis.identity(X.shape[1])
            return self

    for c in range(3):
        expected = KNNClassifier(n_neighbors=4).fit(X, y == c).predict(X + 0.1)
        model = PerClassClassifier(Plain(), 4).fit(X, y)
        np.testing.assert_array_equal(model.decisions(X + 0.1)[:, c], expected)


@parametrize_with_checks([PerClassClassifier(PassiveAggressive(n_pairs=30, random_state=0), 1)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_what_is_refused(labeled):
    X, y = labeled

    def refused(match, learner, *told):
        with pytest.raises(InvalidInputError, match=re.escape(match)):
            learner.fit(*told)

    refused("at least two classes", PerClassClassifier(Weights()), X, y * 0)
    refused("smallest class has members (20)", PerClassClassifier(Weights(), 21), X, y)

    class Nothing(BaseEstimator):
        def fit(self, X, y):
            return self

    refused("Got Nothing, which learns no metric", PerClassClassifier(Nothing()), X, y)
