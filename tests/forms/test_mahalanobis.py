from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import mahalanobis

from samewise.exceptions import InvalidInputError, NotPSDError
from samewise.forms import Mahalanobis
from samewise.kernels import psd
from samewise.kernels.psd import project

rng = np.random.default_rng(0)
B = rng.normal(size=(4, 4))
M = B.T @ B
X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))


def naive(M, X, Y):
    return np.array([[np.sqrt((x - y) @ M @ (x - y)) for y in Y] for x in X])


def test_values_are_those_of_the_formula_and_of_scipy():
    form = Mahalanobis(M)
    np.testing.assert_allclose(form.cross(X, Y), naive(M, X, Y), rtol=1e-10)
    scipys = [mahalanobis(x, y, M) for x, y in zip(X, Y, strict=False)]
    np.testing.assert_allclose(form.pairs(X[:5], Y), scipys, rtol=1e-12)
    np.testing.assert_allclose(Mahalanobis.from_components(B).cross(X, Y), naive(M, X, Y))


def test_pairs_keep_the_digits_of_near_duplicates_far_from_the_origin():
    far = np.full((1, 4), 1e8)
    near = far + np.array([[1.0, 0, 0, 0]])
    np.testing.assert_allclose(Mahalanobis.identity(4).pairs(far, near), [1.0])


def test_cross_is_accurate_for_a_cloud_far_from_the_origin():
    cloud = 1e6 + rng.normal(size=(20, 4))
    D = Mahalanobis.identity(4).cross(cloud)
    expected = naive(np.eye(4), cloud, cloud)
    np.testing.assert_allclose(D, expected, rtol=1e-9, atol=1e-9)


def test_components_and_eigenvalues_are_canonical():
    form = Mahalanobis(np.diag([1.0, 9.0, 0.0, 4.0]))
    np.testing.assert_array_equal(form.components, np.diag([1.0, 3, 0, 2])[[1, 3, 0]])
    np.testing.assert_array_equal(form.eigenvalues, [9, 4, 1])
    assert repr(form) == "Mahalanobis(n_features_in=4, rank=3)"


def test_given_components_stay_as_they_are():
    L = B[:2].copy()
    form = Mahalanobis.from_components(L)
    np.testing.assert_array_equal(form.components, L)
    np.testing.assert_array_equal(form.embed(X), X @ L.T)
    np.testing.assert_allclose(form.matrix, L.T @ L)
    np.testing.assert_allclose(form.eigenvalues, np.linalg.eigvalsh(L.T @ L)[:1:-1])
    assert form.matrix is form.matrix and form.eigenvalues is form.eigenvalues


def test_more_components_than_features():
    L = rng.normal(size=(7, 4))
    form = Mahalanobis.from_components(L)
    np.testing.assert_allclose(form.cross(X, Y), naive(L.T @ L, X, Y))
    assert form.eigenvalues.shape == (4,)
    np.testing.assert_allclose(form.reduce(2).matrix, Mahalanobis(L.T @ L).reduce(2).matrix)


def test_the_callers_array_is_neither_frozen_nor_followed():
    mine = M.copy()
    form = Mahalanobis(mine)
    mine[0, 0] = 100
    np.testing.assert_allclose(form.matrix, M)
    L = B.copy()
    form = Mahalanobis.from_components(L)
    L[0, 0] = 100
    np.testing.assert_array_equal(form.components, B)


def test_reduce_keeps_the_leading_directions():
    form = Mahalanobis(M)
    eigenvalues, V = np.linalg.eigh(M)
    for r in (1, 2, 3):
        best = (V[:, -r:] * eigenvalues[-r:]) @ V[:, -r:].T
        np.testing.assert_allclose(form.reduce(r).matrix, best, atol=1e-12)
        np.testing.assert_allclose(
            Mahalanobis.from_components(B).reduce(r).matrix, best, atol=1e-12
        )
        assert form.reduce(r).components.shape == (r, 4)
    assert form.reduce(4) is form and form.reduce(9) is form
    with pytest.raises(InvalidInputError, match="n_components must be at least 1, but it is 0"):
        form.reduce(0)


def test_identity_is_euclidean():
    form = Mahalanobis.identity(4)
    np.testing.assert_array_equal(form.embed(X), X)
    np.testing.assert_array_equal(form.matrix, np.eye(4))
    np.testing.assert_array_equal(form.eigenvalues, np.ones(4))
    with pytest.raises(InvalidInputError, match="n_features must be at least 1, but it is 0"):
        Mahalanobis.identity(0)


def test_effective_rank():
    form = Mahalanobis(np.diag([1.0, 1e-3, 1e-10, 0.0]))
    assert form.effective_rank() == 2
    assert form.effective_rank(tol=1e-2) == 1
    assert form.effective_rank(tol=1e-11) == 3


def test_the_zero_matrix_is_a_pseudometric():
    form = Mahalanobis(np.zeros((4, 4)))
    assert form.components.shape == (0, 4)
    assert form.embed(X).shape == (6, 0)
    np.testing.assert_array_equal(form.cross(X, Y), np.zeros((6, 5)))
    np.testing.assert_array_equal(form.pairs(X, X[::-1]), np.zeros(6))
    assert form.effective_rank() == 0 and form.reduce(1) is form
    empty = Mahalanobis.from_components(np.empty((0, 4)))
    np.testing.assert_array_equal(empty.matrix, np.zeros((4, 4)))
    assert empty.eigenvalues.shape == (0,)


def test_a_small_asymmetry_is_evened_out():
    wobbly = M.copy()
    wobbly[0, 1] += 1e-9
    form = Mahalanobis(wobbly)
    assert np.array_equal(form.matrix, form.matrix.T)


def test_a_small_negative_rest_is_zeroed():
    Q, _ = np.linalg.qr(B)
    form = Mahalanobis((Q * [3.0, 2.0, 1.0, -1e-10]) @ Q.T)
    assert form.components.shape == (3, 4)
    np.testing.assert_allclose(form.matrix, form.components.T @ form.components, atol=1e-14)


def test_float32_parameters_are_accepted_with_their_rounding():
    L = rng.normal(size=(10, 50)).astype(np.float32)
    form = Mahalanobis(L.T @ L)
    assert form.matrix.dtype == form.components.dtype == np.float32
    # Rounding leaves eigenvalues around 1e-7 of the largest one.
    assert form.effective_rank(1e-5) == 10
    Z = rng.normal(size=(5, 50))
    np.testing.assert_allclose(form.cross(Z, Z[:2]), naive(L.T @ L, Z, Z[:2]), rtol=1e-3, atol=1e-3)


def test_integers_and_sparse_matrices_make_a_form():
    assert Mahalanobis([[2, 0], [0, 1]]).matrix.dtype == np.float64
    assert Mahalanobis(sparse.csr_array(np.eye(3))) == Mahalanobis(np.eye(3))


def test_not_positive_semi_definite():
    bad = np.diag([1.0, -0.25])
    text = r"but its smallest eigenvalue is -0.25; Mahalanobis.nearest"
    with pytest.raises(NotPSDError, match=text):
        Mahalanobis(bad)
    np.testing.assert_array_equal(Mahalanobis(project(bad)).matrix, np.diag([1.0, 0.0]))
    with pytest.raises(NotPSDError, match="smallest eigenvalue is -1;"):
        Mahalanobis(-np.eye(2))


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], r"must be symmetric, but .* differ by up to 2; give"),
        (np.ones((2, 3)), r"must be square, but its shape is \(2, 3\)"),
        (np.ones(3), "must have two dimensions, but it has 1"),
        (np.ones((1, 1, 1)), "must have two dimensions, but it has 3"),
        ([[np.nan]], "The matrix of Mahalanobis contains NaN or infinity"),
        ([[np.inf]], "contains NaN or infinity"),
        (np.empty((0, 0)), "must have at least one column"),
        ([["a"]], "must be a rectangular array of real numbers"),
        ([[1j]], "must be a rectangular array of real numbers"),
        (None, "must be a rectangular array of real numbers|must have two dimensions"),
    ],
)
def test_unusable_matrices(matrix, text):
    with pytest.raises(InvalidInputError, match=text):
        Mahalanobis(matrix)


def test_unusable_components():
    with pytest.raises(InvalidInputError, match="The components of Mahalanobis must have two"):
        Mahalanobis.from_components(np.ones(3))
    with pytest.raises(InvalidInputError, match="The components of Mahalanobis contains NaN"):
        Mahalanobis.from_components([[np.nan]])


def test_nearest_is_factored_when_it_is_used(monkeypatch, seed):
    calls = []
    decompose = psd.decompose
    monkeypatch.setattr(psd, "decompose", lambda M: calls.append(1) or decompose(M))
    A = np.random.default_rng(seed).normal(size=(6, 6))
    form = Mahalanobis.nearest(A)
    copied = pickle.loads(pickle.dumps(form))
    assert form.n_features_in == 6 and not calls
    A[:] = 0.0
    for lazy in (form, copied):
        assert np.all(np.diff(lazy.eigenvalues) <= 0) and len(lazy.components) == len(
            lazy.eigenvalues
        )
        assert lazy.matrix.shape == (6, 6) and lazy == form
        for array in (lazy.matrix, lazy.components, lazy.eigenvalues):
            assert not array.flags.writeable
    assert len(calls) == 2


def test_nearest_drops_what_is_negative_or_skew(seed):
    A = np.random.RandomState(seed).randn(5, 5)
    form = Mahalanobis.nearest(A)
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    np.testing.assert_allclose(
        form.matrix, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-12
    )
    np.testing.assert_allclose(form.components.T @ form.components, form.matrix, atol=1e-12)
    np.testing.assert_allclose(form.eigenvalues, values[values > 0][::-1])
    assert Mahalanobis.nearest(np.zeros((3, 3))).components.shape == (0, 3)
    with pytest.raises(InvalidInputError, match="must be square"):
        Mahalanobis.nearest(A[:3])
