"""Triplets against a Gaussian over matrices: the mean W and how sure each part of it is.

Every loop walks its examples in order with the violation p_i = target_i − l_iᵀ W r_i, writes p, the
step τ and what it was divided by, and leaves alone examples of weight 0. Weights divide the
regularizer: r becomes r / weight_i.

*Diagonal*: W and its variances Σ stand side by side in one array G of shape (m, n, 2), so that a
scattered access fetches both. *Factored*: W is m × n, the covariances Λ (m × m) and Ω (n × n) live
in the lower triangles of C-ordered arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs

from samewise._typing import Array
from samewise.kernels import blocked
from samewise.kernels.rank_one import FAST, _add_bilinear, _bilinear
from samewise.kernels.steps import ROUNDING

LEAST = 2.0**-52
"""A variance shrinks by no more than this at once: rounding must not make it zero or negative."""


@njit(cache=True, fastmath=FAST)
def _row_moments(row: Array, v: Array, v2: Array) -> tuple[float, float]:
    """Σ_k w_k v_k and Σ_k σ_k v_k²."""
    score = 0.0
    variance = 0.0
    for k in range(v.shape[0]):
        score += row[k, 0] * v[k]
        variance += row[k, 1] * v2[k]
    return score, variance


@njit(cache=True, fastmath=FAST)
def _move_row(row: Array, v: Array, v2: Array, f: float, g: float) -> None:
    """w_k += f σ_k v_k, σ_k −= g (σ_k v_k)²."""
    for k in range(v.shape[0]):
        s = row[k, 1]
        row[k, 0] += f * s * v[k]
        row[k, 1] = s * max(1.0 - g * s * v2[k], LEAST)


@njit(cache=True)
def diagonal_dense(
    G: Array,
    L: Array,
    R: Array,
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    r: float,
    tau: NDArray[np.float64],
    divisor: NDArray[np.float64],
    violation: NDArray[np.float64],
) -> None:
    """d-AROMA over dense rows of L and R."""
    for i in range(L.shape[0]):
        u, v = L[i], R[i]
        v2 = v * v
        score = 0.0
        variance = 0.0
        for k in range(u.shape[0]):
            if u[k] != 0.0:
                a, b = _row_moments(G[k], v, v2)
                score += u[k] * a
                variance += u[k] * u[k] * b
        violation[i] = target[i] - score
        tau[i] = 0.0
        if weight[i] == 0.0 or violation[i] <= ROUNDING:
            continue
        divisor[i] = variance + r / weight[i]
        tau[i] = violation[i] / divisor[i]
        for k in range(u.shape[0]):
            if u[k] != 0.0:
                _move_row(G[k], v, v2, tau[i] * u[k], u[k] * u[k] / divisor[i])


@njit(cache=True, fastmath=FAST)
def _gather_moments(row: Array, at: NDArray[np.uint32], v: Array, v2: Array) -> tuple[float, float]:
    score = 0.0
    variance = 0.0
    for k in range(v.shape[0]):
        score += row[at[k], 0] * v[k]
        variance += row[at[k], 1] * v2[k]
    return score, variance


@njit(cache=True, fastmath=FAST)
def _scatter_moves(
    row: Array, at: NDArray[np.uint32], v: Array, v2: Array, f: float, g: float
) -> None:
    for k in range(v.shape[0]):
        s = row[at[k], 1]
        row[at[k], 0] += f * s * v[k]
        row[at[k], 1] = s * max(1.0 - g * s * v2[k], LEAST)


@njit(cache=True)
def diagonal_sparse(
    G: Array,
    left_ptr: NDArray[Any],
    left_at: NDArray[np.uint32],
    left: Array,
    right_ptr: NDArray[Any],
    right_at: NDArray[np.uint32],
    right: Array,
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    r: float,
    tau: NDArray[np.float64],
    divisor: NDArray[np.float64],
    violation: NDArray[np.float64],
) -> None:
    """The same over CSR rows: Θ(nnz(l)·nnz(r)) an example."""
    squares = right * right
    for i in range(left_ptr.shape[0] - 1):
        u_at = left_at[left_ptr[i] : left_ptr[i + 1]]
        u = left[left_ptr[i] : left_ptr[i + 1]]
        v_at = right_at[right_ptr[i] : right_ptr[i + 1]]
        v = right[right_ptr[i] : right_ptr[i + 1]]
        v2 = squares[right_ptr[i] : right_ptr[i + 1]]
        score = 0.0
        variance = 0.0
        for k in range(u.shape[0]):
            a, b = _gather_moments(G[u_at[k]], v_at, v, v2)
            score += u[k] * a
            variance += u[k] * u[k] * b
        violation[i] = target[i] - score
        tau[i] = 0.0
        if weight[i] == 0.0 or violation[i] <= ROUNDING:
            continue
        divisor[i] = variance + r / weight[i]
        tau[i] = violation[i] / divisor[i]
        for k in range(u.shape[0]):
            _scatter_moves(G[u_at[k]], v_at, v, v2, tau[i] * u[k], u[k] * u[k] / divisor[i])


@njit(cache=True)
def diagonal_replay(
    M: Array,
    S: Array,
    left_ptr: NDArray[Any],
    left_at: NDArray[Any],
    left: Array,
    right_ptr: NDArray[Any],
    right_at: NDArray[Any],
    right: Array,
    tau: NDArray[np.float64],
    divisor: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> None:
    """M += Σ_i factor_i τ_i Σ_i ∘ l_i r_iᵀ; S, the variances before the first, follows along."""
    for i in range(left_ptr.shape[0] - 1):
        for k in range(left_ptr[i], left_ptr[i + 1]):
            u, row, variances = left[k], M[left_at[k]], S[left_at[k]]
            for c in range(right_ptr[i], right_ptr[i + 1]):
                s, at = variances[right_at[c]], right_at[c]
                g = u * right[c]
                row[at] += factor[i] * tau[i] * s * g
                variances[at] = s * max(1.0 - s * g * g / divisor[i], LEAST)


@njit(cache=True, fastmath=FAST)
def _symmetric_times(T: Array, v: Array, out: NDArray[np.float64]) -> float:
    """out = T v for the symmetric matrix in the lower triangle of T; returns vᵀTv."""
    for r in range(v.shape[0]):
        row, x = T[r], v[r]
        inner = 0.0
        for k in range(r):
            inner += row[k] * v[k]
            out[k] += row[k] * x
        out[r] = inner + row[r] * x
    total = 0.0
    for r in range(v.shape[0]):
        total += out[r] * v[r]
    return total


@njit(cache=True, fastmath=FAST)
def _shrink(T: Array, c: float, a: NDArray[np.float64]) -> None:
    """T −= c a aᵀ on the lower triangle."""
    d = a.shape[0]
    for r in range(d):
        row = T[r]
        f = c * a[r]
        # To the next multiple of four: what lands above the diagonal is not read.
        for k in range(min((r | 3) + 1, d)):
            row[k] -= f * a[k]


@njit(cache=True, fastmath=FAST)
def _times(W: Array, q: Array, p: Array, h: NDArray[np.float64], k: NDArray[np.float64]) -> None:
    """h = Wᵀq and k = W p."""
    h[:] = 0.0
    for r in range(q.shape[0]):
        row, x = W[r], q[r]
        inner = 0.0
        for c in range(p.shape[0]):
            h[c] += x * row[c]
            inner += row[c] * p[c]
        k[r] = inner


@njit(cache=True)
def factored_dense(
    W: Array,
    Lambda: Array,
    Omega: Array,
    L: Array,
    R: Array,
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    r: float,
    on_mistakes: bool,
    tau: NDArray[np.float64],
    violation: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
) -> None:
    """f-AROMA over dense rows of L and R.

    What example i adds to W is written down as Σ_j left[j, i] right[j, i]ᵀ: one term, or two with
    `on_mistakes`, where only a score of at most 0 moves anything and the new covariances are used.
    """
    m, n = W.shape
    a, k, c, h = np.empty(m), np.empty(m), np.empty(n), np.empty(n)
    for i in range(L.shape[0]):
        q, p = L[i], R[i]
        score = _bilinear(W, q, p)
        violation[i] = target[i] - score
        tau[i] = 0.0
        if weight[i] == 0.0 or violation[i] <= ROUNDING or (on_mistakes and score > 0.0):
            continue
        s, t = _symmetric_times(Lambda, q, a), _symmetric_times(Omega, p, c)
        rho = r / weight[i]
        tau[i] = violation[i] / (rho + s * t)
        down_left, down_right = t / (n * rho + s * t), s / (m * rho + s * t)
        if on_mistakes:
            # Λ_i (B + τ q pᵀ) Ω_i, written with W = Λ B Ω before the step.
            _times(W, q, p, h, k)
            g = tau[i] * (1 - down_left * s) * (1 - down_right * t) + down_left * down_right * score
            left[0, i], right[0, i] = a, g * c - down_left * h
            left[1, i], right[1, i] = -down_right * k, c
            _add_bilinear(W, 1.0, left[1, i], right[1, i])
        else:
            left[0, i], right[0, i] = tau[i] * a, c
        _add_bilinear(W, 1.0, left[0, i], right[0, i])
        _shrink(Lambda, down_left, a)
        _shrink(Omega, down_right, c)


def factored_block(
    W: Array,
    Lambda: Array,
    Omega: Array,
    L: Array,
    R: Array,
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    r: float,
    tau: NDArray[np.float64],
    violation: NDArray[np.float64],
) -> tuple[Array, Array]:
    """f-AROMA for a block at once, with the trajectory of the loop.

    With Y = L Λ₀, Z = R Ω₀, A = Y Lᵀ and D = Z Rᵀ, an update at t changes what later examples see
    by rank-one terms in A, D and the scores (algorithms.md §10), so that the walk needs no product
    with a matrix. The vectors Λ_t q_t of those that updated solve (I + N) X = Y, N strictly lower
    with N_jk = down_k A_kj, because Λ_t = Λ₀ − Σ_{k<t} down_k x_k x_kᵀ; likewise for Ω.

    Returns the terms left_i right_iᵀ added to W.
    """
    gemm, symm, trsm, syrk = get_blas_funcs(("gemm", "symm", "trsm", "syrk"), (W,))
    Y, Z = (symm(1.0, T.T, V.T, lower=0).T for T, V in ((Lambda, L), (Omega, R)))
    A, D = (gemm(1.0, V.T, U.T, trans_a=1).T.astype(np.float64) for U, V in ((Y, L), (Z, R)))
    down = np.zeros((2, len(L)))
    _walk(blocked.bilinear(W, L, R), A, D, target, weight, r, W.shape, tau, violation, down)
    rows = np.flatnonzero(tau)
    if len(rows) == 0:
        return L[rows], R[rows]
    moved = []
    for T, V, C, c in ((Lambda, Y, A, down[0]), (Omega, Z, D, down[1])):
        N = np.asfortranarray((c[rows, None] * C[np.ix_(rows, rows)]).T, dtype=W.dtype)
        X = trsm(1.0, N, np.asfortranarray(V[rows]), lower=1, diag=1)
        X = np.ascontiguousarray(X)
        scaled = X * np.sqrt(c[rows])[:, None].astype(W.dtype)
        syrk(-1.0, scaled.T, beta=1.0, c=T.T, lower=0, overwrite_c=1)
        moved.append(X)
    left = moved[0] * tau[rows, None].astype(W.dtype)
    gemm(1.0, moved[1].T, left.T, trans_b=1, beta=1.0, c=W.T, overwrite_c=1)
    return left, moved[1]


@njit(cache=True, fastmath=FAST)
def _walk(
    score: NDArray[np.float64],
    A: NDArray[np.float64],
    D: NDArray[np.float64],
    target: NDArray[np.float64],
    weight: NDArray[np.float64],
    r: float,
    shape: tuple[int, int],
    tau: NDArray[np.float64],
    violation: NDArray[np.float64],
    down: NDArray[np.float64],
) -> None:
    """Run the block in coefficient space: A_ij = q_iᵀ Λ q_j and D_ij = p_iᵀ Ω p_j for j ≥ i."""
    m, n = shape
    size = score.shape[0]
    for t in range(size):
        violation[t] = target[t] - score[t]
        tau[t] = 0.0
        if weight[t] == 0.0 or violation[t] <= ROUNDING:
            continue
        a, d = A[t], D[t]
        both = a[t] * d[t]
        rho = r / weight[t]
        tau[t] = violation[t] / (rho + both)
        down[0, t], down[1, t] = d[t] / (n * rho + both), a[t] / (m * rho + both)
        for i in range(t + 1, size):
            score[i] += tau[t] * a[i] * d[i]
            x, y = down[0, t] * a[i], down[1, t] * d[i]
            A_i, D_i = A[i], D[i]
            for j in range(i, size):
                A_i[j] -= x * a[j]
                D_i[j] -= y * d[j]
