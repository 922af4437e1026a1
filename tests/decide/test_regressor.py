"""KNNRegressor against scikit-learn's and against kernel regression by its formula."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import LDA, MLKR, Bilinear, KNNRegressor, Mahalanobis
from samewise.exceptions import InvalidInputError

X, Y = load_diabetes(return_X_y=True)
A, B = slice(0, 200), slice(200, 300)
L = np.random.default_rng(0).normal(size=(3, 10))


@parametrize_with_checks([KNNRegressor(), KNNRegressor(MLKR(), weights="kernel")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 7])
def test_it_is_scikit_learns_in_the_learned_space(weights, k):
    form = Mahalanobis.from_components(L)
    ours = KNNRegressor(form, n_neighbors=k, weights=weights).fit(X[A], Y[A])
    theirs = KNeighborsRegressor(k, weights=weights).fit(X[A] @ L.T, Y[A])
    np.testing.assert_allclose(ours.predict(X[B]), theirs.predict(X[B] @ L.T), rtol=1e-9)
    np.testing.assert_allclose(ours.predict(X[A]), theirs.predict(X[A] @ L.T), rtol=1e-9)
    distances, indices = ours.kneighbors(X[B])
    np.testing.assert_array_equal(indices, theirs.kneighbors(X[B] @ L.T)[1])
    assert np.all(np.diff(distances) >= 0)
    sparse = KNNRegressor(form, n_neighbors=k, weights=weights).fit(sp.csr_array(X[A]), Y[A])
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X[B])), ours.predict(X[B]), rtol=1e-9)


def test_kernel_weights_are_kernel_regression():
    model = KNNRegressor(n_neighbors=200, weights="kernel").fit(20 * X[A], Y[A])
    D = ((20 * X[B][:, None] - 20 * X[A]) ** 2).sum(axis=2)
    K = np.exp(-D)
    np.testing.assert_allclose(model.predict(20 * X[B]), K @ Y[A] / K.sum(axis=1), rtol=1e-8)
    # Also where all weights vanish but for their ratios.
    far = KNNRegressor(n_neighbors=2, weights="kernel").fit([[0.0], [1e3]], [1.0, 2.0])
    np.testing.assert_array_equal(far.predict([[499.0], [500.0], [501.0]]), [1.0, 1.5, 2.0])


def test_equal_rows_count_alone_by_distance():
    model = KNNRegressor(n_neighbors=3, weights="distance")
    model.fit([[0.0], [0.0], [1e-100]], [1.0, 2.0, 9.0])
    assert model.predict([[0.0]]) == [1.5]


def test_learners_are_fitted_once_and_forms_are_kept():
    learner = MLKR(2).fit(X[A], Y[A])
    model = KNNRegressor(learner).fit(X[A], Y[A])
    assert model.learner_ is learner and model.metric_ is learner.metric_
    fresh = clone(model).fit(X[A], Y[A])
    assert fresh.learner_ is not fresh.metric
    np.testing.assert_array_equal(fresh.predict(X[B]), model.predict(X[B]))


def test_what_is_refused_changes_nothing():
    model = KNNRegressor(n_neighbors=4).fit(X[A], Y[A])
    before = vars(model).copy()
    for given, said, error in (
        ({"n_neighbors": 201}, "n_neighbors=201 is more than the training set", InvalidInputError),
        (
            {"metric": Bilinear(np.eye(10)), "weights": "distance"},
            "weights='distance' is for distances. Got a Bilinear, a similarity;",
            InvalidInputError,
        ),
        ({"weights": "none"}, "The 'weights' parameter of KNNRegressor must be", ValueError),
        ({"metric": LDA()}, "Unknown label type: continuous", ValueError),
    ):
        changed = clone(model).set_params(**given)
        with pytest.raises(error, match=re.escape(said)):
            changed.fit(X[A], Y[A] + 0.5)
        assert not hasattr(changed, "metric_")
    with pytest.raises(InvalidInputError, match="KNNRegressor predicts numbers"):
        model.fit(X[A], np.repeat(["a", "b"], 100))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X[A], np.full(200, np.nan))
    assert vars(model) == before
