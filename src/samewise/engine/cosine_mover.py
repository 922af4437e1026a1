"""Steps of gCosLA: a generalized cosine and a threshold on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from samewise.engine.averaging import RankOnes
from samewise.engine.directions import Directions
from samewise.engine.mover import Trace
from samewise.engine.policy import PsdMover
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.kernels import gcosla_loop as gcosla
from samewise.kernels.cone import Inverse

BLOCK = 64


@dataclass
class CosineMover(PsdMover):
    """The state (A, b) of a generalized cosine xᵀAx'/√(xᵀAx · x'ᵀAx') and how it moves.

    The constraint of a pair is frozen at the current matrix, so there is no other path than the
    compiled one. Directions have the members of the pairs as left and right, y as offset and the
    margin γ as target.

    Parameters
    ----------
    store, b, psd, least_b, since, cone
        See `PsdMover`; A is symmetric and of float64.
    margin, step_margin : float
        γ and β: the margin wanted of the cosine, and the one a step establishes.
    printed : bool
        The step as the thesis prints it.
    """

    margin: float
    step_margin: float
    printed: bool

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by the next block of the directions, from `start` on."""
        assert isinstance(self.store, Symmetric)
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
            self._inverse(self.store, d),
            (block.offset, np.ascontiguousarray(block.weight)),
            (self.margin, self.step_margin, self.printed, tiny),
            self.b,
            self._left,
            (*trace.moved, c, plus, minus),
            (trace.mu, trace.U),
        )
        done = slice(0, trace.done)
        self.store.add(plus[done], plus[done], c[done])
        self.store.add(minus[done], minus[done], -c[done])
        self._raise(self.store, trace, unfinished)
        if self.psd == "each":
            projected = np.flatnonzero(trace.mu[done] > 0)
            self.cone.follow(self.store, trace, projected, searches, effort)
        self._follow(trace)
        # What rounding leaves of zero, in this block, is none of the lengths of the next.
        lower = self.store.lower
        if np.abs(np.diagonal(lower)).max() <= tiny and np.abs(lower).max() <= tiny:
            lower[:] = 0.0
        if keep:
            rows = trace.updates
            signed = ((plus, c), (minus, -c), (trace.U, trace.mu))
            each = np.arange(len(rows))
            trace.terms = [RankOnes(V[rows], V[rows], a[rows], each) for V, a in signed]
        return trace

    def _inverse(self, store: Symmetric, d: int) -> Inverse:
        """What keeps A ⪰ 0 at each step; empty where nothing does."""
        if self.psd != "each":
            return np.empty((0, 0)), 0.0, np.empty((0, d))
        if self.cone.P is None:
            # A typical μ is not known yet; a step takes about the size of A's entries.
            self.cone.invert(store, np.array([float(np.diagonal(store.lower).mean())]))
        return self.cone.inverse(d)

    def _raise(self, store: Symmetric, trace: Trace, unfinished: bool) -> None:
        """A += Σ μ_i u_i u_iᵀ; the last pair's eigenpair is found here where the search failed."""
        mu, U = trace.mu[: trace.done], trace.U[: trace.done]
        if not unfinished:
            store.add(U, U, mu)
            return
        store.add(U[:-1], U[:-1], mu[:-1])
        values, vectors = eigh(store.matrix, subset_by_index=[0, 0])
        mu[-1], U[-1] = max(-values[0], 0.0), vectors[:, 0]
        store.add(U[-1:], U[-1:], mu[-1:])
        self.cone.invert(store, np.empty(0))

    def state(self) -> State:
        """All that the next pair meets."""
        state = super().state()
        margins = {"margin": float(self.margin), "step_margin": float(self.step_margin)}
        state.values.update(margins, printed=self.printed)
        return state

    @classmethod
    def restore(cls, saved: Saved) -> CosineMover:
        """The mover of that state."""
        margins = saved.positive("margin"), saved.number("step_margin", least=-2.0)
        saved.check(margins[0] < 1, "margin must be less than 1")
        common, printed = cls._restored(saved), saved.flag("printed")
        exact = isinstance(common["store"], Symmetric) and common["store"].dtype == np.float64
        saved.check(exact, "the matrix must be symmetric and of float64")
        return cls(common.pop("store"), common.pop("b"), *margins, printed, **common)
