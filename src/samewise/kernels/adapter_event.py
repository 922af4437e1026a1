"""Queries under several forms at once, and what one judged list says about these forms.

What takes longer than to take the GIL again gives it up: searches are answered meanwhile. Who
learns and who reads are kept apart by `alone`.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.adapter_loops import (
    Grades,
    Lesson,
    Linear,
    add_product,
    agreement,
    bet,
    bet_on_wins,
    combine,
    contrast,
    learn_list,
    products,
    zeros_on_lines,
)
from samewise.kernels.compiling import compiled
from samewise.kernels.event_cells import (
    LINES,
    PROBES,
    Cells,
    Events,
    Kernel,
    Numbers,
    Sketches,
    contradict,
    nearest_pivots,
    put,
    recall,
    sketch,
    take_out,
)

Units: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""μ, L, what turns phi(q) into coordinates, the pivots in these and half their squared norms."""
Memory: TypeAlias = tuple[Cells, Events, Sketches]

LARGEST = 1e6
"""Beyond this, products of what is learned could leave float32."""
SOUND, ONE_KIND, SIZE, ANSWER = range(4)
"""What `sound` finds: nothing wrong; nothing to compare; values too large; a wrong answer."""
REST, FIRST, CREDIBLE, FALL_REST, FALL_FIRST, GAIN = range(6)
"""The rows of the bets: live against served, the agreement with the start, start against served.

The last is no bet: the sums say by how much the live form orders lists better than what is served.
"""


@compiled
def sound(query: Array, shown: Array, y: NDArray[Any], largest: int, grades: Grades) -> int:
    """What is wrong with a judged list, SOUND or ONE_KIND if nothing; writes its grades.

    Answers are whole numbers up to `largest` in size.
    """
    if not _within(query, LARGEST):
        return SIZE
    for i in range(shown.shape[0]):
        if not _within(shown[i], LARGEST):
            return SIZE
    low, high = 0, 0
    for i in range(y.shape[0]):
        grade = int(y[i]) if -largest <= y[i] <= largest else 0
        if y[i] != grade:
            return ANSWER
        grades[i] = grade
        if grade != 0:
            low = grade if low == 0 else min(low, grade)
            high = grade if high == 0 else max(high, grade)
    return SOUND if low < high else ONE_KIND


@compiled
def _within(row: Array, most: float) -> bool:
    """Whether all values are finite and at most so large; a comparison with NaN is false."""
    right = True
    for k in range(row.shape[0]):
        right &= abs(row[k]) <= most
    return right


@compiled
def whiten(q: Array, mu: Array, L: Array, out: Array) -> None:
    """out = (q − μ) L."""
    out[:] = 0
    combine(q - mu, L, out)


@compiled
def add_linear(f: Array, linear: Linear, out: Array) -> None:
    """out += f D̄."""
    scalars = linear[2]
    if scalars[0] != 0.0:
        add_product(f, linear, 0, scalars[0], out)
    if scalars[1] != 0.0:
        add_product(f, linear, 1, scalars[1], out)


@compiled
def near_cells(z: Array, units: Units) -> Numbers:
    """The cells of the pivots nearest to coordinates, the nearest first."""
    return nearest_pivots(units[3], units[4], z, PROBES)


@compiled(nogil=True)
def embed_rows(
    Q: Array,
    F: Array,
    units: Units,
    linear: Linear,
    memory: Memory,
    view: Numbers,
    kernel: Kernel,
    out: Array,
) -> None:
    """out += what a form adds to the start, for each row of Q.

    F are the whitened queries; where it is empty, they are computed.
    """
    f = np.empty(units[1].shape[1], dtype=Q.dtype)
    for i in range(Q.shape[0]):
        if F.shape[0]:
            f[:] = F[i]
        else:
            whiten(Q[i], units[0], units[1], f)
        add_linear(f, linear, out[i])
        if view[0, 0] < view[0, 1]:
            z = f * units[2]
            recall(Q[i], z, near_cells(z, units), memory, view, kernel, out[i : i + 1])


@compiled(nogil=True)
def hear_list(
    queries: tuple[Array, Array],
    shown: Array,
    grades: Grades,
    units: Units,
    linears: tuple[Linear, Linear, Linear],
    memory: tuple[Memory, Numbers, Kernel],
    guard: tuple[
        NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]
    ],
    heard: tuple[int, float, int],
    lesson: Lesson,
    place: tuple[int, int],
) -> tuple[bool, bool]:
    """Test, then train: one judged list.

    Parameters
    ----------
    queries
        The query, and its base under the start.
    linears
        Of the live form, the order served, and the first place served.
    memory
        What is remembered, the views of these three forms (of two, where the last are one), the
        kernel.
    guard
        The bets, the last agreements with the start, the log wealth at which something is due, and
        where the AUC and the first place of the list under start, served and live are written; NaN
        where the list says nothing about them.
    heard
        2 where the list tests the forms, 1 where it is a judged list all the same; the lead of the
        live form in an interleaved one; and the place of its candidate, −1 if there is none.
    place
        The slot to remember the list in (none if negative) and its number.

    Returns whether something is due, and whether the cell of the list is full.
    """
    q, base = queries
    remembered, views, kernel = memory
    f = np.empty(units[1].shape[1], dtype=q.dtype)
    whiten(q, units[0], units[1], f)
    z = f * units[2]
    near = near_cells(z, units)
    moved = np.zeros(q.shape[0], dtype=q.dtype)
    add_product(f, linears[0], 0, 1.0, moved)
    bets, recent, limits, tested = guard
    tested[:] = math.nan
    close = near[:0]
    if heard[0] == 2:
        under = _under(base, f, moved, linears, views.shape[0])
        close = recall(q, z, near, remembered, views, kernel, under[: views.shape[0]])
        _place_bets(under, shown, grades, heard[2], bets, recent, tested)
    elif heard[0] == 1:
        close = recall(q, z, near, remembered, views[:1], kernel, np.zeros_like(q)[None])
    elif heard[1] != 0.0:
        bet_on_wins(bets[REST], heard[1])
    learn_list(linears[0], f, moved, base, shown, grades, lesson)
    full = False
    if place[0] >= 0:
        full = _keep((q, z), near[0], close, (shown, grades), units, remembered, place, lesson[1])
    due = False
    for i in range(bets.shape[0]):
        due |= bets[i, 0] >= limits[i]
    return due, full


@compiled(nogil=True)
def remember_list(
    q: Array,
    shown: Array,
    grades: Grades,
    units: Units,
    memory: tuple[Memory, Numbers, Kernel],
    place: tuple[int, int],
    weight: float,
) -> bool:
    """Remember a judged list and nothing else, as `hear_list` does; whether its cell is full."""
    remembered, views, kernel = memory
    f = np.empty(units[1].shape[1], dtype=q.dtype)
    whiten(q, units[0], units[1], f)
    z = f * units[2]
    near = near_cells(z, units)
    close = recall(q, z, near, remembered, views, kernel, np.zeros_like(q)[None])
    return _keep((q, z), near[0], close, (shown, grades), units, remembered, place, weight)


@compiled
def _keep(
    queries: tuple[Array, Array],
    cell: int,
    close: Numbers,
    judged: tuple[Array, Grades],
    units: Units,
    memory: Memory,
    place: tuple[int, int],
    weight: float,
) -> bool:
    """Remember a list, and end what is close and says the opposite; whether its cell is full.

    `queries` are the query and its coordinates, `judged` the items and their grades.
    """
    q, z = queries
    direction = np.empty_like(q)
    contrast(judged[0], judged[1], direction)
    contradict(direction, close, memory, place[1], weight)
    full = _remember(q, direction, cell, memory, place, weight)
    sketch(z, float(np.dot(q, units[0])), place[1], memory[2], place[0])
    return full


@compiled
def _under(
    base: Array, f: Array, moved: Array, linears: tuple[Linear, Linear, Linear], n: int
) -> Array:
    """The query under the linear parts of live, rest and (of three) first, and the start."""
    under = np.empty((n + 1, base.shape[0]), dtype=base.dtype)
    for w in range(n + 1):
        under[w] = base
    scalars = linears[0][2]
    under[0] += base.dtype.type(scalars[0]) * moved
    add_product(f, linears[0], 1, scalars[1], under[0])
    add_linear(f, linears[1], under[1])
    if n == 3:
        add_linear(f, linears[2], under[2])
    return under


@compiled
def _place_bets(
    under: Array,
    shown: Array,
    grades: Grades,
    candidate: int,
    bets: NDArray[np.float64],
    recent: NDArray[np.float64],
    tested: NDArray[np.float64],
) -> None:
    """Bet on how a list with items of two kinds is ranked under live, rest, first and start."""
    n = under.shape[0]
    auc, best = np.empty(n), np.empty(n)
    scores = np.empty(shown.shape[0], dtype=under.dtype)
    for w in range(n):
        products(shown, under[w], scores)
        auc[w], best[w] = agreement(scores, grades, candidate)
    tested[:, 0] = auc[n - 1], auc[1], auc[0]
    tested[:, 1] = best[n - 1], best[n - 2], best[0]
    bet_on_wins(bets[FIRST], best[0] - best[n - 2])
    bet(bets[FALL_FIRST], best[n - 1] - best[n - 2])
    if math.isnan(auc[0]):
        return
    bet_on_wins(bets[REST], np.sign(auc[0] - auc[1]))
    bets[GAIN, 1] += 1.0
    bets[GAIN, 2] += auc[0] - auc[1]
    agreed = 2.0 * auc[n - 1] - 1.0
    recent[int(bets[CREDIBLE, 1]) % recent.shape[0]] = agreed
    bet(bets[CREDIBLE], agreed)
    bet(bets[FALL_REST], np.sign(auc[n - 1] - auc[1]))


@compiled
def _remember(
    q: Array,
    direction: Array,
    cell: int,
    memory: Memory,
    place: tuple[int, int],
    weight: float,
) -> bool:
    """Write a query and its direction into a slot, in the place of what it held.

    Returns whether its cell is full.
    """
    cells, events, _ = memory
    slot, number = place
    if cells[2][slot] >= 0:
        take_out(cells, slot)
    vectors, numbers, weights = events
    vectors[slot, 0], vectors[slot, 1] = q, direction
    numbers[slot], weights[slot] = number, weight
    return put(cells, slot, cell)


@compiled(nogil=True)
def fill_cells(memory: Memory, of_slot: Numbers, units: Units) -> None:
    """Put the events of the first slots into cells, and write their sketches."""
    cells, (vectors, numbers, _), sketches = memory
    f = np.empty(units[1].shape[1], dtype=vectors.dtype)
    for i in range(of_slot.shape[0]):
        q = vectors[i, 0]
        whiten(q, units[0], units[1], f)
        put(cells, i, of_slot[i])
        sketch(f * units[2], float(np.dot(q, units[0])), numbers[i], sketches, i)


def no_sketches(n_slots: int) -> Any:
    """Sketches of empty slots."""
    codes = zeros_on_lines(n_slots, LINES, dtype=np.int8)
    return codes, codes.view(np.float32), codes.view(np.int64)
