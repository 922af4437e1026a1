"""A similarity by a neural network with one hidden layer, the same both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms._input_checks import check_finite, check_matrix, frozen
from samewise.forms.form import Form
from samewise.kernels.pairwise import row_slices, times

# Every unit goes over a block once, so blocks are small enough for the cache.
_BLOCK_BYTES = 2**19


class NeuralSimilarity(Form):
    """The output of a network that takes two rows and does not care for their order.

        s(x, x') = σ(b + Σ_h w_h (tanh(u_hᵀx + v_hᵀx' + c_h) + tanh(v_hᵀx + u_hᵀx' + c_h)))

    with σ(z) = 1/(1 + e⁻ᶻ). The hidden units are pairs that mirror each other and weigh the same.
    It is symmetric and in (0, 1), but no metric: s(x, x) need not be 1.

    Parameters
    ----------
    left, right : arrays of shape (n_hidden, d)
        The u_h and the v_h.
    bias, output : arrays of shape (n_hidden,)
        The c_h and the w_h.
    intercept : float, default=0
        b.

    Attributes
    ----------
    left, right, bias, output, intercept
        As given.

    Examples
    --------
    >>> form = NeuralSimilarity([[2.0]], [[-2.0]], [1.0], [1.0])
    >>> form
    NeuralSimilarity(n_features_in=1, n_hidden=1)
    >>> form.cross([[0.0], [1.0]]).round(3)
    array([[0.821, 0.558],
           [0.558, 0.821]])
    """

    _stored = ("left", "right", "bias", "output", "intercept")
    left: Array
    right: Array
    bias: Array
    output: Array
    intercept: float

    def __init__(
        self, left: Array, right: Array, bias: Array, output: Array, intercept: float = 0.0
    ) -> None:
        U, V = (
            check_matrix(values, name, "NeuralSimilarity")
            for name, values in (("left", left), ("right", right))
        )
        if U.shape != V.shape or len(U) == 0:
            raise InvalidInputError(
                "The left and the right of NeuralSimilarity must have the same shape (n_hidden, d)"
                f" with at least one row, but their shapes are {U.shape} and {V.shape}."
            )
        c, w = (
            _vector(values, name, len(U)) for name, values in (("bias", bias), ("output", output))
        )
        if not isinstance(intercept, int | float | np.number) or not np.isfinite(intercept):
            raise InvalidInputError(
                f"The intercept of NeuralSimilarity must be a finite number, but it is {intercept}."
            )
        self._set(left=U, right=V, bias=c, output=w, intercept=float(intercept))

    @property
    def n_features_in(self) -> int:
        """Number of features d."""
        return self.left.shape[1]

    @property
    def _width(self) -> int:
        return 4 * len(self.left)

    def _sides(self, X: Matrix) -> tuple[Array, Array]:
        """u_hᵀx + c_h/2 and v_hᵀx + c_h/2 for each row and unit."""
        halves = (self.bias / 2).astype(X.dtype)
        U, V = (W.astype(X.dtype, copy=False) for W in (self.left, self.right))
        return times(X, U.T) + halves, times(X, V.T) + halves

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        (A, B), (C, D) = self._sides(X), self._sides(Y)
        units = np.tanh(A + D) + np.tanh(B + C)
        # Row by row, and not by a product that may add up each row in its own order.
        z = np.einsum("ij,j->i", units, self.output.astype(X.dtype, copy=False))
        return expit(z + X.dtype.type(self.intercept))

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        C, D = (np.ascontiguousarray(side.T) for side in self._sides(Y))
        w = self.output.astype(Y.dtype, copy=False)

        def score(X: Matrix) -> Array:
            A, B = self._sides(X)
            values = np.full((len(A), C.shape[1]), self.intercept, dtype=X.dtype)
            for rows in row_slices(len(A), values.shape[1] * X.dtype.itemsize, _BLOCK_BYTES):
                z = values[rows]
                one, mirrored = np.empty_like(z), np.empty_like(z)
                for h in range(len(w)):
                    np.tanh(np.add(A[rows, h, None], D[h], out=one), out=one)
                    np.tanh(np.add(B[rows, h, None], C[h], out=mirrored), out=mirrored)
                    one += mirrored
                    one *= w[h]
                    z += one
                expit(z, out=z)
            return values

        return score

    def _summary(self) -> dict[str, Any]:
        return {"n_features_in": self.n_features_in, "n_hidden": len(self.left)}


def _vector(values: Any, name: str, n: int) -> Array:
    """A read-only copy of n finite numbers."""
    vector = np.asarray(values)
    if vector.dtype not in (np.float32, np.float64):
        vector = vector.astype(np.float64)
    if vector.shape != (n,):
        raise InvalidInputError(
            f"The {name} of NeuralSimilarity must have the shape ({n},), one number for each pair "
            f"of hidden units, but its shape is {vector.shape}."
        )
    check_finite(vector, f"The {name} of NeuralSimilarity")
    return frozen(vector)
