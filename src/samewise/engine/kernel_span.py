"""A store in feature space: the span of the differences that moved M, in coordinates.

M = Σ τ_i ψ_i ψ_iᵀ + … lives in the span of ψ_j = φ(x_j) − φ(x′_j), the differences of the pairs
that updated it. In an orthonormal basis of that span, found by kernel Gram–Schmidt, a pair's
difference is an ordinary vector and M an ordinary matrix, so everything the engine does with
vectors (scores, steps, the search for the negative eigenpair) serves unchanged (POLA §3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from samewise._typing import Array, Matrix
from samewise.engine.directions import pair_directions
from samewise.engine.online import Online
from samewise.engine.rank_one_mover import RankOneMover
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms.kernel_mahalanobis import _check_csr
from samewise.kernels.gram_schmidt import gram_schmidt
from samewise.supervision import Pairs

Kernel = Callable[[Any, Any], Array]

BLOCK = 64
"""Pairs shown at once."""

INDEPENDENT = 1e-11
"""Part of a difference's squared length beyond the span that makes it a new direction; less than
that is rounding in the inner products."""


class KernelSpan:
    """The differences that carry M, and their orthonormal basis."""

    def __init__(self) -> None:
        self.left: Matrix | None = None
        self.right: Matrix | None = None
        # Basis vector i is Σ_j basis[i, j] ψ_j; lower triangular.
        self.basis: NDArray[np.float64] = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.basis)

    def learn(
        self, online: Online, pairs: Pairs, left: Matrix, right: Matrix, kernel: Kernel
    ) -> None:
        """Show a block of pairs to `online`, whose matrix lives in these coordinates.

        `left` and `right` are the members of the pairs as `kernel` takes them: rows of features, or
        their numbers in a kernel matrix.
        """
        Z, R, scale = self._coordinates(left, right, kernel)
        T, _ = gram_schmidt(R, scale, INDEPENDENT)
        mover = online.mover
        assert isinstance(mover, RankOneMover)
        mover.widen(T.shape[1])
        tau = online.learn(pair_directions(np.ascontiguousarray(np.hstack([Z, T])), pairs))
        used = np.flatnonzero(tau)
        # Only pairs that moved M need to be remembered: a basis of their span alone.
        T_used, pivots = gram_schmidt(R[np.ix_(used, used)], scale[used], INDEPENDENT)
        rows = used[pivots]
        H = solve_triangular(T_used[pivots], T[rows], lower=True) if len(rows) else T[rows]
        mover.narrow(len(self), H)
        self._append(left[rows], right[rows], Z[rows], T_used[pivots])

    def _coordinates(
        self, left: Matrix, right: Matrix, kernel: Kernel
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Coordinates Z in the present basis, Gram matrix R of what is left, squared lengths."""
        gram = _inner(kernel, left, right, left, right)
        if not np.isfinite(gram).all():
            raise InvalidInputError(
                "The kernel of some examples, or a difference of kernels, is NaN or infinite, but "
                "it must be finite; scale the features, or choose other kernel_params."
            )
        if len(self) == 0:
            return np.empty((gram.shape[0], 0)), gram, np.diagonal(gram).copy()
        with np.errstate(over="ignore", invalid="ignore"):
            Z = _inner(kernel, left, right, self.left, self.right) @ self.basis.T
            rest = gram - Z @ Z.T
        if not np.isfinite(rest).all():
            raise InvalidInputError(
                "Examples have coordinates that overflow in the span of those before them; scale "
                "the features, or choose other kernel_params."
            )
        return Z, rest, np.diagonal(gram).copy()

    def _append(
        self,
        left: Matrix,
        right: Matrix,
        Z: NDArray[np.float64],
        T: NDArray[np.float64],
    ) -> None:
        s, t = len(self), len(T)
        if t == 0:
            return
        self.left = left if self.left is None else _stack(self.left, left)
        self.right = right if self.right is None else _stack(self.right, right)
        grown = np.zeros((s + t, s + t))
        grown[:s, :s] = self.basis
        # ψ = Z basis + T new, so new = T⁻¹ (ψ − Z basis).
        grown[s:, :s] = solve_triangular(T, -Z @ self.basis, lower=True)
        grown[s:, s:] = solve_triangular(T, np.eye(t), lower=True)
        self.basis = grown

    def state(self) -> State:
        """The basis, and the members of the pairs it is made of."""
        state = State({"basis": self.basis})
        if len(self):
            state.add("left", rows_state(self.left)).add("right", rows_state(self.right))
        return state

    @classmethod
    def restore(cls, saved: Saved, width: int, numbers: bool) -> KernelSpan:
        """The span of that state; see `restored_rows`."""
        span = cls()
        basis = saved.array("basis", None, None, dtypes=["float64"], empty=True)
        square = basis.shape[0] == basis.shape[1]
        saved.check(square and not np.triu(basis, 1).any(), "basis must be lower triangular")
        span.basis = basis
        if len(span):
            span.left, span.right = (
                restored_rows(saved.part(name), len(span), width, numbers)
                for name in ("left", "right")
            )
        return span


def rows_state(rows: Matrix) -> State:
    """What a kernel is evaluated on: rows, dense or CSR, or their numbers in a kernel matrix."""
    if not sp.issparse(rows):
        return State({"rows": rows})
    parts = {name: getattr(rows, name).astype(np.int64) for name in ("indices", "indptr")}
    return State({"data": rows.data, **parts})


def restored_rows(saved: Saved, n: int, width: int, numbers: bool) -> Matrix:
    """The n rows of that state, of that width; or with `numbers` their numbers, below it."""
    if numbers:
        rows = saved.array("rows", n, dtypes=["int64"])
        saved.check(rows.min() >= 0 and rows.max() < width, "rows must be numbers of rows")
        return rows
    if saved.has("rows"):
        return saved.array("rows", n, width)
    data = saved.array("data", None, empty=True)
    indices = saved.array("indices", len(data), dtypes=["int64"], empty=True)
    indptr = saved.array("indptr", n + 1, dtypes=["int64"])
    _check_csr(data, indices, indptr, width)
    # The narrowest index type, as SciPy itself chooses.
    index = sp.get_index_dtype(maxval=max(len(data), n, width))
    return sp.csr_array((data, indices.astype(index), indptr.astype(index)), shape=(n, width))


def _inner(k: Kernel, a: Matrix, a2: Matrix, c: Matrix, c2: Matrix) -> NDArray[np.float64]:
    """⟨φ(a) − φ(a2), φ(c) − φ(c2)⟩, all against all."""
    return np.asarray(k(a, c) - k(a, c2) - k(a2, c) + k(a2, c2), dtype=np.float64)


def _stack(first: Matrix, second: Matrix) -> Matrix:
    if sp.issparse(first) or sp.issparse(second):
        return sp.csr_array(sp.vstack([sp.csr_array(first), sp.csr_array(second)]))
    return np.concatenate([first, second])
