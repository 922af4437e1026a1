"""The largest of many products u·x_l, without computing every one.

In the coordinates z of the principal directions, scaled to unit variance, u·x_l = u·x̄ + v·z_l, and
the first few of them say almost all:

    v·z_l ≤ Σ_{f<r} v_f z_lf + ‖v_{f≥r}‖ ‖z_{l,f≥r}‖.

The right-hand side is computed in float32, a dozen coordinates at a time and for two examples at
once, with a margin for rounding; only the few rows that it leaves in question are scored, in
float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST

CHUNK = 12
"""Coordinates between two looks at what is still in question."""
WIDTH = 1024
"""Rows looked at together (python -m benchmarks sila)."""

Mask = NDArray[np.uint8]
Rows = tuple[NDArray[Any], NDArray[Any], Array]
"""(indptr, indices, data): CSR, or dense with empty indices."""
Screen = tuple[Array, Array, Array, float, float]
Work = tuple[Array, Array, Array, Array, Mask, NDArray[np.uint64], NDArray[Any]]


class Whitened(NamedTuple):
    """Dense rows in coordinates of unit variance: x/unit = x̄ + back·z.

    The unit is a power of two, so that whatever the scale of x, what follows fits into float32.
    """

    z: Array
    back: NDArray[np.float64]
    mean: NDArray[np.float64]
    moment: NDArray[np.float64]
    unit: float


def whitened(X: Array) -> Whitened:
    """The rows of X, one coordinate to a row of z, with their second moments."""
    unit = power_of_two(float(np.abs(X).max()))
    X = X / X.dtype.type(unit)
    mean = X.mean(axis=0, dtype=np.float64)
    centered = X - mean
    variances, V = np.linalg.eigh(centered.T @ centered / len(X))
    scale = np.sqrt(np.maximum(variances, 1e-12 * variances[-1]))
    scale[scale == 0] = 1.0
    z = np.ascontiguousarray((centered @ (V / scale)).T, dtype=np.float32)
    moment = (X.T @ X).astype(np.float64) / len(X)
    return Whitened(z, V * scale, mean, moment, unit)


def screen(known: Whitened | None, A: Array) -> Screen:
    """What the exact search under matrices like A knows; of None, nothing, and it scores every row.

    The coordinates are turned so that the v of examples are large in the first ones. Returns z in
    float32, the map from u to v, x̄, the largest ‖z‖, and the unit of x. z comes in blocks of WIDTH
    rows; in a block, for each CHUNK of coordinates these, one after the other, and the norms of
    what lies beyond them.
    """
    if known is None:
        return np.empty((0, 0), dtype=np.float32), np.empty((0, 0)), np.empty(0), 0.0, 1.0
    # v = backᵀ Aᵀ x; a diagonal A comes as one row.
    A = A / power_of_two(float(np.abs(A).max()))
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
    to_v = np.ascontiguousarray((known.back @ Q).T)
    return flat, to_v, known.mean, longest, known.unit


def _spread(values: Array, blocks: Array) -> None:
    """Rows of values into blocks of WIDTH columns."""
    n = values.shape[1]
    whole = n // WIDTH
    blocks[:whole] = values[:, : whole * WIDTH].reshape(len(values), whole, WIDTH).swapaxes(0, 1)
    if whole < len(blocks):
        blocks[whole, :, : n - whole * WIDTH] = values[:, whole * WIDTH :]


@compiled(fastmath=FAST)
def product(data: Array, start: int, u: Array) -> float:
    """A dense row, which starts there, times u."""
    total = 0.0
    for k in range(u.shape[0]):
        total += data[start + k] * u[k]
    return total


@compiled
def insert(s: float, at: int, values: Array, found: NDArray[Any]) -> None:
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


@compiled(fastmath=FAST)
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


@compiled
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


@compiled
def power_of_two(size: float) -> float:
    """The power of two next above; 1 for 0."""
    return math.ldexp(1.0, math.frexp(size)[1])


@compiled
def _turned(u: Array, screen: Screen, v: Array, t: Array) -> tuple[float, float]:
    """v of an example, by chunks, and t, the norm of what lies beyond each chunk.

    Returns what is to be added to v·z_l, u·x̄ and as much as rounding may take away, and what u·x_l
    is to be divided by to compare with that.
    """
    _, to_v, mean, longest, unit = screen
    d = u.shape[0]
    scale = power_of_two(np.abs(u).max())
    w, flat = u / scale, to_v.ravel()
    offset, size_u, size_v = 0.0, 0.0, 0.0
    for f in range(d):
        total = product(flat, f * d, w)
        v[f // CHUNK, f % CHUNK] = total
        offset += w[f] * mean[f]
        size_u += w[f] * w[f]
        size_v += total * total
    rest = 0.0
    for c in range(t.shape[0] - 1, -1, -1):
        t[c] = math.sqrt(rest)
        for f in range(CHUNK):
            rest += v[c, f] * v[c, f]
    # Of float32 in every product and sum, of float64 in z and x̄ themselves.
    rounding = (4 * d + 64) * 6e-8 * math.sqrt(size_v) * longest + 1e-13 * math.sqrt(size_u)
    return offset + rounding, scale * unit


@compiled
def screened(
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
    Z = screen[0]
    v, t, limits, sums, mask, words, chosen = work
    data = rows[2]
    d, n = u.shape[1], rows[0].shape[0] - 1
    n_chunks, n_asked = t.shape[0], own.shape[0]
    v[:], limits[:] = 0.0, np.inf
    offset, scale = np.zeros(2), np.ones(2)
    for e in range(n_asked):
        offset[e], scale[e] = _turned(u[e], screen, v[:, e], t[:, e])
    count = np.zeros(2, dtype=np.int64)
    scored, own_from, own_to = 0, own[:, 0].max(), own[:, 1].min()
    for lo in range(0, n, WIDTH):
        if own_from <= lo and lo + WIDTH <= own_to:
            continue
        sums[:] = 0.0
        for c in range(n_chunks):
            for e in range(n_asked):
                limits[e] = values[e, k[e] - 1] / scale[e] - offset[e]
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
                    s = product(data, at * d, u[e])
                    insert(s, at, values[e, : k[e]], found[e, : k[e]])
    return scored
