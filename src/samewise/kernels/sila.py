"""SiLA's loop, compiled: targets are given, impostors are searched under the matrix as it moves.

Rows stand in the order of their classes, so that an example's own class is one stretch to leave
out. They are given as (indptr, indices, data): CSR, or dense with empty indices. With u = Aᵀx_i a
similarity is u·x_l, times 1/N(x_i, x_l) where `inverse` gives it.

The exact search does not compute every u·x_l. In the coordinates z of the principal directions,
scaled to unit variance, u·x_l = u·x̄ + v·z_l, and the first few of them say almost all:

    v·z_l ≤ Σ_{f<r} v_f z_lf + ‖v_{f≥r}‖ ‖z_{l,f≥r}‖.

The right-hand side is computed in float32, a dozen coordinates at a time, with a margin for
rounding; only the few rows that it leaves in question are scored, in float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.rank_one import FAST
from samewise.kernels.steps import step_size

__all__ = ["DIAGONAL", "FULL", "SYMMETRIC", "advance", "screen"]

FULL, SYMMETRIC, DIAGONAL = 0, 1, 2
CHUNK = 12
"""Coordinates between two looks at what is still in question."""
WIDTH = 1024
"""Rows looked at together (python -m benchmarks sila)."""

Mask = NDArray[np.uint8]
Rows = tuple[NDArray[Any], NDArray[Any], Array]
Screen = tuple[Array, Array, Array, float]


class Whitened(NamedTuple):
    """Dense rows in coordinates of unit variance: x = x̄ + back·z."""

    z: Array
    back: NDArray[np.float64]
    mean: NDArray[np.float64]
    moment: NDArray[np.float64]


def whitened(X: Array) -> Whitened:
    """The rows of X, one coordinate to a row of z, with their second moments."""
    mean = X.mean(axis=0, dtype=np.float64)
    centered = X - mean
    variances, V = np.linalg.eigh(centered.T @ centered / len(X))
    scale = np.sqrt(np.maximum(variances, 1e-12 * variances[-1]))
    scale[scale == 0] = 1.0
    z = np.ascontiguousarray((centered @ (V / scale)).T, dtype=np.float32)
    moment = (X.T @ X).astype(np.float64) / len(X)
    return Whitened(z, V * scale, mean, moment)


def screen(known: Whitened | None, A: Array) -> Screen:
    """What the exact search under matrices like A knows; of None, nothing, and it scores every row.

    The coordinates are turned so that the v of examples are large in the first ones. Returns z in
    float32, the map from u to v, x̄, and the largest ‖z‖. z comes in blocks of WIDTH rows; in a
    block, for each CHUNK of coordinates these, one after the other, and the norms of what lies
    beyond them.
    """
    if known is None:
        return np.empty((0, 0), dtype=np.float32), np.empty((0, 0)), np.empty(0), 0.0
    # v = backᵀ Aᵀ x; a diagonal A comes as one row.
    image = A[0][:, None] * known.back if len(A) == 1 else A @ known.back
    Q = np.linalg.eigh(image.T @ known.moment @ image)[1][:, ::-1]
    z = Q.T.astype(np.float32) @ known.z
    d, n = z.shape
    n_blocks, n_chunks = -(-n // WIDTH), -(-d // CHUNK)
    padded = np.zeros((n_blocks, n_chunks, CHUNK + 1, WIDTH), dtype=np.float32)
    beyond = np.zeros(n, dtype=np.float32)
    for c in range(n_chunks - 1, -1, -1):
        own = z[c * CHUNK : (c + 1) * CHUNK]
        _spread(own, padded[:, c, : len(own)])
        _spread(np.sqrt(beyond)[None], padded[:, c, CHUNK:])
        beyond += np.einsum("ij,ij->j", own, own)
    longest = float(np.sqrt(beyond.max()))
    flat = padded.reshape(n_blocks, -1)
    return flat, np.ascontiguousarray((known.back @ Q).T), known.mean, longest


def _spread(values: Array, blocks: Array) -> None:
    """Rows of values into blocks of WIDTH columns."""
    n = values.shape[1]
    whole = n // WIDTH
    blocks[:whole] = values[:, : whole * WIDTH].reshape(len(values), whole, WIDTH).swapaxes(0, 1)
    if whole < len(blocks):
        blocks[whole, :, : n - whole * WIDTH] = values[:, whole * WIDTH :]


@njit(cache=True, fastmath=FAST)
def _dot(rows: Rows, i: int, u: Array) -> float:
    """x_i·u."""
    indptr, indices, data = rows
    start, stop = indptr[i], indptr[i + 1]
    total = 0.0
    if indices.shape[0] == 0:
        total = _product(data, start, u)
    else:
        for k in range(start, stop):
            total += data[k] * u[indices[k]]
    return total


@njit(cache=True, fastmath=FAST)
def _product(data: Array, start: int, u: Array) -> float:
    total = 0.0
    for k in range(u.shape[0]):
        total += data[start + k] * u[k]
    return total


@njit(cache=True)
def _add_row(rows: Rows, i: int, c: float, out: Array) -> None:
    """out += c x_i."""
    indptr, indices, data = rows
    start, stop = indptr[i], indptr[i + 1]
    for k in range(start, stop):
        at = k - start if indices.shape[0] == 0 else indices[k]
        out[at] += c * data[k]


@njit(cache=True, fastmath=FAST)
def _axpy(c: float, x: Array, y: Array) -> None:
    for k in range(x.shape[0]):
        y[k] += c * x[k]


@njit(cache=True)
def _image(A: Array, x: Array, structure: int, u: Array) -> None:
    """u = Aᵀx."""
    if structure == DIAGONAL:
        for k in range(x.shape[0]):
            u[k] = A[0, k] * x[k]
        return
    u[:] = 0.0
    for k in range(x.shape[0]):
        if x[k] != 0.0:
            _axpy(x[k], A[k], u)


@njit(cache=True)
def _insert(s: float, at: int, values: Array, found: NDArray[Any]) -> None:
    """Keep the largest similarities, the first row where they are equal."""
    k = values.shape[0]
    p = k - 1
    if not (s > values[p] or (s == values[p] and at < found[p])):
        return
    for q in range(k):
        if found[q] == at:
            return
    while p > 0 and (s > values[p - 1] or (s == values[p - 1] and at < found[p - 1])):
        values[p], found[p] = values[p - 1], found[p - 1]
        p -= 1
    values[p], found[p] = s, at


@njit(cache=True)
def _try(
    rows: Rows, u: Array, candidates: NDArray[Any], values: Array, found: NDArray[Any]
) -> None:
    for at in candidates:
        if at >= 0:
            _insert(_dot(rows, at, u), at, values, found)


@njit(cache=True, fastmath=FAST)
def _bounds(
    block: Array, c: int, v: Array, t: Array, limit: float, bound: Array, mask: Mask
) -> None:
    """bound = Σ v_f z_f over the first c + 1 chunks, + t_c · the norm of what lies beyond.

    mask says where it reaches the limit.
    """
    f = c * CHUNK
    v0, v1, v2, v3 = v[f], v[f + 1], v[f + 2], v[f + 3]
    v4, v5, v6, v7 = v[f + 4], v[f + 5], v[f + 6], v[f + 7]
    v8, v9, va, vb = v[f + 8], v[f + 9], v[f + 10], v[f + 11]
    z = block[c * (CHUNK + 1) * WIDTH : (c + 1) * (CHUNK + 1) * WIDTH]
    beyond = t[c]
    if c == 0:
        for j in range(WIDTH):
            own = v0 * z[j] + v1 * z[WIDTH + j] + v2 * z[2 * WIDTH + j] + v3 * z[3 * WIDTH + j]
            own += v4 * z[4 * WIDTH + j] + v5 * z[5 * WIDTH + j]
            own += v6 * z[6 * WIDTH + j] + v7 * z[7 * WIDTH + j]
            own += v8 * z[8 * WIDTH + j] + v9 * z[9 * WIDTH + j]
            own += va * z[10 * WIDTH + j] + vb * z[11 * WIDTH + j]
            reached = own + beyond * z[12 * WIDTH + j]
            bound[j] = reached
            mask[j] = reached >= limit
        return
    before = t[c - 1]
    tail = block[c * (CHUNK + 1) * WIDTH - WIDTH : c * (CHUNK + 1) * WIDTH]
    for j in range(WIDTH):
        bound[j] -= before * tail[j]
    for j in range(WIDTH):
        own = v0 * z[j] + v1 * z[WIDTH + j] + v2 * z[2 * WIDTH + j] + v3 * z[3 * WIDTH + j]
        own += v4 * z[4 * WIDTH + j] + v5 * z[5 * WIDTH + j]
        own += v6 * z[6 * WIDTH + j] + v7 * z[7 * WIDTH + j]
        own += v8 * z[8 * WIDTH + j] + v9 * z[9 * WIDTH + j]
        own += va * z[10 * WIDTH + j] + vb * z[11 * WIDTH + j]
        reached = bound[j] + own + beyond * z[12 * WIDTH + j]
        bound[j] = reached
        mask[j] = reached >= limit


@njit(cache=True)
def _marked(
    mask: Mask, words: NDArray[np.uint64], start: int, stop: int, chosen: NDArray[Any]
) -> int:
    """Places marked outside of start … stop, found eight at a time; returns how many."""
    count = 0
    for word in range(words.shape[0]):
        if words[word] != 0:
            for j in range(8 * word, 8 * word + 8):
                if mask[j] and not start <= j < stop:
                    chosen[count] = j
                    count += 1
    return count


@njit(cache=True)
def _screened(
    rows: Rows,
    u: Array,
    screen: Screen,
    start: int,
    stop: int,
    values: Array,
    found: NDArray[Any],
    work: tuple[Array, Array, Array, Mask, NDArray[np.uint64], NDArray[Any]],
) -> int:
    """The largest u·x_l outside of start … stop, added to what `found` holds already.

    Returns how many rows were scored.
    """
    Z, to_v, mean, longest = screen
    v, t, bound, mask, words, chosen = work
    data = rows[2]
    d, n = u.shape[0], rows[0].shape[0] - 1
    n_chunks = t.shape[0]
    k = values.shape[0]
    center, size_u, size_v = 0.0, 0.0, 0.0
    v[:] = 0.0
    for f in range(d):
        total = 0.0
        for m in range(d):
            total += to_v[f, m] * u[m]
        v[f] = total
        center += u[f] * mean[f]
        size_u += u[f] * u[f]
        size_v += total * total
    rest = 0.0
    for c in range(n_chunks - 1, -1, -1):
        t[c] = math.sqrt(rest)
        for f in range(c * CHUNK, (c + 1) * CHUNK):
            rest += v[f] * v[f]
    # Rounding: of float32 in every product and sum, of float64 in z and x̄ themselves.
    slack = (4 * d + 64) * 6e-8 * math.sqrt(size_v) * longest + 1e-13 * math.sqrt(size_u)
    scored = 0
    for lo in range(0, n, WIDTH):
        if lo >= start and lo + WIDTH <= stop:
            continue
        count = 0
        for c in range(n_chunks):
            limit: Any = np.float32(values[k - 1] - center - slack)
            _bounds(Z[lo // WIDTH], c, v, t, limit, bound, mask)
            count = _marked(mask, words, start - lo, stop - lo, chosen)
            if 8 * count <= WIDTH:
                break
        scored += count
        for j in range(count):
            at = lo + chosen[j]
            if at < n:
                _insert(_product(data, at * d, u), at, values, found)
    return scored


@njit(cache=True)
def advance(
    A: Array,
    rows: Rows,
    asked: NDArray[Any],
    own: NDArray[Any],
    targets: NDArray[Any],
    target_inverse: Array,
    pool: NDArray[Any],
    inverse: Array,
    screen: Screen,
    structure: int,
    psd: bool,
    step: tuple[float, float, bool],
    wanted: float,
    seeds: NDArray[Any],
    tau: NDArray[np.float64],
    violation: NDArray[np.float64],
    W: Array,
    mu: NDArray[np.float64],
    U: Array,
) -> int:
    """Show the examples `asked`; A moves in place. Returns how many rows a screened search scored.

    `own` has the stretch of rows of each example's class; −1 ends its list of targets. Without a
    `pool` all rows of other classes are searched, beginning with the impostors that the example and
    its targets had when they were last shown (`seeds`). `wanted` is 0 for the perceptron, which
    moves by τ = 1 where the margin is not positive, and 1 for a hinge.

    Update i leaves A + τ_i (x w_iᵀ) in the given structure, and + μ_i u_i u_iᵀ (or + u_i on the
    diagonal) from the projection.
    """
    d = W.shape[1]
    n = rows[0].shape[0] - 1
    k_most = targets.shape[1]
    x, u = np.zeros(d), np.empty(d)
    values, found = np.empty(k_most), np.empty(k_most, dtype=np.int64)
    n_chunks = screen[0].shape[1] // ((CHUNK + 1) * WIDTH)
    mask = np.zeros(WIDTH, dtype=np.uint8)
    work = (
        np.zeros(n_chunks * CHUNK, dtype=np.float32),
        np.zeros(n_chunks, dtype=np.float32),
        np.empty(WIDTH, dtype=np.float32),
        mask,
        mask.view(np.uint64),
        np.empty(WIDTH, dtype=np.int64),
    )
    scored = 0
    for i in range(asked.shape[0]):
        start, stop = own[i, 0], own[i, 1]
        k = 0
        while k < k_most and targets[i, k] >= 0:
            k += 1
        x[:] = 0.0
        _add_row(rows, asked[i], 1.0, x)
        _image(A, x, structure, u)
        margin = 0.0
        for q in range(k):
            s = _dot(rows, targets[i, q], u)
            margin += s * target_inverse[i, q] if target_inverse.shape[0] else s
        top, best = values[:k], found[:k]
        top[:], best[:] = -np.inf, n
        if pool.shape[0]:
            for j in range(pool.shape[1]):
                at = pool[i, j]
                if at >= 0:
                    s = _dot(rows, at, u)
                    _insert(s * inverse[i, j] if inverse.shape[0] else s, at, top, best)
        elif n_chunks:
            _try(rows, u, seeds[asked[i]], top, best)
            for q in range(k):
                _try(rows, u, seeds[targets[i, q]], top, best)
            scored += _screened(rows, u, screen, start, stop, top, best, work)
            seeds[asked[i], :k] = best
        else:
            for at in range(n):
                if not start <= at < stop:
                    s = _dot(rows, at, u)
                    _insert(s * inverse[i, at] if inverse.shape[0] else s, at, top, best)
        for q in range(k):
            margin -= top[q]
        violation[i] = wanted - margin
        w = W[i]
        tau[i] = 0.0
        if violation[i] < 0.0:
            continue
        w[:] = 0.0
        for q in range(k):
            y, z = targets[i, q], best[q]
            _add_row(rows, y, target_inverse[i, q] if target_inverse.shape[0] else 1.0, w)
            c = 1.0
            if inverse.shape[0]:
                c = inverse[i, _place(pool[i], z)] if pool.shape[0] else inverse[i, z]
            _add_row(rows, z, -c, w)
        tau[i] = 1.0
        if wanted > 0.0:
            gain = _gain(x, w, structure)
            cap, relax, signed = step
            tau[i] = 0.0
            if gain > 0.0:
                tau[i] = step_size(violation[i], gain, 1.0, cap, relax, signed, 0.0)
        if tau[i] != 0.0:
            _move(A, tau[i], x, w, structure, psd)
            if psd:
                mu[i] = _project(A, structure, U[i])
    return scored


@njit(cache=True)
def _place(pool: NDArray[Any], at: int) -> int:
    j = 0
    while pool[j] != at:
        j += 1
    return j


@njit(cache=True, fastmath=FAST)
def _gain(x: Array, w: Array, structure: int) -> float:
    """How much a step of τ = 1 raises the margin xᵀAw."""
    xx, ww, xw, both = 0.0, 0.0, 0.0, 0.0
    for k in range(x.shape[0]):
        xx += x[k] * x[k]
        ww += w[k] * w[k]
        xw += x[k] * w[k]
        both += x[k] * w[k] * x[k] * w[k]
    if structure == DIAGONAL:
        return both
    return xx * ww + xw * xw if structure == SYMMETRIC else xx * ww


@njit(cache=True)
def _move(A: Array, tau: float, x: Array, w: Array, structure: int, psd: bool) -> None:
    """A += τ x wᵀ, + its transpose where A is symmetric."""
    d = x.shape[0]
    if structure == DIAGONAL:
        for k in range(d):
            A[0, k] += tau * x[k] * w[k]
        return
    # Before a projection only the symmetric part of x wᵀ counts.
    both = structure == SYMMETRIC or psd
    c = 0.5 * tau if structure == FULL and psd else tau
    for m in range(d):
        if x[m] != 0.0:
            _axpy(c * x[m], w, A[m])
        if both and w[m] != 0.0:
            _axpy(c * w[m], x, A[m])


@njit(cache=True)
def _project(A: Array, structure: int, u: Array) -> float:
    """A becomes P_S(A), by adding μ u uᵀ (u on the diagonal); returns μ.

    A was positive semi-definite before a step with one negative eigenvalue: it has at most one too.
    """
    if structure == DIAGONAL:
        moved = False
        for k in range(u.shape[0]):
            u[k] = max(-A[0, k], 0.0)
            if u[k] > 0.0:
                A[0, k] = 0.0
                moved = True
        return 1.0 if moved else 0.0
    eigenvalues, vectors = np.linalg.eigh(A)
    if eigenvalues[0] >= 0.0:
        return 0.0
    for k in range(u.shape[0]):
        u[k] = vectors[k, 0]
    for k in range(u.shape[0]):
        _axpy(-eigenvalues[0] * u[k], u, A[k])
    return -eigenvalues[0]
