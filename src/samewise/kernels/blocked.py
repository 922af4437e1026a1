"""A block of examples at once, at the speed of matrix products, with the trajectory of the loop.

Inside a block with start state M₀ the scores obey

    v_jᵀ M_j v_j = v_jᵀ M₀ v_j + Σ_{i<j} τ_i sign_i (v_i·v_j)²,

so one product with M₀, one Gram matrix, a scalar recursion and one update of rank B do the work
of B passes over the matrix. The symmetric matrix lives in the lower triangle
of a C-ordered array T, so that T.T is what Fortran's BLAS calls an upper triangle. All products go
through SciPy's BLAS, which is also the one numba calls: two libraries would mean two thread pools.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import get_blas_funcs

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST
from samewise.kernels.steps import Moved, StepTuple, Wanted, step_size


def quadratic(T: Array, V: Array) -> NDArray[np.float64]:
    """v_iᵀ M v_i for the rows of V: half the flops of V M, by the triangle."""
    trmm = get_blas_funcs("trmm", (T,))
    out = np.empty(len(V))
    _row_products(trmm(1.0, T.T, V.T, lower=0).T, V, np.ascontiguousarray(np.diagonal(T)), out)
    return out


@compiled(fastmath=FAST)
def _row_products(Y: Array, V: Array, diagonal: Array, out: NDArray[np.float64]) -> None:
    """out_i = Σ_k v_ik (2 y_ik − M_kk v_ik): the triangle counts twice, its diagonal once."""
    for i in range(V.shape[0]):
        y, v = Y[i], V[i]
        total = 0.0
        for k in range(v.shape[0]):
            total += v[k] * (2 * y[k] - diagonal[k] * v[k])
        out[i] = total


def squared_gram(V: Array) -> NDArray[np.float64]:
    """K_ij = (v_i·v_j)² for j ≥ i; what stands below the diagonal is not meant to be read."""
    if not V.size:
        # BLAS takes no rows without columns, as those of a kernel that is constant.
        return np.zeros((len(V), len(V)))
    syrk = get_blas_funcs("syrk", (V,))
    K: NDArray[np.float64] = syrk(1.0, V.T, trans=1, lower=1).T.astype(np.float64)
    return np.multiply(K, K, out=K)


def add(T: Array, V: Array, c: NDArray[np.float64]) -> None:
    """M += Σ c_i v_i v_iᵀ in place, by one symmetric update for each sign."""
    syrk = get_blas_funcs("syrk", (T,))
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(sign * c > 0)
        if len(rows) and T.size:
            scaled = V[rows] * np.sqrt(np.abs(c[rows]))[:, None].astype(T.dtype)
            syrk(sign, scaled.T, beta=1.0, c=T.T, lower=0, overwrite_c=1)


def bilinear(W: Array, L: Array, R: Array) -> NDArray[np.float64]:
    """l_iᵀ W r_i for the rows of L and R."""
    gemm = get_blas_funcs("gemm", (W,))
    # Room for the product: gemm would fill its own with zeros first.
    LW = np.empty_like(R, dtype=W.dtype, order="C")
    gemm(1.0, W.T, L.T, beta=0.0, c=LW.T, overwrite_c=1)
    return np.einsum("ij,ij->i", LW, R, dtype=np.float64)


def product_gram(L: Array, R: Array) -> NDArray[np.float64]:
    """K_ij = (l_i·l_j)(r_i·r_j) for j ≥ i."""
    syrk = get_blas_funcs("syrk", (L,))
    K: NDArray[np.float64] = syrk(1.0, L.T, trans=1, lower=1).T.astype(np.float64, copy=False)
    return np.multiply(K, syrk(1.0, R.T, trans=1, lower=1).T, out=K)


def add_bilinear(W: Array, L: Array, R: Array, c: NDArray[np.float64]) -> None:
    """W += Σ c_i l_i r_iᵀ in place."""
    rows = np.flatnonzero(c)
    if len(rows):
        gemm = get_blas_funcs("gemm", (W,))
        scaled = L[rows]
        scaled *= c[rows, None].astype(W.dtype)
        gemm(1.0, R[rows].T, scaled.T, trans_b=1, beta=1.0, c=W.T, overwrite_c=1)


@compiled
def recursion(
    score: NDArray[np.float64],
    K: NDArray[np.float64],
    wanted: Wanted,
    step: StepTuple,
    b: float,
    floor: float,
    max_updates: int,
    moved: Moved,
) -> tuple[int, float]:
    """Run the block in coefficient space; the same promise as the loops of `rank_one`.

    `score` holds the scores under the start state and is used up. K_ij is the inner product of the
    unsigned directions i and j ≥ i.
    """
    sign, offset, target, weight = wanted
    tau, violation, threshold = moved
    n = score.shape[0]
    updates = 0
    for i in range(n):
        threshold[i] = b
        p = target[i] - sign[i] * score[i] - offset[i] * b
        violation[i] = p
        t = step_size(p, K[i, i] + offset[i] * offset[i], weight[i], step)
        tau[i] = t
        if t == 0.0:
            continue
        c = t * sign[i]
        for j in range(i + 1, n):
            score[j] += c * K[i, j]
        b = max(b + t * offset[i], floor)
        updates += 1
        if updates == max_updates:
            return i + 1, b
    return n, b
