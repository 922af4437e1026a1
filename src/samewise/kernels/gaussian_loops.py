"""Triplets against a Gaussian over matrices: the mean W and how sure each part of it is.

Every loop walks its examples in order with the violation p_i = target_i − l_iᵀ W r_i, writes p, the
step τ and what it was divided by, and leaves alone examples of weight 0. Weights divide the
regularizer: r becomes r / weight_i.

*Diagonal*: W and its variances Σ stand side by side, as real and imaginary parts of one complex
array G = W + iΣ, so that a scattered access fetches both. *Factored*: W is m × n, the covariances
Λ (m × m) and Ω (n × n) live in the lower triangles of C-ordered arrays.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs

from samewise._typing import Array
from samewise.kernels import blocked
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST, _add_bilinear, _bilinear, _sq_norm
from samewise.kernels.steps import ROUNDING, Moved, Rows, Wanted

LEAST = 2.0**-52
"""A variance shrinks by no more than this at once: rounding must not make it zero or negative."""

Factored: TypeAlias = tuple[Array, Array, Array]
"""W, Λ and Ω."""

FLOOR = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}
"""qᵀΛq stays above this part of ‖q‖²: below it, rounding decides, and Λ ⪰ 0 would be lost."""


@compiled(fastmath=FAST)
def _row_moments(row: Array, v: Array, v2: Array) -> tuple[float, float]:
    """Σ_k w_k v_k and Σ_k σ_k v_k²."""
    score = 0.0
    variance = 0.0
    for k in range(v.shape[0]):
        score += row[k].real * v[k]
        variance += row[k].imag * v2[k]
    return score, variance


@compiled(fastmath=FAST)
def _move_row(row: Array, v: Array, v2: Array, f: float, g: float) -> None:
    """w_k += f σ_k v_k, σ_k −= g (σ_k v_k)²."""
    for k in range(v.shape[0]):
        w, s = row[k].real, row[k].imag
        row[k] = complex(w + f * s * v[k], s * max(1.0 - g * s * v2[k], LEAST))


@compiled
def diagonal_dense(
    G: NDArray[np.complexfloating[Any]],
    L: Array,
    R: Array,
    wanted: Wanted,
    r: float,
    divisor: NDArray[np.float64],
    moved: Moved,
) -> None:
    """d-AROMA over dense rows of L and R."""
    _, _, target, weight = wanted
    tau, violation, _ = moved
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


@compiled(fastmath=FAST)
def _gather_moments(row: Array, at: NDArray[np.uint32], v: Array, v2: Array) -> tuple[float, float]:
    score = 0.0
    variance = 0.0
    for k in range(v.shape[0]):
        both = row[at[k]]
        score += both.real * v[k]
        variance += both.imag * v2[k]
    return score, variance


@compiled(fastmath=FAST)
def _scatter_moves(
    row: Array, at: NDArray[np.uint32], v: Array, v2: Array, f: float, g: float
) -> None:
    for k in range(v.shape[0]):
        w, s = row[at[k]].real, row[at[k]].imag
        row[at[k]] = complex(w + f * s * v[k], s * max(1.0 - g * s * v2[k], LEAST))


@compiled
def diagonal_sparse(
    G: NDArray[np.complexfloating[Any]],
    left_rows: Rows,
    right_rows: Rows,
    wanted: Wanted,
    r: float,
    divisor: NDArray[np.float64],
    moved: Moved,
) -> None:
    """The same over CSR rows: Θ(nnz(l)·nnz(r)) an example."""
    left_ptr, left_at, left = left_rows
    right_ptr, right_at, right = right_rows
    _, _, target, weight = wanted
    tau, violation, _ = moved
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


@compiled(fastmath=FAST)
def _replay_row(row: Array, variances: Array, v: Array, v2: Array, f: float, g: float) -> None:
    """What `_move_row` did to W, times a factor within f, onto another row."""
    for k in range(v.shape[0]):
        s = variances[k]
        row[k] += f * s * v[k]
        variances[k] = s * max(1.0 - g * s * v2[k], LEAST)


@compiled
def replay_dense(
    M: Array,
    S: Array,
    L: Array,
    R: Array,
    tau: NDArray[np.float64],
    divisor: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> None:
    """M += Σ_i factor_i τ_i Σ_i ∘ l_i r_iᵀ; S, the variances before the first, follows along."""
    for i in range(L.shape[0]):
        u, v = L[i], R[i]
        v2 = v * v
        for k in range(u.shape[0]):
            if u[k] != 0.0:
                f, g = factor[i] * tau[i] * u[k], u[k] * u[k] / divisor[i]
                _replay_row(M[k], S[k], v, v2, f, g)


@compiled
def replay_sparse(
    M: Array,
    S: Array,
    left_rows: Rows,
    right_rows: Rows,
    tau: NDArray[np.float64],
    divisor: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> None:
    """The same over CSR rows."""
    left_ptr, left_at, left = left_rows
    right_ptr, right_at, right = right_rows
    for i in range(left_ptr.shape[0] - 1):
        for k in range(left_ptr[i], left_ptr[i + 1]):
            u, row, variances = left[k], M[left_at[k]], S[left_at[k]]
            for c in range(right_ptr[i], right_ptr[i + 1]):
                s, at = variances[right_at[c]], right_at[c]
                g = u * right[c]
                row[at] += factor[i] * tau[i] * s * g
                variances[at] = s * max(1.0 - s * g * g / divisor[i], LEAST)


@compiled(fastmath=FAST)
def _symmetric_times(T: Array, v: Array, out: NDArray[np.float64]) -> float:
    """out = T v, from the lower triangle, each row of which is read once; returns vᵀTv."""
    total = 0.0
    for r in range(v.shape[0]):
        row, x = T[r], v[r]
        inner = 0.0
        for k in range(r):
            out[k] += row[k] * x
            inner += row[k] * v[k]
        out[r] = inner + row[r] * x
        total += x * (2.0 * inner + row[r] * x)
    return total


@compiled(fastmath=FAST)
def _take_away(T: Array, factor: float, a: NDArray[np.float64]) -> None:
    """T −= factor a aᵀ, the lower triangle."""
    for r in range(a.shape[0]):
        row, x = T[r], factor * a[r]
        for k in range(r + 1):
            row[k] -= x * a[k]


@compiled
def shrinkage(s: float, t: float, rho: float, least: float) -> float:
    """How much of (Λq)(Λq)ᵀ goes: t / (ρ + s t), but what is left of s = qᵀΛq exceeds `least`."""
    return min(t / (rho + s * t), max(s - least, 0.0) / (s * s))


@compiled(fastmath=FAST)
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


@compiled(inline="always")
def _move_by_mistake(
    W: Array,
    q: Array,
    p: Array,
    steps: tuple[float, float, float],
    a: NDArray[np.float64],
    c: NDArray[np.float64],
    h: NDArray[np.float64],
    k: NDArray[np.float64],
) -> None:
    """W = Λ_i (B + τ q pᵀ) Ω_i, written with W = Λ B Ω before the step: W + a hᵀ + k cᵀ.

    `steps` are what to multiply (Λq)(Ωp)ᵀ, (Λq)(qᵀW) and (Wp)(Ωp)ᵀ with.
    """
    g, down_left, down_right = steps
    _times(W, q, p, h, k)
    h[:] = g * c - down_left * h
    k *= -down_right
    _add_bilinear(W, 1.0, a, h)
    _add_bilinear(W, 1.0, k, c)


@compiled
def factored_dense(
    state: Factored,
    L: Array,
    R: Array,
    wanted: Wanted,
    r: float,
    least: float,
    modes: tuple[bool, bool],
    moved: Moved,
    left: Array,
    right: Array,
) -> None:
    """f-AROMA over dense rows of L and R.

    `modes` are (on_mistakes, keep). With `on_mistakes` only a score of at most 0 moves anything and
    the new covariances are used. With `keep`, what example i adds to W is written down as
    Σ_j left[j, i] right[j, i]ᵀ: one term, or two with `on_mistakes`.
    """
    W, Lambda, Omega = state
    _, _, target, weight = wanted
    tau, violation, _ = moved
    on_mistakes, keep = modes
    m, n = W.shape
    a, k, c, h = np.empty(m), np.empty(m), np.empty(n), np.empty(n)
    for i in range(L.shape[0]):
        q, p = L[i], R[i]
        score = _bilinear(W, q, p)
        violation[i] = target[i] - score
        tau[i] = 0.0
        if weight[i] == 0.0 or violation[i] <= ROUNDING:
            continue
        if on_mistakes and violation[i] < target[i]:
            continue
        least_s, least_t = least * _sq_norm(q), least * _sq_norm(p)
        s = max(_symmetric_times(Lambda, q, a), least_s)
        t = max(_symmetric_times(Omega, p, c), least_t)
        rho = r / weight[i]
        tau[i] = violation[i] / (rho + s * t)
        down_left, down_right = shrinkage(s, t, n * rho, least_s), shrinkage(t, s, m * rho, least_t)
        if on_mistakes:
            g = tau[i] * (1 - down_left * s) * (1 - down_right * t) + down_left * down_right * score
            _move_by_mistake(W, q, p, (g, down_left, down_right), a, c, h, k)
            if keep:
                left[0, i], right[0, i], left[1, i], right[1, i] = a, h, k, c
        else:
            _add_bilinear(W, tau[i], a, c)
            if keep:
                left[0, i], right[0, i] = tau[i] * a, c
        _take_away(Lambda, down_left, a)
        _take_away(Omega, down_right, c)


def factored_block(
    state: Factored, L: Array, R: Array, wanted: Wanted, r: float, least: float, moved: Moved
) -> tuple[Array, Array]:
    """f-AROMA for a block at once, with the trajectory of the loop.

    With Y = L Λ₀, Z = R Ω₀, A = Y Lᵀ and D = Z Rᵀ, an update at t changes what later examples see
    by rank-one terms in A, D and the scores, so that the walk needs no product
    with a matrix. The vectors Λ_t q_t of those that updated solve (I + N) X = Y, N strictly lower
    with N_jk = down_k A_kj, because Λ_t = Λ₀ − Σ_{k<t} down_k x_k x_kᵀ; likewise for Ω.

    Returns the terms left_i right_iᵀ added to W.
    """
    W, Lambda, Omega = state
    tau = moved[0]
    gemm, symm, trsm, syrk = get_blas_funcs(("gemm", "symm", "trsm", "syrk"), (W,))
    Y, Z = (symm(1.0, T.T, V.T, lower=0).T for T, V in ((Lambda, L), (Omega, R)))
    A, D = (gemm(1.0, V.T, U.T, trans_a=1).T.astype(np.float64) for U, V in ((Y, L), (Z, R)))
    down = np.zeros((2, len(L)))
    floors = least * np.stack([np.einsum("ij,ij->i", V, V, dtype=np.float64) for V in (L, R)])
    scores = blocked.bilinear(W, L, R)
    _walk(scores, A, D, floors, wanted, r, W.shape, moved, down)
    rows = np.flatnonzero(tau)
    if len(rows) == 0:
        return L[rows], R[rows]
    both = []
    for T, V, C, c in ((Lambda, Y, A, down[0]), (Omega, Z, D, down[1])):
        N = np.asfortranarray((c[rows, None] * C[np.ix_(rows, rows)]).T, dtype=W.dtype)
        X = trsm(1.0, N, np.asfortranarray(V[rows]), lower=1, diag=1)
        X = np.ascontiguousarray(X)
        scaled = X * np.sqrt(c[rows])[:, None].astype(W.dtype)
        syrk(-1.0, scaled.T, beta=1.0, c=T.T, lower=0, overwrite_c=1)
        both.append(X)
    left = both[0] * tau[rows, None].astype(W.dtype)
    gemm(1.0, both[1].T, left.T, trans_b=1, beta=1.0, c=W.T, overwrite_c=1)
    return left, both[1]


@compiled(fastmath=FAST)
def _walk(
    score: NDArray[np.float64],
    A: NDArray[np.float64],
    D: NDArray[np.float64],
    floors: NDArray[np.float64],
    wanted: Wanted,
    r: float,
    shape: tuple[int, int],
    moved: Moved,
    down: NDArray[np.float64],
) -> None:
    """Run the block in coefficient space: A_ij = q_iᵀ Λ q_j and D_ij = p_iᵀ Ω p_j for j ≥ i."""
    _, _, target, weight = wanted
    tau, violation, _ = moved
    m, n = shape
    size = score.shape[0]
    for t in range(size):
        violation[t] = target[t] - score[t]
        tau[t] = 0.0
        if weight[t] == 0.0 or violation[t] <= ROUNDING:
            continue
        a, d = A[t], D[t]
        of_query, of_item = max(a[t], floors[0, t]), max(d[t], floors[1, t])
        rho = r / weight[t]
        tau[t] = violation[t] / (rho + of_query * of_item)
        down[0, t] = shrinkage(of_query, of_item, n * rho, floors[0, t])
        down[1, t] = shrinkage(of_item, of_query, m * rho, floors[1, t])
        for i in range(t + 1, size):
            score[i] += tau[t] * a[i] * d[i]
            x, y = down[0, t] * a[i], down[1, t] * d[i]
            A_i, D_i = A[i], D[i]
            for j in range(i, size):
                A_i[j] -= x * a[j]
                D_i[j] -= y * d[j]
