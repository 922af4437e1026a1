"""The search for the one negative eigenvalue, and the proof that there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

from samewise.engine.policy import _largest_eigenvalue
from samewise.kernels import cone
from samewise.kernels.gram_schmidt import gram_schmidt


def search(M, mu0, v, tau):
    P = np.linalg.inv(M + mu0 * np.eye(len(v)))
    Q, u = np.empty((cone.MAX_LANCZOS + 3, len(v))), np.empty(len(v))
    sq = float(v @ v)
    guess = tau * sq - float(v @ M @ v) / sq
    steps, mu = cone.negative_eigenpair(P, mu0, v, sq, tau, guess, Q, u)
    return steps, mu, u


@pytest.mark.parametrize("rank", [0, 1, 5, 12])
@pytest.mark.parametrize("mu0", [1e-3, 0.1, 10.0])
def test_finds_the_negative_eigenpair(rank, mu0, seed):
    rng = np.random.RandomState(seed)
    A = rng.randn(rank, 12)
    M, v, tau = A.T @ A, rng.randn(12), 0.7
    values, vectors = np.linalg.eigh(M - tau * np.outer(v, v))
    steps, mu, u = search(M, mu0, v, tau)
    assert 0 < steps <= 12
    # P is rounded by eps‖P‖, and ‖P‖ is up to 1/μ₀: no search can be more precise than its input.
    assert mu == pytest.approx(-values[0], rel=max(1e-11, 1e-12 / mu0), abs=1e-12)
    np.testing.assert_allclose(np.outer(u, u), np.outer(*[vectors[:, 0]] * 2), atol=1e-9)


def test_proves_that_there_is_none(seed):
    rng = np.random.RandomState(seed)
    A = rng.randn(20, 10)
    M, v = A.T @ A, rng.randn(10)
    tau = 0.99 / (v @ np.linalg.solve(M, v))
    steps, mu, _ = search(M, 0.01, v, tau)
    assert steps > 0
    assert mu == 0.0


def test_knows_the_border(seed):
    """τ just past the border: a tiny negative eigenvalue, found or proved below precision."""
    rng = np.random.RandomState(seed)
    A = rng.randn(20, 10)
    M, v = A.T @ A, rng.randn(10)
    tau = (1 + 1e-6) / (v @ np.linalg.solve(M, v))
    exact = -np.linalg.eigvalsh(M - tau * np.outer(v, v))[0]
    steps, mu, _ = search(M, 1e-4, v, tau)
    assert steps == -1 or mu == pytest.approx(exact, abs=2e-12 * tau * (v @ v), rel=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 9])
def test_symv_reads_the_lower_triangle_only(d, seed):
    rng = np.random.RandomState(seed)
    A = rng.randn(d, d)
    P = np.tril(A) + np.triu(np.full((d, d), np.nan), 1)
    x, y = rng.randn(d), np.full(d, np.nan)
    cone.symv(P, x, y)
    full = np.tril(A) + np.tril(A, -1).T
    np.testing.assert_allclose(y, full @ x, rtol=1e-12, atol=1e-12)


def largest_eigenvalue(V, c):
    return np.linalg.eigvalsh((V * c[:, None]).T @ V)[-1]


def bound(V, c):
    K = (V @ V.T) ** 2
    K[np.tril_indices(len(V), -1)] = np.nan  # not meant to be read
    return _largest_eigenvalue(c, K)


def test_bound_on_what_a_block_removes(seed):
    rng = np.random.RandomState(seed)
    V, c = rng.randn(20, 7), rng.rand(20)
    assert largest_eigenvalue(V, c) <= bound(V, c) < np.inf
    assert _largest_eigenvalue(np.empty(0), np.empty((0, 0))) == 0.0


@pytest.mark.parametrize("center", [0, 4, 9])
def test_bound_where_one_vector_overlaps_all_others(center):
    """A star: wherever its center stands in the block, all overlaps count."""
    V = np.eye(10)
    V[center] += np.where(np.arange(10) == center, 0.0, 0.3)
    c = np.ones(10)
    assert largest_eigenvalue(V, c) > 2.3
    assert bound(V, c) >= largest_eigenvalue(V, c)


def test_bound_is_exact_for_copies_of_one_vector():
    V, c = np.tile([1.0, 2.0, -2.0], (6, 1)), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert bound(V[:1], c[:1]) == pytest.approx(0.9)
    np.testing.assert_allclose(bound(V, np.full(6, 0.5)), 27.0)
    assert largest_eigenvalue(V, c) <= bound(V, c)


def test_gram_schmidt_finds_coordinates_and_skips_dependent_rows(seed):
    rng = np.random.RandomState(seed)
    V = rng.randn(9, 4)
    V[2] = V[0] - 3 * V[1]
    R = V @ V.T
    T, pivots = gram_schmidt(R, np.diagonal(R).copy(), 1e-11)
    assert pivots.tolist() == [0, 1, 3, 4]
    np.testing.assert_allclose(T @ T.T, R, atol=1e-9)
    assert np.all(np.diagonal(T[pivots]) > 0)
    assert np.all(np.triu(T[pivots], 1) == 0)
    assert null_space(T[pivots]).size == 0
