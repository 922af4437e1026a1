"""Keeping M positive semi-definite at every step, without eigendecompositions.

From M ⪰ 0 the matrix M − τ v vᵀ has at most one negative eigenvalue −μ (interlacing), and

    1 = τ g(μ),   g(μ) = vᵀ (M + μI)⁻¹ v,   u ∝ (M + μI)⁻¹ v,

so the projection on the cone is M − τ v vᵀ + μ u uᵀ. `recursion` runs a block like its namesake in
`blocked`, and finds (μ, u) of every subtracting step by Lanczos on the kept inverse
P = (M + μ₀I)⁻¹, started at v: with δ = μ − μ₀ and the tridiagonal T of the Krylov space,

    h = (I + δT)⁻¹ e₁,   g = ‖v‖² (Th)₁,   x = (M + μI)⁻¹v ≈ ‖v‖ (Q T h + β h_k q_{k+1}),

and the residual of the eigenvalue equation is exactly ‖v‖ |δ β h_k| / ‖x‖. P follows M by the
Sherman–Morrison formula. P is symmetric and lives in the lower triangle of a C-ordered array.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST
from samewise.kernels.steps import Moved, StepTuple, Wanted, step_size

MAX_LANCZOS = 192
"""Dimension of the Krylov space at which the search gives up: 20 are usual, more where μ and μ₀ are
far apart, and from here on a factorization is cheaper."""

PRECISION = 1e-12
"""Wanted residual of the eigenvalue equation, and size below which a negative eigenvalue counts as
zero, both relative to τ‖v‖², the norm of the step."""


Inverse: TypeAlias = tuple[Array, float, Array]
"""P = (M + μ₀I)⁻¹, which moves along, μ₀, and room for MAX_LANCZOS + 3 vectors."""
Projected: TypeAlias = tuple[NDArray[np.float64], Array]
"""μ and u of each example, μ = 0 where nothing was projected: written by the loops."""


@compiled(fastmath=FAST)
def symv(P: Array, x: Array, y: Array) -> None:
    """y = P x, reading each entry of the triangle once; two rows at a time."""
    d = x.shape[0]
    i = 0
    if d % 2 == 1:
        y[0] = P[0, 0] * x[0]
        i = 1
    while i < d:
        x0, x1 = x[i], x[i + 1]
        row0, row1 = P[i], P[i + 1]
        a0 = 0.0
        a1 = 0.0
        for j in range(i):
            p0, p1, xj = row0[j], row1[j], x[j]
            a0 += p0 * xj
            a1 += p1 * xj
            y[j] += p0 * x0 + p1 * x1
        corner = row1[i]
        y[i] = a0 + row0[i] * x0 + corner * x1
        y[i + 1] = a1 + corner * x0 + row1[i + 1] * x1
        i += 2


@compiled(fastmath=FAST)
def dot(x: Array, y: Array) -> float:
    """xᵀy."""
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * y[k]
    return total


@compiled(fastmath=FAST)
def axpy(a: float, x: Array, y: Array) -> None:
    """y += a x."""
    for k in range(x.shape[0]):
        y[k] += a * x[k]


@compiled(fastmath=FAST)
def rank_one(P: Array, a: float, x: Array) -> None:
    """P += a x xᵀ on the triangle."""
    for i in range(x.shape[0]):
        f = a * x[i]
        row = P[i]
        for j in range(i + 1):
            row[j] += f * x[j]


@compiled(fastmath=FAST)
def rank_two(P: Array, a: float, x: Array, c: float, z: Array) -> None:
    """P += a x xᵀ + c z zᵀ on the triangle, in one pass."""
    for i in range(x.shape[0]):
        f, g = a * x[i], c * z[i]
        row = P[i]
        for j in range(i + 1):
            row[j] += f * x[j] + g * z[j]


@compiled
def _shifted(
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    k: int,
    delta: float,
    h: NDArray[np.float64],
    work: NDArray[np.float64],
) -> tuple[float, float]:
    """h = (I + δT)⁻¹ e₁ by the Thomas algorithm; returns (Th)₁ and ‖Th‖².

    I + δT is positive definite for every μ > 0, so no pivoting is needed. Both are NaN where
    rounding has made it singular.
    """
    pivot = 1.0 + delta * alpha[0]
    if pivot == 0.0:
        return math.nan, math.nan
    work[0] = 1.0 / pivot
    h[0] = work[0]
    for i in range(1, k):
        off = delta * beta[i - 1]
        pivot = 1.0 + delta * alpha[i] - off * off * work[i - 1]
        if pivot == 0.0:
            return math.nan, math.nan
        work[i] = 1.0 / pivot
        h[i] = -off * h[i - 1] * work[i]
    for i in range(k - 2, -1, -1):
        h[i] -= delta * beta[i] * work[i] * h[i + 1]
    first = 0.0
    norm = 0.0
    for i in range(k):
        y = alpha[i] * h[i]
        if i > 0:
            y += beta[i - 1] * h[i - 1]
        if i + 1 < k:
            y += beta[i] * h[i + 1]
        if i == 0:
            first = y
        norm += y * y
    return first, norm


@compiled
def _extend(Q: Array, k: int, alpha: NDArray[np.float64], beta: NDArray[np.float64]) -> bool:
    """Make a Lanczos vector of Q[k + 1] = P Q[k]; whether the space is complete without it."""
    d = Q.shape[1]
    w = Q[k + 1]
    alpha[k] = dot(Q[k], w)
    axpy(-alpha[k], Q[k], w)
    if k > 0:
        axpy(-beta[k - 1], Q[k - 1], w)
    # Once more against all: the residual below is exact only in an orthonormal basis.
    for j in range(k + 1):
        axpy(-dot(Q[j], w), Q[j], w)
    beta[k] = math.sqrt(dot(w, w))
    exact = beta[k] <= 1e-14 * alpha[0] or k + 1 == d
    if exact:
        beta[k] = 0.0
        w[:] = 0.0
    else:
        for r in range(d):
            w[r] /= beta[k]
    return exact


@compiled
def _eigenvector(
    Q: Array,
    k: int,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    h: NDArray[np.float64],
    u: Array,
) -> None:
    """u ∝ Q T h + β h_k q_{k+1}, of length 1."""
    u[:] = 0.0
    for i in range(k):
        y = alpha[i] * h[i]
        if i > 0:
            y += beta[i - 1] * h[i - 1]
        if i + 1 < k:
            y += beta[i] * h[i + 1]
        axpy(y, Q[i], u)
    axpy(beta[k - 1] * h[k - 1], Q[k], u)
    length = math.sqrt(dot(u, u))
    for r in range(u.shape[0]):
        u[r] /= length


@compiled
def negative_eigenpair(
    P: Array,
    mu0: float,
    v: Array,
    sq: float,
    tau: float,
    guess: float,
    Q: Array,
    u: Array,
) -> tuple[int, float]:
    """The negative eigenvalue −μ of M − τ v vᵀ and its eigenvector u, from P = (M + μ₀I)⁻¹.

    Returns (number of Lanczos steps, μ); μ = 0 where the matrix is proved to have no eigenvalue
    below −PRECISION τ‖v‖²; steps = −1 where the Krylov space did not suffice.
    `guess` is a lower bound of μ. Q[0], Q[1] hold the first Lanczos vectors afterwards, and
    Q[MAX_LANCZOS + 1] holds P v.
    """
    d = v.shape[0]
    alpha, beta = np.empty(MAX_LANCZOS), np.empty(MAX_LANCZOS)
    h, work = np.empty(MAX_LANCZOS), np.empty(MAX_LANCZOS)
    scale = tau * sq
    lowest = PRECISION * scale
    mu = max(guess, lowest)
    norm_v = math.sqrt(sq)
    for r in range(d):
        Q[0, r] = v[r] / norm_v
    for k in range(1, min(MAX_LANCZOS, d) + 1):
        symv(P, Q[k - 1], Q[k])
        if k == 1:
            for r in range(d):
                Q[MAX_LANCZOS + 1, r] = norm_v * Q[1, r]
        exact = _extend(Q, k - 1, alpha, beta)
        # Roots grow with k, so the last one is a lower bound, from which Newton on the concave
        # 1/g − τ ascends without overshooting. One step while the space is still too small.
        settled = False
        for _ in range(50):
            first, norm = _shifted(alpha, beta, k, mu - mu0, h, work)
            if first == 0.0 or not norm > 0.0:
                return -1, mu
            tail = beta[k - 1] * h[k - 1]
            residual = abs(mu - mu0) * abs(tail) * norm_v
            size = math.sqrt(sq * (norm + tail * tail))
            g = sq * first
            change = (tau - 1.0 / g) * g * g / (sq * norm)
            settled = abs(change) <= 1e-13 * mu + 1e-3 * lowest
            if settled or (mu == lowest and change <= 0.0):
                break
            mu = max(mu + change, lowest)
            if not exact and residual > 100.0 * PRECISION * scale * size:
                break
        if mu == lowest:
            # vᵀ(M+μ)⁻¹v ≤ the Gauss value − slack + residual²/μ: a proof, as M + μI ⪰ μI.
            slack = sq * (mu - mu0) * tail * tail
            if tau * (g - slack + residual * residual / mu) <= 1.0:
                return k, 0.0
        elif settled and residual <= PRECISION * scale * size:
            _eigenvector(Q, k, alpha, beta, h, u)
            return k, mu
        if exact:
            break
    return -1, mu


@compiled
def split(x: Array, y: Array, xx: float, yy: float, side: float, g: Array, h: Array) -> float:
    """±(xyᵀ + yxᵀ)/2 = ggᵀ − hhᵀ with g·h = 0, from xx = ‖x‖² and yy = ‖y‖², both positive.

    g, h = (αx ± y/α)/2, α² = ‖y‖/‖x‖; for side −1 in the other order. Returns α².
    """
    alpha = math.sqrt(math.sqrt(yy / xx))
    for r in range(x.shape[0]):
        g[r] = 0.5 * (alpha * x[r] + side * y[r] / alpha)
        h[r] = 0.5 * (alpha * x[r] - side * y[r] / alpha)
    return alpha * alpha


@compiled
def _follow(P: Array, mu: float, u: Array, c: float, v: Array, Pv: Array, Pu: Array) -> bool:
    """P for M + μ u uᵀ + c v vᵀ, from Pv = P v, which is used up as Pu is.

    First μ u uᵀ, then c v vᵀ: the other order may pass through a singular matrix. Returns whether
    it could be done: both ratios of determinants are positive, unless rounding has decided them.
    """
    if mu == 0.0:
        ratio = 1.0 + c * dot(v, Pv)
        if ratio > 0.0:
            rank_one(P, -c / ratio, Pv)
        return ratio > 0.0
    symv(P, u, Pu)
    ratio = 1.0 + mu * dot(u, Pu)
    if not ratio > 0.0:
        return False
    up = -mu / ratio
    axpy(up * dot(Pu, v), Pu, Pv)
    ratio = 1.0 + c * dot(v, Pv)
    if ratio > 0.0:
        rank_two(P, up, Pu, -c / ratio, Pv)
    return ratio > 0.0


@compiled
def add_to_inverse(P: Array, c: float, v: Array, Pv: Array) -> None:
    """P for M + c v vᵀ; P v is written."""
    symv(P, v, Pv)
    rank_one(P, -c / (1.0 + c * dot(v, Pv)), Pv)


@compiled
def rank_two_step(
    P: Array, mu0: float, c: float, g: Array, h: Array, guess: float, Q: Array, u: Array
) -> tuple[int, float]:
    """The negative eigenvalue −μ of M + c (ggᵀ − hhᵀ) and its eigenvector u, as for one vector.

    c > 0. P follows to M + c (ggᵀ − hhᵀ) + μ uuᵀ, unless the search fails (steps = −1).
    """
    Ph, other = Q[MAX_LANCZOS + 1], Q[MAX_LANCZOS + 2]
    add_to_inverse(P, c, g, other)
    steps, mu = negative_eigenpair(P, mu0, h, dot(h, h), c, guess, Q, u)
    if steps >= 0 and not _follow(P, mu, u, -c, h, Ph, other):
        steps = -1
    return steps, mu


@compiled
def _raise_scores(score: NDArray[np.float64], V: Array, i: int, mu: float, u: Array) -> None:
    """What the later examples score after M += μ u uᵀ."""
    for j in range(i + 1, V.shape[0]):
        along = dot(V[j], u)
        score[j] += mu * along * along


@compiled
def recursion(
    score: NDArray[np.float64],
    K: NDArray[np.float64],
    V: Array,
    inverse: Inverse,
    wanted: Wanted,
    step: StepTuple,
    b: float,
    floor: float,
    moved: Moved,
    projected: Projected,
) -> tuple[int, float, int, int]:
    """Run the block with a projection after every subtracting step; P moves along.

    Step i leaves M + τ_i sign_i v_i v_iᵀ + μ_i u_i u_iᵀ. Returns (examples done, b, number of
    searches, Lanczos steps in all). An example whose search failed, or which P cannot follow, ends
    the run before it: the caller settles it by other means.
    """
    P, mu0, Q = inverse
    sign, offset, target, weight = wanted
    tau, violation, threshold = moved
    mu, U = projected
    n = V.shape[0]
    searches, effort = 0, 0
    Pv = Q[MAX_LANCZOS + 1]
    for i in range(n):
        v = V[i]
        p = target[i] - sign[i] * score[i] - offset[i] * b
        threshold[i], violation[i], mu[i] = b, p, 0.0
        tau[i] = step_size(p, K[i, i] + offset[i] * offset[i], weight[i], step)
        if tau[i] == 0.0:
            continue
        c = tau[i] * sign[i]
        sq = math.sqrt(K[i, i])
        if sq == 0.0:
            b = max(b + tau[i] * offset[i], floor)
            continue
        if c < 0.0:
            # Rayleigh: −μ ≤ the quotient of M − τ v vᵀ at v.
            guess = -c * sq - score[i] / sq
            steps, mu[i] = negative_eigenpair(P, mu0, v, sq, -c, guess, Q, U[i])
            searches += 1
        else:
            steps = 0
            symv(P, v, Pv)
        if steps < 0 or not _follow(P, mu[i], U[i], c, v, Pv, Q[MAX_LANCZOS + 2]):
            tau[i] = mu[i] = 0.0
            return i, b, searches, effort + MAX_LANCZOS
        effort += steps
        if mu[i] > 0.0:
            _raise_scores(score, V, i, mu[i], U[i])
        for j in range(i + 1, n):
            score[j] += c * K[i, j]
        b = max(b + tau[i] * offset[i], floor)
    return n, b, searches, effort
