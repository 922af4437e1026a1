"""Remembered events in cells: which are near a query, without looking at all of them.

Cells belong to pivots, compared in a few leading coordinates z. An event lies in the cell of its
nearest pivot; the cells of a query's nearest pivots, newest events first, give its candidates. A
cell is a doubly linked list of slots.

    links    heads of the cells; next, previous and cell of each slot (−1: none)
    events   query, direction, number and weight of each slot
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.rank_one import FAST

Numbers: TypeAlias = NDArray[np.int64]
Links: TypeAlias = tuple[Numbers, Numbers, Numbers, Numbers]
Events: TypeAlias = tuple[Array, Array, Numbers, NDArray[np.float64]]

PROBES = 8
CANDIDATES = 320
"""Cells, and events in them, that are looked at for a query."""
LEAST = 1e-4
"""Below this a kernel counts as 0."""


@njit(cache=True, fastmath=FAST)
def _similarities(rows: Array, half: Array, z: Array, out: Array) -> None:
    """z·row − ‖row‖²/2: the larger, the nearer."""
    for j in range(rows.shape[0]):
        row = rows[j]
        total = z.dtype.type(0)
        for k in range(z.shape[0]):
            total += row[k] * z[k]
        out[j] = total - half[j]


@njit(cache=True)
def nearest_pivots(pivots: Array, half: Array, z: Array, n: int) -> Numbers:
    """The n nearest pivots, nearest first; of equally near ones the first."""
    m = pivots.shape[0]
    near = np.empty(m, dtype=z.dtype)
    _similarities(pivots, half, z, near)
    n = min(n, m)
    found = np.empty(n, dtype=np.int64)
    kept = np.empty(n, dtype=z.dtype)
    held = 0
    for j in range(m):
        if held == n and near[j] <= kept[n - 1]:
            continue
        at = held if held < n else n - 1
        held = min(held + 1, n)
        while at > 0 and near[j] > kept[at - 1]:
            kept[at], found[at] = kept[at - 1], found[at - 1]
            at -= 1
        kept[at], found[at] = near[j], j
    return found


@njit(cache=True)
def link(links: Links, slot: int, cell: int) -> None:
    """Put a slot at the head of a cell."""
    heads, following, previous, cells = links
    first = heads[cell]
    following[slot], previous[slot], cells[slot] = first, -1, cell
    if first >= 0:
        previous[first] = slot
    heads[cell] = slot


@njit(cache=True)
def unlink(links: Links, slot: int) -> None:
    """Take a slot out of its cell."""
    heads, following, previous, cells = links
    after, before = following[slot], previous[slot]
    if before >= 0:
        following[before] = after
    else:
        heads[cells[slot]] = after
    if after >= 0:
        previous[after] = before
    cells[slot] = -1


@njit(cache=True, fastmath=FAST)
def _dot(u: Array, v: Array) -> Any:
    total = v.dtype.type(0)
    for k in range(v.shape[0]):
        total += u[k] * v[k]
    return total


@njit(cache=True, fastmath=FAST)
def _add(out: Array, c: Any, v: Array) -> None:
    for k in range(v.shape[0]):
        out[k] += c * v[k]


@njit(cache=True)
def recall(
    q: Array,
    near: Numbers,
    links: Links,
    events: Events,
    views: Numbers,
    kernel: tuple[float, float, float, float],
    out: Array,
) -> int:
    """out[w] += α Σ K_i v_i / (Σ K_i + 1) for each view w, over the candidates of q.

    A view is (first number, number after the last, now): the events it sees and the time by which
    it judges their age; where the first is not below the second it sees none. `kernel` is (α, β, c,
    rate): K_i = weight_i exp(β (q·q_i − c) − rate · age). Returns how many events were looked at.
    """
    heads, following, _, _ = links
    queries, directions, numbers, weights = events
    alpha, beta, center, rate = kernel
    n_views = views.shape[0]
    total = np.zeros(n_views)
    sums = np.zeros_like(out)
    looked = 0
    for cell in near:
        slot = heads[cell]
        while slot >= 0 and looked < CANDIDATES:
            looked += 1
            # Far beyond what unit vectors reach, and far below what overflows.
            s = min(beta * (float(_dot(q, queries[slot])) - center), 60.0)
            number = numbers[slot]
            for w in range(n_views):
                if views[w, 0] <= number < views[w, 1]:
                    K = weights[slot] * math.exp(s - rate * (views[w, 2] - number))
                    if K >= LEAST:
                        total[w] += K
                        _add(sums[w], out.dtype.type(K), directions[slot])
            slot = following[slot]
    for w in range(n_views):
        _add(out[w], out.dtype.type(alpha / (total[w] + 1.0)), sums[w])
    return looked


@njit(cache=True)
def recall_rows(
    Q: Array,
    Z: Array,
    pivots: Array,
    half: Array,
    links: Links,
    events: Events,
    view: Numbers,
    kernel: tuple[float, float, float, float],
    out: Array,
) -> None:
    """The same for many queries and one view, each row of `out` for a query."""
    for i in range(Q.shape[0]):
        near = nearest_pivots(pivots, half, Z[i], PROBES)
        recall(Q[i], near, links, events, view, kernel, out[i : i + 1])


@njit(cache=True)
def seen_by_none(numbers: Numbers, cells: Numbers, views: Numbers, n: int) -> NDArray[Any]:
    """Which of the first n slots are linked although no view sees their event."""
    found = np.zeros(n, dtype=np.bool_)
    for slot in range(n):
        if cells[slot] < 0:
            continue
        seen = False
        for w in range(views.shape[0]):
            seen |= views[w, 0] <= numbers[slot] < views[w, 1]
        found[slot] = not seen
    return found
