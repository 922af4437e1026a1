"""The loop of gCosLA: a generalized cosine and a threshold on it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh

from samewise._typing import Array
from samewise.engine.averaging import RankOnes, Spec
from samewise.engine.directions import Directions
from samewise.engine.online import Online
from samewise.engine.policy import Policy, Trace
from samewise.engine.stores import Symmetric
from samewise.files.state import Saved, State
from samewise.kernels import cone
from samewise.kernels import gcosla_loop as gcosla
from samewise.kernels.steps import pa
from samewise.supervision import Pairs

BLOCK = 64


class Cosine(Online):
    """The state (A, b) of a generalized cosine xᵀAx'/√(xᵀAx · x'ᵀAx') and how it moves.

    Parameters
    ----------
    A : array of shape (d, d)
        Symmetric, float64.
    gamma, beta : float
        The margin wanted of the cosine, and the one a step establishes.
    printed : bool
        The step as the thesis prints it.
    psd : "each", "end" or int
    average : str or tuple
    """

    def __init__(
        self, A: Array, gamma: float, beta: float, *, printed: bool, psd: Policy, average: Spec
    ) -> None:
        super().__init__(
            Symmetric(A),
            0.0,
            pa(),
            psd=psd,
            least_b=-1.0 + gamma,
            average=average,
            tolerance=0.0,
            path="auto",
        )
        self.gamma, self.beta, self.printed = gamma, beta, printed

    def members(self, pairs: Pairs) -> Directions:
        """The pairs as the loop takes them."""
        y = pairs.y.astype(np.float64)
        weight = np.ones(len(y)) if pairs.sample_weight is None else pairs.sample_weight
        left, right = pairs.X[pairs.left], pairs.X[pairs.right]
        return Directions(left, right, -y, y, np.full(len(y), self.gamma), weight)

    def _path(self, directions: Directions) -> str:
        return "cosine"

    def _block_rows(self, path: str, directions: Directions) -> int:
        return BLOCK

    def _advance(self, path: str, block: Directions) -> Trace:
        assert isinstance(self.store, Symmetric)
        block = block.dense(np.float64)
        n, d = block.right.shape
        project = self.psd == "each"
        if project and self.cone.P is None:
            # A typical μ is not known yet; a step takes about the size of A's entries.
            self.cone.invert(self.store, np.array([float(np.diagonal(self.store.lower).mean())]))
        trace = Trace.empty(n, d)
        c, Z = np.zeros(n), np.concatenate([block.left, block.right])
        plus, minus = np.zeros((2, n, d))
        P: Any = self.cone.P if project else np.empty((0, 0))
        trace.done, trace.b, searches, effort, open_ = gcosla.recursion(
            gcosla.scores(self.store.lower, block.left, block.right),
            Z @ Z.T,
            Z,
            P,
            self.cone.mu0,
            block.offset,
            np.ascontiguousarray(block.weight),
            (self.gamma, self.beta),
            self.printed,
            float(np.abs(np.diagonal(self.store.lower)).max()),
            self.b,
            project,
            self._until_projection(),
            trace.tau,
            c,
            trace.violation,
            trace.threshold,
            plus,
            minus,
            trace.mu,
            trace.U,
            np.empty((cone.MAX_LANCZOS + 3, d)),
        )
        done = slice(0, trace.done)
        self.store.add(plus[done], plus[done], c[done])
        self.store.add(minus[done], minus[done], -c[done])
        if open_:
            last = trace.done - 1
            self.store.add(trace.U[:last], trace.U[:last], trace.mu[:last])
            values, vectors = eigh(self.store.matrix, subset_by_index=[0, 0])
            trace.mu[last], trace.U[last] = max(-values[0], 0.0), vectors[:, 0]
            self.store.add(
                trace.U[last : last + 1], trace.U[last : last + 1], trace.mu[last : last + 1]
            )
            self.cone.invert(self.store, np.empty(0))
        else:
            self.store.add(trace.U[done], trace.U[done], trace.mu[done])
        if project:
            projected = np.flatnonzero(trace.mu[done] > 0)
            self.cone.follow(self.store, trace, projected, searches, effort)
        rows = np.flatnonzero(trace.tau[done])
        each = np.arange(len(rows))
        trace.terms = [
            RankOnes(plus[rows], plus[rows], c[rows], each),
            RankOnes(minus[rows], minus[rows], -c[rows], each),
            RankOnes(trace.U[rows], trace.U[rows], trace.mu[rows], each),
        ]
        return trace

    def state(self) -> State:
        """All that the next pair meets."""
        state = super().state()
        state.values.update(
            gamma=float(self.gamma), beta=float(self.beta), printed=bool(self.printed)
        )
        return state

    @classmethod
    def restore(cls, saved: Saved, kind: Any) -> Self:
        """The loop of that state."""
        online = super().restore(saved, kind)
        online.gamma, online.beta = saved.positive("gamma"), saved.number("beta", least=-2.0)
        online.printed = saved.flag("printed")
        saved.check(online.gamma < 1, "gamma must be less than 1")
        saved.check(online.store.dtype == np.float64, "the matrix must be of float64")
        return online
