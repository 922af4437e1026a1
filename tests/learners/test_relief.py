"""RELIEF, ReliefF and the full matrix against the loops, and what they do with odd input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, Mahalanobis, NormalizedBilinear
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.neighbors.relief import Relief
from tests.reference import relief as reference


@parametrize_with_checks([Relief(), Relief(structure="full"), Relief(form="similarity", psd=None)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("misses", ["each", "any"])
@pytest.mark.parametrize("structure", ["diagonal", "full"])
def test_weights_are_those_of_the_loop(labeled, k, misses, structure):
    X, y = labeled
    X, y = X[:40], y[:40] * 10
    learner = Relief(k, structure=structure, misses=misses).fit(X, y)
    expected = reference.relief(X, y, k, each=misses == "each", full=structure == "full")
    got = learner.weights_ if structure == "diagonal" else learner.matrix_
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)
    if structure == "full":
        np.testing.assert_array_equal(learner.weights_, learner.matrix_.diagonal())
    else:
        assert not hasattr(learner, "matrix_")


def test_two_classes_have_one_kind_of_misses(labeled):
    X, y = labeled
    each = Relief(2).fit(X, y > 0).weights_
    np.testing.assert_allclose(each, Relief(2, misses="any").fit(X, y > 0).weights_, rtol=1e-12)


def test_draws_are_counted(labeled):
    X, y = labeled
    for n_draws in (7, 150):
        learner = Relief(n_draws=n_draws, random_state=3).fit(X, y)
        taken = np.random.RandomState(3).randint(60, size=n_draws)
        expected = reference.relief(X, y, taken=taken)
        np.testing.assert_allclose(learner.weights_, expected, rtol=1e-10, atol=1e-13)
        again = clone(learner).fit(X, y)
        np.testing.assert_array_equal(again.weights_, learner.weights_)


@pytest.mark.parametrize("discrete", [[1, 4], np.array([False, True, False, False, True]), (1, 4)])
def test_discrete_features_differ_or_not(labeled, discrete):
    X, y = labeled
    X = np.where(np.isin(np.arange(5), [1, 4]), X.round() * 7, X)
    learner = Relief(2, discrete=discrete).fit(X, y)
    expected = reference.relief(X, y, 2, discrete=(1, 4))
    np.testing.assert_allclose(learner.weights_, expected, rtol=1e-10, atol=1e-13)
    assert learner.ranges_[1] == learner.ranges_[4] == 1


def test_weights_do_not_depend_on_the_units(labeled):
    X, y = labeled
    one = Relief(3).fit(X, y)
    other = Relief(3).fit(X * [1e-3, 1e6, 1, 50, 2] + [0, 1e6, 0, 3, 1], y)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-6, atol=1e-9)


def test_the_distance_is_weighted(labeled):
    X, y = labeled
    for structure in ("diagonal", "full"):
        learner = Relief(3, structure=structure).fit(X, y)
        U = X / np.ptp(X, axis=0)
        W = np.diag(learner.weights_) if structure == "diagonal" else learner.matrix_
        W = reference.projected(W)
        W /= np.linalg.norm(W)
        expected = [[np.sqrt(max((u - v) @ W @ (u - v), 0)) for v in U[:10]] for u in U[:10]]
        assert isinstance(learner.metric_, Mahalanobis)
        np.testing.assert_allclose(learner.metric_.cross(X[:10]), expected, atol=1e-7)
        Z = learner.transform(X[:10])
        mapped = np.linalg.norm(Z[:, None] - Z[None], axis=2)
        np.testing.assert_allclose(mapped, expected, atol=1e-7)


@pytest.mark.parametrize("structure", ["diagonal", "full"])
def test_the_similarity_of_the_thesis(labeled, structure):
    X, y = labeled
    learner = Relief(form="similarity", psd=None, structure=structure).fit(X, y)
    W = np.diag(learner.weights_) if structure == "diagonal" else learner.matrix_
    assert learner.metric_ == NormalizedBilinear(learner.metric_.matrix, "cosine", "zero")
    np.testing.assert_allclose(learner.metric_.matrix, W / np.linalg.norm(W), rtol=1e-12)
    assert np.linalg.eigvalsh(learner.metric_.matrix).min() < 0
    assert not hasattr(learner, "transform")
    clipped = Relief(form="similarity", structure=structure).fit(X, y).metric_.matrix
    P = reference.projected(W)
    np.testing.assert_allclose(clipped, P / np.linalg.norm(P), atol=1e-12)


def test_the_map_comes_as_a_table(labeled):
    pd = pytest.importorskip("pandas")
    X, y = labeled
    learner = Relief(3).set_output(transform="pandas")
    Z = learner.fit_transform(X, y)
    assert isinstance(Z, pd.DataFrame)
    assert Z.columns.tolist() == [f"relief{i}" for i in range(len(learner.components_))]
    np.testing.assert_array_equal(Z.to_numpy(), learner.metric_.embed(X))
    assert not hasattr(Relief(form="similarity"), "fit_transform")


def test_a_useful_feature_is_found():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 20))
    X[:, 7] += 4 * y
    learner = Relief(5).fit(X, y)
    assert learner.weights_.argmax() == 7
    plain = KNNClassifier(None, 1).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    weighted = KNNClassifier(Relief(5), 1).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert weighted > plain + 0.02


def test_float32_stays(labeled):
    X, y = labeled
    learner = Relief().fit(X.astype(np.float32), y)
    assert learner.metric_.matrix.dtype == np.float32
    assert learner.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(learner.weights_, Relief().fit(X, y).weights_, atol=1e-5)


# Odd input


@pytest.mark.parametrize("structure", ["diagonal", "full"])
def test_a_constant_feature_weighs_nothing(labeled, structure):
    X, y = labeled
    with_constant = np.insert(X, 2, 7.0, axis=1)
    one = Relief(2, structure=structure).fit(with_constant, y)
    assert one.weights_[2] == 0 and one.ranges_[2] == 1
    np.testing.assert_allclose(one.metric_.matrix[2], 0, atol=1e-15)
    other = Relief(2, structure=structure).fit(X, y)
    np.testing.assert_allclose(np.delete(one.weights_, 2), other.weights_, rtol=1e-12)


def test_only_constant_features_teach_nothing():
    with pytest.warns(SamewiseWarning, match="learned nothing"):
        learner = Relief().fit(np.ones((6, 3)), [0, 1, 0, 1, 0, 1])
    assert not learner.weights_.any() and not learner.metric_.matrix.any()


def test_small_classes_are_said_once_and_take_part_with_what_they_have(labeled):
    X, y = labeled
    y = y.copy()
    y[:3], y[3] = 7, 8
    with pytest.warns(SamewiseWarning, match="2 of 5 classes have no more than") as said:
        learner = Relief(4).fit(X, y)
    assert len(said) == 1 and said[0].filename == __file__
    np.testing.assert_allclose(learner.weights_, reference.relief(X, y, 4), rtol=1e-10, atol=1e-13)


BAD = {
    "one class": (Relief(), lambda X, y: (X, np.zeros(60)), "at least two classes"),
    "singletons": (Relief(), lambda X, y: (X[:5], np.arange(5)), "at least two examples"),
    "sparse": (Relief(), lambda X, y: (sp.csr_array(X), y), "Sparse data was passed"),
    "NaN": (Relief(), lambda X, y: (np.where(X > 2, np.nan, X), y), "NaN"),
    "distance": (Relief(psd=None), lambda X, y: (X, y), "no negative weights"),
    "discrete": (Relief(discrete=[5]), lambda X, y: (X, y), "from 0 to 4"),
    "discrete mask": (Relief(discrete=[True, False]), lambda X, y: (X, y), "5 booleans"),
    "discrete full": (
        Relief(discrete=[1], structure="full"),
        lambda X, y: (X, y),
        "differences with a sign",
    ),
    "huge": (Relief(), lambda X, y: (np.where(X > 0, 1e308, -1e308), y), "overflow"),
    "k": (Relief(0), lambda X, y: (X, y), "n_neighbors"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_input_changes_nothing(case, labeled):
    learner, make, message = BAD[case]
    fitted = Relief().fit(*labeled)
    state = dict(vars(fitted))
    fitted.set_params(**learner.get_params())
    before = dict(vars(fitted))
    ignored = np.errstate(invalid="ignore")
    with ignored, pytest.raises((ValueError, TypeError), match=message) as raised:
        fitted.fit(*make(*labeled))
    if case not in ("sparse", "NaN", "k"):
        assert isinstance(raised.value, InvalidInputError)
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())
    assert fitted.metric_ is state["metric_"]


def test_no_warning_on_ordinary_data(labeled):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Relief(3).fit(*labeled)
