"""One example at a time, compiled: for small dimensions, short blocks and sparse rows.

The symmetric matrix M lives in the lower triangle of a C-ordered array; what stands above the
diagonal is not read. Every function walks its examples in order,

    p_i = target_i − (sign_i v_iᵀ M v_i + offset_i b),
    M += τ_i sign_i v_i v_iᵀ,   b += τ_i offset_i,

writes τ, p and the b each example met, and stops after `max_updates` updates. It returns the number
of examples done and the new b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.steps import Moved, Rows, StepTuple, Wanted, step_size

# Sums may be reordered (that is what lets them use vector registers); NaN and infinity keep their
# meaning, although input is checked before it gets here.
FAST = {"reassoc", "contract", "nsz", "arcp"}


@compiled
def gather_differences(X: Array, left: NDArray[Any], right: NDArray[Any], out: Array) -> None:
    """out[i] = X[left[i]] − X[right[i]]."""
    d = X.shape[1]
    for i in range(out.shape[0]):
        a, c = left[i], right[i]
        for k in range(d):
            out[i, k] = X[a, k] - X[c, k]


@compiled
def gather_triplets(
    X: Array,
    items: Array,
    anchor: NDArray[Any],
    positive: NDArray[Any],
    negative: NDArray[Any],
    left: Array,
    right: Array,
    weight: NDArray[np.float64],
) -> None:
    """left[i] = X[anchor_i], right[i] = items[positive_i] − items[negative_i].

    Where one of them is zero, so is the weight.
    """
    for i in range(left.shape[0]):
        a, b, c = anchor[i], positive[i], negative[i]
        any_left = any_right = False
        for k in range(left.shape[1]):
            left[i, k] = X[a, k]
            any_left |= X[a, k] != 0
        for k in range(right.shape[1]):
            right[i, k] = items[b, k] - items[c, k]
            any_right |= right[i, k] != 0
        if not (any_left and any_right):
            weight[i] = 0.0


@compiled
def gather_sparse_differences(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    data: Array,
    left: NDArray[Any],
    right: NDArray[Any],
    out_ptr: NDArray[Any],
    out_indices: NDArray[Any],
    out: Array,
) -> int:
    """The same for CSR rows with sorted indices; zeros are left out. Returns how many are kept."""
    n = 0
    for i in range(left.shape[0]):
        a, a_end = indptr[left[i]], indptr[left[i] + 1]
        c, c_end = indptr[right[i]], indptr[right[i] + 1]
        while a < a_end or c < c_end:
            if c == c_end or (a < a_end and indices[a] < indices[c]):
                at, value = indices[a], data[a]
                a += 1
            elif a == a_end or indices[c] < indices[a]:
                at, value = indices[c], -data[c]
                c += 1
            else:
                at, value = indices[a], data[a] - data[c]
                a += 1
                c += 1
            if value != 0:
                out_indices[n], out[n] = at, value
                n += 1
        out_ptr[i + 1] = n
    return n


@compiled
def any_in_rows(indptr: NDArray[Any], data: Array, out: NDArray[np.bool_]) -> None:
    """Which CSR rows hold anything but zeros."""
    for i in range(out.shape[0]):
        out[i] = False
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] != 0:
                out[i] = True
                break


@compiled(fastmath=FAST)
def _quadratic(M: Array, v: Array) -> float:
    """vᵀMv from the lower triangle, four rows at a time."""
    d = v.shape[0]
    total = 0.0
    r = 0
    while r + 4 <= d:
        m0, m1, m2, m3 = M[r], M[r + 1], M[r + 2], M[r + 3]
        v0, v1, v2, v3 = v[r], v[r + 1], v[r + 2], v[r + 3]
        below = 0.0
        for k in range(r):
            below += (m0[k] * v0 + m1[k] * v1 + m2[k] * v2 + m3[k] * v3) * v[k]
        below += m1[r] * v0 * v1 + (m2[r] * v0 + m2[r + 1] * v1) * v2
        below += (m3[r] * v0 + m3[r + 1] * v1 + m3[r + 2] * v2) * v3
        total += 2 * below + m0[r] * v0 * v0 + m1[r + 1] * v1 * v1
        total += m2[r + 2] * v2 * v2 + m3[r + 3] * v3 * v3
        r += 4
    while r < d:
        row = M[r]
        inner = 0.0
        for k in range(r):
            inner += row[k] * v[k]
        total += v[r] * (2 * inner + row[r] * v[r])
        r += 1
    return total


@compiled(fastmath=FAST)
def _sq_norm(v: Array) -> float:
    total = 0.0
    for k in range(v.shape[0]):
        total += v[k] * v[k]
    return total


@compiled(fastmath=FAST)
def _add(M: Array, c: float, v: Array) -> None:
    """M += c v vᵀ on the lower triangle.

    Rows are taken to the next multiple of four: vectors without a rest, and what lands above the
    diagonal is not read.
    """
    d = v.shape[0]
    for r in range(d):
        row = M[r]
        f = M.dtype.type(c * v[r])
        for k in range(min((r | 3) + 1, d)):
            row[k] += f * v[k]


@compiled
def dense(
    M: Array,
    V: Array,
    wanted: Wanted,
    step: StepTuple,
    b: float,
    floor: float,
    max_updates: int,
    moved: Moved,
) -> tuple[int, float]:
    """The loop over dense rows of V."""
    sign, offset, target, weight = wanted
    tau, violation, threshold = moved
    updates = 0
    for i in range(V.shape[0]):
        v = V[i]
        threshold[i] = b
        p = target[i] - sign[i] * _quadratic(M, v) - offset[i] * b
        violation[i] = p
        tau[i] = 0.0
        if p <= 0.0 and not step[2]:
            continue
        sq = _sq_norm(v)
        t = step_size(p, sq * sq + offset[i] * offset[i], weight[i], step)
        if t == 0.0:
            continue
        tau[i] = t
        _add(M, t * sign[i], v)
        b = max(b + t * offset[i], floor)
        updates += 1
        if updates == max_updates:
            return i + 1, b
    return V.shape[0], b


@compiled(fastmath=FAST)
def _gather(row: Array, at: NDArray[np.uint32], v: Array) -> float:
    """Σ_k row[at_k] v_k."""
    total = 0.0
    for k in range(v.shape[0]):
        total += row[at[k]] * v[k]
    return total


@compiled(fastmath=FAST)
def _scatter(row: Array, at: NDArray[np.uint32], v: Array, f: float) -> None:
    """row[at_k] += f v_k."""
    for k in range(v.shape[0]):
        row[at[k]] += f * v[k]


@compiled
def sparse(
    M: Array,
    rows: Rows,
    wanted: Wanted,
    step: StepTuple,
    b: float,
    floor: float,
    max_updates: int,
    moved: Moved,
) -> tuple[int, float]:
    """The loop over CSR rows with sorted indices: Θ(nnz²) an example."""
    indptr, indices, data = rows
    sign, offset, target, weight = wanted
    tau, violation, threshold = moved
    n = indptr.shape[0] - 1
    updates = 0
    for i in range(n):
        at = indices[indptr[i] : indptr[i + 1]]
        v = data[indptr[i] : indptr[i + 1]]
        score = 0.0
        for s in range(v.shape[0]):
            row = M[at[s]]
            score += v[s] * (2.0 * _gather(row, at[:s], v[:s]) + row[at[s]] * v[s])
        sq = _sq_norm(v)
        threshold[i] = b
        p = target[i] - sign[i] * score - offset[i] * b
        violation[i] = p
        t_i = step_size(p, sq * sq + offset[i] * offset[i], weight[i], step)
        tau[i] = t_i
        if t_i == 0.0:
            continue
        for s in range(v.shape[0]):
            _scatter(M[at[s]], at[: s + 1], v[: s + 1], t_i * sign[i] * v[s])
        b = max(b + t_i * offset[i], floor)
        updates += 1
        if updates == max_updates:
            return i + 1, b
    return n, b


@compiled(fastmath=FAST)
def _bilinear(W: Array, u: Array, v: Array) -> float:
    """uᵀWv, four rows at a time."""
    m, n = W.shape
    total = 0.0
    r = 0
    while r + 4 <= m:
        w0, w1, w2, w3 = W[r], W[r + 1], W[r + 2], W[r + 3]
        u0, u1, u2, u3 = u[r], u[r + 1], u[r + 2], u[r + 3]
        for k in range(n):
            total += (w0[k] * u0 + w1[k] * u1 + w2[k] * u2 + w3[k] * u3) * v[k]
        r += 4
    while r < m:
        row = W[r]
        inner = 0.0
        for k in range(n):
            inner += row[k] * v[k]
        total += u[r] * inner
        r += 1
    return total


@compiled(fastmath=FAST)
def _add_bilinear(W: Array, c: float, u: Array, v: Array) -> None:
    """W += c u vᵀ."""
    for r in range(u.shape[0]):
        row = W[r]
        f = W.dtype.type(c * u[r])
        for k in range(v.shape[0]):
            row[k] += f * v[k]


@compiled
def dense_bilinear(
    W: Array,
    L: Array,
    R: Array,
    wanted: Wanted,
    step: StepTuple,
    b: float,
    floor: float,
    max_updates: int,
    moved: Moved,
) -> tuple[int, float]:
    """The loop for W += τ_i sign_i l_i r_iᵀ over dense rows of L and R."""
    sign, offset, target, weight = wanted
    tau, violation, threshold = moved
    updates = 0
    for i in range(L.shape[0]):
        u, v = L[i], R[i]
        threshold[i] = b
        p = target[i] - sign[i] * _bilinear(W, u, v) - offset[i] * b
        violation[i] = p
        tau[i] = 0.0
        if p <= 0.0 and not step[2]:
            continue
        norm = _sq_norm(u) * _sq_norm(v) + offset[i] * offset[i]
        t = step_size(p, norm, weight[i], step)
        if t == 0.0:
            continue
        tau[i] = t
        _add_bilinear(W, t * sign[i], u, v)
        b = max(b + t * offset[i], floor)
        updates += 1
        if updates == max_updates:
            return i + 1, b
    return L.shape[0], b


@compiled(fastmath=FAST)
def _scatter_rows(
    W: Array, u_at: NDArray[np.uint32], u: Array, v_at: NDArray[np.uint32], v: Array, c: float
) -> None:
    """W += c u vᵀ, four rows at a time: more writes under way at once."""
    s = 0
    while s + 4 <= u.shape[0]:
        w0, w1, w2, w3 = W[u_at[s]], W[u_at[s + 1]], W[u_at[s + 2]], W[u_at[s + 3]]
        u0, u1, u2, u3 = c * u[s], c * u[s + 1], c * u[s + 2], c * u[s + 3]
        for k in range(v.shape[0]):
            at, x = v_at[k], v[k]
            w0[at] += u0 * x
            w1[at] += u1 * x
            w2[at] += u2 * x
            w3[at] += u3 * x
        s += 4
    while s < u.shape[0]:
        _scatter(W[u_at[s]], v_at, v, c * u[s])
        s += 1


@compiled
def sparse_bilinear(
    W: Array,
    left_rows: Rows,
    right_rows: Rows,
    wanted: Wanted,
    step: StepTuple,
    b: float,
    floor: float,
    max_updates: int,
    moved: Moved,
) -> tuple[int, float]:
    """The same over CSR rows: Θ(nnz(l)·nnz(r)) an example."""
    left_ptr, left_at, left = left_rows
    right_ptr, right_at, right = right_rows
    sign, offset, target, weight = wanted
    tau, violation, threshold = moved
    n = left_ptr.shape[0] - 1
    updates = 0
    for i in range(n):
        u_at = left_at[left_ptr[i] : left_ptr[i + 1]]
        u = left[left_ptr[i] : left_ptr[i + 1]]
        v_at = right_at[right_ptr[i] : right_ptr[i + 1]]
        v = right[right_ptr[i] : right_ptr[i + 1]]
        score = 0.0
        for s in range(u.shape[0]):
            score += u[s] * _gather(W[u_at[s]], v_at, v)
        threshold[i] = b
        p = target[i] - sign[i] * score - offset[i] * b
        violation[i] = p
        norm = _sq_norm(u) * _sq_norm(v) + offset[i] * offset[i]
        t_i = step_size(p, norm, weight[i], step)
        tau[i] = t_i
        if t_i == 0.0:
            continue
        _scatter_rows(W, u_at, u, v_at, v, t_i * sign[i])
        b = max(b + t_i * offset[i], floor)
        updates += 1
        if updates == max_updates:
            return i + 1, b
    return n, b
