"""The generalized cosine xᵀAx'/√(xᵀAx · x'ᵀAx')."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np

from samewise._typing import Array, Indices, Matrix
from samewise.files.tensor_files import Sides, needed, save_graph
from samewise.forms._frozen import freeze
from samewise.forms._input_checks import (
    UndefinedRowsError,
    check_factored,
    check_on_zero,
    check_overflow,
    check_psd,
)
from samewise.forms.form import Form
from samewise.kernels import psd
from samewise.kernels.pairwise import row_dots, squared_norms, times

# ‖Lx‖ up to this part of ‖L‖‖x‖ is what rounding leaves of a vector that A maps to zero.
_ZERO = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}


class GeneralizedCosine(Form):
    """A cosine in the geometry of A ⪰ 0: xᵀAx'/√(xᵀAx · x'ᵀAx'), in [−1, 1].

    Parameters
    ----------
    matrix : array of shape (d, d)
        A, symmetric positive semi-definite (as in `Mahalanobis`).
    on_zero : {"raise", "zero"}, default="raise"
        A row with xᵀAx = 0 (up to rounding) has no cosine: raise a DegenerateInputError, or
        define its similarity with anything, itself included, as 0.

    Attributes
    ----------
    matrix : array of shape (d, d)
    components : array of shape (r, d)
        L with A = LᵀL, rows by decreasing eigenvalue.
    eigenvalues : array of shape (r,)
    root : array of shape (d, d)
        A^½, the symmetric root.
    on_zero : str

    Examples
    --------
    >>> import numpy as np
    >>> form = GeneralizedCosine(np.diag([1.0, 0.0]), on_zero="zero")
    >>> form.cross([[1.0, 5.0], [-2.0, 1.0], [0.0, 3.0]])
    array([[ 1., -1.,  0.],
           [-1.,  1.,  0.],
           [ 0.,  0.,  0.]])
    """

    _stored = ("matrix", "components", "eigenvalues", "on_zero")
    matrix: Array
    components: Array
    eigenvalues: Array
    on_zero: str

    def __init__(self, matrix: Array, on_zero: str = "raise") -> None:
        self._assemble(check_psd(matrix, type(self).__name__), on_zero)

    @property
    def n_features_in(self) -> int:
        """Number of features d."""
        return self.matrix.shape[0]

    @cached_property
    def root(self) -> Array:
        """A^½, the symmetric root: A = A^½A^½."""
        return freeze(psd.root_of(self.components, self.eigenvalues))

    def embed(self, X: Matrix, *, symmetric: bool = False) -> Array:
        """Lx/‖Lx‖ for each row x: unit vectors whose inner product is the similarity.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Examples, one row each.
        symmetric : bool, default=False
            Take the symmetric root A^½ for L. The result has d columns whatever the rank, and it is
            continuous in A, where leading directions can swap or change their signs.

        Returns
        -------
        array of shape (n, r) or (n, d)
            A row without a cosine is zero if ``on_zero="zero"``.

        Examples
        --------
        >>> import numpy as np
        >>> GeneralizedCosine(np.diag([1.0, 0.25])).embed([[3.0, 8.0]])
        array([[0.6, 0.8]])
        """
        X = self._check_rows(X, "X", self.n_features_in)
        return self._checked(self._embed, X, "X", self.root if symmetric else None)

    def to_onnx(self, path: str | os.PathLike[str], *, pairs: bool = False) -> None:
        """Write the map, or the similarity of pairs, as an ONNX model.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        pairs : bool, default=False
            False: input "rows" of shape (n, d), output "mapped" of shape (n, r), as `embed` gives
            it. True: inputs "left" and "right", the members of n pairs, and output "closeness" of
            shape (n,), the similarity.

        Notes
        -----
        Inputs have the type of `components`, float32 or float64. A row without a cosine is mapped
        to zero, whatever `on_zero` is: a model cannot refuse it. It needs the package onnx:
        ``pip install 'samewise[onnx]'``.
        """
        node = needed("onnx", "onnx").helper.make_node
        (r, d), dtype = self.components.shape, self.components.dtype
        nodes = []

        def length(rows: str) -> str:
            nodes.append(node("Mul", [rows, rows], [f"{rows}_squares"]))
            nodes.append(node("ReduceSum", [f"{rows}_squares", "across"], [f"{rows}_squared"]))
            nodes.append(node("Sqrt", [f"{rows}_squared"], [f"{rows}_length"]))
            return f"{rows}_length"

        def embed(rows: str, mapped: str) -> None:
            nodes.append(node("Gemm", [rows, "weight"], [f"{mapped}_raw"], transB=1))
            norms = length(f"{mapped}_raw")
            nodes.append(node("Mul", [length(rows), "least"], [f"{mapped}_least"]))
            nodes.append(node("Greater", [norms, f"{mapped}_least"], [f"{mapped}_known"]))
            nodes.append(node("Div", [f"{mapped}_raw", norms], [f"{mapped}_unit"]))
            chosen = [f"{mapped}_known", f"{mapped}_unit", "nothing"]
            nodes.append(node("Where", chosen, [mapped]))

        if pairs:
            embed("left", "mapped_left")
            embed("right", "mapped_right")
            nodes.append(node("Mul", ["mapped_left", "mapped_right"], ["products"]))
            nodes.append(node("ReduceSum", ["products", "across"], ["closeness"], keepdims=0))
            sides: Sides = {"left": ["n", d], "right": ["n", d]}, {"closeness": ["n"]}
        else:
            embed("rows", "mapped")
            sides = {"rows": ["n", d]}, {"mapped": ["n", r]}
        arrays = {
            "weight": self.components,
            "across": np.array([1], dtype=np.int64),
            "least": np.array([self._least(dtype)], dtype=dtype),
            "nothing": np.zeros(1, dtype=dtype),
        }
        about = {"form": type(self).__name__}
        save_graph(path, "samewise form", nodes, sides, arrays, about, "Reduce the form first.")

    @property
    def _width(self) -> int:
        return len(self.components)

    def _least(self, dtype: Any) -> Any:
        """Up to which part of ‖x‖ the length ‖Lx‖ counts as 0."""
        return _ZERO[dtype] * np.sqrt(np.max(self.eigenvalues, initial=0.0)).astype(dtype)

    def _embed(self, X: Matrix, name: str, L: Array | None = None) -> Array:
        L = self.components if L is None else L
        E = times(X, L.astype(X.dtype, copy=False).T)
        norms, sizes = np.sqrt(squared_norms(E)), np.sqrt(squared_norms(X))
        check_overflow(norms, "GeneralizedCosine")
        check_overflow(sizes, "GeneralizedCosine")
        zero = norms <= self._least(X.dtype) * sizes
        if zero.any():
            if self.on_zero == "raise":
                raise _no_cosine(np.flatnonzero(zero), name)
            E[zero], norms[zero] = 0, 1
        E /= norms[:, None]
        return E

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        return _clipped(row_dots(self._embed(X, "X"), self._embed(Y, "Y")))

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        F = self._embed(Y, "Y")
        return lambda X: _clipped(self._embed(X, "X") @ F.T)

    @classmethod
    def _of_parts(cls, *, on_zero: str, **arrays: Any) -> Self:
        form = cls.__new__(cls)
        form._assemble(check_factored(**arrays, owner=cls.__name__), on_zero)
        return form

    def _assemble(self, parts: tuple[Array, Array, Array], on_zero: str) -> None:
        check_on_zero(on_zero, "GeneralizedCosine")
        matrix, components, eigenvalues = parts
        self._set(matrix=matrix, components=components, eigenvalues=eigenvalues, on_zero=on_zero)

    def _spectrum(self) -> Array | None:
        return self.eigenvalues

    def _summary(self) -> dict[str, Any]:
        return {
            "n_features_in": self.n_features_in,
            "rank": len(self.components),
            "on_zero": repr(self.on_zero),
        }


def _no_cosine(rows: Indices, name: str) -> UndefinedRowsError:
    def describe(start: int) -> str:
        shown = ", ".join(map(str, rows[:5] + start)) + (", …" if len(rows) > 5 else "")
        return (
            f"{name} has rows with xᵀAx = 0, which have no cosine (rows {shown}); leave them out, "
            "or define their similarity as 0 with on_zero='zero'."
        )

    return UndefinedRowsError(describe)


def _clipped(values: Array) -> Array:
    return np.clip(values, -1, 1, out=values)
