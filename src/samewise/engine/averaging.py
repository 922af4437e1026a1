"""Which hypothesis to use: the last, or an average over those met on the way.

A hypothesis lives from one update to the next; its age is the number of rounds it was used in,
the one that ended it included. Adding weight(age) · M as it dies gives every average in
one extra matrix (the mean over rounds is weight = age), and inside a block all
of them are one more product of rank B: the m-th of them is the state M after the block minus the
updates that came later. Only the suffix average remembers single updates, as vectors, not
matrices.

An average that forgets weights rounds: one of h rounds ago, the half-life, counts half. The sums
are those at the last update, and are scaled down as rounds go by: a hypothesis that was used in
`age` rounds until then has weight Σ_{i<age} 2^(−i/h), and loses half of it in the next h rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.engine.stores import Full, Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State

Spec = str | tuple[str, int]


class Terms(Protocol):
    """What the updates of a block added to the matrix."""

    def add_to(self, M: Any, factor: NDArray[np.float64]) -> None:
        """M += Σ_u factor_u · (what update u added)."""


@dataclass(frozen=True)
class RankOnes:
    """Terms c_i l_i r_iᵀ, the i-th of update number update_i."""

    left: Array
    right: Array
    c: NDArray[np.float64]
    update: NDArray[np.intp]

    def add_to(self, M: Any, factor: NDArray[np.float64]) -> None:
        """M += Σ_i factor[update_i] c_i l_i r_iᵀ."""
        M.add(self.left, self.right, self.c * factor[self.update])

    def of(self, update: int) -> tuple[Array, Array, NDArray[np.float64]]:
        """Vectors and coefficients of one update."""
        mine = self.update == update
        return _rows(self.left[mine]), _rows(self.right[mine]), self.c[mine]


def checked_average(average: Spec) -> tuple[str, int]:
    """`average` as (kind, number)."""
    kind, number = (average, 0) if isinstance(average, str) else _two(average)
    named = kind in ("suffix", "cutoff", "decay")
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool) and number >= 1
    if kind not in ("last", "uniform", "survival", "suffix", "cutoff", "decay") or named != whole:
        raise InvalidInputError(
            "The 'average' parameter must be 'last', 'uniform', 'survival', ('suffix', q), "
            "('cutoff', k) or ('decay', h) with q, k, h integers of at least 1. "
            f"Got {average!r} instead."
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
        self.M: Any = None
        self.b = 0.0
        # (change of b, left, right, coefficients) of the last q − 1 updates, newest last.
        self.recent: deque[tuple[float, Array, Array, NDArray[np.float64]]] = deque(
            maxlen=max(self.number - 1, 0) if self.kind == "suffix" else 0
        )

    def weight(self, age: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a hypothesis of that age counts."""
        if self.kind == "survival":
            return age
        if self.kind == "cutoff":
            return np.maximum(age - self.number, 0.0)
        if self.kind == "decay":
            rate = np.log(2.0) / self.number
            return np.expm1(-rate * age) / np.expm1(-rate)
        return np.ones_like(age) if self.kind == "uniform" else np.zeros_like(age)

    def kept(self, rounds: Any) -> Any:
        """What is left of a weight after so many rounds."""
        return np.exp2(-rounds / self.number) if self.kind == "decay" else np.ones_like(rounds)

    def observe(
        self,
        state: Any,
        n_rounds: int,
        rows: NDArray[np.intp],
        thresholds: NDArray[np.float64],
        b: float,
        terms: Iterable[Terms],
    ) -> None:
        """Take in a block of `n_rounds` rounds that led to `state` and `b`.

        `rows` are the rounds that updated and `thresholds` the b each of them met; `terms` what
        they added.
        """
        if len(rows) == 0:
            self.age += n_rounds
            return
        ages = np.diff(rows, prepend=-1 - self.age).astype(np.float64)
        self.age = n_rounds - int(rows[-1]) - 1
        if self.kind == "suffix":
            self._remember(np.diff(np.append(thresholds, b)), terms)
            return
        weights = self.weight(ages) * self.kept((rows[-1] - rows).astype(np.float64))
        if not weights.any():
            return
        if self.M is None:
            self.M = state.zeros_like()
        if self.kind == "decay":
            self._forget(float(self.kept(ages.sum())))
        # Hypothesis m died at update m: it lacks the terms of updates m, m + 1, …
        reached = np.cumsum(weights)
        self.M.scaled_add(float(reached[-1]), state)
        for term in terms:
            term.add_to(self.M, -reached)
        self.b += float(weights @ thresholds)
        self.total += float(reached[-1])

    def _forget(self, left: float) -> None:
        """Scale the sums down to that part."""
        self.M.scale(left)
        self.b *= left
        self.total *= left

    def _remember(self, changes: NDArray[np.float64], terms: Iterable[Terms]) -> None:
        terms = list(terms)
        for m in range(max(0, len(changes) - self.number + 1), len(changes)):
            mine = [term.of(m) for term in terms if isinstance(term, RankOnes)]
            left, right, c = (np.concatenate(part) for part in zip(*mine, strict=True))
            self.recent.append((float(changes[m]), left, right, c))

    def correct(self, change: float, left: Array, right: Array, c: NDArray[np.float64]) -> None:
        """The last update was followed by a projection, which added Σ c_i l_i r_iᵀ and `change`."""
        if self.recent:
            before, *terms = self.recent.pop()
            both = [np.concatenate(two) for two in zip(terms, (left, right, c), strict=True)]
            self.recent.append((before + change, both[0], both[1], both[2]))

    def solution(self, state: Any, b: float) -> tuple[Array, float]:
        """The averaged (M, b), given the hypothesis alive."""
        if self.kind == "suffix":
            return self._suffix(state, b)
        age = np.array([float(self.age)])
        left, alive = float(self.kept(age)[0]), float(self.weight(age)[0])
        total = left * self.total + alive
        if self.M is None or total == 0.0:
            return state.matrix, b
        mean = self.M.copy()
        mean.scale(left)
        mean.scaled_add(alive, state)
        M = mean.matrix
        M /= M.dtype.type(total)
        return M, (left * self.b + alive * b) / total

    def _suffix(self, state: Any, b: float) -> tuple[Array, float]:
        mean = state.copy()
        q = len(self.recent) + 1
        for m, (change, left, right, c) in enumerate(self.recent):
            # The m oldest of the q hypotheses kept came before this update, and lack it.
            left, right = (vectors.astype(mean.dtype) for vectors in (left, right))
            mean.add(left, right, -c * (m + 1) / q)
            b -= change * (m + 1) / q
        return mean.matrix, b

    def state(self) -> State:
        """The running sums; of a suffix the vectors, one update's after the other's."""
        names = ("kind", "number", "age", "total", "b")
        state = State(values={name: getattr(self, name) for name in names})
        if self.M is not None:
            state.add("M", self.M.state())
        if self.recent:
            changes, *terms = zip(*self.recent, strict=True)
            left, right, c = (np.concatenate(part) for part in terms)
            sizes = np.array([len(part) for part in terms[2]], dtype=np.int64)
            state.arrays.update(changes=np.array(changes), sizes=sizes, left=left, right=right, c=c)
        return state

    @classmethod
    def restore(cls, saved: Saved, store: Any) -> Self:
        """The average of that state, beside the matrix it averages."""
        kind, number = saved.value("kind"), saved.count("number")
        average = cls(kind if number == 0 else (kind, number))
        average.age = saved.count("age")
        average.total, average.b = saved.number("total", least=0.0), saved.number("b")
        if saved.has("M"):
            M = (Symmetric if isinstance(store, Symmetric) else Full).restore(saved.part("M"))
            same = M.shape == store.shape and M.dtype == store.dtype
            saved.check(same, "M must be like the matrix it averages")
            average.M = M
        if saved.has("changes"):
            updates = _restored_updates(saved, *store.shape)
            saved.check(len(updates) < average.number, "changes are more than it remembers")
            average.recent.extend(updates)
        return average


def _restored_updates(saved: Saved, m: int, n: int) -> list[Any]:
    """What a suffix average remembers of the last updates."""
    changes = saved.array("changes", None, dtypes=["float64"])
    sizes = saved.array("sizes", len(changes), dtypes=["int64"])
    c = saved.array("c", None, dtypes=["float64"])
    left, right = saved.array("left", len(c), m), saved.array("right", len(c), n)
    apart = sizes.min() >= 1 and sizes.max() <= len(c) and sizes.sum() == len(c)
    saved.check(bool(apart), "sizes do not part the updates")
    parts = (np.split(values, np.cumsum(sizes)[:-1]) for values in (left, right, c))
    return list(zip(changes.tolist(), *parts, strict=True))


def _rows(vectors: Array) -> Array:
    return vectors.toarray() if hasattr(vectors, "toarray") else vectors
