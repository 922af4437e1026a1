"""Steps of rank one: passive–aggressive steps and their kin, by whichever path is fastest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from samewise._typing import Array
from samewise.engine.averaging import RankOnes
from samewise.engine.directions import Directions
from samewise.engine.mover import PATHS, Trace
from samewise.engine.policy import PsdMover
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.kernels import blocked
from samewise.kernels.steps import Step, step_size

SMALL = 128
"""Up to this dimension the compiled loop beats the block products (make bench)."""


@dataclass
class RankOneMover(PsdMover):
    """W += τ sign l rᵀ and b += τ offset, with the τ of a step.

    Parameters
    ----------
    store, b, psd, least_b, since, cone
        See `PsdMover`.
    step : Step
        How far an example moves W and b.
    path : {"auto", "compiled", "blocked", "plain"}, default="auto"
        Compiled loop over examples, exact block recursion, or the plain NumPy loop. All take the
        same steps.
    """

    step: Step
    path: str = "auto"

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by the next block of the directions, from `start` on."""
        path = self._path(directions)
        block = directions.rows(start, start + self._block_rows(path, directions))
        if path == "cone":
            assert isinstance(self.store, Symmetric)
            dense = block.dense(np.float64)
            trace = self.cone.advance(self.store, dense, self.b, self.least_b, self.step)
        elif path == "plain":
            trace = self._plain(block.dense(self.store.dtype))
        else:
            trace = self._compiled(block, blockwise=path == "blocked")
        self._follow(trace)
        if keep:
            trace.terms = self._terms(block, trace)
        return trace

    def _path(self, directions: Directions) -> str:
        if self.path == "plain":
            return "plain"
        if self.psd == "each":
            return "cone"
        if self.path != "auto":
            return self.path
        size = float(np.sqrt(directions.left.shape[1] * directions.right.shape[1]))
        if directions.sparse:
            # Θ(nnz²) scattered accesses against d² at the speed of matrix products.
            touched = np.sqrt(float(directions.left.nnz) * float(directions.right.nnz))
            return "compiled" if 8 * touched <= size * max(len(directions), 1) else "blocked"
        return "compiled" if size <= SMALL or len(directions) < 16 else "blocked"

    def _block_rows(self, path: str, directions: Directions) -> int:
        """Rows a path takes at once: enough to fill the products, few enough for the cache."""
        d = directions.right.shape[1]
        if path == "blocked":
            # A full matrix takes two Gram matrices, whose cost grows with the block.
            large = 256 if isinstance(self.store, Symmetric) else 192
            return large if d >= 500 else 64
        if path == "cone":
            return 128 if d >= 500 else 64
        return len(directions)

    @property
    def _floor(self) -> float:
        """The least b allowed while running."""
        return self.least_b if self.psd == "each" else -math.inf

    def _compiled(self, block: Directions, blockwise: bool) -> Trace:
        trace = Trace.empty(len(block))
        rest = (block.wanted, self.step.plain, self.b, self._floor, self._left, trace.moved)
        if not blockwise:
            trace.done, trace.b = self.store.loop(block, rest)
            return trace
        block = block.dense(self.store.dtype)
        scores, K = self.store.scores(block), self.store.gram(block)
        trace.done, trace.b = blocked.recursion(scores, K, *rest)
        done = slice(0, trace.done)
        self.store.add(block.left[done], block.right[done], (trace.tau * block.sign)[done])
        return trace

    def _plain(self, block: Directions) -> Trace:
        """The formulas, one example at a time."""
        trace = Trace.empty(len(block), block.right.shape[1])
        M, b, left = self.store.matrix, self.b, self._left
        for i, (u, v) in enumerate(zip(block.left, block.right, strict=True)):
            p = float(block.target[i] - block.sign[i] * (u @ M @ v) - block.offset[i] * b)
            norm = float(u @ u) * float(v @ v) + block.offset[i] ** 2
            tau = step_size(p, norm, block.weight[i], self.step.plain)
            trace.violation[i], trace.threshold[i], trace.tau[i] = p, b, tau
            if tau == 0.0:
                continue
            c = tau * block.sign[i]
            M = M + M.dtype.type(c) * np.outer(u, v)
            b = max(b + tau * block.offset[i], self._floor)
            if self.psd == "each" and c < 0:
                values, vectors = np.linalg.eigh(M)
                if values[0] < 0:
                    trace.mu[i], trace.U[i] = -values[0], vectors[:, 0]
                    M = (vectors * np.maximum(values, 0.0)) @ vectors.T
            left -= 1
            if left == 0:
                trace.done = i + 1
                break
        self.store.matrix, trace.b = M, b
        return trace

    def _terms(self, block: Directions, trace: Trace) -> Sequence[RankOnes]:
        rows = trace.updates
        left, right = block.left[rows], block.right[rows]
        if not block.sparse:
            left, right = (V.astype(self.store.dtype, copy=False) for V in (left, right))
        terms = [RankOnes(left, right, (trace.tau * block.sign)[rows], np.arange(len(rows)))]
        projected = np.flatnonzero(trace.mu[rows])
        if len(projected):
            U = trace.U[rows[projected]]
            terms.append(RankOnes(U, U, trace.mu[rows[projected]], projected))
        return terms

    def widen(self, n_new: int) -> None:
        """Add coordinates in which M is zero."""
        assert isinstance(self.store, Symmetric)
        self.store.widen(n_new)
        self.cone.widen(n_new)

    def narrow(self, kept: int, H: Array) -> None:
        """Keep the first coordinates, and of the rest the span of the orthonormal rows of H.

        M must be zero beyond it.
        """
        assert isinstance(self.store, Symmetric)
        self.store.narrow(kept, H)
        self.cone.narrow(kept, H)

    def state(self) -> State:
        """All that the next example meets. An infinite cap is None."""
        state = super().state()
        # As numbers of one kind each: 1 and 1.0 are the same step.
        state.values.update(zip(Step._fields, self.step.plain, strict=True), path=self.path)
        if math.isinf(self.step.cap):
            state.values["cap"] = None
        return state

    @classmethod
    def restore(cls, saved: Saved) -> RankOneMover:
        """The mover of that state."""
        step = Step(
            saved.number("cap", least=0.0, none=math.inf),
            saved.number("relax", least=0.0),
            saved.flag("signed"),
            saved.number("tolerance", least=0.0),
        )
        return cls(step=step, path=saved.choice("path", PATHS), **cls._restored(saved))
