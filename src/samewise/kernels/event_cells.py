"""Remembered events in cells: which are near a query, without looking at all of them.

Cells belong to pivots, compared in a few leading coordinates z. An event lies in the cell of its
nearest pivot; the cells of a query's nearest pivots, newest events first, give its candidates. Of
these the nearest are chosen by sketches, one byte for each of more leading coordinates: whole
vectors would have to come from slow memory.

    cells     the slots in each cell, the newest last; how many; the cell of each slot (−1: none)
    events    query and direction, number and weight of each slot
    sketches  of each slot, in two lines of the cache: coordinates as whole numbers up to 127, their
              unit, μ·q_i, again the number, and the number of the event that contradicted it; as
              int8, float32 and int64
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST

Numbers: TypeAlias = NDArray[np.int64]
Cells: TypeAlias = tuple[NDArray[np.int32], Numbers, Numbers]
Events: TypeAlias = tuple[Array, Numbers, NDArray[np.float64]]
Sketches: TypeAlias = tuple[NDArray[np.int8], Array, Numbers]
Kernel: TypeAlias = tuple[float, float, float, float, int]

LINES = 128
"""Bytes of a sketch: two lines of the cache."""
SKETCHED = LINES - 24
"""Leading coordinates in a sketch. What follows are two floats and two numbers of 8 bytes."""
_UNIT, _OFFSET, _NUMBER = SKETCHED // 4, SKETCHED // 4 + 1, SKETCHED // 8 + 1
ENDED = _NUMBER + 1
NEVER = 2**62
"""In the place of the number of an event that contradicted another, where there was none."""
PROBES = 8
CANDIDATES = 320
"""Cells, and events in them that a view sees, that are looked at for a query."""
LEAST = 1e-4
"""Below this a kernel counts as 0."""
CLOSE, OPPOSITE = 0.3, -0.4
"""An event contradicts a remembered one whose kernel at its query is at least the first, and whose
direction has a cosine below the second with its own."""


@compiled(fastmath=FAST)
def _similarities(rows: Array, half: Array, z: Array, out: Array) -> None:
    """z·row − ‖row‖²/2, of the first coordinates of z: the larger, the nearer."""
    for j in range(rows.shape[0]):
        row = rows[j]
        total = z.dtype.type(0)
        for k in range(rows.shape[1]):
            total += row[k] * z[k]
        out[j] = total - half[j]


@compiled
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


@compiled
def put(cells: Cells, slot: int, cell: int) -> bool:
    """Put a slot into a cell that has room; whether the cell is then full."""
    members, counts, of_slot = cells
    members[cell, counts[cell]] = slot
    of_slot[slot] = cell
    counts[cell] += 1
    return counts[cell] == members.shape[1]


@compiled
def take_out(cells: Cells, slot: int) -> None:
    """Take a slot out of its cell."""
    members, counts, of_slot = cells
    cell = of_slot[slot]
    mine, at = members[cell], 0
    while mine[at] != slot:
        at += 1
    counts[cell] -= 1
    for i in range(at, counts[cell]):
        mine[i] = mine[i + 1]
    of_slot[slot] = -1


@compiled
def sketch(z: Array, offset: float, number: int, sketches: Sketches, slot: int) -> None:
    """Write the sketch of an event with coordinates z."""
    codes, floats, whole = sketches
    n = min(z.shape[0], SKETCHED)
    largest = z.dtype.type(0)
    for k in range(n):
        largest = max(largest, abs(z[k]))
    unit = largest / z.dtype.type(127)
    scale = z.dtype.type(1) / unit if unit > 0 else z.dtype.type(0)
    codes[slot, :SKETCHED] = 0
    for k in range(n):
        codes[slot, k] = np.int8(np.rint(z[k] * scale))
    floats[slot, _UNIT], floats[slot, _OFFSET] = unit, offset
    whole[slot, _NUMBER], whole[slot, ENDED] = number, NEVER


@compiled(fastmath=FAST)
def _candidates(
    z: Array,
    near: Numbers,
    cells: Cells,
    sketches: Sketches,
    views: Numbers,
    found: Numbers,
    scores: Array,
) -> Numbers:
    """For each view w the candidates found[w], and how near they are by their sketches; how many.

    Scores are q·q_i, but for a constant and for what lies beyond the sketched coordinates.
    """
    members, counts, _ = cells
    codes, floats, whole = sketches
    n_views, most = found.shape
    held = np.zeros(n_views, dtype=np.int64)
    width = min(z.shape[0], SKETCHED)
    for cell in near:
        for at in range(counts[cell] - 1, -1, -1):
            slot = members[cell, at]
            number, ended = whole[slot, _NUMBER], whole[slot, ENDED]
            score, scored = z.dtype.type(0), False
            for w in range(n_views):
                # In the window of the view, and what contradicts it is not.
                if held[w] < most and views[w, 0] <= number < views[w, 1] <= ended:
                    if not scored:
                        for k in range(width):
                            score += z.dtype.type(codes[slot, k]) * z[k]
                        score = floats[slot, _UNIT] * score + floats[slot, _OFFSET]
                        scored = True
                    found[w, held[w]], scores[w, held[w]] = slot, score
                    held[w] += 1
        if held.min() == most:
            break
    return held


@compiled
def _keep_nearest(found: Numbers, scores: Array, n: int, most: int) -> int:
    """Of n candidates, move the `most` with the highest scores to the front; how many there are.

    They keep their order; of equal scores the first count.
    """
    if n <= most:
        return n
    # As whole numbers, of which there are few: floats are ordered as their bits are, but for signs.
    keys = (scores[:n] + scores.dtype.type(0)).view(np.int32)
    for i in range(n):
        keys[i] ^= (keys[i] >> 31) & 0x7FFFFFFF
    low, high = np.int64(keys.min()), np.int64(keys.max())
    # The lowest of the highest: the largest number that `most` of them reach.
    while low < high:
        middle = (low + high + 1) >> 1
        if _reach(keys, np.int32(middle)) >= most:
            low = middle
        else:
            high = middle - 1
    least = np.int32(low)
    equal, kept = most - _reach(keys, least + 1), 0
    for i in range(n):
        same = keys[i] == least
        found[kept] = found[i]
        kept += (keys[i] > least) | (same & (equal > 0))
        equal -= same
    return kept


@compiled
def _reach(keys: NDArray[np.int32], least: int) -> Any:
    """How many are at least so large."""
    count = np.int32(0)
    for i in range(keys.shape[0]):
        count += np.int32(keys[i] >= least)
    return count


@compiled(fastmath=FAST)
def _dot(u: Array, v: Array) -> Any:
    total = v.dtype.type(0)
    for k in range(v.shape[0]):
        total += u[k] * v[k]
    return total


@compiled(fastmath=FAST)
def _similarities_of(q: Array, vectors: Array, slots: Numbers, out: Array) -> None:
    """out = q·q_i of the queries in some slots."""
    for j in range(slots.shape[0]):
        row = vectors[slots[j], 0]
        total = q.dtype.type(0)
        for k in range(q.shape[0]):
            total += row[k] * q[k]
        out[j] = total


@compiled(fastmath=FAST)
def _add_directions(
    out: Array, vectors: Array, slots: Numbers, weights: NDArray[np.float64]
) -> None:
    """out += Σ weights_j v_j of the directions in some slots, four at a time."""
    n, kind = slots.shape[0], out.dtype.type
    j = 0
    while j + 4 <= n:
        v0, v1 = vectors[slots[j], 1], vectors[slots[j + 1], 1]
        v2, v3 = vectors[slots[j + 2], 1], vectors[slots[j + 3], 1]
        w0, w1 = kind(weights[j]), kind(weights[j + 1])
        w2, w3 = kind(weights[j + 2]), kind(weights[j + 3])
        for k in range(out.shape[0]):
            out[k] += w0 * v0[k] + w1 * v1[k] + w2 * v2[k] + w3 * v3[k]
        j += 4
    while j < n:
        v, w = vectors[slots[j], 1], kind(weights[j])
        for k in range(out.shape[0]):
            out[k] += w * v[k]
        j += 1


@compiled
def recall(
    q: Array,
    z: Array,
    near: Numbers,
    memory: tuple[Cells, Events, Sketches],
    views: Numbers,
    kernel: Kernel,
    out: Array,
) -> Numbers:
    """out[w] += α Σ K_i v_i / (Σ K_i + 1) for each view w, over the nearest events it sees.

    Returns the slots that the first view has close to q.

    A view is (first number, number after the last, now): the events it sees and the time by which
    it judges their age; where the first is not below the second it sees none. z are leading
    coordinates of q, and `near` its cells. `kernel` is (α, β, c, rate, nearest):
    K_i = weight_i exp(β (q·q_i − c) − rate · age) of so many nearest candidates.
    """
    cells, (vectors, _, weights), sketches = memory
    alpha, beta, center, rate, nearest = kernel
    numbers = sketches[2]
    found = np.empty((views.shape[0], CANDIDATES), dtype=np.int64)
    scores = np.empty((views.shape[0], CANDIDATES), dtype=q.dtype)
    held = _candidates(z, near, cells, sketches, views, found, scores)
    K, similar = np.empty(nearest), np.empty(nearest, dtype=q.dtype)
    close, n_close = np.empty(nearest, dtype=np.int64), 0
    for w in range(views.shape[0]):
        kept = found[w, : _keep_nearest(found[w], scores[w], held[w], nearest)]
        _similarities_of(q, vectors, kept, similar)
        total, n = 0.0, 0
        for j in range(kept.shape[0]):
            slot = kept[j]
            # Far beyond what unit vectors reach, and far below what overflows.
            s = min(beta * (float(similar[j]) - center), 60.0)
            age = views[w, 2] - numbers[slot, _NUMBER]
            K[n] = weights[slot] * math.exp(s - rate * age)
            if w == 0 and K[n] >= CLOSE:
                close[n_close] = slot
                n_close += 1
            if K[n] >= LEAST:
                kept[n] = slot
                total += K[n]
                n += 1
        _add_directions(out[w], vectors, kept[:n], K[:n] * (alpha / (total + 1.0)))
    return close[:n_close]


@compiled
def contradict(
    direction: Array,
    close: Numbers,
    memory: tuple[Cells, Events, Sketches],
    number: int,
    weight: float,
) -> None:
    """End events close to a new one of this number that say the opposite, and weigh no more."""
    _, (vectors, _, weights), (_, _, whole) = memory
    size = float(_dot(direction, direction))
    for slot in close:
        old = vectors[slot, 1]
        most = OPPOSITE * math.sqrt(size * float(_dot(old, old)))
        if float(_dot(old, direction)) < most and weights[slot] <= weight:
            whole[slot, ENDED] = number


@compiled
def seen_by_none(numbers: Numbers, of_slot: Numbers, views: Numbers, n: int) -> NDArray[Any]:
    """Which of the first n slots are in a cell although no view sees their event."""
    found = np.zeros(n, dtype=np.bool_)
    for slot in range(n):
        if of_slot[slot] < 0:
            continue
        seen = False
        for w in range(views.shape[0]):
            seen |= views[w, 0] <= numbers[slot] < views[w, 1]
        found[slot] = not seen
    return found
