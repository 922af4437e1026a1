"""IGML and KIGML: the formula, the divergence it minimizes, its limits, feature space."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, load
from samewise.exceptions import SamewiseWarning
from samewise.learners.closed.classical import Covariance
from samewise.learners.closed.igml import IGML, KIGML
from samewise.learners.closed.rca import RCA
from tests.reference import closed as reference

CLOSE = {"rtol": 1e-8, "atol": 1e-8}


@parametrize_with_checks([IGML(), KIGML(), IGML(0.1, shrinkage=0.2)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("smoothing", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_the_formula(labeled, smoothing, shrinkage):
    X, y = labeled[0][:50], labeled[1][:50]
    learner = IGML(smoothing, shrinkage=shrinkage).fit(X, np.array(["a", "b", "c"])[y])
    expected = reference.igml(X, y, smoothing, shrinkage)
    np.testing.assert_allclose(learner.metric_.matrix, expected, **CLOSE)
    assert learner.classes_.tolist() == ["a", "b", "c"]


def test_no_other_metric_is_nearer_to_the_ideal_kernel(labeled, seed):
    X, y = labeled
    M = IGML(0.5).fit(X, y).metric_.matrix
    least = reference.divergence(M, X, y, 0.5)
    rng = np.random.default_rng(seed)
    L = np.linalg.cholesky(M)
    for size in (1e-3, 0.1, 0.5):
        for _ in range(5):
            other = L @ (np.eye(5) + size * rng.normal(size=(5, 5)))
            assert reference.divergence(other @ other.T, X, y, 0.5) > least


def test_limits_are_rca_and_the_covariance(labeled):
    X, y = labeled
    for smoothing, other in [(1e-9, RCA()), (1e9, Covariance())]:
        M = IGML(smoothing).fit(X, y).metric_.matrix
        expected = other.fit(X, y).metric_.matrix
        np.testing.assert_allclose(
            M / np.linalg.norm(M), expected / np.linalg.norm(expected), atol=1e-6
        )


def test_the_origin_does_not_matter(labeled):
    X, y = labeled
    np.testing.assert_allclose(
        IGML().fit(X + 100, y).metric_.matrix, IGML().fit(X, y).metric_.matrix, rtol=1e-7
    )


# Feature space


@pytest.mark.parametrize("smoothing", [0.3, 2.0])
def test_with_independent_points_the_ideal_kernel_is_reached(labeled, smoothing):
    X, y = labeled
    learner = KIGML("rbf", {"gamma": 3.0}, smoothing=smoothing, shrinkage=0.0).fit(X, y)
    assert len(learner.components_) == 59
    K = reference.ideal_kernel(y, smoothing)
    D = np.diag(K)[:, None] - 2 * K + np.diag(K)
    np.testing.assert_allclose(learner.metric_.cross(X) ** 2, D, atol=1e-5)


@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_linear_kernel_is_igml(labeled, shrinkage):
    X, y = labeled
    plain = IGML(2.0, shrinkage=shrinkage).fit(X, y)
    kernel = KIGML("linear", smoothing=2.0, shrinkage=shrinkage).fit(X, y)
    np.testing.assert_allclose(kernel.metric_.cross(X), plain.metric_.cross(X), atol=1e-6)


def test_landmarks_precomputed_sparse_and_saving(labeled, tmp_path):
    X, y = labeled
    K = rbf_kernel(X, gamma=0.1)
    common = {"n_directions": 10, "n_landmarks": 30, "random_state": 0}
    named = KIGML("rbf", {"gamma": 0.1}, **common).fit(X[:50], y[:50])
    given = KIGML("precomputed", **common).fit(K[:50, :50], y[:50])
    np.testing.assert_allclose(
        given.metric_.cross(K[50:, :50]), named.metric_.cross(X[50:]), atol=1e-6
    )
    sparse = KIGML("rbf", {"gamma": 0.1}, **common).fit(sp.csr_array(X[:50]), y[:50])
    np.testing.assert_allclose(
        sparse.metric_.cross(sp.csr_array(X)), named.metric_.cross(X), atol=1e-6
    )
    for learner in (named, IGML().fit(X, y)):
        learner.metric_.save(tmp_path / "form")
        np.testing.assert_array_equal(load(tmp_path / "form").cross(X), learner.metric_.cross(X))
        again = pickle.loads(pickle.dumps(learner))
        np.testing.assert_array_equal(again.transform(X), learner.transform(X))
        assert KNNClassifier(learner).fit(X, y).score(X, y) > 0.6


# Awkward data and bad input


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_features_and_more_features_than_points(labeled, dtype):
    X, y = labeled
    still = np.insert(X, 1, 0.3, axis=1).astype(dtype)
    with pytest.warns(SamewiseWarning, match="of 6 dimensions, the points differ in 5") as warned:
        L = IGML().fit(still, y).components_
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert L.dtype == dtype and np.abs(L[:, 1]).max() < 1e-9
    expected = IGML().fit(X, y).metric_.matrix
    L = np.delete(L, 1, axis=1)
    np.testing.assert_allclose(L.T @ L, expected, rtol=1e-3, atol=1e-5)
    wide = np.random.default_rng(0).normal(size=(12, 40)).astype(dtype)
    with pytest.warns(SamewiseWarning, match="of 40 dimensions, the points differ in 11 only"):
        learner = IGML().fit(wide, np.arange(12) % 3)
    assert learner.components_.shape == (11, 40)
    assert np.isfinite(learner.components_).all() and np.abs(learner.components_).max() < 100
    assert IGML(shrinkage=0.1).fit(wide, np.arange(12) % 3).components_.shape == (40, 40)


X = np.random.default_rng(0).normal(size=(10, 4))
Y = np.repeat([0, 1], 5)


@pytest.mark.parametrize("learner", [IGML(), KIGML()], ids=["IGML", "KIGML"])
@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        (X, None, "requires y to be passed"),
        (X, np.zeros(10), "GML needs labels of at least two classes"),
        (X, np.arange(10), "GML needs a class with at least two examples"),
        (X, X[:, 0], "Unknown label type"),
        (np.ones((10, 4)), Y, "is zero: the points do not differ"),
        (X * np.nan, Y, "contains NaN"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(labeled, learner, X, y, text):
    learner = clone(learner).fit(*labeled)
    before = vars(learner).copy()
    with pytest.raises(ValueError, match=re.escape(text)):
        learner.fit(X, y)
    assert vars(learner) == before


def test_bad_parameters_are_named():
    for learner in (IGML(0), KIGML(smoothing=-1)):
        with pytest.raises(ValueError, match=r"The 'smoothing' parameter of K?IGML must be"):
            learner.fit(X, Y)
