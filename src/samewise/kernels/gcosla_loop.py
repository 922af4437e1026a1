"""gCosLA in a block: three scores for a pair, a step of rank two, and at most one eigenpair.

A pair asks for xᵀAx, x'ᵀAx' and xᵀAx'. Inside a block they follow from those under the start state
and the inner products of the rows. A step adds c S, S = (xx'ᵀ + x'xᵀ)/2 = ppᵀ − mmᵀ with

    p = (αx + x'/α)/2,   m = (αx − x'/α)/2,   α² = ‖x'‖/‖x‖,   p·m = 0,

so that from A ⪰ 0 one of the two only adds, and the other is a subtraction with at most one
negative eigenvalue, which `cone.rank_two_step` finds.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.cone import (
    MAX_LANCZOS,
    Inverse,
    Projected,
    add_to_inverse,
    dot,
    rank_two_step,
    split,
)
from samewise.kernels.steps import ROUNDING

TINY = 1e-12
"""xᵀAx up to this part of ‖x‖² times the largest entry of A is what rounding leaves of zero."""
LOST = 1e-2
"""What part of that a score may be wrong by."""


def scores(T: Array, X: Array, Y: Array) -> NDArray[np.float64]:
    """xᵀAx, yᵀAy and xᵀAy of paired rows, A in the lower triangle T: shape (3, n)."""
    symm = get_blas_funcs("symm", (T,))
    AX, AY = (symm(1.0, T.T, V.T, lower=0).T for V in (X, Y))
    parts = ((AX, X), (AY, Y), (AX, Y))
    return np.array([np.einsum("ij,ij->i", left, right) for left, right in parts])


Three: TypeAlias = tuple[float, float, float]
Margins: TypeAlias = tuple[float, float, bool, float]
"""γ, β, whether the step is the one that the thesis prints, and the part of ‖x‖² up to which xᵀAx
is what rounding leaves of zero."""
Moves: TypeAlias = tuple[
    NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], Array, Array
]
"""a, the violation, the b it met, c, plus and minus of each pair: written by the loop."""


@compiled
def _violation(margins: Margins, y: float, b: float, scored: Three, known: bool) -> float:
    """y (b − s_A) + γ, with s_A = 0 where a length is lost."""
    xx, yy, xy = scored
    s = min(max(xy / math.sqrt(xx * yy), -1.0), 1.0) if known else 0.0
    return y * (b - s) + margins[0]


@compiled
def _step(
    margins: Margins, y: float, b: float, scored: Three, inner: Three, known: bool
) -> tuple[float, float, float]:
    """How far a pair moves: (a, the signed coefficient of S in A, the new b).

    From xᵀAx, x'ᵀAx', xᵀAx' and the same with A = I. Where a length is lost the cosine says
    nothing; frozen at it, a dissimilar pair's step tends to zero.
    """
    gamma, beta, printed, tiny = margins
    xx, yy, xy = scored
    kx, ky, kxy = inner
    if not known and (y < 0 or max(xx, yy) <= tiny * max(kx, ky)):
        return 0.0, 0.0, b
    R = 1.0 / (max(xx, yy) if y > 0 else min(xx, yy))
    if printed:
        a = (beta - y * (R * xy - b)) / (R * kx * ky)
        signed, moved = y * a, b + y * a
    else:
        a = (beta - y * (R * xy - b)) / (0.5 * R * R * (kx * ky + kxy * kxy) + 1.0)
        if a <= 0.0:
            return 0.0, 0.0, b
        signed, moved = y * a * R, b - y * a
    return a, signed, min(max(moved, -1.0 + gamma), 1.0 - gamma)


@compiled
def _update_scores(
    score: NDArray[np.float64], K: NDArray[np.float64], i: int, signed: float
) -> None:
    """What the later pairs score after A += signed · S_i."""
    n = score.shape[1]
    half = 0.5 * signed
    for j in range(i + 1, n):
        left_x, left_y = K[j, i], K[j, n + i]
        right_x, right_y = K[n + j, i], K[n + j, n + i]
        score[0, j] += signed * left_x * left_y
        score[1, j] += signed * right_x * right_y
        score[2, j] += half * (left_x * right_y + left_y * right_x)


@compiled
def _raise_scores(score: NDArray[np.float64], Z: Array, i: int, mu: float, u: Array) -> None:
    """What the later pairs score after A += μ u uᵀ."""
    n = score.shape[1]
    for j in range(i + 1, n):
        left, right = dot(Z[j], u), dot(Z[n + j], u)
        score[0, j] += mu * left * left
        score[1, j] += mu * right * right
        score[2, j] += mu * left * right


@compiled
def recursion(
    score: NDArray[np.float64],
    K: NDArray[np.float64],
    Z: Array,
    inverse: Inverse,
    wanted: tuple[NDArray[np.float64], NDArray[np.float64]],
    margins: Margins,
    b: float,
    max_updates: int,
    moves: Moves,
    projected: Projected,
) -> tuple[int, float, int, int, bool]:
    """Run the block; Z has the left rows, then the right ones, K their inner products.

    `wanted` are y and the weight of each pair. A is projected after each step if there is an
    inverse, and not if it is empty. Update i leaves A + c_i (plus plusᵀ − minus minusᵀ)
    + μ_i u_i u_iᵀ, c_i > 0. Returns (pairs done, b, searches, Lanczos steps in all, whether the
    last pair's eigenpair is yet to be found).
    """
    P, mu0, Q = inverse
    y, weight = wanted
    tau, violation, threshold, c, plus, minus = moves
    mu, U = projected
    n, tiny = len(y), margins[3]
    searches, effort, updates = 0, 0, 0
    for i in range(n):
        scored = score[0, i], score[1, i], score[2, i]
        inner = K[i, i], K[n + i, n + i], K[i, n + i]
        known = scored[0] > tiny * inner[0] and scored[1] > tiny * inner[1]
        threshold[i], violation[i] = b, _violation(margins, y[i], b, scored, known)
        # Where a block has shrunk A, scores have the rounding of what they were.
        lost = LOST * tiny * (inner[0] / scored[0] + inner[1] / scored[1]) if known else 0.0
        if weight[i] == 0.0 or violation[i] <= ROUNDING + lost:
            continue
        a, signed, b = _step(margins, y[i], b, scored, inner, known)
        if a == 0.0:
            continue
        tau[i], c[i] = a, abs(signed)
        side = 1.0 if signed > 0 else -1.0
        ratio = split(Z[i], Z[n + i], inner[0], inner[1], side, plus[i], minus[i])
        sq = dot(minus[i], minus[i])
        if len(P) and sq > 1e-28 * (inner[0] + inner[1]):
            # Rayleigh: −μ ≤ the quotient of A + c (ggᵀ − hhᵀ) at h, which is orthogonal to g.
            at_h = 0.25 * (ratio * scored[0] + scored[1] / ratio - 2.0 * side * scored[2])
            guess = c[i] * sq - at_h / sq
            steps, mu[i] = rank_two_step(P, mu0, c[i], plus[i], minus[i], guess, Q, U[i])
            searches += 1
            if steps < 0:
                mu[i] = 0.0
                return i + 1, b, searches, effort + MAX_LANCZOS, True
            effort += steps
        elif len(P):
            add_to_inverse(P, c[i], plus[i], Q[MAX_LANCZOS + 2])
        _update_scores(score, K, i, signed)
        if mu[i] > 0.0:
            _raise_scores(score, Z, i, mu[i], U[i])
        updates += 1
        if updates == max_updates:
            return i + 1, b, searches, effort, False
    return n, b, searches, effort, False
