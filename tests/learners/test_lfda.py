"""LFDA: the loop over pairs, what it maximizes, clusters within a class, awkward data."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, load
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.closed import lfda as module
from samewise.learners.closed.classical import LDA
from samewise.learners.closed.lfda import LFDA, local_scatters
from tests.reference import closed as reference

CLOSE = {"rtol": 1e-8, "atol": 1e-8}


@parametrize_with_checks([LFDA(), LFDA(embedding_type="orthonormalized", shrinkage=0.1)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["weighted", "orthonormalized", "plain"])
@pytest.mark.parametrize(("k", "n_components"), [(7, None), (1, 2), (50, 1)])
def test_it_is_the_loop(labeled, kind, k, n_components, monkeypatch):
    X, y = labeled
    monkeypatch.setattr(module, "BLOCK_BYTES", 8 * 20 * 3)
    if k == 1:
        monkeypatch.setattr(module, "KEPT_BYTES", 0)
    learner = LFDA(n_components, n_neighbors=k, embedding_type=kind).fit(X, y)
    L = reference.lfda(X, y, k, n_components, kind)
    assert learner.components_.shape == L.shape
    np.testing.assert_allclose(learner.metric_.matrix, L.T @ L, **CLOSE)


def test_scatters_of_unequal_classes_and_equal_rows(labeled):
    X, y = labeled[0][:25].copy(), labeled[1][:25].copy()
    rows = np.flatnonzero(y == y[0])
    X[rows[1:4]] = X[rows[0]]  # With k = 2, σ = 0.
    y[-1] = 9  # Alone in its class.
    X -= X.mean(axis=0)
    found = local_scatters(X, np.unique(y, return_inverse=True)[1], 2)
    with np.errstate(divide="ignore"):
        expected = reference.lfda_scatters(X, y, 2)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_no_other_map_has_a_larger_ratio(labeled, seed):
    X, y = labeled
    within, between = reference.lfda_scatters(X, y, 7)

    def ratio(L):
        return np.trace(np.linalg.solve(L @ within @ L.T, L @ between @ L.T))

    rng = np.random.default_rng(seed)
    for kind in ("weighted", "orthonormalized", "plain"):
        L = LFDA(2, embedding_type=kind).fit(X, y).components_
        for _ in range(20):
            other = L + 0.3 * np.linalg.norm(L, axis=1)[:, None] * rng.normal(size=L.shape)
            assert ratio(other) <= ratio(L) * (1 + 1e-12)
    plain = LFDA(embedding_type="plain").fit(X, y).components_
    np.testing.assert_allclose(plain @ within @ plain.T, np.eye(5), **CLOSE)


def test_it_keeps_the_clusters_of_a_class_apart():
    rng = np.random.default_rng(0)
    centers = np.array([[-6.0, 0.0], [0.0, 0.0], [6.0, 0.0]])
    cluster = np.repeat([0, 1, 2], 40)
    X = centers[cluster] + rng.normal(size=(120, 2)) * [0.5, 3.0]
    y = cluster % 2  # The outer clusters are one class; means of classes hardly differ.
    errors = [
        1 - KNNClassifier(cls(1), n_neighbors=3).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
        for cls in (LFDA, LDA)
    ]
    assert errors[0] == 0
    assert errors[1] > 0.1


def test_types_sparse_rows_and_units(labeled, tmp_path):
    X, y = labeled
    learner = LFDA().fit(X, y)
    small = LFDA().fit(X.astype(np.float32), y)
    assert small.components_.dtype == np.float32
    np.testing.assert_allclose(small.metric_.matrix, learner.metric_.matrix, rtol=1e-3, atol=1e-3)
    same = LFDA().fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(same.components_, learner.components_)
    scaled = LFDA().fit(1e60 * X, y)
    np.testing.assert_allclose(scaled.metric_.matrix * 1e120, learner.metric_.matrix, **CLOSE)
    learner.save(tmp_path / "lfda.samewise")
    assert load(tmp_path / "lfda.samewise").metric_ == learner.metric_


def test_a_singular_scatter(labeled):
    X, y = labeled
    wide = np.column_stack([X, X[:, :2].sum(axis=1)])
    with pytest.warns(SamewiseWarning, match="scatter within classes is singular: of 6 dim"):
        learner = LFDA().fit(wide, y)
    assert learner.components_.shape == (5, 6)
    assert LFDA(shrinkage=0.1).fit(wide, y).components_.shape == (6, 6)


def test_what_is_refused_changes_nothing(labeled):
    X, y = labeled
    learner = LFDA(2).fit(X, y)
    before = vars(learner).copy()
    for given, said in (
        ((X, np.zeros(60)), "LFDA needs labels of at least two classes"),
        ((np.eye(3)[y], y), "LFDA needs classes whose examples differ"),
        ((X[:, :1], y), "n_components must be at most the number of features, 1. Got 2 instead."),
    ):
        with pytest.raises(InvalidInputError, match=re.escape(said)):
            learner.fit(*given)
        assert vars(learner) == before


def test_memory_grows_with_the_rows_only():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 4)), np.arange(4000) % 2
    tracemalloc.start()
    LFDA().fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * 2000 * 8
