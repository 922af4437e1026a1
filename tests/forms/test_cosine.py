from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from samewise.exceptions import DegenerateInputError, InvalidInputError, NotPSDError
from samewise.forms import GeneralizedCosine

rng = np.random.default_rng(0)
B = rng.normal(size=(4, 4))
A = B.T @ B
X, Y = rng.normal(size=(30, 4)), rng.normal(size=(20, 4))


def naive(A, X, Y):
    return np.array([[x @ A @ y / np.sqrt((x @ A @ x) * (y @ A @ y)) for y in Y] for x in X])


def test_values_are_those_of_the_formula():
    form = GeneralizedCosine(A)
    np.testing.assert_allclose(form.cross(X, Y), naive(A, X, Y), atol=1e-12)
    np.testing.assert_allclose(form.pairs(X[:20], Y), np.diag(naive(A, X, Y)), atol=1e-12)
    np.testing.assert_allclose(
        GeneralizedCosine(np.eye(4)).cross(X, Y), cosine_similarity(X, Y), atol=1e-12
    )


def test_the_length_of_a_row_does_not_matter():
    form = GeneralizedCosine(A)
    for scale in (1e-100, 1e-9, 1e9, 1e100):
        np.testing.assert_allclose(form.cross(X * scale, Y), form.cross(X, Y), atol=1e-12)


def test_clipped_to_one():
    S = GeneralizedCosine(A).cross(np.repeat(X, 20, axis=0))
    assert np.abs(S).max() <= 1


def test_zero_rows_are_named_or_similar_to_nothing():
    X0, Y0 = X.copy(), Y.copy()
    X0[[7, 25]], Y0[3] = 0, 0
    strict, lenient = GeneralizedCosine(A), GeneralizedCosine(A, on_zero="zero")
    text = r"X has rows with xᵀAx = 0, which have no cosine \(rows 7, 25\); .* on_zero='zero'"
    for ask in (lambda: strict.cross(X0, Y), lambda: strict.embed(X0)):
        with pytest.raises(DegenerateInputError, match=text):
            ask()
    with pytest.raises(DegenerateInputError, match=r"Y has rows .* \(rows 3\)"):
        strict.pairs(X[:20], Y0)
    with pytest.raises(DegenerateInputError, match=r"X has rows .* \(rows 7\)"):
        list(strict.blocks(X0, Y, block_bytes=2 * 20 * 8))
    S = lenient.cross(X0, Y0)
    keep = np.delete(np.arange(30), [7, 25])
    assert (S[[7, 25]] == 0).all() and (S[:, 3] == 0).all()
    others = np.delete(np.arange(20), 3)
    expected = naive(A, X[keep], Y[others])
    np.testing.assert_allclose(S[np.ix_(keep, others)], expected, atol=1e-12)
    assert (lenient.pairs(X0[:20], Y0)[[3, 7]] == 0).all()


def test_many_zero_rows_are_not_all_listed():
    with pytest.raises(DegenerateInputError, match=r"\(rows 0, 1, 2, 3, 4, …\)"):
        GeneralizedCosine(A).embed(np.zeros((9, 4)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_the_matrix_maps_to_zero_have_no_cosine(dtype):
    L = rng.normal(size=(3, 40))
    null = np.linalg.svd(L)[2][3:].astype(dtype) * 1e5
    form = GeneralizedCosine(L.T @ L)
    with pytest.raises(DegenerateInputError, match="no cosine"):
        form.embed(null)
    assert form.embed(L.astype(dtype)).shape == (3, 3)


def test_the_zero_matrix_has_no_cosine_at_all():
    with pytest.raises(DegenerateInputError, match="no cosine"):
        GeneralizedCosine(np.zeros((4, 4))).cross(X)
    np.testing.assert_array_equal(
        GeneralizedCosine(np.zeros((4, 4)), "zero").cross(X, Y), np.zeros((30, 20))
    )


def test_unusable_parameters():
    with pytest.raises(NotPSDError, match="smallest eigenvalue is -1"):
        GeneralizedCosine(np.diag([1.0, -1.0]))
    with pytest.raises(InvalidInputError, match="on_zero of GeneralizedCosine must be 'raise' or"):
        GeneralizedCosine(A, on_zero="ignore")
