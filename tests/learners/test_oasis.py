"""OASIS' contract: scikit-learn's checks, bad input, refused input that changes nothing."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import OASIS, KNNClassifier, Pairs, Triplets


@parametrize_with_checks([OASIS(), OASIS(psd="end", average="survival"), OASIS(psd=3)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def triplets(labeled):
    return Triplets.from_labels(*labeled, n_triplets=300, random_state=0)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4))
ARRAY = RNG.normal(size=(6, 3, 4))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: OASIS().fit(Pairs(X, [0], [1], [1])), "OASIS learns from triplets. Got Pairs"),
        (lambda: OASIS().fit(X), "OASIS requires y to be passed, but the target y is None"),
        (lambda: OASIS().fit(ARRAY, np.ones(6)), "call fit(triplets) without y"),
        (lambda: OASIS().fit(ARRAY[:, :2]), "must have shape (n_triplets, 3, n_features)"),
        (lambda: OASIS().fit(ARRAY[:0]), "OASIS needs at least one triplet. Got none"),
        (lambda: OASIS().fit(np.full((2, 3, 4), np.nan)), "triplets contains NaN"),
        (lambda: OASIS().fit(X, np.zeros(10)), "Got one class"),
        (lambda: OASIS().fit(X, np.arange(10)), "Triplets need a class with at least two"),
        (lambda: OASIS(C=0).fit(ARRAY), "The 'C' parameter of OASIS must be a float in the range"),
        (lambda: OASIS(margin=-1).fit(ARRAY), "The 'margin' parameter of OASIS must be"),
        (lambda: OASIS(psd="each").fit(ARRAY), "The 'psd' parameter of OASIS must be"),
        (lambda: OASIS(psd=1).fit(ARRAY), "or an int in the range [2, inf). Got 1 instead"),
        (lambda: OASIS(average="mean").fit(ARRAY), "The 'average' parameter must be"),
        (lambda: OASIS(init="one").fit(ARRAY), "The 'init' parameter must be 'auto', 'zero'"),
        (lambda: OASIS(init=np.eye(3)).fit(ARRAY), "give a matrix of shape (4, 4)"),
        (
            lambda: OASIS(symmetric=True).fit(Triplets(X, [0], [1], [2], items=X[:, :3])),
            "symmetric and psd need queries and items of the same features. Got 4 and 3",
        ),
        (
            lambda: OASIS().fit(Triplets(X, [0], [1], [2]), sample_weight=[1.0]),
            "give sample_weight to Triplets(...) instead",
        ),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


@pytest.mark.parametrize(
    "use", ["metric_", "n_updates_", "n_skipped_", "loss_", "history_", "get_bilinear_matrix"]
)
def test_unfitted(use):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(OASIS(), use)()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        OASIS().transform(X)


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (lambda X, y: (X[:, :3], y), "3 features"),
        (lambda X, y: (np.where(X > 1, np.inf, X), y), "infinity"),
        (lambda X, y: (X, np.zeros(len(y))), "one class"),
        (lambda X, y: (Triplets(X[:, :3], [0], [1], [2]),), "X has 3 features"),
        (lambda X, y: (Triplets(X, [0], [1], [2], items=X[:, :2]),), "Items have 2 features"),
    ],
)
def test_a_refused_portion_changes_nothing(refused, text, labeled):
    learner = OASIS(n_triplets=50, random_state=3).partial_fit(*labeled)
    before = pickle.dumps(vars(learner))
    with pytest.raises(ValueError, match=text):
        learner.partial_fit(*refused(*labeled))
    assert pickle.dumps(vars(learner)) == before
    expected = OASIS(n_triplets=50, random_state=3).partial_fit(*labeled).partial_fit(*labeled)
    np.testing.assert_array_equal(
        learner.partial_fit(*labeled).metric_.matrix, expected.metric_.matrix
    )


def test_neither_order_nor_repetition_of_examples_matters(labeled, seed):
    X, y = labeled
    rng = np.random.RandomState(seed)
    weights = rng.randint(0, 4, len(y))
    again = rng.permutation(np.repeat(np.arange(len(y)), weights))
    weighted = OASIS(random_state=0).fit(X, y, sample_weight=weights)
    repeated = OASIS(random_state=0).fit(X[again], y[again])
    np.testing.assert_allclose(
        weighted.metric_.matrix, repeated.metric_.matrix, rtol=1e-10, atol=1e-12
    )


def test_csr_draws_and_learns_like_dense(labeled):
    X, y = labeled
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, sparse = (OASIS(random_state=0).fit(given, y) for given in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.metric_.matrix, sparse.metric_.matrix, atol=1e-10)


def test_it_learns_and_serves(labeled, triplets):
    X, y = labeled
    learner = OASIS(n_passes=3, shuffle=True, random_state=0).fit(triplets)
    assert learner.score(triplets) > OASIS(C=1e-12).fit(triplets).score(triplets)
    assert 0 <= learner.score(X, y) <= 1
    knn = KNNClassifier(learner.metric_, n_neighbors=3).fit(X, y)
    served = (learner.transform(X) @ X.T).argmax(axis=1)
    np.testing.assert_array_equal(knn.kneighbors(X, 1)[1][:, 0], served)


def test_grid_search_over_triplets(triplets):
    search = GridSearchCV(OASIS(), {"C": [1e-9, 0.1]}, cv=3, error_score="raise").fit(triplets)
    assert search.best_params_ == {"C": 0.1}
