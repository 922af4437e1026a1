"""The loop of LEGO: A moved to where it is nearest in the LogDet divergence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from samewise._typing import Array
from samewise.engine.directions import Directions
from samewise.engine.online import Online
from samewise.engine.policy import Trace
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.kernels import logdet_loop as logdet
from samewise.kernels.steps import pa2

__all__ = ["LogDet"]


class LogDet(Online):
    """Steps A⁻¹ ← A⁻¹ + β v vᵀ towards y (b − vᵀAv) ≥ margin; b stays where it is.

    Parameters
    ----------
    A : array of shape (d, d)
        Positive definite, which it remains.
    b, margin : float
        Similar pairs are to have vᵀAv ≤ b − margin, dissimilar ones vᵀAv ≥ b + margin.
    eta : float
        η. With half the squared violation η times, the step is PA-II's of C = η/2 under another
        measure of how far A moves.
    """

    def __init__(self, A: Array, b: float, margin: float, eta: float) -> None:
        super().__init__(
            Symmetric(A),
            b,
            pa2(eta / 2),
            psd="end",
            least_b=-np.inf,
            average="last",
            tolerance=0.0,
            path="compiled",
        )
        self.margin = margin

    def _advance(self, path: str, block: Directions) -> Trace:
        trace = Trace.empty(len(block))
        A, V = self.store.matrix, block.dense(self.store.dtype).right
        rate = block.weight / self.step.relax
        moved: Any = (A, V, block.offset, self.b, block.target, rate, trace.tau, trace.violation)
        logdet.online(*moved)
        self.store.matrix = A
        trace.b = self.b
        return trace

    def state(self) -> State:
        """All that the next example meets."""
        state = super().state()
        state.values["margin"] = float(self.margin)
        return state

    @classmethod
    def restore(cls, saved: Saved, kind: Any = Symmetric) -> Self:
        """The loop of that state."""
        online = super().restore(saved, kind)
        online.margin = saved.positive("margin")
        right = online.psd == "end" and online.average.kind == "last" and online.step.relax > 0
        saved.check(right and online.b > online.margin, "is no state of LogDet steps")
        return online
