"""One judged list: how forms rank it, what it moves, and which remembered lists are near.

Everything is float32 but for scalars and the state of bets. A list has grades: 0 is not judged, and
of two judged items that of the higher grade should come first.

The linear part is D = a A with its mean D̄ = D + c B. Where a list moves D by τ f vᵀ and the newest
D counts w in the mean, B moves by −τ/c f vᵀ and c shrinks by 1 − w: the mean of the whole course
costs one more update of rank one, and nothing where the list moves nothing. Updates wait until
there are several, and then pass through the matrices once.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST
from samewise.kernels.steps import step_size

Grades: TypeAlias = NDArray[np.int64]
Scalars: TypeAlias = NDArray[np.float64]
Linear: TypeAlias = tuple[Array, Array, Scalars, Array]
"""A, B, (a, c, number of updates that wait) and these: D = a A and D̄ = a A + c B.

An update that waits is a row (x, y, f, v): A += x f vᵀ and B += y f vᵀ. Of a frozen copy c is 0.
"""
Lesson: TypeAlias = tuple[float, float, float, float, float]
"""Margin, weight, PA-II's relaxation, how much of the past is kept, weight of the newest D in D̄."""
SHARE = 0.1
"""The share of the wealth that is bet on a win."""
SMALL = 1e-12
"""Below this a factor goes into its matrix."""


def zeros_on_lines(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Zeros that begin where a line of the cache begins: rows then lie in as few as possible."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, dtype=np.int8)
    begin = -room.ctypes.data % 64
    return room[begin : begin + size].view(dtype).reshape(shape)


def on_lines(values: NDArray[Any]) -> NDArray[Any]:
    """A copy of this kind."""
    copy = zeros_on_lines(*values.shape, dtype=values.dtype)
    copy[:] = values
    return copy


@compiled(fastmath=FAST)
def combine(weights: Array, rows: Array, out: Array) -> None:
    """out += weights @ rows, four rows at a time."""
    n, d = rows.shape
    r = 0
    while r + 4 <= n:
        r0, r1, r2, r3 = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        w0, w1, w2, w3 = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
        for k in range(d):
            out[k] += w0 * r0[k] + w1 * r1[k] + w2 * r2[k] + w3 * r3[k]
        r += 4
    while r < n:
        row, w = rows[r], weights[r]
        for k in range(d):
            out[k] += w * row[k]
        r += 1


@compiled(fastmath=FAST)
def products(rows: Array, v: Array, out: Array) -> None:
    """out = rows @ v."""
    for i in range(rows.shape[0]):
        row = rows[i]
        total = v.dtype.type(0)
        for k in range(v.shape[0]):
            total += row[k] * v[k]
        out[i] = total


@compiled(fastmath=FAST)
def _dot(u: Array, v: Array) -> Any:
    total = v.dtype.type(0)
    for k in range(v.shape[0]):
        total += u[k] * v[k]
    return total


@compiled
def list_direction(
    shown: Array, grades: Grades, scores: Array, margin: float, v: Array
) -> tuple[int, float]:
    """The mean v of p_i − p_j over the pairs, i graded above j, that lack margin; their number.

    Returns also the mean lack, margin − (s_i − s_j).
    """
    n = shown.shape[0]
    count, lack = 0, 0.0
    share = np.zeros(n, dtype=np.int64)
    for i in range(n):
        for j in range(n):
            if grades[i] > grades[j] and grades[i] != 0 and grades[j] != 0:
                p = margin - (float(scores[i]) - float(scores[j]))
                if p > 0.0:
                    share[i] += 1
                    share[j] -= 1
                    lack += p
                    count += 1
    v[:] = 0
    if count == 0:
        return 0, 0.0
    for i in range(n):
        if share[i] != 0:
            w = v.dtype.type(share[i] / count)
            row = shown[i]
            for k in range(v.shape[0]):
                v[k] += w * row[k]
    return count, lack / count


@compiled
def agreement(scores: Array, grades: Grades, apart: int) -> tuple[float, float]:
    """The share of pairs in the order of their grades (AUC), and whether the best item is liked.

    Pairs with the item `apart` do not count; NaN where there are no others. Liked are grades above
    the middle between the lowest and the highest, which must differ. Ties of scores count half, and
    the first of the best is taken.
    """
    n = scores.shape[0]
    right, pairs, best = 0.0, 0, -1
    low, high = 0, 0
    for i in range(n):
        if grades[i] == 0:
            continue
        if best < 0:
            best, low, high = i, grades[i], grades[i]
        if scores[i] > scores[best]:
            best = i
        low, high = min(low, grades[i]), max(high, grades[i])
        for j in range(n):
            if grades[j] != 0 and grades[i] > grades[j] and i != apart and j != apart:
                pairs += 1
                if scores[i] > scores[j]:
                    right += 1.0
                elif scores[i] == scores[j]:
                    right += 0.5
    liked = 1.0 if 2 * grades[best] > low + high else 0.0
    return (right / pairs if pairs > 0 else math.nan), liked


@compiled
def contrast(shown: Array, grades: Grades, v: Array) -> None:
    """v = mean of the liked − mean of the disliked items, of a list that has both."""
    low, high, seen = 0, 0, False
    for g in grades:
        if g != 0:
            low, high = (min(low, g), max(high, g)) if seen else (g, g)
            seen = True
    liked, disliked = 0, 0
    for g in grades:
        if g != 0:
            liked += 2 * g > low + high
            disliked += 2 * g <= low + high
    v[:] = 0
    for i in range(shown.shape[0]):
        if grades[i] != 0:
            up = 2 * grades[i] > low + high
            w = v.dtype.type(1.0 / liked if up else -1.0 / disliked)
            row = shown[i]
            for k in range(v.shape[0]):
                v[k] += w * row[k]


@compiled
def add_product(f: Array, linear: Linear, which: int, scale: float, out: Array) -> None:
    """out += scale · f A, or f B if `which` is 1, with the updates that wait."""
    A, B, scalars, waiting = linear
    scaled = f * f.dtype.type(scale)
    if which == 0:
        combine(scaled, A, out)
    else:
        combine(scaled, B, out)
    r = f.shape[0]
    n = int(scalars[2])
    weights = np.empty(n, dtype=f.dtype)
    for i in range(n):
        weights[i] = waiting[i, which] * _dot(waiting[i, 2 : 2 + r], scaled)
    combine(weights, waiting[:n, 2 + r :], out)


@compiled(fastmath=FAST)
def settle(linear: Linear) -> None:
    """Add the updates that wait to A and B, eight at a time; a row is read once for these."""
    A, B, scalars, waiting = linear
    n, (r, d) = int(scalars[2]), A.shape
    # Beyond the last of them weights are 0.
    m = n + -n % 8
    x, y = np.zeros(m, dtype=A.dtype), np.zeros(m, dtype=A.dtype)
    v = np.zeros((m, d), dtype=A.dtype)
    v[:n] = waiting[:n, 2 + r :]
    for j in range(r):
        first, second = A[j], B[j]
        for i in range(n):
            x[i], y[i] = waiting[i, 0] * waiting[i, 2 + j], waiting[i, 1] * waiting[i, 2 + j]
        for i in range(0, m, 8):
            v0, v1, v2, v3 = v[i], v[i + 1], v[i + 2], v[i + 3]
            v4, v5, v6, v7 = v[i + 4], v[i + 5], v[i + 6], v[i + 7]
            x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
            x4, x5, x6, x7 = x[i + 4], x[i + 5], x[i + 6], x[i + 7]
            y0, y1, y2, y3 = y[i], y[i + 1], y[i + 2], y[i + 3]
            y4, y5, y6, y7 = y[i + 4], y[i + 5], y[i + 6], y[i + 7]
            for k in range(d):
                first[k] += x0 * v0[k] + x1 * v1[k] + x2 * v2[k] + x3 * v3[k]
                first[k] += x4 * v4[k] + x5 * v5[k] + x6 * v6[k] + x7 * v7[k]
                second[k] += y0 * v0[k] + y1 * v1[k] + y2 * v2[k] + y3 * v3[k]
                second[k] += y4 * v4[k] + y5 * v5[k] + y6 * v6[k] + y7 * v7[k]
    scalars[2] = 0.0


@compiled
def _await(linear: Linear, x: float, y: float, f: Array, v: Array) -> None:
    """A += x f vᵀ and B += y f vᵀ, at once or when there are several."""
    _, _, scalars, waiting = linear
    row = waiting[int(scalars[2])]
    row[0], row[1] = x, y
    row[2 : 2 + f.shape[0]] = f
    row[2 + f.shape[0] :] = v
    scalars[2] += 1.0
    if scalars[2] == waiting.shape[0]:
        settle(linear)


@compiled
def learn_list(
    linear: Linear,
    f: Array,
    moved: Array,
    base: Array,
    shown: Array,
    grades: Grades,
    lesson: Lesson,
) -> float:
    """Move D and its mean by a judged list; returns τ.

    `base` is the query under the start, f its whitened form and `moved` f A. First everything
    fades; the newest D then has its weight in the mean.
    """
    scalars = linear[2]
    margin, weight, relax, decay, newest = lesson
    scalars[0] *= decay
    scalars[1] *= decay
    q, v = base + base.dtype.type(scalars[0]) * moved, np.empty_like(base)
    scores = np.empty(shown.shape[0], dtype=base.dtype)
    products(shown, q, scores)
    count, lack = list_direction(shown, grades, scores, margin, v)
    tau = 0.0
    if count > 0:
        step = (math.inf, relax, False, 0.0)
        tau = step_size(lack, float(_dot(v, v)) * float(_dot(f, f)), weight, step)
    if newest >= 1.0:
        # The newest is all there is: B is zero, and stays so.
        scalars[1] = 1.0
        if tau != 0.0:
            _await(linear, tau / scalars[0], 0.0, f, v)
    else:
        if tau != 0.0:
            _await(linear, tau / scalars[0], -tau / scalars[1], f, v)
        scalars[1] *= 1.0 - newest
    if min(scalars[0], scalars[1]) < SMALL:
        _rescale(linear)
    return tau


@compiled
def _rescale(linear: Linear) -> None:
    """Put the factors into the matrices before they are too small for float32."""
    settle(linear)
    A, B, scalars, _ = linear
    A *= A.dtype.type(scalars[0])
    B *= B.dtype.type(scalars[1])
    scalars[:2] = 1.0


@compiled
def mean_of(linear: Linear, out: Array) -> None:
    """out = D̄ = a A + c B."""
    A, B, scalars, waiting = linear
    a, c = out.dtype.type(scalars[0]), out.dtype.type(scalars[1])
    r = A.shape[0]
    for i in range(r):
        for k in range(A.shape[1]):
            out[i, k] = a * A[i, k] + c * B[i, k]
    for j in range(int(scalars[2])):
        x = a * waiting[j, 0] + c * waiting[j, 1]
        for i in range(r):
            combine(x * waiting[j, 2 + i : 3 + i], waiting[j : j + 1, 2 + r :], out[i])


@compiled
def bet_on_wins(test: NDArray[np.float64], x: float) -> None:
    """Bet the same share of the wealth on x > 0, where x is −1, 0 or 1.

    `test` is [log wealth, number, sum, sum of squares].
    """
    test[1] += 1.0
    test[2] += x
    test[3] += x * x
    test[0] += math.log1p(SHARE * x)


@compiled
def bet(test: NDArray[np.float64], x: float) -> None:
    """Bet on x > 0: `test` is [log wealth, number, sum, sum of squares] of x ∈ [−1, 1].

    λ = clip(m/v, 0, ½) of the past, where five values of variance 0.1 and mean 0 were seen before.
    """
    share = test[2] / (test[3] + 0.5)
    test[0] += math.log1p(min(max(share, 0.0), 0.5) * x)
    test[1] += 1.0
    test[2] += x
    test[3] += x * x
