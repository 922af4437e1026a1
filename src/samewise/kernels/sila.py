"""SiLA's loop, compiled: targets are given, impostors are searched under the matrix as it moves.

Rows stand in the order of their classes, so that an example's own class is one stretch to leave
out. They are given as (indptr, indices, data): CSR, or dense with empty indices. With u = Aᵀx_i a
similarity is u·x_l, times 1/N(x_i, x_l) where `inverse` gives it.

The exact search does not compute every u·x_l. In the coordinates z of the principal directions,
scaled to unit variance, u·x_l = u·x̄ + v·z_l, and the first few of them say almost all:

    v·z_l ≤ Σ_{f<r} v_f z_lf + ‖v_{f≥r}‖ ‖z_{l,f≥r}‖.

The right-hand side is computed in float32, a dozen coordinates at a time and for two examples at
once, with a margin for rounding; only the few rows that it leaves in question are scored, in
float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.cone import MAX_LANCZOS, axpy, dot, rank_two_step, split
from samewise.kernels.rank_one import FAST
from samewise.kernels.steps import step_size

__all__ = ["DIAGONAL", "FULL", "SYMMETRIC", "advance", "screen"]

FULL, SYMMETRIC, DIAGONAL = 0, 1, 2
CHUNK = 12
"""Coordinates between two looks at what is still in question."""
WIDTH = 1024
"""Rows looked at together (python -m benchmarks sila)."""

KRYLOV = MAX_LANCZOS + 3

Mask = NDArray[np.uint8]
Rows = tuple[NDArray[Any], NDArray[Any], Array]
Screen = tuple[Array, Array, Array, float]
Work = tuple[Array, Array, Array, Array, Mask, NDArray[np.uint64], NDArray[Any]]


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
            axpy(x[k], A[k], u)


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
def _bounds(z: Array, v: Array, beyond: Array, limits: Array, sums: Array, mask: Mask) -> None:
    """Add Σ v_f z_f over a chunk to the sums; mask says where the bound reaches the limit.

    Everything comes twice, for two examples that share the reading of z.
    """
    v0, v1, v2, v3, v4, v5 = v[0, 0], v[0, 1], v[0, 2], v[0, 3], v[0, 4], v[0, 5]
    v6, v7, v8, v9, va, vb = v[0, 6], v[0, 7], v[0, 8], v[0, 9], v[0, 10], v[0, 11]
    w0, w1, w2, w3, w4, w5 = v[1, 0], v[1, 1], v[1, 2], v[1, 3], v[1, 4], v[1, 5]
    w6, w7, w8, w9, wa, wb = v[1, 6], v[1, 7], v[1, 8], v[1, 9], v[1, 10], v[1, 11]
    beyond_v, beyond_w = beyond[0], beyond[1]
    limit_v, limit_w = limits[0], limits[1]
    sum_v, sum_w, mask_v, mask_w = sums[0], sums[1], mask[0], mask[1]
    for j in range(WIDTH):
        z0, z1, z2, z3 = z[j], z[WIDTH + j], z[2 * WIDTH + j], z[3 * WIDTH + j]
        z4, z5, z6 = z[4 * WIDTH + j], z[5 * WIDTH + j], z[6 * WIDTH + j]
        z7, z8, z9 = z[7 * WIDTH + j], z[8 * WIDTH + j], z[9 * WIDTH + j]
        za, zb, rest = z[10 * WIDTH + j], z[11 * WIDTH + j], z[12 * WIDTH + j]
        p = sum_v[j] + v0 * z0 + v1 * z1 + v2 * z2 + v3 * z3 + v4 * z4 + v5 * z5
        p += v6 * z6 + v7 * z7 + v8 * z8 + v9 * z9 + va * za + vb * zb
        q = sum_w[j] + w0 * z0 + w1 * z1 + w2 * z2 + w3 * z3 + w4 * z4 + w5 * z5
        q += w6 * z6 + w7 * z7 + w8 * z8 + w9 * z9 + wa * za + wb * zb
        sum_v[j] = p
        sum_w[j] = q
        mask_v[j] = p + beyond_v * rest >= limit_v
        mask_w[j] = q + beyond_w * rest >= limit_w


@njit(cache=True)
def _marked(
    mask: Mask, words: NDArray[np.uint64], start: int, stop: int, chosen: NDArray[Any]
) -> int:
    """Places marked outside of start … stop, looked for 64 at a time; returns how many."""
    count = 0
    for word in range(0, words.shape[0], 8):
        some = np.uint64(0)
        for q in range(8):
            some |= words[word + q]
        if some != 0:
            for place in range(word, word + 8):
                if words[place] != 0 and not start <= 8 * place <= stop - 8:
                    for j in range(8 * place, 8 * place + 8):
                        if mask[j] and not start <= j < stop:
                            chosen[count] = j
                            count += 1
    return count


@njit(cache=True)
def _screened(
    rows: Rows,
    u: Array,
    screen: Screen,
    own: NDArray[Any],
    k: NDArray[Any],
    values: Array,
    found: NDArray[Any],
    work: Work,
) -> int:
    """The largest u·x_l outside of each example's own stretch, for one or two examples.

    They are added to what `found` holds already. Returns how many rows were scored.
    """
    Z, to_v, mean, longest = screen
    v, t, limits, sums, mask, words, chosen = work
    data = rows[2]
    d, n = u.shape[1], rows[0].shape[0] - 1
    n_chunks, n_asked = t.shape[0], own.shape[0]
    v[:], limits[:] = 0.0, np.inf
    offset = np.zeros(2)
    for e in range(n_asked):
        size_u, size_v = 0.0, 0.0
        for f in range(d):
            total = 0.0
            for m in range(d):
                total += to_v[f, m] * u[e, m]
            v[f // CHUNK, e, f % CHUNK] = total
            offset[e] += u[e, f] * mean[f]
            size_u += u[e, f] * u[e, f]
            size_v += total * total
        rest = 0.0
        for c in range(n_chunks - 1, -1, -1):
            t[c, e] = math.sqrt(rest)
            for f in range(CHUNK):
                rest += v[c, e, f] * v[c, e, f]
        # Rounding: of float32 in every product and sum, of float64 in z and x̄ themselves.
        offset[e] += (4 * d + 64) * 6e-8 * math.sqrt(size_v) * longest + 1e-13 * math.sqrt(size_u)
    count = np.zeros(2, dtype=np.int64)
    scored, own_from, own_to = 0, own[:, 0].max(), own[:, 1].min()
    for lo in range(0, n, WIDTH):
        if own_from <= lo and lo + WIDTH <= own_to:
            continue
        sums[:] = 0.0
        for c in range(n_chunks):
            for e in range(n_asked):
                limits[e] = values[e, k[e] - 1] - offset[e]
            z = Z[lo // WIDTH, c * (CHUNK + 1) * WIDTH : (c + 1) * (CHUNK + 1) * WIDTH]
            _bounds(z, v[c], t[c], limits, sums, mask)
            for e in range(n_asked):
                start, stop = own[e, 0] - lo, own[e, 1] - lo
                count[e] = _marked(mask[e], words[e], start, stop, chosen[e])
            if 8 * max(count[0], count[1]) <= WIDTH:
                break
        for e in range(n_asked):
            scored += count[e]
            for j in range(count[e]):
                at = lo + chosen[e, j]
                if at < n:
                    s = _product(data, at * d, u[e])
                    _insert(s, at, values[e, : k[e]], found[e, : k[e]])
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
    n_chunks = screen[0].shape[1] // ((CHUNK + 1) * WIDTH)
    # Two examples are searched for at a time; the second again, if the first one moves A.
    xs, us, ks = np.zeros((2, d)), np.empty((2, d)), np.zeros(2, dtype=np.int64)
    values, found = np.empty((2, k_most)), np.empty((2, k_most), dtype=np.int64)
    mask = np.zeros((2, WIDTH), dtype=np.uint8)
    work = (
        np.zeros((n_chunks, 2, CHUNK), dtype=np.float32),
        np.zeros((n_chunks, 2), dtype=np.float32),
        np.zeros(2, dtype=np.float32),
        np.empty((2, WIDTH), dtype=np.float32),
        mask,
        mask.view(np.uint64),
        np.empty((2, WIDTH), dtype=np.int64),
    )
    # The first projection is made by an eigendecomposition, the others from it.
    wide = d if psd and structure != DIAGONAL else 0
    P, mu0, gh, Q = np.empty((wide, wide)), 0.0, np.empty((2, wide)), np.empty((KRYLOV, wide))
    scored, e, ready = 0, 0, 0
    for i in range(asked.shape[0]):
        if ready == 0:
            e, ready = 0, min(2 if n_chunks else 1, asked.shape[0] - i)
            values[:], found[:] = -np.inf, n
            for a in range(ready):
                ks[a] = 0
                while ks[a] < k_most and targets[i + a, ks[a]] >= 0:
                    ks[a] += 1
                xs[a] = 0.0
                _add_row(rows, asked[i + a], 1.0, xs[a])
                _image(A, xs[a], structure, us[a])
            if n_chunks:
                for a in range(ready):
                    top, best = values[a, : ks[a]], found[a, : ks[a]]
                    _try(rows, us[a], seeds[asked[i + a]], top, best)
                    for q in range(ks[a]):
                        _try(rows, us[a], seeds[targets[i + a, q]], top, best)
                near = own[i : i + ready]
                scored += _screened(rows, us, screen, near, ks, values, found, work)
                for a in range(ready):
                    seeds[asked[i + a], : ks[a]] = found[a, : ks[a]]
        k, x, u = ks[e], xs[e], us[e]
        top, best = values[e, :k], found[e, :k]
        margin = 0.0
        for q in range(k):
            s = _dot(rows, targets[i, q], u)
            margin += s * target_inverse[i, q] if target_inverse.shape[0] else s
        if pool.shape[0]:
            for j in range(pool.shape[1]):
                at = pool[i, j]
                if at >= 0:
                    s = _dot(rows, at, u)
                    _insert(s * inverse[i, j] if inverse.shape[0] else s, at, top, best)
        elif n_chunks == 0:
            for at in range(n):
                if not own[i, 0] <= at < own[i, 1]:
                    s = _dot(rows, at, u)
                    _insert(s * inverse[i, at] if inverse.shape[0] else s, at, top, best)
        e, ready = e + 1, ready - 1
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
            ready = 0
            _move(A, tau[i], x, w, structure, psd)
            if psd and structure == DIAGONAL:
                mu[i] = _clip(A, U[i])
            elif psd:
                c = 2.0 * tau[i] if structure == SYMMETRIC else tau[i]
                mu[i], mu0 = _project(A, c, x, w, P, mu0, Q, gh, U[i])
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
            axpy(c * x[m], w, A[m])
        if both and w[m] != 0.0:
            axpy(c * w[m], x, A[m])


@njit(cache=True)
def _clip(A: Array, u: Array) -> float:
    """A diagonal A becomes P_S(A), by adding μ u; returns μ."""
    moved = 0.0
    for k in range(u.shape[0]):
        u[k] = max(-A[0, k], 0.0)
        if u[k] > 0.0:
            A[0, k] = 0.0
            moved = 1.0
    return moved


@njit(cache=True)
def _project(
    A: Array, c: float, x: Array, w: Array, P: Array, mu0: float, Q: Array, gh: Array, u: Array
) -> tuple[float, float]:
    """A, which has moved by c (xwᵀ + wxᵀ)/2, becomes P_S(A), by adding μ uuᵀ; returns μ and μ₀.

    It was positive semi-definite before, so that it has at most one negative eigenvalue. P is
    (A + μ₀I)⁻¹ of then and of now; with μ₀ = 0 it is not known yet.
    """
    xx, ww = dot(x, x), dot(w, w)
    if xx * ww == 0.0:
        return 0.0, mu0
    steps, mu, d = -1, 0.0, x.shape[0]
    g, h = gh[0], gh[1]
    split(x, w, xx, ww, 1.0, g, h)
    if mu0 > 0.0 and dot(h, h) > 1e-28 * (xx + ww):
        guess = 0.0
        for k in range(d):
            guess -= h[k] * dot(A[k], h)
        steps, mu = rank_two_step(P, mu0, c, g, h, guess / dot(h, h), Q, u)
    if steps < 0:
        eigenvalues, vectors = np.linalg.eigh(A)
        mu = max(-eigenvalues[0], 0.0)
        u[:] = vectors[:, 0]
    if mu > 0.0:
        for k in range(d):
            axpy(mu * u[k], u, A[k])
    if steps < 0:
        # Too small a shift would leave P to rounding.
        if mu > 1e-3 * c * math.sqrt(xx * ww):
            mu0 = mu
        if mu0 > 0.0:
            P[:] = np.linalg.inv(A + mu0 * np.eye(d))
    return mu, mu0
