"""Steps of gCosLA: a generalized cosine and a threshold on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from scipy.linalg import eigh

from samewise.engine.averaging import RankOnes
from samewise.engine.directions import Directions
from samewise.engine.mover import Correction, Trace
from samewise.engine.policy import Cone, Psd, restored_psd
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.kernels import gcosla_loop as gcosla
from samewise.kernels.cone import Inverse

BLOCK = 64


@dataclass
class CosineMover(Storable):
    """The state (A, b) of a generalized cosine xᵀAx'/√(xᵀAx · x'ᵀAx') and how it moves.

    The constraint of a pair is frozen at the current matrix, so there is no other path than the
    compiled one. Directions have the members of the pairs as left and right, y as offset and the
    margin γ as target.

    Parameters
    ----------
    store : Symmetric
        A, float64.
    margin, step_margin : float
        γ and β: the margin wanted of the cosine, and the one a step establishes.
    printed : bool
        The step as the thesis prints it.
    psd : {"each", "end"} or int, default="each"
        When A ⪰ 0 is restored.
    b : float, default=0.0
        The threshold.
    since : int, default=0
        Updates since the last projection, where psd is a number.
    cone : Cone, optional
        Where psd="each" stands.
    """

    store: Symmetric
    margin: float
    step_margin: float
    printed: bool
    psd: Psd = "each"
    b: float = 0.0
    since: int = 0
    cone: Cone = field(default_factory=Cone)

    @property
    def least_b(self) -> float:
        """The smallest admissible threshold."""
        return -1.0 + self.margin

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by the next block of the directions, from `start` on."""
        block = directions.rows(start, start + BLOCK).dense(np.float64)
        n, d = block.right.shape
        trace = Trace.empty(n, d)
        c, plus, minus = np.zeros(n), *np.zeros((2, n, d))
        Z = np.concatenate([block.left, block.right])
        tiny = gcosla.TINY * float(np.abs(np.diagonal(self.store.lower)).max())
        trace.done, trace.b, searches, effort, unfinished = gcosla.recursion(
            gcosla.scores(self.store.lower, block.left, block.right),
            Z @ Z.T,
            Z,
            self._inverse(d),
            (block.offset, np.ascontiguousarray(block.weight)),
            (self.margin, self.step_margin, self.printed, tiny),
            self.b,
            self.psd - self.since if isinstance(self.psd, Integral) else -1,
            (*trace.moved, c, plus, minus),
            (trace.mu, trace.U),
        )
        self.b = trace.b
        done = slice(0, trace.done)
        self.store.add(plus[done], plus[done], c[done])
        self.store.add(minus[done], minus[done], -c[done])
        self._raise(trace, unfinished)
        if self.psd == "each":
            projected = np.flatnonzero(trace.mu[done] > 0)
            self.cone.follow(self.store, trace, projected, searches, effort)
        elif isinstance(self.psd, Integral):
            self.since += len(trace.updates)
            if self.since == self.psd:
                self.since, trace.settle = 0, self._project
        if keep:
            rows = trace.updates
            signed = ((plus, c), (minus, -c), (trace.U, trace.mu))
            each = np.arange(len(rows))
            trace.terms = [RankOnes(V[rows], V[rows], a[rows], each) for V, a in signed]
        return trace

    def _inverse(self, d: int) -> Inverse:
        """What keeps A ⪰ 0 at each step; empty where nothing does."""
        if self.psd != "each":
            return np.empty((0, 0)), 0.0, np.empty((0, d))
        if self.cone.P is None:
            # A typical μ is not known yet; a step takes about the size of A's entries.
            self.cone.invert(self.store, np.array([float(np.diagonal(self.store.lower).mean())]))
        return self.cone.inverse(d)

    def _raise(self, trace: Trace, unfinished: bool) -> None:
        """A += Σ μ_i u_i u_iᵀ; the last pair's eigenpair is found here where the search failed."""
        mu, U = trace.mu[: trace.done], trace.U[: trace.done]
        if not unfinished:
            self.store.add(U, U, mu)
            return
        self.store.add(U[:-1], U[:-1], mu[:-1])
        values, vectors = eigh(self.store.matrix, subset_by_index=[0, 0])
        mu[-1], U[-1] = max(-values[0], 0.0), vectors[:, 0]
        self.store.add(U[-1:], U[-1:], mu[-1:])
        self.cone.invert(self.store, np.empty(0))

    def _project(self) -> Correction:
        """A ⪰ 0, now."""
        correction = self.store.project()
        before, self.b = self.b, max(self.b, self.least_b)
        return self.b - before, *correction

    def state(self) -> State:
        """All that the next pair meets."""
        values = {
            "margin": float(self.margin),
            "step_margin": float(self.step_margin),
            "printed": self.printed,
            "psd": self.psd,
            "b": float(self.b),
            "since": self.since,
        }
        state = State(values=values).add("store", self.store.state())
        return state.add("cone", self.cone.state())

    @classmethod
    def restore(cls, saved: Saved) -> CosineMover:
        """The mover of that state."""
        store = Symmetric.restore(saved.part("store"))
        saved.check(store.dtype == np.float64, "the matrix must be of float64")
        margin, step_margin = saved.positive("margin"), saved.number("step_margin", least=-2.0)
        saved.check(margin < 1, "margin must be less than 1")
        psd = restored_psd(saved)
        return cls(
            store,
            margin,
            step_margin,
            saved.flag("printed"),
            psd,
            saved.number("b", least=-1.0),
            saved.count("since", most=psd - 1 if isinstance(psd, int) else 0),
            Cone.restore(saved.part("cone"), store.shape[0]),
        )
