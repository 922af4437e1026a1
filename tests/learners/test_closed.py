"""Euclidean, Cosine, Covariance, PCA and LDA: closed forms, scikit-learn, awkward data."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, load
from samewise.exceptions import DegenerateInputError, SamewiseWarning, TooLargeError
from samewise.learners import dense_rows
from samewise.learners.closed import classical as plain
from samewise.learners.closed.classical import LDA, PCA, Cosine, Covariance, Euclidean
from tests.reference import closed as reference

ALL = [Euclidean(), Cosine(), Covariance(), PCA(), LDA()]
CLOSE = {"rtol": 1e-8, "atol": 1e-8}


@parametrize_with_checks([*ALL, Covariance(0.1), LDA(shrinkage="auto"), PCA(1, whiten=True)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# Closed forms


def test_euclidean_and_cosine_are_what_they_say(labeled):
    X, y = labeled
    D = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_allclose(Euclidean().fit(X).metric_.cross(X), D, **CLOSE)
    N = X / np.linalg.norm(X, axis=1)[:, None]
    cosine = Cosine().fit(X, y)
    np.testing.assert_allclose(cosine.metric_.cross(X), N @ N.T, **CLOSE)
    E = cosine.transform(X)
    np.testing.assert_allclose(E @ E.T, N @ N.T, **CLOSE)
    assert not cosine.transform(np.zeros((1, 5))).any()
    with pytest.raises(DegenerateInputError, match="no cosine"):
        Cosine(on_zero="raise").fit(X).transform(np.zeros((1, 5)))


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_covariance_is_inverted(labeled, shrinkage):
    X, _ = labeled
    M = Covariance(shrinkage).fit(X).metric_.matrix
    expected = np.linalg.inv(reference.shrunk(reference.covariance(X), shrinkage))
    np.testing.assert_allclose(M, expected, **CLOSE)


def test_covariance_does_not_depend_on_the_units(labeled):
    X, _ = labeled
    D = Covariance().fit(X).metric_.cross(X)
    units = np.array([1e-9, 1e9, 1.0, 1e4, 1e-3])
    np.testing.assert_allclose(Covariance().fit(X * units).metric_.cross(X * units), D, atol=1e-6)


def test_lda_by_its_definition(labeled):
    X, y = labeled
    for k in (1, 2):
        np.testing.assert_allclose(LDA(k).fit(X, y).metric_.matrix, reference.lda(X, y, k), **CLOSE)


@pytest.mark.parametrize("shape", [(60, 5), (200, 30), (25, 40)])
@pytest.mark.parametrize("shrinkage", [0.0, 0.2, "auto"])
def test_lda_is_scikit_learns(shape, shrinkage, seed):
    rng = np.random.default_rng(seed)
    n, d = shape
    y = np.sort(rng.choice(4, n, p=[0.5, 0.3, 0.1, 0.1]))
    y[:8] = np.arange(8) % 4
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.normal(size=(4, d))[y] + 7
    if shrinkage != "auto":
        y[-1] = 9
    solver = {"solver": "svd"} if shrinkage == 0 else {"solver": "eigen", "shrinkage": shrinkage}
    with warnings.catch_warnings():
        # scikit-learn of the class of one, samewise of fewer examples than features.
        warnings.filterwarnings("ignore", "Only one sample|The covariance within classes is sing")
        theirs = LinearDiscriminantAnalysis(**solver).fit(X, y)
        ours = LDA(shrinkage=shrinkage).fit(X, y).components_
    wanted = theirs.scalings_[:, : len(ours)].T
    assert len(ours) == min(len(theirs.classes_) - 1, theirs.scalings_.shape[1])
    size = np.abs(wanted).max(axis=0)
    np.testing.assert_allclose(
        (ours.T @ ours) / (size[:, None] * size + 1e-300),
        (wanted.T @ wanted) / (size[:, None] * size + 1e-300),
        atol=1e-6,
    )


# Awkward data


def test_a_singular_covariance_is_inverted_where_it_can_be(labeled, seed):
    X, _ = labeled
    A = np.random.default_rng(seed).normal(size=(5, 8))
    wide = X @ A
    with pytest.warns(SamewiseWarning, match=r"of 8 dimensions, the points differ in 5") as warned:
        form = Covariance().fit(wide).metric_
    assert len(warned) == 1
    assert "shrinkage" in str(warned[0].message)
    assert warned[0].filename == __file__
    # Invariance under linear maps, also into more dimensions.
    np.testing.assert_allclose(form.cross(wide), Covariance().fit(X).metric_.cross(X), atol=1e-6)
    np.testing.assert_allclose(form.matrix, np.linalg.pinv(reference.covariance(wide)), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_features_have_no_weight(labeled, dtype):
    X, y = labeled
    still = np.insert(X, 2, 0.1, axis=1).astype(dtype)
    for learner in (Covariance(), LDA()):
        with pytest.warns(SamewiseWarning, match="singular"):
            L = clone(learner).fit(still, y).components_
        assert L.dtype == dtype
        np.testing.assert_array_equal(np.abs(L[:, 2]) < 1e-9, True)
        expected = clone(learner).fit(X, y).metric_.matrix
        L = np.delete(L, 2, axis=1)
        np.testing.assert_allclose(L.T @ L, expected, rtol=1e-3, atol=1e-4)


def test_a_feature_that_tells_classes_apart_exactly(labeled):
    X, y = labeled
    told = np.column_stack([X, 0.1 + 0.6 * y])
    with pytest.warns(SamewiseWarning, match="rank is 5 of 6"):
        L = LDA().fit(told, y).components_
    assert np.isfinite(L).all() and not L[:, 5].any()
    shrunk = LDA(shrinkage=0.01).fit(told, y).components_
    assert np.abs(shrunk[:, 5]).max() > 1


def test_more_features_than_examples(seed):
    X = np.random.default_rng(seed).normal(size=(12, 30))
    y = np.arange(12) % 3
    for learner, text in [
        (Covariance(), "the points differ in 11 only"),
        (LDA(), "its rank is 9 of 30"),
    ]:
        with pytest.warns(SamewiseWarning, match=text):
            fitted = clone(learner).fit(X, y)
        assert np.isfinite(fitted.components_).all() and np.abs(fitted.components_).max() < 1e3
    for learner in (Covariance(0.1), LDA(shrinkage=0.1), PCA(whiten=True)):
        assert np.isfinite(learner.fit(X, y).components_).all()
    assert PCA().fit(X).components_.shape == (11, 30)


def test_directions_without_variance_cannot_be_whitened(labeled):
    X, _ = labeled
    twice = np.column_stack([X, X])
    with pytest.warns(SamewiseWarning, match="5 of 10 principal directions have no var") as warned:
        learner = PCA(whiten=True).fit(twice)
    assert warned[0].filename == __file__
    np.testing.assert_allclose(
        learner.metric_.cross(twice), PCA(whiten=True).fit(X).metric_.cross(X), atol=1e-7
    )


def test_sparse_float32_saving_and_names(labeled, tmp_path):
    X, y = labeled
    rows = np.where(np.abs(X) < 0.7, 0.0, X)
    for learner in ALL:
        dense = clone(learner).fit(rows, y)
        sparse = clone(learner).fit(sp.csr_array(rows), y)
        np.testing.assert_allclose(
            sparse.transform(sp.csr_array(rows)), dense.transform(rows), atol=1e-10
        )
        single = clone(learner).fit(rows.astype(np.float32), y)
        E = single.transform(rows.astype(np.float32))
        assert E.dtype == np.float32
        assert len(single.get_feature_names_out()) == E.shape[1]
        dense.metric_.save(tmp_path / "form")
        again = load(tmp_path / "form")
        np.testing.assert_array_equal(again.cross(X), dense.metric_.cross(X))
        again = pickle.loads(pickle.dumps(dense))
        np.testing.assert_array_equal(again.transform(rows), dense.transform(rows))
        assert KNNClassifier(learner).fit(X, y).score(X, y) > 0.4


# Bad input

X = np.random.default_rng(0).normal(size=(10, 4))
Y = np.repeat([0, 1], 5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Covariance().fit(np.ones((5, 3))), "The covariance is zero"),
        (lambda: Covariance().fit(X * 1e200), "whose squares overflow"),
        (lambda: Covariance(2).fit(X), "The 'shrinkage' parameter of Covariance must be"),
        (lambda: Covariance().fit(X[:1]), "minimum of 2 is required"),
        (lambda: PCA(5).fit(X), "n_components must be at most 4"),
        (lambda: PCA(whiten=True).fit(np.ones((5, 3))), "points that are all the same"),
        (lambda: LDA(2).fit(X, Y), "n_components must be at most 1"),
        (lambda: LDA().fit(X, np.zeros(10)), "LDA needs labels of at least two classes"),
        (lambda: LDA().fit(X, np.arange(10)), "a class with at least two examples"),
        (lambda: LDA().fit(X[Y], Y), "the covariance within classes is zero"),
        (lambda: LDA().fit(np.vstack([X, X]), np.repeat([0, 1], 10)), "means are all the same"),
        (lambda: LDA().fit(X, X[:, 0]), "Unknown label type"),
        (lambda: LDA().fit(X, None), "requires y to be passed"),
        (lambda: Cosine(on_zero="no").fit(X), "The 'on_zero' parameter of Cosine must be"),
        (lambda: Euclidean().fit(X * np.nan), "contains NaN"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_what_would_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(dense_rows, "MOST_SPARSE", 15)
    monkeypatch.setattr(plain, "MOST", 15)
    for learner in (Euclidean(), Cosine()):
        with pytest.raises(TooLargeError, match="a dense matrix of 4 × 4 values"):
            learner.fit(X)
    for learner in (Covariance(), PCA(), LDA()):
        with pytest.raises(TooLargeError, match="Reduce the features first"):
            learner.fit(sp.csr_array(X), Y)


def test_refused_input_changes_nothing(labeled):
    for learner in [clone(learner).fit(*labeled) for learner in ALL]:
        before = vars(learner).copy()
        with pytest.raises(ValueError, match="NaN"):
            learner.fit(np.full((10, 4), np.nan), Y)
        assert vars(learner) == before
    with pytest.raises(ValueError, match="two classes"):
        learner.fit(X, np.zeros(10))
    assert vars(learner) == before
    with pytest.raises(NotFittedError):
        LDA().transform(X)
