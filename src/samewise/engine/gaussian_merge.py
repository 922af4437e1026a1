"""One Gaussian of several that were moved from the same start by different examples.

Each is the start times what its examples say; the product of all is the start times what all of
them say. Precisions add, and so do precisions times means: with the start N(W₀, P₀⁻¹) and
N(W_s, P_s⁻¹) of the stream s,

    P = P₀ + Σ_s (P_s − P₀),   P (W − W₀) = Σ_s P_s (W_s − W₀).

For one stream that is the stream's own Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.engine.gaussian_mover import DiagonalGaussian, FactoredGaussian
from samewise.engine.stores import Symmetric

LEAST = 1e-12
"""A variance below this part of the largest counts as this."""

SOLVED = 1e-10
"""The residual at which the mean counts as solved for, relative to the right side."""

MOST_STEPS = 500

Matrix64 = NDArray[np.float64]


def merged_diagonal(
    start: DiagonalGaussian, streams: Sequence[DiagonalGaussian]
) -> DiagonalGaussian:
    """Entry by entry: 1/Σ = 1/Σ₀ + Σ_s (1/Σ_s − 1/Σ₀)."""
    W0, known = _wide(start.both.real), 1 / _wide(start.variances)
    precision, moved = known.copy(), np.zeros_like(W0)
    for stream in streams:
        own = 1 / _wide(stream.variances)
        precision += own - known
        moved += own * (_wide(stream.both.real) - W0)
    result = deepcopy(start)
    result.both.real[...] = W0 + moved / precision
    result.variances[...] = np.minimum(1 / precision, start.variances)
    return result


def merged_factored(
    start: FactoredGaussian, streams: Sequence[FactoredGaussian]
) -> FactoredGaussian:
    """Λ⁻¹ and Ω⁻¹ add as precisions do, and the mean is solved for by conjugate gradients.

    Σ_s Λ_s⁻¹ D Ω_s⁻¹ − (S − 1) Λ₀⁻¹ D Ω₀⁻¹ = Σ_s Λ_s⁻¹ (W_s − W₀) Ω_s⁻¹ with D = W − W₀ is
    positive definite, because covariances only shrink. The product of the Gaussians has no
    covariance of the form Λ ⊗ Ω; this one is the paper's own, of which each example adds to both
    sides.
    """
    W0 = _wide(start.mean.array)
    left0, right0 = _precision(start.left), _precision(start.right)
    lefts = [_precision(stream.left) for stream in streams]
    rights = [_precision(stream.right) for stream in streams]
    extra = len(streams) - 1
    Lambda = np.linalg.inv(sum(lefts) - extra * left0)
    Omega = np.linalg.inv(sum(rights) - extra * right0)

    def applied(D: Matrix64) -> Matrix64:
        both = zip(lefts, rights, strict=True)
        total: Matrix64 = sum(A @ D @ B for A, B in both) - extra * (left0 @ D @ right0)
        return total

    target: Any = sum(
        A @ (_wide(stream.mean.array) - W0) @ B
        for stream, A, B in zip(streams, lefts, rights, strict=True)
    )
    near = _near_inverse((left0, right0), (sum(lefts), sum(rights)), len(streams))
    D = _solved(applied, target, near)
    result, dtype = deepcopy(start), start.mean.dtype
    result.mean.array[...] = W0 + D
    result.left, result.right = (
        Symmetric(np.tril((C + C.T) / 2).astype(dtype)) for C in (Lambda, Omega)
    )
    return result


def _wide(values: Array) -> Matrix64:
    return values.astype(np.float64)


def _precision(C: Symmetric) -> Matrix64:
    matrix = C.matrix.astype(np.float64)
    try:
        inverse: Matrix64 = scipy.linalg.cho_solve(
            scipy.linalg.cho_factor(matrix), np.eye(len(matrix))
        )
    except np.linalg.LinAlgError:
        # Rounding has made a variance 0 or less.
        values, axes = np.linalg.eigh(matrix)
        inverse = (axes / np.maximum(values, LEAST * values[-1])) @ axes.T
    return inverse


def _near_inverse(
    start: tuple[Matrix64, Matrix64], totals: tuple[Any, Any], n: int
) -> Callable[[Matrix64], Matrix64]:
    """What would solve for D if all streams had learned alike.

    With the precisions A + a and B + b of each side of all n streams, of which A and B are the
    start's, the operator is then D ↦ A D B + n a D B + A D n b + n a D b. In bases in which both A
    and n a are diagonal, and both B and n b, it only divides.
    """
    bases, values = [], []
    for P0, total in zip(start, totals, strict=True):
        learned, basis = scipy.linalg.eigh(total - n * P0, P0)
        bases.append(basis)
        values.append(np.maximum(learned, 0.0))
    (U, V), (a, b) = bases, values
    parts = 1 + a[:, None] + b + a[:, None] * b / n
    return lambda R: U @ ((U.T @ R @ V) / parts) @ V.T


def _solved(
    applied: Callable[[Matrix64], Matrix64],
    target: Matrix64,
    near_inverse: Callable[[Matrix64], Matrix64],
) -> Matrix64:
    """D with applied(D) = target, by conjugate gradients with a preconditioner."""
    D, R = np.zeros_like(target), target.copy()
    Z = near_inverse(R)
    P, rz = Z, float(np.vdot(R, Z))
    enough = SOLVED * float(np.linalg.norm(target))
    for _ in range(MOST_STEPS):
        if float(np.linalg.norm(R)) <= enough:
            break
        AP = applied(P)
        alpha = rz / float(np.vdot(P, AP))
        D = D + alpha * P
        R = R - alpha * AP
        Z = near_inverse(R)
        before, rz = rz, float(np.vdot(R, Z))
        P = Z + (rz / before) * P
    return D
