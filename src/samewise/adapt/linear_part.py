"""The linear part of an adapter: what it adds to a query, phi(q) D̄, and how lists move D."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.files.state import Saved, State
from samewise.kernels.adapter_loops import Linear, mean_of, on_lines, zeros_on_lines

RELAX = 0.5
"""τ = ℓ / (‖v‖² ‖phi‖² + 0.5 / weight): PA-II's step."""
NEWEST = 4.0
"""The newest D counts 4/(t + 3) in D̄: a mean over about the last quarter of the events,"""
LONGEST = 3000.0
"""of at most so many: what was learned of preferences that have changed is not to stay in it."""
WAITING = 16
"""Updates that pass through the matrices together."""


def frozen(D: Array) -> Linear:
    """What compiled code takes of a matrix that stays as it is."""
    nothing = np.empty((0, 2 + sum(D.shape)), dtype=np.float32)
    return D, D, np.array([1.0 if D.size else 0.0, 0.0, 0.0]), nothing


def matrix_of(linear: Linear) -> Array:
    """D̄."""
    if not linear[2][1]:
        return linear[0]
    mean = zeros_on_lines(*linear[0].shape)
    mean_of(linear, mean)
    return mean


class LinearPart:
    """D, moved by passive–aggressive steps along the directions of judged lists, and its mean D̄.

    Parameters
    ----------
    rank, width : int
        The shape of D.
    margin : float
        By how much a liked item should score above a disliked one.
    half_life : float or None
        After how many events what was learned counts half.
    """

    def __init__(self, rank: int, width: int, margin: float, half_life: float | None) -> None:
        self.margin = float(margin)
        self.half_life = None if half_life is None else float(half_life)
        self.t = 0
        self._A, self._B = zeros_on_lines(rank, width), zeros_on_lines(rank, width)
        self._scalars = np.array([1.0, 1.0, 0.0])
        self._waiting = np.zeros((WAITING, 2 + rank + width), dtype=np.float32)
        self._decay = 1.0 if half_life is None else 0.5 ** (1.0 / half_life)

    @property
    def compiled(self) -> Linear:
        """What compiled code takes."""
        return self._A, self._B, self._scalars, self._waiting

    def lesson(self, weight: float) -> tuple[float, float, float, float, float]:
        """What compiled code takes beside a list that is learned from; counts it."""
        self.t += 1
        window = min(self.t, LONGEST if self.half_life is None else min(LONGEST, self.half_life))
        newest = min(NEWEST / (window + 3.0), 1.0)
        return self.margin, weight, RELAX, self._decay, newest

    def begin(self, D: Array) -> None:
        """Begin at D, before any list."""
        self._A[:] = D

    def mean(self) -> Array:
        """D̄."""
        return matrix_of(self.compiled)

    def state(self) -> State:
        """All that the next list meets."""
        arrays: dict[str, NDArray[Any]] = {"A": self._A, "B": self._B}
        arrays["scalars"] = self._scalars[:2]
        arrays["waiting"] = self._waiting[: int(self._scalars[2])]
        names = ("t", "margin", "half_life")
        return State(arrays, {name: getattr(self, name) for name in names})

    @classmethod
    def restore(cls, saved: Saved, rank: int, width: int) -> Self:
        """The linear part of that state."""
        half_life = saved.number("half_life", least=1.0, none=np.inf)
        margin = saved.positive("margin")
        part = cls(rank, width, margin, None if half_life == np.inf else half_life)
        part.t = saved.count("t")
        only: Any = {"dtypes": ["float32"]}
        part._A, part._B = (on_lines(saved.array(name, rank, width, **only)) for name in "AB")
        part._scalars[:2] = saved.array("scalars", 2, dtypes=["float64"])
        saved.check(bool((part._scalars[:2] > 0).all()), "scalars must be positive")
        # Earlier files have none that wait.
        if saved.has("waiting"):
            shape = (None, 2 + rank + width)
            rows = saved.array("waiting", *shape, dtypes=["float32"], empty=True)
            saved.check(len(rows) < WAITING, "too many updates wait")
            part._waiting[: len(rows)] = rows
            part._scalars[2] = len(rows)
        return part
