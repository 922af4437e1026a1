"""Steps of LEGO: A moved to where it is nearest in the LogDet divergence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from samewise.engine.averaging import RankOnes
from samewise.engine.directions import Directions
from samewise.engine.mover import Trace
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.kernels import logdet_loop as logdet

BLOCK = 256
"""Pairs between two looks at the average: what moved A is kept until then."""


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
        """Move by the next block of the directions, from `start` on; by all where none is kept."""
        block = directions.rows(start, start + BLOCK) if keep else directions.rows(start)
        trace, c = Trace.empty(len(block)), np.zeros(len(block))
        A, V = self.store.matrix, block.dense(self.store.dtype).right
        W = np.empty((len(block) if keep else 1, V.shape[1]))
        rate = block.weight / (1.0 / self.eta)
        given: Any = (A, V, block.offset, self.b, block.target, rate)
        given += trace.tau, trace.violation, W, c
        logdet.online(*given)
        if not np.isfinite(A.sum()):
            raise FloatingPointError("A is not finite.")
        self.store.matrix = A
        trace.b = trace.threshold[:] = self.b
        if keep:
            rows = trace.updates
            trace.terms = [RankOnes(W[rows], W[rows], c[rows], np.arange(len(rows)))]
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
