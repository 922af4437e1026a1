"""A matrix with uncertainty: a Gaussian over matrices, its mean W and its covariance.

A step depends on the covariance, which shrinks with every update. There is no threshold, and
nothing is projected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Array, Matrix
from samewise.engine.averaging import RankOnes
from samewise.engine.directions import Directions
from samewise.engine.mover import PATHS, Trace
from samewise.engine.stores import Full, Symmetric, csr_parts
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.kernels import gaussian_loops as gaussian
from samewise.kernels import psd
from samewise.kernels.pairwise import row_dots, times
from samewise.kernels.steps import ROUNDING


class Gaussian(Storable, storable=False):
    """A mover with uncertainty: no threshold, and nothing is projected.

    Parameters
    ----------
    W : array of shape (m, n)
        The mean to start from.
    r : float
        The variance of an example: the larger, the smaller the steps.
    path : {"auto", "compiled", "blocked", "plain"}, default="auto"
        How the arithmetic is done. All take the same steps.
    """

    b = 0.0
    least_b = -math.inf


class DiagonalGaussian(Gaussian):
    """Independent entries: W_kl has variance Σ_kl, at first 1 (d-AROMA).

    An example l rᵀ with violation p and s = Σ_kl (l_k r_l)² Σ_kl moves

        W += p / (s + r) · Σ ∘ l rᵀ,   Σ −= (Σ ∘ l rᵀ)² / (s + r).

    There is no blocked path: Σ changes entry by entry.
    """

    def __init__(self, W: Array, r: float, path: str = "auto") -> None:
        self.r, self.path = r, path
        # W + iΣ: one access in memory fetches both.
        self.both = np.full(W.shape, 1j, dtype=np.result_type(W.dtype, np.complex64))
        self.both.real[:] = W

    @property
    def store(self) -> Full:
        """W, a view."""
        return Full(self.both.real)

    @property
    def variances(self) -> Array:
        """Σ, a view."""
        return self.both.imag

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by the next block of the directions, from `start` on."""
        block = directions.rows(start)
        trace = Trace.empty(len(block))
        divisor = np.ones(len(block))
        before = self.variances.copy() if keep else None
        dtype = self.both.real.dtype
        rest: Any = (block.wanted, self.r, divisor, trace.moved)
        if self.path == "plain":
            self._plain(block.dense(dtype), trace, divisor)
        elif block.sparse:
            left, right = (csr_parts(V, dtype) for V in (block.left, block.right))
            gaussian.diagonal_sparse(self.both, left, right, *rest)
        else:
            dense = block.dense(dtype)
            gaussian.diagonal_dense(self.both, dense.left, dense.right, *rest)
        if before is not None:
            trace.terms = [Replay(block, trace.tau, divisor, before)]
        return trace

    def _plain(self, block: Directions, trace: Trace, divisor: NDArray[np.float64]) -> None:
        W, S = self.both.real, self.variances
        for i, (q, p) in enumerate(zip(block.left, block.right, strict=True)):
            G = np.outer(q, p)
            trace.violation[i] = loss = block.target[i] - np.sum(W * G, dtype=np.float64)
            if block.weight[i] == 0.0 or loss <= ROUNDING:
                continue
            divisor[i] = np.sum(S * G * G, dtype=np.float64) + self.r / block.weight[i]
            trace.tau[i] = loss / divisor[i]
            W += W.dtype.type(trace.tau[i]) * S * G
            S *= np.maximum(1 - S * G * G / S.dtype.type(divisor[i]), gaussian.LEAST)

    def variance(self, Q: Matrix, P: Matrix) -> Array:
        """Σ_kl q_k² p_l² Σ_kl, all queries against all items."""
        return times(_squared(Q), self.variances.astype(Q.dtype)) @ _squared(P).T

    def noise(self, rng: np.random.RandomState) -> Array:
        """√Σ ∘ N."""
        S = self.variances
        return np.sqrt(S) * rng.standard_normal(S.shape).astype(S.dtype)

    def state(self) -> State:
        """W, Σ, r and the path."""
        values = {"r": float(self.r), "path": self.path}
        return State({"W": self.both.real, "Sigma": self.variances}, values)

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The Gaussian of that state."""
        W = saved.array("W", None, None)
        Sigma = saved.array("Sigma", *W.shape, dtypes=[W.dtype.name])
        saved.check(bool(np.all((Sigma >= 0) & (Sigma <= 1))), "Sigma must be from 0 to 1")
        restored = cls(W, saved.positive("r"), saved.choice("path", PATHS))
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
            vectors: Any = (csr_parts(V, M.dtype) for V in (left, right))
            gaussian.replay_sparse(*state, *vectors, *steps)
        else:
            vectors = (V.astype(M.dtype, copy=False) for V in (left, right))
            gaussian.replay_dense(*state, *vectors, *steps)


class FactoredGaussian(Gaussian):
    """Rows of W covary by Λ (m×m), columns by Ω (n×n), at first identities (f-AROMA).

    An example q pᵀ with violation ℓ, s = qᵀΛq and t = pᵀΩp moves

        W += ℓ / (r + s t) · (Λq)(Ωp)ᵀ,
        Ω −= s / (m r + s t) · (Ωp)(Ωp)ᵀ,   Λ −= t / (n r + s t) · (Λq)(Λq)ᵀ.

    With `on_mistakes` only a score of at most 0 moves anything, and W = Λ B Ω, with the covariances
    after the step and B += ℓ / (r + s t) · q pᵀ.
    """

    def __init__(self, W: Array, r: float, on_mistakes: bool = False, path: str = "auto") -> None:
        self.r, self.on_mistakes, self.path = r, on_mistakes, path
        self.mean = Full(np.array(W, order="C"))
        m, n = W.shape
        self.left = Symmetric(np.eye(m, dtype=W.dtype))
        self.right = Symmetric(np.eye(n, dtype=W.dtype))

    @property
    def store(self) -> Full:
        """The mean W."""
        return self.mean

    def _path(self, n_examples: int) -> str:
        """Blocks are worth it from about 100 dimensions on."""
        if self.path == "plain":
            return "plain"
        if self.on_mistakes:
            return "compiled"
        if self.path != "auto":
            return self.path
        small = max(self.mean.shape) <= 96
        return "compiled" if small or n_examples < 16 else "blocked"

    def advance(self, directions: Directions, start: int, keep: bool) -> Trace:
        """Move by the next block of the directions, from `start` on."""
        path = self._path(len(directions))
        # The walk through a block costs the square of its rows an example.
        at_once = 128 if max(self.mean.shape) >= 500 else 64
        block = directions.rows(start, start + at_once if path == "blocked" else None)
        W = self.mean.array
        block, trace = block.dense(W.dtype), Trace.empty(len(block))
        state = (W, self.left.lower, self.right.lower)
        given = (state, block.left, block.right, block.wanted, self.r, gaussian.FLOOR[W.dtype])
        if path == "blocked":
            trace.terms = [_of_rank_one(*gaussian.factored_block(*given, trace.moved))]
            return trace
        terms = [np.empty((1 + self.on_mistakes, len(block), n), W.dtype) for n in W.shape]
        if path == "plain":
            self._plain(block, trace, *terms)
        else:
            modes = (self.on_mistakes, keep)
            gaussian.factored_dense(*given, modes, trace.moved, *terms)
        if keep:
            rows, both = trace.updates, zip(*terms, strict=True)
            trace.terms = [_of_rank_one(left[rows], right[rows]) for left, right in both]
        return trace

    def _plain(self, block: Directions, trace: Trace, lefts: Array, rights: Array) -> None:
        W, Lambda, Omega = self.mean.array, self.left.matrix, self.right.matrix
        m, n = W.shape
        least = gaussian.FLOOR[W.dtype]
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
            Lambda -= W.dtype.type(down_left) * np.outer(a, a)
            Omega -= W.dtype.type(down_right) * np.outer(c, c)
        self.left, self.right = Symmetric(Lambda), Symmetric(Omega)

    def variance(self, Q: Matrix, P: Matrix) -> Array:
        """(qᵀΛq)(pᵀΩp), all queries against all items."""
        sides = ((Q, self.left), (P, self.right))
        of_query, of_item = (row_dots(times(V, T.matrix.astype(V.dtype)), V) for V, T in sides)
        return np.maximum(of_query, 0)[:, None] * np.maximum(of_item, 0)

    def noise(self, rng: np.random.RandomState) -> Array:
        """Λ^½ N Ω^½."""
        dtype = self.mean.dtype
        noise = rng.standard_normal(self.mean.shape).astype(dtype)
        for T in (self.left, self.right):
            noise = (psd.factor(T.matrix)[0].T.astype(dtype) @ noise).T
        return noise

    def state(self) -> State:
        """W, Λ, Ω, r, which examples move them and the path."""
        values = {"r": float(self.r), "on_mistakes": self.on_mistakes, "path": self.path}
        state = State({"W": self.mean.array}, values)
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
        r, path = saved.positive("r"), saved.choice("path", PATHS)
        restored = cls(W, r, saved.flag("on_mistakes"), path)
        restored.left, restored.right = both
        return restored


def _of_rank_one(left: Array, right: Array) -> RankOnes:
    """One term for each update."""
    return RankOnes(left, right, np.ones(len(left)), np.arange(len(left)))


def _squared(X: Matrix) -> Matrix:
    return X.multiply(X).tocsr() if sp.issparse(X) else X * X
