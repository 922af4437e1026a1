"""Steps of LEGO: A moved to where it is nearest in the LogDet divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from samewise.engine.directions import Directions
from samewise.engine.mover import Trace
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.kernels import logdet_loop as logdet


@dataclass
class LogDetMover(Storable):
    """Steps A⁻¹ ← A⁻¹ + β v vᵀ towards y (b − vᵀAv) ≥ target; b stays where it is.

    Parameters
    ----------
    store : Symmetric
        A, positive definite, which it remains.
    b : float
        The threshold.
    eta : float
        η, the cost of half the squared violation.
    """

    store: Symmetric
    b: float
    eta: float
    least_b: float = -math.inf

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by all the directions from `start` on."""
        block = directions.rows(start)
        trace = Trace.empty(len(block))
        A, V = self.store.matrix, block.dense(self.store.dtype).right
        rate = block.weight / (1.0 / self.eta)
        moved: Any = (A, V, block.offset, self.b, block.target, rate, trace.tau, trace.violation)
        logdet.online(*moved)
        if not np.isfinite(A.sum()):
            raise FloatingPointError("A is not finite.")
        self.store.matrix = A
        trace.b = self.b
        return trace

    def state(self) -> State:
        """All that the next example meets."""
        values = {"b": float(self.b), "eta": float(self.eta)}
        return State(values=values).add("store", self.store.state())

    @classmethod
    def restore(cls, saved: Saved) -> LogDetMover:
        """The mover of that state."""
        store = Symmetric.restore(saved.part("store"))
        return cls(store, saved.positive("b"), saved.positive("eta"))
