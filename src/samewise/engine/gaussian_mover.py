"""A matrix with uncertainty: a Gaussian over matrices, its mean W and its covariance.

Both kinds stand where a store stands, and their matrix is the mean. They move themselves: a step
depends on the covariance, which shrinks with every update.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Matrix
from samewise.engine.averaging import RankOnes, Spec
from samewise.engine.directions import Directions
from samewise.engine.online import Online
from samewise.engine.policy import Trace
from samewise.engine.stores import Full, Symmetric, csr_parts
from samewise.files.state import Saved, State
from samewise.kernels import gaussian_loops as gaussian
from samewise.kernels import psd
from samewise.kernels.pairwise import row_dots, times
from samewise.kernels.steps import ROUNDING, pa2


class Gaussian(ABC):
    """What both have in common: the mean W as a store, and r, the variance of an example."""

    r: float
    array: Array

    @abstractmethod
    def path(self, wanted: str, directions: Directions) -> str:
        """The path to take."""

    @abstractmethod
    def advance(self, path: str, block: Directions, keep: bool) -> Trace:
        """Go through a block; with `keep`, the trace knows what was added to W."""

    @abstractmethod
    def variance(self, Q: Matrix, P: Matrix) -> Array:
        """The variance of qᵀWp, all queries against all items."""

    @abstractmethod
    def noise(self, rng: np.random.RandomState) -> Array:
        """What to add to the mean for a matrix drawn from the Gaussian."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return self.array.dtype

    @property
    def matrix(self) -> Array:
        """W, as a new array."""
        return np.array(self.array, order="C")

    def zeros_like(self) -> Full:
        """A zero matrix, for averages of W."""
        return Full(np.zeros(self.array.shape, self.dtype))

    def copy(self) -> Full:
        """W in an array of its own."""
        return Full(self.array)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.array.shape

    @abstractmethod
    def state(self) -> State:
        """W, its covariance, and what the steps depend on."""

    @classmethod
    @abstractmethod
    def restore(cls, saved: Saved) -> Self:
        """The Gaussian of that state."""


class DiagonalGaussian(Gaussian):
    """Independent entries: W_kl has variance Σ_kl, at first 1 (d-AROMA).

    An example l rᵀ with violation p and s = Σ_kl (l_k r_l)² Σ_kl moves

        W += p / (s + r) · Σ ∘ l rᵀ,   Σ −= (Σ ∘ l rᵀ)² / (s + r).
    """

    def __init__(self, W: Array, r: float) -> None:
        self.r = r
        # W + iΣ: one access in memory fetches both.
        self.both = np.full(W.shape, 1j, dtype=np.result_type(W.dtype, np.complex64))
        self.array[:] = W

    @property
    def array(self) -> Array:  # type: ignore[override]
        """W, a view."""
        return self.both.real

    @property
    def variances(self) -> Array:
        """Σ, a view."""
        return self.both.imag

    def path(self, wanted: str, directions: Directions) -> str:
        """There is no blocked form: Σ changes entry by entry."""
        return "plain" if wanted == "plain" else "compiled"

    def advance(self, path: str, block: Directions, keep: bool) -> Trace:
        """Go through a block; with `keep`, the trace knows what was added to W."""
        trace = Trace.empty(len(block))
        divisor = np.ones(len(block))
        before = self.variances.copy() if keep else None
        written: Any = (block.target, block.weight, self.r, trace.tau, divisor, trace.violation)
        if path == "plain":
            self._plain(block, trace, divisor)
        elif block.sparse:
            gaussian.diagonal_sparse(
                self.both, *_both_parts(block.left, block.right, self.dtype), *written
            )
        else:
            dense = block.dense(self.dtype)
            gaussian.diagonal_dense(self.both, dense.left, dense.right, *written)
        if before is not None:
            trace.terms = [Replay(block, trace.tau, divisor, before)]
        return trace

    def _plain(self, block: Directions, trace: Trace, divisor: NDArray[np.float64]) -> None:
        dense = block.dense(self.dtype)
        W, S = self.array, self.variances
        for i, (q, p) in enumerate(zip(dense.left, dense.right, strict=True)):
            G = np.outer(q, p)
            trace.violation[i] = loss = block.target[i] - np.sum(W * G, dtype=np.float64)
            if block.weight[i] == 0.0 or loss <= ROUNDING:
                continue
            divisor[i] = np.sum(S * G * G, dtype=np.float64) + self.r / block.weight[i]
            trace.tau[i] = loss / divisor[i]
            W += self.dtype.type(trace.tau[i]) * S * G
            S *= np.maximum(1 - S * G * G / self.dtype.type(divisor[i]), gaussian.LEAST)

    def variance(self, Q: Matrix, P: Matrix) -> Array:
        """Σ_kl q_k² p_l² Σ_kl, all queries against all items."""
        return times(_squared(Q), self.variances.astype(Q.dtype)) @ _squared(P).T

    def noise(self, rng: np.random.RandomState) -> Array:
        """√Σ ∘ N."""
        return np.sqrt(self.variances) * rng.standard_normal(self.array.shape).astype(self.dtype)

    def state(self) -> State:
        """W, Σ and r."""
        return State({"W": self.array, "Sigma": self.variances}, {"r": float(self.r)})

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The Gaussian of that state."""
        W = saved.array("W", None, None)
        Sigma = saved.array("Sigma", *W.shape, dtypes=[W.dtype.name])
        saved.check(bool(np.all((Sigma >= 0) & (Sigma <= 1))), "Sigma must be from 0 to 1")
        restored = cls(W, saved.positive("r"))
        restored.variances[...] = Sigma
        return restored


@dataclass(frozen=True)
class Replay:
    """What a block of d-AROMA added to W: not of rank one, so it is gone through once more."""

    block: Directions
    tau: NDArray[np.float64]
    divisor: NDArray[np.float64]
    before: Array

    def add_to(self, M: Any, factor: NDArray[np.float64]) -> None:
        """M += Σ factor_i · (what update i added)."""
        rows = np.flatnonzero(self.tau)
        steps: Any = (self.tau[rows], self.divisor[rows], factor)
        state: Any = (M.array, self.before.copy())
        left, right = self.block.left[rows], self.block.right[rows]
        if self.block.sparse:
            gaussian.replay_sparse(*state, *_both_parts(left, right, M.dtype), *steps)
        else:
            vectors: Any = (V.astype(M.dtype, copy=False) for V in (left, right))
            gaussian.replay_dense(*state, *vectors, *steps)


class FactoredGaussian(Gaussian):
    """Rows of W covary by Λ (m×m), columns by Ω (n×n), at first identities (f-AROMA).

    An example q pᵀ with violation ℓ, s = qᵀΛq and t = pᵀΩp moves

        W += ℓ / (r + s t) · (Λq)(Ωp)ᵀ,
        Ω −= s / (m r + s t) · (Ωp)(Ωp)ᵀ,   Λ −= t / (n r + s t) · (Λq)(Λq)ᵀ.

    With `on_mistakes` only a score of at most 0 moves anything, and W = Λ B Ω, with the covariances
    after the step and B += ℓ / (r + s t) · q pᵀ.
    """

    def __init__(self, W: Array, r: float, on_mistakes: bool = False) -> None:
        self.r, self.on_mistakes = r, on_mistakes
        self.array = np.array(W, order="C")
        m, n = W.shape
        self.left = Symmetric(np.eye(m, dtype=W.dtype))
        self.right = Symmetric(np.eye(n, dtype=W.dtype))

    def path(self, wanted: str, directions: Directions) -> str:
        """Blocks are worth it from about 100 dimensions on."""
        if wanted == "plain":
            return wanted
        if self.on_mistakes:
            return "compiled"
        if wanted != "auto":
            return wanted
        small = max(self.array.shape) <= 96
        return "compiled" if small or len(directions) < 16 else "blocked"

    def advance(self, path: str, block: Directions, keep: bool) -> Trace:
        """Go through a block; with `keep`, the trace knows what was added to W."""
        trace = Trace.empty(len(block))
        block = block.dense(self.dtype)
        state: Any = (self.array, self.left.lower, self.right.lower)
        least = gaussian.FLOOR[self.dtype]
        given: Any = (block.left, block.right, block.target, block.weight, self.r, least)
        if path == "blocked":
            block_of: Any = (*state, *given, trace.tau, trace.violation)
            left, right = gaussian.factored_block(*block_of)
            trace.terms = [_of_rank_one(left, right)]
            return trace
        lefts, rights = (
            np.empty((1 + self.on_mistakes, len(block), width), self.dtype)
            for width in self.array.shape
        )
        if path == "plain":
            self._plain(block, trace, lefts, rights)
        else:
            written: Any = (self.on_mistakes, keep, trace.tau, trace.violation, lefts, rights)
            gaussian.factored_dense(*state, *given, *written)
        if keep:
            rows = np.flatnonzero(trace.tau)
            both = zip(lefts, rights, strict=True)
            trace.terms = [_of_rank_one(left[rows], right[rows]) for left, right in both]
        return trace

    def _plain(self, block: Directions, trace: Trace, lefts: Array, rights: Array) -> None:
        W, Lambda, Omega = self.array, self.left.matrix, self.right.matrix
        m, n = W.shape
        least = gaussian.FLOOR[self.dtype]
        for i, (q, p) in enumerate(zip(block.left, block.right, strict=True)):
            score = float(q @ W @ p)
            trace.violation[i] = loss = block.target[i] - score
            passive = loss <= ROUNDING or (self.on_mistakes and loss < block.target[i])
            if block.weight[i] == 0.0 or passive:
                continue
            a, c = Lambda @ q, Omega @ p
            least_s, least_t = least * float(q @ q), least * float(p @ p)
            s, t = max(float(q @ a), least_s), max(float(p @ c), least_t)
            r = self.r / block.weight[i]
            trace.tau[i] = tau = loss / (r + s * t)
            down_left = gaussian.shrinkage(s, t, n * r, least_s)
            down_right = gaussian.shrinkage(t, s, m * r, least_t)
            lefts[0, i], rights[0, i] = tau * a, c
            if self.on_mistakes:
                # Λ_i (B + τ q pᵀ) Ω_i, written with W = Λ B Ω before the step.
                g = tau * (1 - down_left * s) * (1 - down_right * t)
                g += down_left * down_right * score
                lefts[:, i] = a, -down_right * (W @ p)
                rights[:, i] = g * c - down_left * (q @ W), c
            W += lefts[:, i].T @ rights[:, i]
            Lambda -= self.dtype.type(down_left) * np.outer(a, a)
            Omega -= self.dtype.type(down_right) * np.outer(c, c)
        self.left, self.right = Symmetric(Lambda), Symmetric(Omega)

    def variance(self, Q: Matrix, P: Matrix) -> Array:
        """(qᵀΛq)(pᵀΩp), all queries against all items."""
        sides = ((Q, self.left), (P, self.right))
        of_query, of_item = (row_dots(times(V, T.matrix.astype(V.dtype)), V) for V, T in sides)
        return np.maximum(of_query, 0)[:, None] * np.maximum(of_item, 0)

    def noise(self, rng: np.random.RandomState) -> Array:
        """Λ^½ N Ω^½."""
        noise = rng.standard_normal(self.array.shape).astype(self.dtype)
        for T in (self.left, self.right):
            noise = (psd.factor(T.matrix)[0].T.astype(self.dtype) @ noise).T
        return noise

    def state(self) -> State:
        """W, Λ, Ω, r and which examples move them."""
        state = State({"W": self.array}, {"r": float(self.r), "on_mistakes": self.on_mistakes})
        return state.add("Lambda", self.left.state()).add("Omega", self.right.state())

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The Gaussian of that state."""
        W = saved.array("W", None, None)
        both = [Symmetric.restore(saved.part(name)) for name in ("Lambda", "Omega")]
        # They start at the identity and only shrink.
        for side, T in zip(W.shape, both, strict=True):
            fits = T.shape == (side, side) and T.dtype == W.dtype
            shrunk = fits and np.abs(T.lower).max() <= 1.01 and np.diagonal(T.lower).min() >= -0.01
            saved.check(bool(shrunk), "Lambda and Omega must be covariances of W, at most I")
        restored = cls(W, saved.positive("r"), saved.flag("on_mistakes"))
        restored.left, restored.right = both
        return restored


class Uncertain(Online):
    """The loop for a Gaussian: no threshold, no projections, the Gaussian's own step."""

    def __init__(self, gaussian: Gaussian, *, average: Spec, path: str) -> None:
        super().__init__(
            gaussian,  # type: ignore[arg-type]
            0.0,
            pa2(0.5 / gaussian.r),
            psd="end",
            least_b=-np.inf,
            average=average,
            tolerance=0.0,
            path=path,
        )
        self.gaussian = gaussian

    def _path(self, directions: Directions) -> str:
        return self.gaussian.path(self.path, directions)

    def _block_rows(self, path: str, directions: Directions) -> int:
        # The walk through a block costs the square of its rows an example.
        if path == "blocked":
            return 128 if max(self.gaussian.array.shape) >= 500 else 64
        return len(directions)

    def _advance(self, path: str, block: Directions) -> Trace:
        return self.gaussian.advance(path, block, keep=self.average.kind != "last")

    @classmethod
    def restore(cls, saved: Saved, kind: Any) -> Self:
        """The loop of that state; `kind` is the class of its Gaussian."""
        online = super().restore(saved, kind)
        online.gaussian = online.store  # type: ignore[assignment]
        saved.check(online.psd == "end", "psd must be end")
        return online


def _both_parts(left: Matrix, right: Matrix, dtype: Any) -> Any:
    """What compiled loops take of CSR rows on both sides."""
    return [part for V in (left, right) for part in csr_parts(V, dtype)]


def _of_rank_one(left: Array, right: Array) -> RankOnes:
    """One term for each update."""
    return RankOnes(left, right, np.ones(len(left)), np.arange(len(left)))


def _squared(X: Matrix) -> Matrix:
    return X.multiply(X).tocsr() if sp.issparse(X) else X * X
