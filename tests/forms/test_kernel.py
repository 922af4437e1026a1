from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from samewise import load
from samewise.exceptions import InvalidInputError
from samewise.forms import KernelMahalanobis, Mahalanobis

rng = np.random.default_rng(0)
C = rng.normal(size=(2, 3))
support = rng.normal(size=(3, 4))
X, Y = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))


def naive(k):
    def phi(x):
        return C @ np.array([k(x, s) for s in support])

    return np.array([[np.linalg.norm(phi(x) - phi(y)) for y in Y] for x in X])


def test_values_are_those_of_the_formula():
    form = KernelMahalanobis(C, support, "rbf", {"gamma": 0.3})
    expected = naive(lambda x, s: np.exp(-0.3 * ((x - s) ** 2).sum()))
    np.testing.assert_allclose(form.cross(X, Y), expected, rtol=1e-9)
    np.testing.assert_allclose(form.pairs(X[:5], Y), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(form.embed(X), rbf_kernel(X, support, gamma=0.3) @ C.T)


def test_a_linear_kernel_is_the_primal_form():
    form = KernelMahalanobis(C, support, "linear")
    primal = Mahalanobis.from_components(C @ support)
    np.testing.assert_allclose(form.cross(X, Y), primal.cross(X, Y), rtol=1e-10)
    np.testing.assert_allclose(form.matrix, C.T @ C)


@pytest.mark.parametrize("points", [support, sparse.csr_array(support), sparse.csr_matrix(support)])
@pytest.mark.parametrize(
    ("kernel", "params", "function"),
    [
        ("poly", {"degree": 2, "coef0": 1.5}, polynomial_kernel),
        ("laplacian", {"gamma": 0.2}, laplacian_kernel),
    ],
)
def test_named_kernels_with_dense_and_sparse_points(points, kernel, params, function):
    form = KernelMahalanobis(C, points, kernel, params)
    expected = function(X, support, **params) @ C.T
    np.testing.assert_allclose(form.embed(X), expected)
    np.testing.assert_allclose(form.embed(sparse.csr_array(X)), expected)


def test_callable_kernels():
    form = KernelMahalanobis(C, support, lambda x, s, power=1: (x @ s) ** power, {"power": 3})
    np.testing.assert_allclose(form.cross(X, Y), naive(lambda x, s: (x @ s) ** 3), rtol=1e-8)


def test_embedding_in_several_blocks_is_embedding_at_once(monkeypatch):
    form = KernelMahalanobis(C, support)
    whole = form.embed(X)
    monkeypatch.setattr("samewise.forms.kernel_mahalanobis._BLOCK_BYTES", 2 * 3 * 8)
    np.testing.assert_array_equal(form.embed(X), whole)


def test_precomputed():
    form = KernelMahalanobis(C, [0, 4, 2], "precomputed")
    K = rng.normal(size=(6, 8))
    np.testing.assert_allclose(form.embed(K), K[:, [0, 4, 2]] @ C.T)
    np.testing.assert_allclose(form.embed(sparse.csr_array(K)), K[:, [0, 4, 2]] @ C.T)
    assert form.n_features_in == 5
    text = "X has 4 columns, but KernelMahalanobis with a precomputed kernel needs at least 5"
    with pytest.raises(InvalidInputError, match=text):
        form.embed(K[:, :4])


def test_parameters_are_copies():
    params = {"gamma": np.float64(0.5)}
    form = KernelMahalanobis(C, support, kernel_params=params)
    params["gamma"] = 7
    form.kernel_params["gamma"] = 8
    assert form.kernel_params == {"gamma": 0.5}
    assert form == KernelMahalanobis(C, support, kernel_params={"gamma": 0.5})
    assert form != KernelMahalanobis(C, support, kernel_params={"gamma": 0.6})
    points = sparse.csr_array(support)
    form = KernelMahalanobis(C, points)
    points.data[:] = 0
    np.testing.assert_array_equal(form.support.toarray(), support)


def test_numpy_scalars_can_be_saved(tmp_path):
    form = KernelMahalanobis(C, support, kernel_params={"gamma": np.float64(1 / 3)})
    form.save(tmp_path / "form")
    assert load(tmp_path / "form").kernel_params == {"gamma": 1 / 3}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            (C, support, "unknown"),
            "must be one of precomputed, .*rbf.* or a callable, but it is 'u",
        ),
        ((C, support[:2]), "have 3 columns, but there are 2 support points"),
        ((C[0], support), "The coefficients of KernelMahalanobis must have two dimensions"),
        ((C, support[0]), "The support of KernelMahalanobis must have two dimensions"),
        ((C, support * np.nan), "The support of KernelMahalanobis contains NaN"),
        ((C, sparse.csr_array(support * np.nan)), "support contains NaN"),
        ((C, support, "rbf", {"degree": 2}), "kernel 'rbf' cannot be evaluated .*degree"),
        ((C, support, "rbf", [1]), "kernel_params of KernelMahalanobis must be a dict"),
        ((C, support, "additive_chi2"), "cannot be evaluated on the support"),
        ((C, [0.0, 1.0, 2.0], "precomputed"), "1-D array of column numbers .* the type float64"),
        ((C, [[0, 1, 2]], "precomputed"), r"it has the shape \(1, 3\)"),
        ((C, [0, -1, 2], "precomputed"), "integers from 0"),
        ((C, [0, 1, 2], "precomputed", {"gamma": 1}), "takes no kernel_params"),
    ],
)
def test_unusable_parameters(arguments, text):
    with pytest.raises(InvalidInputError, match=text):
        KernelMahalanobis(*arguments)
