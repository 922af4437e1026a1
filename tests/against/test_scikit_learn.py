"""Learners that scikit-learn has too: the same to 1e-8, or at least as good."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import covariance, decomposition, discriminant_analysis
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from samewise import datasets
from samewise.exceptions import DatasetNotFoundError
from samewise.learners.batch.nca import NCA
from samewise.learners.closed.classical import LDA, PCA, Covariance
from tests.reference import peers as reference

CLOSE = {"rtol": 1e-8, "atol": 1e-8}


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_covariance_is_scikit_learns(labeled, shrinkage):
    X, _ = labeled
    theirs = covariance.ShrunkCovariance(shrinkage=shrinkage).fit(X)
    ours = Covariance(shrinkage).fit(X)
    np.testing.assert_allclose(ours.metric_.matrix, theirs.precision_, **CLOSE)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("k", [None, 3])
def test_pca_is_scikit_learns(labeled, whiten, k):
    X, _ = labeled
    for rows in (X, X[:4]):
        if k is None and len(rows) < 5:
            continue  # The fourth direction has no variance: any will do.
        ours = PCA(k, whiten=whiten).fit(rows)
        theirs = decomposition.PCA(k, whiten=whiten, svd_solver="full").fit(rows)
        E = theirs.transform(X)
        np.testing.assert_allclose(
            ours.metric_.cross(X), np.linalg.norm(E[:, None] - E, axis=2), **CLOSE
        )
        np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, **CLOSE)


@pytest.mark.parametrize("k", [None, 1])
@pytest.mark.parametrize("shrinkage", [0.0, 0.2, "auto"])
def test_lda_is_scikit_learns(labeled, k, shrinkage):
    X, y = labeled
    ours = LDA(k, shrinkage=shrinkage).fit(X, np.array(["b", "a", "c"])[y])
    assert ours.classes_.tolist() == ["a", "b", "c"]
    how = {"solver": "eigen", "shrinkage": shrinkage} if shrinkage else {}
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(n_components=k, **how).fit(X, y)
    E = theirs.transform(X)
    np.testing.assert_allclose(
        ours.metric_.cross(X), np.linalg.norm(E[:, None] - E, axis=2), **CLOSE
    )


def expected_wrong(L, X, y):
    P = reference.soft_neighbors(L, X)
    return np.sum(P * (y[:, None] != y))


# On 200 digits in two dimensions it is luck for both which of many minima is found.
@pytest.mark.parametrize(
    "load, n_components",
    [
        (load_iris, None),
        (load_iris, 2),
        (load_wine, None),
        (load_wine, 2),
        (load_digits, None),
        (load_digits, 8),
    ],
)
def test_it_is_as_good_as_scikit_learns(load, n_components):
    X, y = load(return_X_y=True)
    X, y = X[::3][:200], y[::3][:200]
    theirs = NeighborhoodComponentsAnalysis(n_components, max_iter=100, random_state=0).fit(X, y)
    ours = NCA(n_components).fit(X, y)
    assert ours.loss_ == pytest.approx(expected_wrong(ours.components_, X, y), abs=1e-6)
    assert ours.loss_ <= expected_wrong(theirs.components_, X, y) + 1e-3


@pytest.mark.parametrize("n_components", [None, 2])
@pytest.mark.parametrize("name", ["letter", "segmentation", "waveform21", "german_numeric"])
def test_it_is_as_good_as_scikit_learns_on_harder_data(name, n_components):
    try:
        data = datasets.load(name, dtype=np.float64)
    except DatasetNotFoundError as missing:
        pytest.skip(str(missing))
    rows = np.random.default_rng(0).permutation(len(data.data))[:500]
    X, y = data.data[rows], data.target[rows]
    X = X / np.maximum(X.std(axis=0), 1e-12)
    theirs = NeighborhoodComponentsAnalysis(n_components, max_iter=100, random_state=0).fit(X, y)
    ours = NCA(n_components).fit(X, y)
    assert ours.loss_ <= expected_wrong(theirs.components_, X, y) + 1e-3
