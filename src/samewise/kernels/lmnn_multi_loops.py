"""Multi-metric LMNN's loops over points and pairs of points, compiled, for one metric at a time.

A pair (a, b) is measured by the metric of the group of b. Rows are numbered twice: by their place
among all points, and by their place among the rows that take part in a group. None of the functions
holds Python's lock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.lmnn_loops import _CHUNK, _nearer, _squared_distance
from samewise.kernels.rank_one import FAST


class GroupMembers(NamedTuple):
    """The rows of a group, and where the classes are among them.

    Attributes
    ----------
    rows : array
        Row numbers, ascending.
    lows, highs : arrays of shape (n,)
        The places lows_a … highs_a among the members are those of the class of the point a.
    """

    rows: NDArray[np.int64]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]


@compiled(nogil=True, fastmath=FAST)
def _count_closer(g: Array, bound: float, half: Array) -> int:
    """How many c have g_c > bound + half_c."""
    close = 0
    for c in range(g.shape[0]):
        close += g[c] > bound + half[c]
    return close


@compiled(nogil=True, fastmath=FAST)
def impostors(
    E: NDArray[np.float32],
    half: NDArray[np.float32],
    Z: NDArray[np.float32],
    reach: NDArray[np.float32],
    group: GroupMembers,
    height: int,
    width: int,
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
) -> int:
    """Pairs of a row a and a member b of the group, not in the class of a, with D_ab < reach_a.

    E has rows whose squared distances are not above those of Z, up to rounding that `half` makes
    up for: half_i ≤ ‖e_i‖²/2. All distances of E come from products of tiles; D_ab = ‖z_a − z_b‖²
    is computed only for the pairs that E leaves.

    Parameters
    ----------
    group : GroupMembers
    height, width : int
        Rows and columns of a tile.
    rows, columns : arrays of the same size
        Receive a and b.

    Returns
    -------
    int
        The number of pairs. If it is above the size of the arrays, the rest is not written.
    """
    members, lows, highs = group
    n, m = E.shape[0], members.shape[0]
    M, ZM, half_M = E[members], Z[members], half[members]
    tile = np.empty(height * width, dtype=np.float32)
    found = 0
    for first in range(0, n, height):
        last = min(first + height, n)
        alone = True
        for a in range(first, last):
            alone &= reach[a] == -np.inf or highs[a] - lows[a] == m
        if alone:
            continue
        for start in range(0, m, width):
            stop = min(start + width, m)
            G = tile[: (last - first) * (stop - start)].reshape(last - first, stop - start)
            np.dot(E[first:last], M[start:stop].T, G)
            for a in range(first, last):
                bound = half[a] - reach[a] / np.float32(2)
                for side in range(2):
                    left = start if side == 0 else max(start, highs[a])
                    end = min(stop, lows[a]) if side == 0 else stop
                    while left < end:
                        right = min(left + _CHUNK, end)
                        g = G[a - first, left - start : right - start]
                        close = _count_closer(g, bound, half_M[left:right])
                        b = left
                        while close > 0:
                            if g[b - left] > bound + half_M[b]:
                                close -= 1
                                if _nearer(Z[a], ZM[b], reach[a]):
                                    if found < rows.shape[0]:
                                        rows[found] = a
                                        columns[found] = members[b]
                                    found += 1
                            b += 1
                        left = right
    return found


@compiled(nogil=True, fastmath=FAST)
def reaches(
    Z: Array,
    firsts: NDArray[np.int32],
    seconds: NDArray[np.int32],
    at: NDArray[np.int64],
    reach: Array,
) -> float:
    """reach_{at_p} := 1 + D of the p-th pair; returns Σ D."""
    total = 0.0
    for p in range(at.shape[0]):
        distance = _squared_distance(Z[firsts[p]], Z[seconds[p]])
        total += distance
        reach[at[p]] = 1 + distance
    return total


@compiled(nogil=True, fastmath=FAST)
def push(
    Z: Array,
    rows: NDArray[np.int32],
    firsts: NDArray[np.int32],
    seconds: NDArray[np.int32],
    reach: Array,
    furthest: Array,
    mu: float,
    G: Array,
    weights: NDArray[np.float64],
) -> tuple[float, int]:
    """Σ_j [reach_ij − D_il]₊ over the listed pairs, and what it does to Z.

    Row a of Z is that of the point rows_a. With w_il the number of positive hinges of a pair,
    G_i −= μ w_il (z_i − z_l), and the opposite for l; `weights` receives the number for each
    target. Returns the sum, and the number of positive hinges.
    """
    loss = 0.0
    active = 0
    for p in range(firsts.shape[0]):
        a, b = firsts[p], seconds[p]
        i = rows[a]
        distance = float(_squared_distance(Z[a], Z[b]))
        if distance >= furthest[i]:
            continue
        positive = 0
        for j in range(reach.shape[1]):
            h = float(reach[i, j]) - distance
            if h > 0.0:
                loss += h
                weights[i, j] += 1.0
                positive += 1
        active += positive
        w = G.dtype.type(mu * positive)
        z_a, z_b, g_a, g_b = Z[a], Z[b], G[a], G[b]
        for c in range(z_a.shape[0]):
            v = w * (z_a[c] - z_b[c])
            g_a[c] -= v
            g_b[c] += v
    return loss, active


@compiled(nogil=True, fastmath=FAST)
def pull(
    V: Array,
    firsts: NDArray[np.int32],
    seconds: NDArray[np.int32],
    at: NDArray[np.int64],
    weights: NDArray[np.float64],
    constant: float,
    mu: float,
    G: Array,
) -> None:
    """G_a += w (v_a − v_b) for each pair, and the opposite for b, w = constant + μ weights_at."""
    for p in range(at.shape[0]):
        w = G.dtype.type(constant + mu * weights[at[p]])
        v_a, v_b, g_a, g_b = V[firsts[p]], V[seconds[p]], G[firsts[p]], G[seconds[p]]
        for c in range(v_a.shape[0]):
            v = w * (v_a[c] - v_b[c])
            g_a[c] += v
            g_b[c] -= v
