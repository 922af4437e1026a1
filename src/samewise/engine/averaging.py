"""Which hypothesis to hand out: the last, or an average over those met on the way.

A hypothesis lives from one update to the next; its age is the number of rounds it was used in,
the one that ended it included. Adding weight(age) · M as it dies gives every average of
algorithms.md §9 in one extra matrix (the mean over rounds is weight = age), and inside a block all
of them are one more product of rank B: the m-th of them is the state M after the block minus the
updates that came later. Only the suffix average remembers single updates, as vectors, not
matrices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.engine.stores import Store
from samewise.exceptions import InvalidInputError

Spec = str | tuple[str, int]

Part = tuple[Array, Array, NDArray[np.float64], NDArray[np.intp]]
"""Rank-one terms: left vectors, right vectors, coefficients, number of the update each is of."""


def checked_average(average: Spec) -> tuple[str, int]:
    """`average` as (kind, number)."""
    kind, number = (average, 0) if isinstance(average, str) else _two(average)
    named = kind in ("suffix", "cutoff")
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool) and number >= 1
    if kind not in ("last", "uniform", "survival", "suffix", "cutoff") or named != whole:
        raise InvalidInputError(
            "The 'average' parameter must be 'last', 'uniform', 'survival', ('suffix', q) or "
            f"('cutoff', k) with q, k integers of at least 1. Got {average!r} instead."
        )
    return kind, int(number)


def _two(average: Any) -> tuple[Any, Any]:
    if isinstance(average, tuple | list) and len(average) == 2:
        return average[0], average[1]
    return average, 0


class Average:
    """The running sums of one kind of average."""

    def __init__(self, average: Spec) -> None:
        self.kind, self.number = checked_average(average)
        self.age = 0
        self.total = 0.0
        self.M: Store | None = None
        self.b = 0.0
        # (change of b, left, right, coefficients) of the last q − 1 updates, newest last.
        self.recent: deque[tuple[float, Array, Array, NDArray[np.float64]]] = deque(
            maxlen=max(self.number - 1, 0)
        )

    def weight(self, age: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a hypothesis of that age counts."""
        if self.kind == "survival":
            return age
        if self.kind == "cutoff":
            return np.maximum(age - self.number, 0.0)
        return np.ones_like(age) if self.kind == "uniform" else np.zeros_like(age)

    def observe(
        self,
        state: Store,
        n_rounds: int,
        rows: NDArray[np.intp],
        thresholds: NDArray[np.float64],
        b: float,
        parts: Iterable[Part],
    ) -> None:
        """Take in a block of `n_rounds` rounds that led to `state` and `b`.

        `rows` are the rounds that updated and `thresholds` the b each of them met; `parts` the
        rank-one terms they added.
        """
        if len(rows) == 0:
            self.age += n_rounds
            return
        ages = np.diff(rows, prepend=-1 - self.age).astype(np.float64)
        self.age = n_rounds - int(rows[-1]) - 1
        if self.kind == "suffix":
            self._remember(np.diff(np.append(thresholds, b)), parts)
            return
        weights = self.weight(ages)
        if not weights.any():
            return
        if self.M is None:
            self.M = state.zeros_like()
        # Hypothesis m died at update m: it lacks the terms of updates m, m + 1, …
        reached = np.cumsum(weights)
        self.M.scaled_add(float(reached[-1]), state)  # type: ignore[arg-type]
        for left, right, c, update in parts:
            self.M.add(left, right, -c * reached[update])
        self.b += float(weights @ thresholds)
        self.total += float(reached[-1])

    def _remember(self, changes: NDArray[np.float64], parts: Iterable[Part]) -> None:
        parts = list(parts)
        for m in range(max(0, len(changes) - self.number + 1), len(changes)):
            mine = [(left[u == m], right[u == m], c[u == m]) for left, right, c, u in parts]
            left, right = (np.concatenate([_rows(term[i]) for term in mine]) for i in (0, 1))
            c = np.concatenate([term[2] for term in mine])
            self.recent.append((float(changes[m]), left, right, c))

    def correct(self, change: float, left: Array, right: Array, c: NDArray[np.float64]) -> None:
        """The last update was followed by a projection, which added Σ c_i l_i r_iᵀ and `change`."""
        if self.recent:
            before, *terms = self.recent.pop()
            both = [np.concatenate(two) for two in zip(terms, (left, right, c), strict=True)]
            self.recent.append((before + change, both[0], both[1], both[2]))

    def solution(self, state: Store, b: float) -> tuple[Array, float]:
        """The averaged (M, b), given the hypothesis alive."""
        if self.kind == "suffix":
            return self._suffix(state, b)
        alive = float(self.weight(np.array([float(self.age)]))[0])
        if self.M is None or self.total + alive == 0.0:
            return state.matrix, b
        total = self.total + alive
        M = (self.M.matrix + state.dtype.type(alive) * state.matrix) / total
        return M.astype(state.dtype), (self.b + alive * b) / total

    def _suffix(self, state: Store, b: float) -> tuple[Array, float]:
        mean = state.copy()
        q = len(self.recent) + 1
        for m, (change, left, right, c) in enumerate(self.recent):
            # The m oldest of the q hypotheses kept came before this update, and lack it.
            left, right = (vectors.astype(mean.dtype) for vectors in (left, right))
            mean.add(left, right, -c * (m + 1) / q)
            b -= change * (m + 1) / q
        return mean.matrix, b


def _rows(vectors: Array) -> Array:
    return vectors.toarray() if hasattr(vectors, "toarray") else vectors
