"""SiLA's loop, compiled: targets are given, impostors are searched under the matrix as it moves.

Rows stand in the order of their classes, so that an example's own class is one stretch to leave
out. With u = Aᵀx_i a similarity is u·x_l, times 1/N(x_i, x_l) where `inverse` gives it. The exact
search is that of `kernels.screen`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.cone import MAX_LANCZOS, axpy, dot, rank_two_step, split
from samewise.kernels.rank_one import FAST
from samewise.kernels.screen import CHUNK, WIDTH, Rows, Screen, Work, insert, product, screened
from samewise.kernels.steps import Step, step_size

FULL: int = 0
SYMMETRIC: int = 1
DIAGONAL: int = 2

KRYLOV = MAX_LANCZOS + 3


class ShownExamples(NamedTuple):
    """A block of examples, and where their targets and impostors are found.

    `asked` has their rows and `own` the stretch of rows of each one's class; −1 ends its list of
    targets. Without a `pool` all rows of other classes are searched, beginning with the impostors
    that the example and its targets had when they were last shown (`seeds`).
    """

    rows: Rows
    asked: NDArray[Any]
    own: NDArray[Any]
    targets: NDArray[Any]
    target_inverse: Array
    pool: NDArray[Any]
    inverse: Array
    screen: Screen
    seeds: NDArray[Any]


class MarginRule(NamedTuple):
    """How A moves.

    `wanted` is 0 for the perceptron, which moves by τ = 1 where the margin is not positive, and 1
    for a hinge.
    """

    structure: int
    psd: bool
    step: Step
    wanted: float


class UpdateTrace(NamedTuple):
    """What each example did; filled by `advance`."""

    tau: NDArray[np.float64]
    violation: NDArray[np.float64]
    W: Array
    mu: NDArray[np.float64]
    U: Array


class Lookahead(NamedTuple):
    """Two examples are searched for at a time; the second again, if the first one moves A."""

    xs: Array
    us: Array
    ks: NDArray[Any]
    values: Array
    found: NDArray[Any]
    work: Work


@compiled(fastmath=FAST)
def _dot(rows: Rows, i: int, u: Array) -> float:
    """x_i·u."""
    indptr, indices, data = rows
    start, stop = indptr[i], indptr[i + 1]
    total = 0.0
    if indices.shape[0] == 0:
        total = product(data, start, u)
    else:
        for k in range(start, stop):
            total += data[k] * u[indices[k]]
    return total


@compiled
def _add_row(rows: Rows, i: int, c: float, out: Array) -> None:
    """out += c x_i."""
    indptr, indices, data = rows
    start, stop = indptr[i], indptr[i + 1]
    for k in range(start, stop):
        at = k - start if indices.shape[0] == 0 else indices[k]
        out[at] += c * data[k]


@compiled
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


@compiled
def _try(
    rows: Rows, u: Array, candidates: NDArray[Any], values: Array, found: NDArray[Any]
) -> None:
    for at in candidates:
        if 0 <= at < rows[0].shape[0] - 1:
            insert(_dot(rows, at, u), at, values, found)


@compiled
def advance(A: Array, block: ShownExamples, rule: MarginRule, trace: UpdateTrace) -> int:
    """Show a block of examples; A moves in place. Returns how many rows a screened search scored.

    Update i leaves A + τ_i (x w_iᵀ) in the given structure, and + μ_i u_i u_iᵀ (or + u_i on the
    diagonal) from the projection. It ends at a violation that is not a number.
    """
    # Arrays are taken out of the tuples once: within the loop each access would count references.
    rows, asked, own, targets, target_inverse, pool, inverse, screen, _ = block
    structure, psd, step, wanted = rule
    tau, violation, W, mu, U = trace
    n, d = asked.shape[0], W.shape[1]
    n_chunks = screen[0].shape[1] // ((CHUNK + 1) * WIDTH)
    ahead = _lookahead(d, targets.shape[1], n_chunks)
    xs, us, ks, values, found, _ = ahead
    # The first projection is made by an eigendecomposition, the others from it.
    wide = d if psd and structure != DIAGONAL else 0
    P, mu0, gh, Q = np.empty((wide, wide)), 0.0, np.empty((2, wide)), np.empty((KRYLOV, wide))
    scored, e, ready = 0, 0, 0
    for i in range(n):
        if ready == 0:
            e, ready = 0, min(2 if n_chunks else 1, n - i)
            _prepare(A, rows, asked[i : i + ready], targets[i : i + ready], structure, xs, us, ks)
            values[:], found[:] = -np.inf, rows[0].shape[0] - 1
            if n_chunks:
                scored += _search(block, i, ready, ahead)
        k, x, u = ks[e], xs[e], us[e]
        top, best, w = values[e, :k], found[e, :k], W[i]
        if pool.shape[0]:
            _search_pool(rows, u, pool[i], inverse, i, top, best)
        elif n_chunks == 0:
            _search_all(rows, u, own[i], inverse, i, top, best)
        violation[i] = wanted - _margin(rows, u, targets[i], target_inverse, i, top)
        e, ready = e + 1, ready - 1
        tau[i] = 0.0
        if math.isnan(violation[i]) or (k > 0 and best[k - 1] == rows[0].shape[0] - 1):
            # Similarities overflow, and there is not an impostor in every place.
            violation[i] = np.nan
            break
        if violation[i] < 0.0:
            continue
        places = pool[i] if pool.shape[0] else pool[:0].ravel()
        _contrast(rows, targets[i], target_inverse, best, places, inverse, i, w)
        tau[i] = _step(step, wanted, structure, violation[i], x, w)
        if tau[i] != 0.0:
            ready = 0
            _move(A, tau[i], x, w, structure, psd)
            if psd and structure == DIAGONAL:
                mu[i] = _clip(A, U[i])
            elif psd:
                c = 2.0 * tau[i] if structure == SYMMETRIC else tau[i]
                mu[i], mu0 = _project(A, c, x, w, P, mu0, Q, gh, U[i])
    return scored


@compiled
def _lookahead(d: int, k: int, n_chunks: int) -> Lookahead:
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
    return Lookahead(
        np.zeros((2, d)),
        np.empty((2, d)),
        np.zeros(2, dtype=np.int64),
        np.empty((2, k)),
        np.empty((2, k), dtype=np.int64),
        work,
    )


@compiled
def _prepare(
    A: Array,
    rows: Rows,
    asked: NDArray[Any],
    targets: NDArray[Any],
    structure: int,
    xs: Array,
    us: Array,
    ks: NDArray[Any],
) -> None:
    """The rows of examples, what A makes of them, and how many targets they have."""
    for a in range(asked.shape[0]):
        ks[a] = 0
        while ks[a] < targets.shape[1] and targets[a, ks[a]] >= 0:
            ks[a] += 1
        xs[a] = 0.0
        _add_row(rows, asked[a], 1.0, xs[a])
        _image(A, xs[a], structure, us[a])


@compiled
def _search(block: ShownExamples, i: int, ready: int, ahead: Lookahead) -> int:
    """Find the impostors of example i, or i and the next; returns how many rows were scored."""
    rows, targets, asked, seeds = block.rows, block.targets, block.asked, block.seeds
    _, us, ks, values, found, work = ahead
    for a in range(ready):
        top, best = values[a, : ks[a]], found[a, : ks[a]]
        _try(rows, us[a], seeds[asked[i + a]], top, best)
        for q in range(ks[a]):
            _try(rows, us[a], seeds[targets[i + a, q]], top, best)
    near = block.own[i : i + ready]
    scored = screened(rows, us, block.screen, near, ks, values, found, work)
    for a in range(ready):
        seeds[asked[i + a], : ks[a]] = found[a, : ks[a]]
    return scored


@compiled
def _search_pool(
    rows: Rows, u: Array, pool: NDArray[Any], inverse: Array, i: int, top: Array, best: NDArray[Any]
) -> None:
    """Find the impostors of example i among its candidates."""
    for j in range(pool.shape[0]):
        at = pool[j]
        if at >= 0:
            s = _dot(rows, at, u)
            insert(s * inverse[i, j] if inverse.shape[0] else s, at, top, best)


@compiled
def _search_all(
    rows: Rows, u: Array, own: NDArray[Any], inverse: Array, i: int, top: Array, best: NDArray[Any]
) -> None:
    """Find the impostors of example i among all rows of other classes."""
    for at in range(rows[0].shape[0] - 1):
        if not own[0] <= at < own[1]:
            s = _dot(rows, at, u)
            insert(s * inverse[i, at] if inverse.shape[0] else s, at, top, best)


@compiled
def _margin(
    rows: Rows, u: Array, targets: NDArray[Any], target_inverse: Array, i: int, top: Array
) -> float:
    """Similarities to the targets minus those to the impostors."""
    margin = 0.0
    for q in range(top.shape[0]):
        s = _dot(rows, targets[q], u)
        margin += s * target_inverse[i, q] if target_inverse.shape[0] else s
    for q in range(top.shape[0]):
        margin -= top[q]
    return margin


@compiled
def _contrast(
    rows: Rows,
    targets: NDArray[Any],
    target_inverse: Array,
    best: NDArray[Any],
    places: NDArray[Any],
    inverse: Array,
    i: int,
    w: Array,
) -> None:
    """w = Σ_q y_q/N − z_q/N over the targets y of example i and its impostors z.

    `places` are the candidates whose 1/N `inverse` has, all rows if there are none.
    """
    w[:] = 0.0
    for q in range(best.shape[0]):
        c = target_inverse[i, q] if target_inverse.shape[0] else 1.0
        _add_row(rows, targets[q], c, w)
        c = 1.0
        if inverse.shape[0]:
            c = inverse[i, _place(places, best[q]) if places.shape[0] else best[q]]
        _add_row(rows, best[q], -c, w)


@compiled
def _step(step: Step, wanted: float, structure: int, violation: float, x: Array, w: Array) -> float:
    if wanted == 0.0:
        return 1.0
    gain = _gain(x, w, structure)
    if gain <= 0.0:
        return 0.0
    return step_size(violation, gain, 1.0, step)


@compiled
def _place(pool: NDArray[Any], at: int) -> int:
    j = 0
    while pool[j] != at:
        j += 1
    return j


@compiled(fastmath=FAST)
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


@compiled
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


@compiled
def _clip(A: Array, u: Array) -> float:
    """A diagonal A becomes P_S(A), by adding μ u; returns μ."""
    moved = 0.0
    for k in range(u.shape[0]):
        u[k] = max(-A[0, k], 0.0)
        if u[k] > 0.0:
            A[0, k] = 0.0
            moved = 1.0
    return moved


@compiled
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
