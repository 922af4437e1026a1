"""Bilinear similarities qᵀWp, plain or divided by a normalizer N(q, p)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms._input_checks import (
    UndefinedRowsError,
    check_matrix,
    check_on_zero,
    check_overflow,
    check_square,
)
from samewise.forms.dot_graphs import save_dot_graph, save_dot_weight
from samewise.forms.form import LITTLE, Form
from samewise.forms.low_rank import LowRankBilinear, leading_factors
from samewise.kernels import normalizers
from samewise.kernels.pairwise import all_dots, row_dots, row_slices, times

Normalizer = Callable[[Matrix, Matrix], Array]
# A callable normalizer only speaks all against all: of a square this wide the diagonal is used.
_SQUARE = 32


class Bilinear(Form):
    """A bilinear similarity S(q, p) = qᵀWp.

    Parameters
    ----------
    matrix : array of shape (m, n)
        W: m features of a query, n features of an item; m ≠ n is allowed, and W need be neither
        symmetric nor positive semi-definite.

    Attributes
    ----------
    matrix : array of shape (m, n)
    n_features_in, n_features_items : int
        m and n.

    Examples
    --------
    >>> form = Bilinear([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    >>> form
    Bilinear(shape=(2, 3))
    >>> form.cross([[1.0, 1.0]], [[1.0, 1.0, 1.0], [0.0, 5.0, 0.0]])
    array([[4., 5.]])
    """

    _stored: ClassVar[tuple[str, ...]] = ("matrix",)
    matrix: Array

    def __init__(self, matrix: Array) -> None:
        self._set(matrix=check_matrix(matrix, "matrix", type(self).__name__, least_rows=1))

    @property
    def n_features_in(self) -> int:
        """Number of features m of a query."""
        return self.matrix.shape[0]

    @property
    def n_features_items(self) -> int:
        """Number of features n of an item."""
        return self.matrix.shape[1]

    def embed_query(self, Q: Matrix) -> Array:
        """Q W: the inner product with a stored item is the similarity.

        Parameters
        ----------
        Q : array or CSR matrix of shape (k, m)
            Queries, one row each.

        Returns
        -------
        array of shape (k, n)
            The embedded queries.

        Examples
        --------
        >>> Bilinear([[1.0, 2.0]]).embed_query([[3.0]])
        array([[3., 6.]])
        """
        return self._checked(self._embed_query, self._check_rows(Q, "Q", self.n_features_in))

    def reduce(self, rank: int) -> LowRankBilinear:
        """The best approximation of W by a matrix of that rank, in the Frobenius norm.

        With W = Σ σ_i u_i v_iᵀ, σ_1 ≥ σ_2 ≥ …, it is LRᵀ with columns √σ_i u_i and √σ_i v_i,
        i ≤ rank. It is W itself, up to rounding, only if the rank of W is not larger; otherwise
        ‖W − LRᵀ‖ is the root of the sum of the dropped σ_i², and no score of q and p is off by
        more than σ_(rank+1) ‖q‖‖p‖.

        Parameters
        ----------
        rank : int
            Number of columns of L and R; from the rank of W on, the rank of W.

        Returns
        -------
        LowRankBilinear
            The form of LRᵀ.

        Notes
        -----
        All singular values are computed, at a cost that grows with m n min(m, n).

        Examples
        --------
        >>> import numpy as np
        >>> form = Bilinear(np.diag([9.0, 4.0, 1.0])).reduce(2)
        >>> form
        LowRankBilinear(shape=(3, 3), rank=2)
        >>> form.embed_item([[1.0, 1.0, 1.0]])
        array([[3., 2.]])
        """
        return LowRankBilinear(*leading_factors(self.matrix, rank))

    def to_onnx(self, path: str | os.PathLike[str], *, output: str = "query") -> None:
        """Write the map of queries or of items, or the similarity of pairs, as an ONNX model.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        output : {"query", "item", "pairs"}, default="query"
            "query": input "queries", output "mapped_queries", as `embed_query` gives them. "item":
            input "items", output "mapped_items", whose dot product with a mapped query is the
            similarity: the items as they are. "pairs": inputs "queries" and "items", n of each, and
            output "closeness" of shape (n,).

        Notes
        -----
        All have the type of the matrix, float32 or float64. It needs the package onnx:
        ``pip install 'samewise[onnx]'``.
        """
        self._check_plain()
        save_dot_graph(path, type(self).__name__, self.matrix, None, output)

    def to_safetensors(self, path: str | os.PathLike[str], *, output: str = "query") -> None:
        """Write the map of queries as the weight of a linear layer, for torch.

        ``torch.nn.Linear(m, k, bias=False)`` takes it by ``load_state_dict``. It holds one array,
        "weight". The similarity is the dot product of a mapped query and an item.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        output : {"query", "item"}, default="query"
            Whose map. Items have none: they stay as they are.

        Notes
        -----
        It needs the package safetensors: ``pip install 'samewise[safetensors]'``.
        """
        self._check_plain()
        save_dot_weight(path, type(self).__name__, self.matrix, None, output)

    def _check_plain(self) -> None:
        """Refuse what a file of matrices does not say."""
        if type(self) is not Bilinear:
            raise InvalidInputError(
                f"{type(self).__name__} divides by the lengths of rows, which no file of matrices "
                "says. Give rows of unit length to Bilinear(form.matrix), and write that."
            )

    def _embed_query(self, Q: Matrix) -> Array:
        return times(Q, self.matrix.astype(Q.dtype, copy=False))

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        return row_dots(self._embed_query(X), Y)

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        return lambda X: all_dots(self._embed_query(X), Y)

    def _spectrum(self) -> Array | None:
        W = self.matrix
        return np.linalg.svd(W, compute_uv=False) if W.size <= LITTLE else None

    def _summary(self) -> dict[str, Any]:
        return {"shape": self.matrix.shape}


class NormalizedBilinear(Bilinear):
    """A normalized bilinear similarity xᵀAx'/N(x, x'), with N independent of A.

    Parameters
    ----------
    matrix : array of shape (m, n)
        A. Square for "jaccard".
    normalizer : {"cosine", "dice", "jaccard"}, callable or None, default="cosine"
        N(x, x'):

        - "cosine": ‖x‖‖x'‖;
        - "dice": (|x|₁ + |x'|₁)/2, so that A = I gives Dice's 2xᵀx'/(|x|₁ + |x'|₁);
        - "jaccard": |x|₁ + |x'|₁ − xᵀx'; positive for values in [0, 1];
        - None: 1;
        - a callable ``normalizer(X, Y)`` that takes n and m checked rows (dense or CSR, as given)
          and returns the (n, m) array of N. It is called with blocks of rows of X; `pairs` calls
          it with 32 rows of each at a time and uses the diagonal. Such a form cannot be saved.

        Where N is not positive (for a callable: where it is zero or not finite) the similarity is
        undefined, and a DegenerateInputError is raised.
    on_zero : {"raise", "zero"}, default="raise"
        Where a row is zero and a named normalizer is 0 for it: raise a DegenerateInputError, or
        define the similarity as 0.

    Attributes
    ----------
    matrix : array of shape (m, n)
    normalizer : str, callable or None
    on_zero : str

    Examples
    --------
    >>> form = NormalizedBilinear([[1.0, 0.0], [0.0, 1.0]], normalizer="dice")
    >>> form.pairs([[1.0, 1.0]], [[1.0, 0.0]]).round(3)
    array([0.667])
    """

    _stored = ("matrix", "normalizer", "on_zero")
    normalizer: str | Normalizer | None
    on_zero: str

    def __init__(
        self,
        matrix: Array,
        normalizer: str | Normalizer | None = "cosine",
        on_zero: str = "raise",
    ) -> None:
        super().__init__(matrix)
        if not (normalizer is None or callable(normalizer) or normalizer in normalizers.NAMES):
            raise InvalidInputError(
                "The normalizer of NormalizedBilinear must be 'cosine', 'dice', 'jaccard', None or "
                f"a callable, but it is {normalizer!r}."
            )
        if normalizer == "jaccard":
            check_square(self.matrix, "NormalizedBilinear with normalizer='jaccard'")
        check_on_zero(on_zero, "NormalizedBilinear")
        self._set(normalizer=normalizer, on_zero=on_zero)

    def embed_query(self, Q: Matrix) -> Array:
        """Q A, divided by ‖q‖ for "cosine": the inner product with an item is the similarity.

        For "cosine" the items must be stored with unit norm. The other normalizers do not split
        into a query's and an item's part and have no such embedding.

        Parameters
        ----------
        Q : array or CSR matrix of shape (k, m)
            Queries, one row each.

        Returns
        -------
        array of shape (k, n)
            The embedded queries.

        Examples
        --------
        >>> NormalizedBilinear([[1.0, 0.0], [0.0, 1.0]]).embed_query([[3.0, 4.0]])
        array([[0.6, 0.8]])
        """
        if self.normalizer not in (None, "cosine"):
            raise InvalidInputError(
                f"embed_query needs the normalizer 'cosine' or None, but it is {self.normalizer!r}"
                ", which does not split into a query's and an item's part; use cross or blocks."
            )
        Q = self._check_rows(Q, "Q", self.n_features_in)
        E = self._checked(self._embed_query, Q)
        if self.normalizer is None:
            return E
        norms = self._sizes("cosine", Q)
        if not norms.all():
            if self.on_zero == "raise":
                raise DegenerateInputError(
                    f"Row {np.argmin(norms)} of Q is zero and has no cosine; leave zero vectors "
                    "out, or define their similarity as 0 with on_zero='zero'."
                )
            norms[norms == 0] = 1
        E /= norms[:, None]
        return E

    def reduce(self, rank: int) -> LowRankBilinear:
        """The best approximation of A by a matrix of that rank; only with normalizer=None.

        Parameters
        ----------
        rank : int
            Number of columns of L and R; from the rank of A on, the rank of A.

        Returns
        -------
        LowRankBilinear
            The form of LRᵀ.

        Examples
        --------
        >>> NormalizedBilinear([[1.0, 0.0], [0.0, 1.0]], normalizer=None).reduce(2)
        LowRankBilinear(shape=(2, 2), rank=2)
        """
        if self.normalizer is not None:
            raise InvalidInputError(
                f"reduce needs the normalizer None, but it is {self.normalizer!r}, and a "
                "LowRankBilinear does not normalize; take Bilinear(form.matrix).reduce(rank) and "
                "divide its values by N(x, x')."
            )
        return super().reduce(rank)

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        values = super()._pair_values(X, Y)
        if self.normalizer is None:
            return values
        if not isinstance(self.normalizer, str):
            return self._divide(values, self._called_pairs(X, Y))
        N = normalizers.paired(self.normalizer, X, Y)
        check_overflow(N, "NormalizedBilinear")
        return self._divide(values, N)

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        score, N = super()._scorer(Y), self._normalizer_of(Y)
        return score if N is None else lambda X: self._divide(score(X), N(X))

    def _normalizer_of(self, Y: Matrix) -> Callable[[Matrix], Array] | None:
        name = self.normalizer
        if name is None:
            return None
        if not isinstance(name, str):
            return lambda X: self._called(X, Y)
        items = self._sizes(name, Y)

        def N(X: Matrix) -> Array:
            dots = all_dots(X, Y) if name == "jaccard" else 0.0
            return normalizers.combine(name, self._sizes(name, X)[:, None], items, dots)

        return N

    def _sizes(self, name: str, X: Matrix) -> Array:
        sizes = normalizers.sizes(name, X)
        check_overflow(sizes, "NormalizedBilinear")
        return sizes

    def _called(self, X: Matrix, Y: Matrix) -> Array:
        return called(self.normalizer, X, Y, X.dtype)

    def _called_pairs(self, X: Matrix, Y: Matrix) -> Array:
        slices = row_slices(X.shape[0], 1, _SQUARE)
        return np.concatenate([self._called(X[rows], Y[rows]).diagonal() for rows in slices])

    def _divide(self, values: Array, N: Array) -> Array:
        named = isinstance(self.normalizer, str)
        undefined = N <= 0 if named else (N == 0) | ~np.isfinite(N)
        if named and self.on_zero == "zero" and undefined.any():
            zero = (N == 0) & (values == 0)
            N, undefined = np.where(zero, 1, N), undefined & ~zero
        if undefined.any():
            raise _undefined(np.argwhere(undefined)[0], str(self.normalizer) if named else "given")
        values /= N
        return values

    def _summary(self) -> dict[str, Any]:
        return {"shape": self.matrix.shape, "normalizer": repr(self.normalizer)}


def called(normalizer: Any, X: Matrix, Y: Matrix, dtype: Any) -> Array:
    """N(x, x') of all rows by a given function, which must return one value for each pair."""
    N = np.asarray(normalizer(X, Y), dtype=dtype)
    if N.shape != (X.shape[0], Y.shape[0]):
        raise InvalidInputError(
            f"The normalizer must return an array of shape {(X.shape[0], Y.shape[0])} for as "
            f"many rows, but its shape is {N.shape}."
        )
    return N


def _undefined(place: Indices, name: str) -> UndefinedRowsError:
    remedy = "leave zero vectors out"
    if name == "jaccard":
        remedy += ", and scale the features to [0, 1]"
    elif name == "given":
        remedy = "it must be finite and not zero"

    def describe(start: int) -> str:
        return (
            f"The {name} normalizer leaves the similarity undefined at row {place[0] + start} of X"
            f" with row {place[-1] + start * (len(place) == 1)} of Y; {remedy}."
        )

    return UndefinedRowsError(describe)
