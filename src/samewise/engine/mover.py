"""What moves a matrix: one small protocol, and the record of what a block did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.engine.averaging import Terms
from samewise.engine.directions import Directions
from samewise.engine.stores import Store
from samewise.kernels.steps import Moved

PATHS: tuple[str, ...] = ("auto", "compiled", "blocked", "plain")

Correction: TypeAlias = tuple[float, Array, Array, NDArray[np.float64]]
"""What a projection added: a change of b, and Σ c_i l_i r_iᵀ as (left, right, c)."""


@dataclass
class Trace:
    """What happened in a block: for its `done` first examples, and the b it ended with.

    Example i found `threshold[i]`, violated its constraint by `violation[i]` and moved by `tau[i]`;
    where M was projected at once, `mu[i]` U[i] U[i]ᵀ was added. `terms` are what the updates added
    to the matrix, where they were asked for. `settle` is what follows the last update, once all
    that the block did is known: a projection.
    """

    done: int
    b: float
    tau: NDArray[np.float64]
    violation: NDArray[np.float64]
    threshold: NDArray[np.float64]
    mu: NDArray[np.float64]
    U: Array
    terms: Sequence[Terms] = ()
    settle: Callable[[], Correction] | None = None

    @classmethod
    def empty(cls, n: int, d: int = 0) -> Trace:
        """Room for n examples; with d, for their projections too."""
        tau, violation, threshold, mu = np.zeros((4, n))
        return cls(n, 0.0, tau, violation, threshold, mu, np.zeros((n, d)))

    @property
    def moved(self) -> Moved:
        """What compiled loops write."""
        return self.tau, self.violation, self.threshold

    @property
    def updates(self) -> NDArray[np.intp]:
        """The examples that moved something."""
        return np.flatnonzero(self.tau[: self.done])


class Mover(Protocol):
    """A matrix and a threshold, and how examples move them. Every mover is Storable."""

    @property
    def store(self) -> Store:
        """The matrix."""

    @property
    def b(self) -> float:
        """The threshold."""

    @property
    def least_b(self) -> float:
        """The smallest threshold that may be returned."""

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by the next block of the directions, from `start` on.

        The trace says how many that were; with `keep` it has the terms that were added.
        """
