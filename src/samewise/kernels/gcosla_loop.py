"""gCosLA in a block: three scores for a pair, a step of rank two, and at most one eigenpair.

A pair asks for xᵀAx, x'ᵀAx' and xᵀAx'. Inside a block they follow from those under the start state
and the inner products of the rows. A step adds c S, S = (xx'ᵀ + x'xᵀ)/2 = ppᵀ − mmᵀ with

    p = (αx + x'/α)/2,   m = (αx − x'/α)/2,   α² = ‖x'‖/‖x‖,   p·m = 0,

so that from A ⪰ 0 one of the two only adds, and the other is a subtraction with at most one
negative eigenvalue, which `cone.rank_two_step` finds.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs

from samewise._typing import Array
from samewise.kernels.cone import MAX_LANCZOS, dot, rank_one, rank_two_step, split, symv
from samewise.kernels.steps import ROUNDING

__all__ = ["recursion", "scores"]

TINY = 1e-12
"""xᵀAx up to this part of ‖x‖² times the largest entry of A is what rounding leaves of zero."""


def scores(T: Array, X: Array, Y: Array) -> NDArray[np.float64]:
    """xᵀAx, yᵀAy and xᵀAy of paired rows, A in the lower triangle T: shape (3, n)."""
    symm = get_blas_funcs("symm", (T,))
    AX, AY = (symm(1.0, T.T, V.T, lower=0).T for V in (X, Y))
    parts = ((AX, X), (AY, Y), (AX, Y))
    return np.array([np.einsum("ij,ij->i", left, right) for left, right in parts])


@njit(cache=True)
def recursion(
    score: NDArray[np.float64],
    K: NDArray[np.float64],
    Z: Array,
    P: Array,
    mu0: float,
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    margins: tuple[float, float],
    printed: bool,
    largest: float,
    b: float,
    project: bool,
    max_updates: int,
    tau: NDArray[np.float64],
    c: NDArray[np.float64],
    violation: NDArray[np.float64],
    threshold: NDArray[np.float64],
    plus: Array,
    minus: Array,
    mu: NDArray[np.float64],
    U: Array,
    Q: Array,
) -> tuple[int, float, int, int, bool]:
    """Run the block; Z has the left rows, then the right ones, K their inner products.

    Update i leaves A + c_i (plus plusᵀ − minus minusᵀ) + μ_i u_i u_iᵀ, c_i > 0. Returns (pairs
    done, b, searches, Lanczos steps in all, whether the last pair's eigenpair is yet to be found).
    """
    gamma, beta = margins
    n = len(y)
    Pg = Q[MAX_LANCZOS + 2]
    searches, effort, updates = 0, 0, 0
    for i in range(n):
        threshold[i] = b
        tau[i], c[i], mu[i] = 0.0, 0.0, 0.0
        xx, yy, xy = score[0, i], score[1, i], score[2, i]
        kx, ky, kxy = K[i, i], K[n + i, n + i], K[i, n + i]
        known = xx > TINY * largest * kx and yy > TINY * largest * ky
        s = min(max(xy / math.sqrt(xx * yy), -1.0), 1.0) if known else 0.0
        violation[i] = y[i] * (b - s) + gamma
        if weight[i] == 0.0 or violation[i] <= ROUNDING:
            continue
        # Where a length is lost the cosine says nothing; frozen at it, a dissimilar pair's step
        # tends to zero.
        N = max(xx, yy) if y[i] > 0 else min(xx, yy)
        if not known and (y[i] < 0 or N <= TINY * largest * max(kx, ky)):
            continue
        R = 1.0 / N
        if printed:
            a = (beta - y[i] * (R * xy - b)) / (R * kx * ky)
            signed = y[i] * a
            b += y[i] * a
        else:
            a = (beta - y[i] * (R * xy - b)) / (0.5 * R * R * (kx * ky + kxy * kxy) + 1.0)
            if a <= 0.0:
                continue
            signed = y[i] * a * R
            b -= y[i] * a
        b = min(max(b, -1.0 + gamma), 1.0 - gamma)
        if a == 0.0:
            continue
        tau[i], c[i] = a, abs(signed)
        side = 1.0 if signed > 0 else -1.0
        alpha = split(Z[i], Z[n + i], kx, ky, side, plus[i], minus[i])
        sq = dot(minus[i], minus[i])
        if project and sq > 1e-28 * (kx + ky):
            # Rayleigh: −μ ≤ the quotient of A + c (ggᵀ − hhᵀ) at h, which is orthogonal to g.
            inner = 0.25 * (alpha * alpha * xx + yy / (alpha * alpha) - 2.0 * side * xy)
            guess = c[i] * sq - inner / sq
            steps, found = rank_two_step(P, mu0, c[i], plus[i], minus[i], guess, Q, U[i])
            searches += 1
            if steps < 0:
                return i + 1, b, searches, effort + MAX_LANCZOS, True
            effort += steps
            mu[i] = found
        elif project:
            symv(P, plus[i], Pg)
            rank_one(P, -c[i] / (1.0 + c[i] * dot(plus[i], Pg)), Pg)
        half = 0.5 * signed
        for j in range(i + 1, n):
            left_x, left_y = K[j, i], K[j, n + i]
            right_x, right_y = K[n + j, i], K[n + j, n + i]
            score[0, j] += signed * left_x * left_y
            score[1, j] += signed * right_x * right_y
            score[2, j] += half * (left_x * right_y + left_y * right_x)
        if mu[i] > 0.0:
            for j in range(i + 1, n):
                left, right = dot(Z[j], U[i]), dot(Z[n + j], U[i])
                score[0, j] += mu[i] * left * left
                score[1, j] += mu[i] * right * right
                score[2, j] += mu[i] * left * right
        updates += 1
        if updates == max_updates:
            return i + 1, b, searches, effort, False
    return n, b, searches, effort, False
