"""LMNN's loops over points and pairs of points, compiled, each over a range of rows.

Rows are sorted by class, so that the points of other classes that come after row i are the rows
from `ends[i]` on.
None of the functions holds Python's lock: several may run at the same time, on different rows and
with accumulators of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST

# Columns compared at once before anyone looks which of them it was.
_CHUNK = 64
# Columns of a distance between two looks whether it is too far already.
_STRIDE = 32


class SearchedPoints(NamedTuple):
    """Points among which impostors are searched, each in the place of its row.

    Attributes
    ----------
    E : array of shape (n, e)
        Rows whose squared distances are not above those of Z, up to rounding that `half` makes up
        for: half_i ≤ ‖e_i‖²/2.
    half : array of shape (n,)
    lowered : array of shape (n,)
        half − reach/2.
    Z : array of shape (n, r)
    reach : array of shape (n,)
    starts, ends : arrays of shape (n,)
        Where the class of each row starts and ends.
    """

    E: NDArray[np.float32]
    half: NDArray[np.float32]
    lowered: NDArray[np.float32]
    Z: NDArray[np.float32]
    reach: NDArray[np.float32]
    starts: Indices
    ends: Indices


class Reach(NamedTuple):
    """1 + the squared distance of each target of each point, and the largest for each point."""

    each: Array
    furthest: Array


class Costs(NamedTuple):
    """How often each target of each point counts, and each point as an impostor."""

    targets: NDArray[np.float64]
    points: NDArray[np.float64]


class PairList(NamedTuple):
    """Pairs of points: those of a are columns[indptr[a] : indptr[a + 1]]."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]


@compiled(nogil=True, fastmath=FAST)
def _squared_distance(x: Array, y: Array) -> Any:
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        v = x[c] - y[c]
        total += v * v
    return total


@compiled(nogil=True, fastmath=FAST)
def _nearer(x: Array, y: Array, limit: float) -> bool:
    """Whether ‖x − y‖² < limit; most are out after the first columns."""
    total = x.dtype.type(0)
    for start in range(0, x.shape[0], _STRIDE):
        for c in range(start, min(start + _STRIDE, x.shape[0])):
            v = x[c] - y[c]
            total += v * v
        if total >= limit:
            return False
    return True


@compiled(nogil=True, fastmath=FAST)
def _count_above(g: Array, u: float, h: float, us: Array, hs: Array) -> int:
    """How many c have g_c > min(u + hs_c, us_c + h)."""
    # Counted in the type that is compared: widening to integers would take half of the time.
    found = np.float32(0)
    for c in range(g.shape[0]):
        found += np.float32(1) if g[c] > min(u + hs[c], us[c] + h) else np.float32(0)
    return int(found)


@compiled(nogil=True, fastmath=FAST)
def impostor_pairs(
    points: SearchedPoints,
    who: NDArray[np.int32],
    after: bool,
    first: int,
    width: int,
    rows: NDArray[np.uint16],
    columns: NDArray[np.int32],
) -> int:
    """Pairs (a, b) of different classes with ‖z_a − z_b‖² < max(reach_a, reach_b), a in `who`.

    All distances of E come from products of tiles; those of Z are computed only for the pairs that
    E leaves.

    Parameters
    ----------
    points : SearchedPoints
    who : array
        Rows to search for, in ascending order; at most 65 536.
    after : bool
        Whether only b of later classes are wanted. Otherwise all are, but a b < a whose reach is
        not −∞: that pair is found from b.
    first : int
        The first b to look at, if not those of later classes.
    width : int
        Columns of a tile.
    rows, columns : arrays of the same size
        Receive where a is in `who`, and b, by tiles.

    Returns
    -------
    int
        The number of pairs. If it is above the size of the arrays, the rest is not written.
    """
    E, half, lowered, Z, reach, starts, ends = points
    n = E.shape[0]
    found = 0
    mine = E[who]
    tile = np.empty(len(who) * width, dtype=np.float32)
    # The columns that are of the class of every row of `who`.
    same_from, same_to = starts[who[-1]], ends[who[0]]
    for start in range(ends[who[0]] if after else first, n, width):
        stop = min(start + width, n)
        if start >= same_from and stop <= same_to:
            continue
        G = tile[: len(who) * (stop - start)].reshape(len(who), stop - start)
        np.dot(mine, E[start:stop].T, G)
        for i in range(len(who)):
            a = who[i]
            for part in range(after, 2):
                # The columns of earlier classes, then those of later ones.
                left = max(start, ends[a]) if part else start
                end = stop if part else min(stop, starts[a])
                while left < end:
                    right = min(left + _CHUNK, end)
                    g = G[i, left - start : right - start]
                    n_left = _count_above(
                        g, lowered[a], half[a], lowered[left:right], half[left:right]
                    )
                    b = left
                    while n_left > 0:
                        if g[b - left] > min(lowered[a] + half[b], lowered[b] + half[a]):
                            n_left -= 1
                            known = b < a and reach[b] > 0
                            if not known and _nearer(Z[a], Z[b], max(reach[a], reach[b])):
                                if found < rows.shape[0]:
                                    rows[found] = i
                                    columns[found] = b
                                found += 1
                        b += 1
                    left = right
    return found


@compiled(nogil=True, fastmath=FAST)
def reaches(
    Z: Array,
    targets: NDArray[np.int32],
    first: int,
    last: int,
    out: Array,
    costs: NDArray[np.float64] | None,
) -> float:
    """out_ij = 1 + ‖z_i − z_t‖² for the j-th target t of i, −∞ where there is none.

    Returns Σ ‖z_i − z_t‖² over the rows first … last, times the costs if there are any.
    """
    total = 0.0
    for i in range(first, last):
        for j in range(targets.shape[1]):
            t = targets[i, j]
            if t < 0:
                out[i, j] = -np.inf
            else:
                distance = _squared_distance(Z[i], Z[t])
                if costs is None:
                    total += distance
                else:
                    total += costs[i, j] * distance
                out[i, j] = 1 + distance
    return total


@compiled(nogil=True, fastmath=FAST)
def _hinges(
    reach: Array,
    distance: float,
    hinge: tuple[float, float, float, float],
    weights: Array,
    costs: NDArray[np.float64] | None,
    impostor: float,
) -> tuple[float, float, int]:
    """φ and φ′ of the hinges h_j = reach_j − distance > 0, summed; φ′ is added to the weights.

    With hinge = (σ, quadratic, linear, constant), φ(h) is quadratic·h² below σ, and
    linear·h − constant from there on. If there are costs, both count costs_j · impostor times.
    """
    sigma, quadratic, linear, constant = hinge
    loss = slope = 0.0
    active = 0
    for j in range(reach.shape[0]):
        h = float(reach[j]) - distance
        if h > 0.0:
            if h < sigma:
                phi = quadratic * h * h
                w = 2.0 * quadratic * h
            else:
                phi = linear * h - constant
                w = linear
            if costs is not None:
                phi *= costs[j] * impostor
                w *= costs[j] * impostor
            loss += phi
            slope += w
            weights[j] += w
            active += 1
    return loss, slope, active


@compiled(nogil=True, fastmath=FAST)
def push(
    Z: Array,
    V: Array,
    reach: Reach,
    pairs: PairList,
    hinge: tuple[float, float, float, float],
    mu: float,
    rows: tuple[int, int],
    G: Array,
    weights: NDArray[np.float64],
    costs: Costs | None,
) -> tuple[float, float, int]:
    """Σ φ(reach_ij − ‖z_i − z_l‖²) over the pairs, both ways, and what it does to V.

    With w_ab the slope of all hinges of a pair, G_a −= μ w_ab (v_a − v_b), and the opposite for b;
    `weights` receives the slopes of each target. Returns the sums of φ and φ′ and the number of
    positive hinges. If there are costs, φ and φ′ count as often as these say.
    """
    loss = slope = 0.0
    active = 0
    indptr, columns = pairs
    each, furthest = reach
    for a in range(rows[0], rows[1]):
        for at in range(indptr[a], indptr[a + 1]):
            b = columns[at]
            distance = float(_squared_distance(Z[a], Z[b]))
            if distance >= furthest[a] and distance >= furthest[b]:
                continue
            if costs is None:
                sums_a = _hinges(each[a], distance, hinge, weights[a], None, 1.0)
                sums_b = _hinges(each[b], distance, hinge, weights[b], None, 1.0)
            else:
                cost, count = costs
                sums_a = _hinges(each[a], distance, hinge, weights[a], cost[a], count[b])
                sums_b = _hinges(each[b], distance, hinge, weights[b], cost[b], count[a])
            loss_a, slope_a, active_a = sums_a
            loss_b, slope_b, active_b = sums_b
            loss += loss_a + loss_b
            slope += slope_a + slope_b
            active += active_a + active_b
            w = G.dtype.type(mu * (slope_a + slope_b))
            v_a, v_b, g_a, g_b = V[a], V[b], G[a], G[b]
            for c in range(v_a.shape[0]):
                v = w * (v_a[c] - v_b[c])
                g_a[c] -= v
                g_b[c] += v
    return loss, slope, active


@compiled(nogil=True, fastmath=FAST)
def pull(
    V: Array,
    targets: NDArray[np.int32],
    weights: NDArray[np.float64],
    constant: float,
    mu: float,
    first: int,
    last: int,
    G: Array,
    costs: NDArray[np.float64] | None,
) -> None:
    """G_i += w (v_i − v_t), and the opposite for t, with w = constant costs_ij + μ weights_ij.

    Without costs, these are 1.
    """
    for i in range(first, last):
        for j in range(targets.shape[1]):
            t = targets[i, j]
            if t >= 0:
                if costs is None:
                    w = G.dtype.type(constant + mu * weights[i, j])
                else:
                    w = G.dtype.type(constant * costs[i, j] + mu * weights[i, j])
                v_i, v_t, g_i, g_t = V[i], V[t], G[i], G[t]
                for c in range(v_i.shape[0]):
                    v = w * (v_i[c] - v_t[c])
                    g_i[c] += v
                    g_t[c] -= v
