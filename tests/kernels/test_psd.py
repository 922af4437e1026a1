from __future__ import annotations

import numpy as np
import pytest

from samewise.kernels import psd


def symmetric(seed, d):
    S = np.random.default_rng(seed).normal(size=(d, d))
    return S + S.T


def naive_projection(M):
    eigenvalues, V = np.linalg.eigh((M + M.T) / 2)
    P = np.zeros_like(M)
    for value, v in zip(eigenvalues, V.T, strict=True):
        P += max(value, 0) * np.outer(v, v)
    return P


def with_spectrum(seed, eigenvalues):
    d = len(eigenvalues)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    return psd.symmetrize((Q * eigenvalues) @ Q.T)


@pytest.mark.parametrize("n_negative", [0, 1, 3, 6])
def test_project_is_the_naive_projection(n_negative):
    signs = np.array([-1.0] * n_negative + [1.0] * (6 - n_negative))
    M = with_spectrum(n_negative, signs * np.arange(1, 7))
    P = psd.project(M)
    np.testing.assert_allclose(P, naive_projection(M), atol=1e-12)
    assert np.array_equal(P, P.T)
    assert P.flags.c_contiguous
    assert np.linalg.eigvalsh(P).min() > -1e-12


def test_project_is_nearer_than_any_other_psd_matrix():
    M = symmetric(0, 5)
    best = np.linalg.norm(psd.project(M) - M)
    rng = np.random.default_rng(1)
    for _ in range(200):
        B = rng.normal(size=(5, 5)) * 0.3
        other = psd.project(M) + (B @ B.T) * rng.choice([0.01, 1])
        assert np.linalg.norm(other - M) >= best


def test_project_keeps_a_psd_matrix_and_the_input():
    M = with_spectrum(3, np.array([1.0, 2.0, 3.0]))
    before = M.copy()
    P = psd.project(M)
    np.testing.assert_allclose(P, M, rtol=1e-14)
    assert P is not M and np.array_equal(M, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(dtype):
    M = symmetric(4, 4).astype(dtype)
    assert psd.project(M).dtype == psd.symmetrize(M).dtype == dtype
    components, eigenvalues = psd.factor(psd.project(M))
    assert components.dtype == eigenvalues.dtype == dtype


def test_factor_gives_back_the_matrix_in_decreasing_order():
    M = with_spectrum(5, np.array([0.5, 7.0, 0.0, 2.0]))
    L, eigenvalues = psd.factor(M)
    np.testing.assert_allclose(L.T @ L, M, atol=1e-13)
    np.testing.assert_allclose(eigenvalues, [7, 2, 0.5], rtol=1e-12)
    np.testing.assert_allclose(L @ L.T, np.diag(eigenvalues), atol=1e-13)
    assert L.flags.c_contiguous
    assert (L[np.arange(3), np.abs(L).argmax(axis=1)] > 0).all()


def test_factor_drops_below_the_tolerance_only():
    M = np.diag([1.0, 1e-6, 1e-14])
    assert psd.factor(M)[0].shape == (2, 3)
    assert psd.factor(M, tol=1e-3)[0].shape == (1, 3)
    assert psd.factor(M, tol=1e-15)[0].shape == (3, 3)


def test_factor_of_zero_has_no_rows():
    L, eigenvalues = psd.factor(np.zeros((3, 3)))
    assert L.shape == (0, 3) and eigenvalues.shape == (0,)


@pytest.mark.parametrize(
    ("eigenvalues", "rank"),
    [([3.0, 1.0, 2e-9], 2), ([1.0, 2e-9], 2), ([0.0, 0.0], 0), ([], 0), ([-1.0, -2.0], 0)],
)
def test_effective_rank(eigenvalues, rank):
    assert psd.effective_rank(np.array(eigenvalues)) == rank
