"""Steps that are nearest in the LogDet divergence, one pair at a time.

Both loops move A by A⁻¹ ← A⁻¹ + β v vᵀ, which by Sherman and Morrison is

    A ← A − β (Av)(Av)ᵀ / (1 + β vᵀAv),   so that   vᵀAv ← vᵀAv / (1 + β vᵀAv).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise.kernels.compiling import compiled
from samewise.kernels.steps import ROUNDING

Vector = NDArray[np.float64]

BLOCK = 16
"""Pairs after which A is moved: as many steps of rank one, made by one product."""


@compiled
def _product(A: Vector, v: Vector, w: Vector) -> float:
    """w = Av; returns vᵀAv."""
    np.dot(A, v, w)
    return np.dot(v, w)


@compiled
def _add(A: Vector, w: Vector, c: float) -> None:
    """A += c w wᵀ."""
    for i in range(w.shape[0]):
        f = c * w[i]
        row = A[i]
        for j in range(w.shape[0]):
            row[j] += f * w[j]


@compiled
def cycle(
    A: Vector, V: Vector, delta: Vector, gamma: Vector, duals: Vector, bounds: Vector
) -> None:
    """One cycle of ITML's Bregman projections over all pairs, with slack.

    Pair i has the constraint δ_i v_iᵀAv_i ≤ δ_i ξ_i. The projection on equality moves A and ξ_i
    together, until vᵀAv = ξ; what was moved before is taken back no further than λ_i = 0.

    Parameters
    ----------
    A : array of shape (d, d)
        Changed in place, as are the next to last and the last.
    V : array of shape (n, d)
        Differences, none of them zero.
    delta : array of shape (n,)
        +1 for similar, −1 for dissimilar.
    gamma : array of shape (n,)
        The cost of slack.
    duals, bounds : arrays of shape (n,)
        λ and ξ.
    """
    d = V.shape[1]
    c, scaled = np.empty(BLOCK), np.empty((BLOCK, d))
    for start in range(0, V.shape[0], BLOCK):
        U = V[start : start + BLOCK]
        n = U.shape[0]
        # Av and vᵀAv′ of a block of pairs; those yet to come follow A.
        W = np.dot(U, A)
        G = np.dot(W, U.T)
        for i in range(n):
            k, p = start + i, G[i, i]
            c[i] = 0.0
            if not p > 0.0:
                continue
            share = gamma[k] / (gamma[k] + 1.0)
            alpha = min(duals[k], share * delta[k] * (1.0 / p - 1.0 / bounds[k]))
            if alpha == 0.0:
                continue
            bounds[k] = 1.0 / (1.0 / bounds[k] + delta[k] * alpha / gamma[k])
            duals[k] -= alpha
            beta = -delta[k] * alpha
            c[i] = -beta / (1.0 + beta * p)
            w = W[i]
            for j in range(i + 1, n):
                f = c[i] * G[i, j]
                row = W[j]
                for m in range(d):
                    row[m] += f * w[m]
                for m in range(j, n):
                    G[j, m] += f * G[i, m]
        for i in range(n):
            for m in range(d):
                scaled[i, m] = c[i] * W[i, m]
        A += np.dot(scaled[:n].T, W)


@compiled
def online(
    A: Vector,
    V: Vector,
    y: Vector,
    b: float,
    margin: Vector,
    rate: Vector,
    beta: Vector,
    violation: Vector,
    W: Vector,
    c: Vector,
) -> None:
    """LEGO's steps: nearest to A, with η/2 times the squared distance to the target.

    The target of pair i is t = b − y_i margin_i. Where it is not met, the distance p becomes
    the positive root q of η p q² + (1 − η t p) q − p = 0, and β = η (q − t).

    Parameters
    ----------
    A : array of shape (d, d)
        Changed in place.
    V : array of shape (n, d)
    y, margin, rate : arrays of shape (n,)
        ±1, the margin and η of each pair.
    b : float
    beta, violation : arrays of shape (n,)
        Written: β, 0 where the target is met, and y (p − t).
    W : array of shape (n, d) or (1, d)
        Written: what moved A, Av before the step; in one row, that of the last pair.
    c : array of shape (n,)
        Written: step i was A += c_i w_i w_iᵀ.
    """
    for i in range(V.shape[0]):
        w = W[i if i < W.shape[0] else 0]
        p = _product(A, V[i], w)
        t = b - y[i] * margin[i]
        violation[i] = y[i] * (p - t)
        eta = rate[i]
        if violation[i] <= ROUNDING * t or eta == 0.0 or not p > 0.0:
            continue
        a = eta * t * p - 1.0
        root = np.sqrt(a * a + 4.0 * eta * p * p)
        # Of the two ways to write the root, the one without cancellation.
        q = 2.0 * p / (root - a) if a < 0.0 else (a + root) / (2.0 * eta * p)
        # (1/q − 1/p) = β, which is exact also where η is large and q − t is rounding.
        beta[i] = 1.0 / q - 1.0 / p
        c[i] = -beta[i] / (1.0 + beta[i] * p)
        _add(A, w, c[i])
