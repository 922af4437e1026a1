"""The loop: examples in, a moved matrix out, by whichever path is fastest; all give the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from samewise._typing import Array, Matrix
from samewise.engine.averaging import Average, RankOnes, Spec, Terms
from samewise.engine.directions import Directions
from samewise.engine.history import History
from samewise.engine.policy import Cone, Policy, Trace, checked_psd
from samewise.engine.stores import Store, Symmetric
from samewise.files.state import Saved, State
from samewise.kernels import blocked
from samewise.kernels.steps import Step, step_size

PATHS = ("auto", "compiled", "blocked", "plain")

SMALL = 128
"""Up to this dimension the compiled loop beats the block products (make bench)."""


class Online:
    """The state of an online learner (W, b) and how it moves.

    Parameters
    ----------
    store : Symmetric or Full
        Where W lives; it is moved in place.
    b : float
        The threshold to start from.
    step : Step
    psd : "each", "end" or int
        When W ⪰ 0 and b ≥ `least_b` are restored. "each" takes a Symmetric store.
    least_b : float
        The smallest admissible threshold.
    average : str or tuple
        See `averaging`.
    tolerance : float
        An update is made only if |τ| reaches it.
    path : {"auto", "compiled", "blocked", "plain"}
        Compiled loop over examples, exact block recursion, or the plain NumPy loop.
    """

    def __init__(
        self,
        store: Store,
        b: float,
        step: Step,
        *,
        psd: Policy,
        least_b: float,
        average: Spec,
        tolerance: float,
        path: str,
    ) -> None:
        self.store, self.b, self.step = store, b, step
        self.psd = checked_psd(psd)
        self.least_b = least_b
        self.average = Average(average)
        self.tolerance, self.path = tolerance, path
        self.history = History()
        self.cone = Cone()

    @property
    def floor(self) -> float:
        """The least b allowed while running."""
        return self.least_b if self.psd == "each" else -np.inf

    def learn(self, directions: Directions) -> NDArray[np.float64]:
        """Go through the directions in order; returns the τ of each."""
        path = self._path(directions)
        taus = np.zeros(len(directions))
        start = 0
        while start < len(directions):
            block = directions.rows(start, start + self._block_rows(path, directions))
            trace = self._advance(path, block)
            self._record(block, trace)
            taus[start : start + trace.done] = trace.tau[: trace.done]
            start += trace.done
        return taus

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

    def _advance(self, path: str, block: Directions) -> Trace:
        if path == "cone":
            assert isinstance(self.store, Symmetric)
            return self.cone.advance(
                self.store,
                block.dense(np.float64),
                self.b,
                self.floor,
                self.step,
                self.tolerance,
            )
        if path == "plain":
            return self._plain(block)
        trace = Trace.empty(len(block))
        rest: tuple[Any, ...] = (
            block.sign,
            block.offset,
            block.target,
            block.weight,
            tuple(self.step),
            self.tolerance,
            self.b,
            self.floor,
            self._until_projection(),
            trace.tau,
            trace.violation,
            trace.threshold,
        )
        if path == "blocked":
            block = block.dense(self.store.dtype)
            trace.done, trace.b = blocked.recursion(
                self.store.scores(block), self.store.gram(block), *rest
            )
            done = slice(0, trace.done)
            self.store.add(block.left[done], block.right[done], (trace.tau * block.sign)[done])
        else:
            trace.done, trace.b = self.store.loop(block, rest)
        return trace

    def _plain(self, block: Directions) -> Trace:
        """The formulas, one example at a time."""
        block = block.dense(self.store.dtype)
        trace = Trace.empty(len(block), block.right.shape[1])
        M, b = self.store.matrix, self.b
        stop = self._until_projection()
        for i, (u, v) in enumerate(zip(block.left, block.right, strict=True)):
            p = float(block.target[i] - block.sign[i] * (u @ M @ v) - block.offset[i] * b)
            norm = float(u @ u) * float(v @ v) + block.offset[i] ** 2
            tau = step_size(p, norm, block.weight[i], *self.step, self.tolerance)
            trace.violation[i], trace.threshold[i], trace.tau[i] = p, b, tau
            if tau == 0.0:
                continue
            c = tau * block.sign[i]
            M = M + M.dtype.type(c) * np.outer(u, v)
            b = max(b + tau * block.offset[i], self.floor)
            if self.psd == "each" and c < 0:
                values, vectors = np.linalg.eigh(M)
                if values[0] < 0:
                    trace.mu[i], trace.U[i] = -values[0], vectors[:, 0]
                    M = (vectors * np.maximum(values, 0.0)) @ vectors.T
            stop -= 1
            if stop == 0:
                trace.done = i + 1
                break
        self.store.matrix, trace.b = M, b
        return trace

    def _until_projection(self) -> int:
        """Updates left before the next projection is due; −1 for never."""
        if isinstance(self.psd, str):
            return -1
        return self.psd - self.history.updates % self.psd

    def _record(self, block: Directions, trace: Trace) -> None:
        done = slice(0, trace.done)
        tau = trace.tau[done]
        self.b = trace.b
        if self.average.kind != "last":
            rows = np.flatnonzero(tau)
            self.average.observe(
                self.store,
                trace.done,
                rows,
                trace.threshold[rows],
                trace.b,
                self._terms(block, trace, rows),
            )
        before = self.history.updates
        self.history.record(trace.violation[done], block.target[done], block.sign[done], tau)
        due = not isinstance(self.psd, str) and self.history.updates % self.psd == 0
        if due and self.history.updates > before:
            self._restore()

    def _terms(self, block: Directions, trace: Trace, rows: NDArray[np.intp]) -> Sequence[Terms]:
        if trace.terms is not None:
            return trace.terms
        left, right = block.left[rows], block.right[rows]
        if not block.sparse:
            left, right = (V.astype(self.store.dtype, copy=False) for V in (left, right))
        terms = [RankOnes(left, right, (trace.tau * block.sign)[rows], np.arange(len(rows)))]
        projected = np.flatnonzero(trace.mu[rows])
        if len(projected):
            U = trace.U[rows[projected]]
            terms.append(RankOnes(U, U, trace.mu[rows[projected]], projected))
        return terms

    def _restore(self) -> None:
        """W ⪰ 0 and b ≥ its least, now."""
        correction = self.store.project()
        before, self.b = self.b, max(self.b, self.least_b)
        self.average.correct(self.b - before, *correction)

    def solution(self) -> tuple[Array, float]:
        """The matrix and threshold to hand out, averaged.

        b is admissible; W ⪰ 0 is left to whoever makes a form of it, which factors W anyway.
        """
        W, b = self.average.solution(self.store, self.b)
        return W, max(b, self.least_b)

    def state(self) -> State:
        """All that the next example meets. An infinite cap, and an infinite least b, are None."""
        values = {
            "b": float(self.b),
            "cap": float(self.step.cap) if np.isfinite(self.step.cap) else None,
            "relax": float(self.step.relax),
            "signed": self.step.signed,
            "psd": self.psd,
            "least_b": float(self.least_b) if np.isfinite(self.least_b) else None,
            "tolerance": float(self.tolerance),
            "path": self.path,
        }
        state = State(values=values)
        for name in ("store", "average", "history", "cone"):
            state.add(name, getattr(self, name).state())
        return state

    @classmethod
    def restore(cls, saved: Saved, kind: Any) -> Self:
        """The loop of that state; `kind` is the class of its store."""
        store = kind.restore(saved.part("store"))
        cap = saved.number("cap", least=0.0, none=np.inf)
        named = saved.is_a(str, "psd")
        online = cls.__new__(cls)
        Online.__init__(
            online,
            store,
            saved.number("b"),
            Step(cap, saved.number("relax", least=0.0), saved.flag("signed")),
            psd=saved.value("psd") if named else saved.count("psd", least=2),
            least_b=saved.number("least_b", none=-np.inf),
            average="last",
            tolerance=saved.number("tolerance", least=0.0),
            path=saved.choice("path", PATHS),
        )
        exact = isinstance(store, Symmetric) and store.dtype == np.float64
        saved.check(exact or online.psd != "each", "psd each needs a symmetric float64 matrix")
        square = store.shape[0] == store.shape[1]
        saved.check(square or online.psd == "end", "psd needs a square matrix")
        online.average = Average.restore(saved.part("average"), store)
        online.history = History.restore(saved.part("history"))
        online.cone = Cone.restore(saved.part("cone"), store.shape[0])
        return online


def chunks(n: int, *matrices: Matrix, least: int = 256, most: int = 8192) -> Iterator[slice]:
    """Slices of a run of n examples whose directions, rows of `matrices`, take a few megabytes."""
    width = max(M.nnz / max(M.shape[0], 1) if sp.issparse(M) else M.shape[1] for M in matrices)
    size = min(max(least, int(2**18 / max(width, 1))), most)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def few_threads(d: int) -> AbstractContextManager[object]:
    """One BLAS thread while blocks are small: two threads then mostly wait for each other."""
    return nullcontext() if d >= 1024 else _pools().limit(limits=1, user_api="blas")
