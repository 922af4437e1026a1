"""When M is brought back to the PSD cone: after each update, after every n-th, or at the end."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotri

from samewise._typing import Array
from samewise.engine.directions import Directions
from samewise.engine.mover import Correction, Trace
from samewise.engine.stores import Full, Store, Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.kernels import blocked, cone
from samewise.kernels.steps import Step, step_size

Psd: TypeAlias = str | int | None


REFRESH = 300
"""Updates after which P is inverted anew, against the drift of its own updates."""


@dataclass
class Cone:
    """Runs blocks with a projection after every update that needs one (policy "each").

    While M is well inside the cone no step leaves it, and one Cholesky factor of M minus all that
    the block subtracts proves it for every step of the block: the *calm* regime. Otherwise the
    block runs through `kernels.cone`, which keeps P = (M + μ₀I)⁻¹ beside M.
    """

    calm: bool = True
    budget: float = 0.0
    ahead: float = 16.0
    P: Array | None = None
    mu0: float = 0.0
    since: int = 0
    recent: deque[float] = field(default_factory=partial(deque, maxlen=128))

    def advance(
        self, store: Symmetric, block: Directions, b: float, floor: float, step: Step
    ) -> Trace:
        """Move `store` through the block, or through as much of it as the trace says."""
        scores, K, V = store.scores(block), store.gram(block), block.right
        rule = (block.wanted, step.plain, b, floor)
        n, d = V.shape
        trace = Trace.empty(n, d)
        if self.calm or self.P is None:
            _, trace.b = blocked.recursion(scores.copy(), K, *rule, -1, trace.moved)
            c = trace.tau * block.sign
            if self._stays_inside(store, V, c, K):
                store.add(V, V, c)
                self.P = None
                return trace
            self.calm = False
            if self.P is None:
                self.invert(store, -c[c < 0] * np.sqrt(np.diagonal(K))[c < 0])
            trace = Trace.empty(n, d)
        trace.done, trace.b, searches, effort = cone.recursion(
            scores, K, V, self.inverse(d), *rule, trace.moved, (trace.mu, trace.U)
        )
        if trace.done == 0:
            return self._settle(store, block.rows(0, 1), b, floor, step)
        done = slice(0, trace.done)
        store.add(V[done], V[done], trace.tau[done] * block.sign[done])
        projected = np.flatnonzero(trace.mu[done])
        store.add(trace.U[projected], trace.U[projected], trace.mu[projected])
        self.follow(store, trace, projected, searches, effort)
        self.calm = trace.done == n and searches > 0 and len(projected) == 0
        return trace

    def inverse(self, d: int) -> cone.Inverse:
        """What compiled loops take: P, μ₀ and room for vectors."""
        assert self.P is not None
        return self.P, self.mu0, np.empty((cone.MAX_LANCZOS + 3, d))

    def widen(self, n_new: int) -> None:
        """Follow M into new coordinates, in which it is zero."""
        if self.P is not None:
            P = Symmetric(self.P)
            P.widen(n_new, 1.0 / self.mu0)
            self.P = P.lower

    def narrow(self, kept: int, H: Array) -> None:
        """Follow M into fewer coordinates: (J M Jᵀ + μ₀I)⁻¹ = J P Jᵀ, as M is zero elsewhere."""
        self.budget = 0.0
        if self.P is not None:
            P = Symmetric(self.P)
            P.narrow(kept, H)
            self.P = P.lower

    def _stays_inside(
        self, store: Symmetric, V: Array, c: NDArray[np.float64], K: NDArray[np.float64]
    ) -> bool:
        """Whether M stays PSD through the block: proved, not guessed."""
        down = np.flatnonzero(c < 0)
        removed = _largest_eigenvalue(-c[down], K[np.ix_(down, down)])
        if removed <= self.budget:
            self.budget -= removed
            return True
        self.budget = 0.0
        lowest = store.copy()
        lowest.add(V[down], V[down], c[down])
        # Ask for more room than this block takes, so that the next blocks need no proof (Weyl);
        # for less after a refusal, which costs a factorization.
        for ahead in (self.ahead, 0.0):
            shifted = lowest.lower.copy()
            np.fill_diagonal(shifted, np.diagonal(shifted) - ahead * removed)
            if dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)[1] == 0:
                self.budget = ahead * removed
                self.ahead = min(2.0 * self.ahead, 64.0)
                return True
            self.ahead = max(self.ahead / 8.0, 1.0)
        return False

    def invert(self, store: Symmetric, steps: NDArray[np.float64]) -> None:
        """P = (M + μ₀I)⁻¹, μ₀ a typical μ: Lanczos needs few steps when μ/μ₀ is near 1."""
        if self.recent:
            self.mu0 = self._typical()
        elif len(steps):
            self.mu0 = 0.1 * float(np.mean(steps))
        self.since = 0
        while np.isfinite(self.mu0):
            shifted = store.lower.astype(np.float64)
            np.fill_diagonal(shifted, np.diagonal(shifted) + self.mu0)
            factor, info = dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)
            if info == 0:
                self.P = np.ascontiguousarray(dpotri(factor, lower=0, overwrite_c=1)[0].T)
                return
            # Rounding left M below zero by more than μ₀.
            self.mu0 *= 10.0
        raise InvalidInputError(
            "The learned matrix is no longer finite: squared distances overflow. Scale the "
            "features, for instance with sklearn.preprocessing.StandardScaler."
        )

    def _typical(self) -> float:
        """The middle of the recent μ on a logarithmic scale, small ones included."""
        return math.exp(np.quantile(np.log(self.recent), [0.05, 0.5, 0.95]).mean())

    def follow(
        self,
        store: Symmetric,
        trace: Trace,
        projected: NDArray[np.intp],
        searches: int,
        effort: int,
    ) -> None:
        """Invert P anew where the block has made it old, its μ₀ a bad one, or has broken off."""
        self.since += int(np.count_nonzero(trace.tau))
        self.recent.extend(trace.mu[projected].tolist())
        slow = searches > 0 and effort > 24 * searches and len(self.recent) > 0
        far = slow and abs(math.log(self.mu0 / self._typical())) > math.log(3.0)
        if self.since >= REFRESH or far or trace.done < len(trace.tau):
            self.invert(store, np.empty(0))

    def _settle(
        self, store: Symmetric, block: Directions, b: float, floor: float, step: Step
    ) -> Trace:
        """One example by a factorization, where the search for its eigenpair failed."""
        v = block.right
        trace = Trace.empty(1, v.shape[1])
        sq = float(v[0] @ v[0])
        p = block.target[0] - block.sign[0] * store.scores(block)[0] - block.offset[0] * b
        trace.violation[0], trace.threshold[0] = p, b
        norm = sq * sq + block.offset[0] ** 2
        trace.tau[0] = step_size(p, norm, block.weight[0], step.plain)
        trace.b = max(b + trace.tau[0] * block.offset[0], floor)
        store.add(v, v, trace.tau * block.sign)
        shifted = store.lower.copy()
        np.fill_diagonal(shifted, np.diagonal(shifted) + cone.PRECISION * abs(trace.tau[0]) * sq)
        if dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)[1] != 0:
            values, vectors = eigh(store.matrix, subset_by_index=[0, 0])
            trace.mu[0], trace.U[0] = max(-values[0], 0.0), vectors[:, 0]
            store.add(trace.U, trace.U, trace.mu)
            if trace.mu[0] > 0:
                self.recent.append(float(trace.mu[0]))
        self.invert(store, np.empty(0))
        return trace

    def state(self) -> State:
        """The room proved, the inverse P, and what chooses its shift."""
        names = ("calm", "budget", "ahead", "mu0", "since")
        state = State({"recent": np.array(self.recent)}, {n: getattr(self, n) for n in names})
        if self.P is not None:
            state.arrays["P"] = np.tril(self.P)
        return state

    @classmethod
    def restore(cls, saved: Saved, d: int) -> Cone:
        """The cone of that state, beside a matrix of d×d."""
        cone = cls()
        cone.calm, cone.since = saved.flag("calm"), saved.count("since")
        cone.budget, cone.mu0 = (saved.number(name, least=0.0) for name in ("budget", "mu0"))
        cone.ahead = saved.number("ahead", least=1.0)
        recent = saved.array("recent", None, dtypes=["float64"], empty=True)
        saved.check(bool(np.all(recent > 0)), "recent must be positive")
        cone.recent.extend(recent.tolist())
        if saved.has("P"):
            cone.P = saved.array("P", d, d, dtypes=["float64"], empty=True)
            positive = cone.mu0 > 0 and bool(np.all(np.diagonal(cone.P) > 0))
            saved.check(positive, "P must be positive definite, as is μ₀")
        return cone


@dataclass
class PsdMover(Storable, storable=False):
    """A matrix and a threshold that are brought back to M ⪰ 0 and b ≥ its least.

    Parameters
    ----------
    store : Symmetric or Full
        Where the matrix lives; it is moved in place.
    b : float
        The threshold to start from.
    psd : {"each", "end"}, int or None, default="end"
        When M ⪰ 0 and b ≥ `least_b` are restored. "each" takes a Symmetric store. "end" and None
        leave it to whoever makes a form of M, which factors M anyway.
    least_b : float, default=-inf
        The smallest admissible threshold.
    since : int, default=0
        Updates since the last projection, where psd is a number.
    cone : Cone, optional
        Where psd="each" stands.
    """

    store: Store
    b: float
    _: KW_ONLY
    psd: Psd = "end"
    least_b: float = -math.inf
    since: int = 0
    cone: Cone = field(default_factory=Cone)

    @property
    def _left(self) -> int:
        """Updates left before the next projection; −1 for never."""
        return self.psd - self.since if isinstance(self.psd, Integral) else -1

    def _follow(self, trace: Trace) -> None:
        """Take over b, and note whether a projection is due."""
        self.b = trace.b
        if isinstance(self.psd, Integral):
            self.since += len(trace.updates)
            if self.since == self.psd:
                self.since, trace.settle = 0, self._project

    def _project(self) -> Correction:
        """M ⪰ 0 and b ≥ its least, now."""
        correction = self.store.project()
        before, self.b = self.b, max(self.b, self.least_b)
        return self.b - before, *correction

    def state(self) -> State:
        """All that the next example meets. A least b that is infinite is None."""
        least_b = float(self.least_b) if math.isfinite(self.least_b) else None
        values = {"b": float(self.b), "psd": self.psd, "least_b": least_b, "since": self.since}
        state = State(values=values).add("store", stored(self.store))
        return state.add("cone", self.cone.state())

    @staticmethod
    def _restored(saved: Saved) -> dict[str, Any]:
        """What every such mover has, out of a state."""
        store: Store = restored(saved.part("store"), Symmetric, Full)
        several = saved.is_a(int, "psd")
        choices = ("each", "end", None)
        psd = saved.count("psd", least=2) if several else saved.choice("psd", choices)
        exact = isinstance(store, Symmetric) and store.dtype == np.float64
        saved.check(exact or psd != "each", "psd each needs a symmetric float64 matrix")
        square = store.shape[0] == store.shape[1]
        saved.check(square or psd in ("end", None), "psd needs a square matrix")
        return {
            "store": store,
            "b": saved.number("b"),
            "psd": psd,
            "least_b": saved.number("least_b", none=-math.inf),
            "since": saved.count("since", most=psd - 1 if several else 0),
            "cone": Cone.restore(saved.part("cone"), store.shape[0]),
        }


def _largest_eigenvalue(c: NDArray[np.float64], K: NDArray[np.float64]) -> float:
    """A bound on the largest eigenvalue of Σ c_i v_i v_iᵀ, c > 0, from K_ij = (v_i·v_j)², j ≥ i.

    It is that of the Gram matrix of the √c_i v_i, which no row sum of absolute values exceeds.
    """
    upper = np.triu(np.sqrt(K)) * np.sqrt(np.outer(c, c))
    sums = upper.sum(axis=0) + upper.sum(axis=1) - np.diagonal(upper)
    return float(np.max(sums, initial=0.0))
