"""Bilinear similarities qᵀLRᵀp between many features, by way of few."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.forms._frozen import freeze
from samewise.forms._input_checks import check_matrix
from samewise.forms.dot_graphs import save_dot_graph, save_dot_weight
from samewise.forms.form import LITTLE, MAX_BYTES, Form
from samewise.kernels.pairwise import all_dots, row_dots, row_slices, times

# Every block of pairs reads both factors, so blocks are much longer than the factors are wide.
_PAIR_BYTES = 32 * 2**20


class LowRankBilinear(Form):
    """A bilinear similarity S(q, p) = qᵀLRᵀp, for so many features that W = LRᵀ is too large.

    W, of shape (m, n), is never built. Queries become QL and items PR, k numbers each, whose plain
    dot product is the similarity.

    Parameters
    ----------
    left : array of shape (m, k)
        L: m features of a query.
    right : array of shape (n, k)
        R: n features of an item; m ≠ n is allowed.

    Attributes
    ----------
    left, right : array
    n_features_in, n_features_items, rank : int
        m, n and k.

    See Also
    --------
    Bilinear.reduce : The form of this kind nearest to a full W.

    Examples
    --------
    >>> form = LowRankBilinear([[1.0], [2.0]], [[1.0], [0.0], [3.0]])
    >>> form
    LowRankBilinear(shape=(2, 3), rank=1)
    >>> form.cross([[1.0, 1.0]], [[1.0, 1.0, 1.0], [0.0, 5.0, 0.0]])
    array([[12.,  0.]])
    """

    _stored = ("left", "right")
    left: Array
    right: Array

    def __init__(self, left: Array, right: Array) -> None:
        L, R = (
            check_matrix(F, name, "LowRankBilinear", least_rows=1)
            for F, name in ((left, "left"), (right, "right"))
        )
        if L.shape[1] != R.shape[1]:
            raise InvalidInputError(
                "The left and the right of LowRankBilinear must have as many columns, but their "
                f"shapes are {L.shape} and {R.shape}; give (m, k) and (n, k)."
            )
        self._set(left=L, right=R)

    @property
    def n_features_in(self) -> int:
        """Number of features m of a query."""
        return self.left.shape[0]

    @property
    def n_features_items(self) -> int:
        """Number of features n of an item."""
        return self.right.shape[0]

    @property
    def rank(self) -> int:
        """Number of columns k of L and R; the rank of W is at most that."""
        return self.left.shape[1]

    @property
    def matrix(self) -> Array:
        """W = LRᵀ, of shape (m, n), built whenever it is asked for.

        Above 4 GiB a TooLargeError is raised.

        Examples
        --------
        >>> LowRankBilinear([[1.0], [2.0]], [[1.0], [3.0]]).matrix
        array([[1., 3.],
               [2., 6.]])
        """
        m, n = self.n_features_in, self.n_features_items
        dtype = np.result_type(self.left, self.right)
        needed = m * n * dtype.itemsize
        if needed > MAX_BYTES:
            raise TooLargeError(
                f"matrix would need {needed / 2**30:.1f} GiB ({m} × {n} {dtype}), more than "
                f"{MAX_BYTES / 2**30:.1f} GiB; use left and right, whose product it is."
            )
        return freeze(self.left @ self.right.T)

    def embed_query(self, Q: Matrix) -> Array:
        """Q L: the inner product with an embedded item is the similarity.

        Parameters
        ----------
        Q : array or CSR matrix of shape (a, m)
            Queries, one row each.

        Returns
        -------
        array of shape (a, k)
            The embedded queries.

        Examples
        --------
        >>> form = LowRankBilinear([[1.0], [2.0]], [[1.0], [0.0], [3.0]])
        >>> form.embed_query([[1.0, 1.0]]) @ form.embed_item([[1.0, 1.0, 1.0]]).T
        array([[12.]])
        """
        Q = self._check_rows(Q, "Q", self.n_features_in)
        return self._checked(_embed, Q, self.left)

    def embed_item(self, P: Matrix) -> Array:
        """P R: what a store of items has to keep, k numbers for each.

        Parameters
        ----------
        P : array or CSR matrix of shape (b, n)
            Items, one row each.

        Returns
        -------
        array of shape (b, k)
            The embedded items.

        Examples
        --------
        >>> LowRankBilinear([[1.0], [2.0]], [[1.0], [0.0], [3.0]]).embed_item([[1.0, 1.0, 1.0]])
        array([[4.]])
        """
        P = self._check_rows(P, "P", self.n_features_items)
        return self._checked(_embed, P, self.right)

    def to_onnx(self, path: str | os.PathLike[str], *, output: str = "query") -> None:
        """Write the map of queries or of items, or the similarity of pairs, as an ONNX model.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        output : {"query", "item", "pairs"}, default="query"
            "query": input "queries", output "mapped_queries", as `embed_query` gives them. "item":
            input "items", output "mapped_items", whose dot product with a mapped query is the
            similarity. "pairs": inputs "queries" and "items", n of each, and output
            "closeness" of shape (n,).

        Notes
        -----
        All have the type of `left`, float32 or float64. It needs the package onnx:
        ``pip install 'samewise[onnx]'``.
        """
        save_dot_graph(path, type(self).__name__, self.left, self.right, output)

    def to_safetensors(self, path: str | os.PathLike[str], *, output: str = "query") -> None:
        """Write the map of queries or of items as the weight of a linear layer, for torch.

        ``torch.nn.Linear(m, k, bias=False)`` takes it by ``load_state_dict``. It holds one array,
        "weight". The similarity is the dot product of a mapped query and a mapped item.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all.
        output : {"query", "item"}, default="query"
            Whose map.

        Notes
        -----
        It needs the package safetensors: ``pip install 'samewise[safetensors]'``.
        """
        save_dot_weight(path, type(self).__name__, self.left, self.right, output)

    @property
    def _width(self) -> int:
        return self.rank

    def _all_pair_values(self, X: Matrix, Y: Matrix) -> Array:
        # Not in blocks by the number of features, which is large here, but of what is embedded.
        return self._checked(self._pair_values, *self._check_pairs(X, Y))

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        L, R = self.left.astype(X.dtype, copy=False), self.right.astype(X.dtype, copy=False)
        values = np.empty(X.shape[0], dtype=X.dtype)
        for rows in row_slices(len(values), 2 * self.rank * X.dtype.itemsize, _PAIR_BYTES):
            values[rows] = row_dots(times(X[rows], L), times(Y[rows], R))
        return values

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        L, F = self.left.astype(Y.dtype, copy=False), _embed(Y, self.right)
        return lambda X: all_dots(times(X, L), F)

    def _spectrum(self) -> Array | None:
        if max(self.left.size, self.right.size) > LITTLE:
            return None
        # Of LRᵀ, by way of the small factors of both.
        return np.linalg.svd(
            np.linalg.qr(self.left)[1] @ np.linalg.qr(self.right)[1].T, compute_uv=False
        )

    def _summary(self) -> dict[str, Any]:
        return {"shape": (self.n_features_in, self.n_features_items), "rank": self.rank}


def leading_factors(W: Array, rank: int) -> tuple[Array, Array]:
    """L = U√Σ and R = V√Σ of the leading singular values of W = UΣVᵀ.

    Each left singular vector's largest entry is positive, so that the answer does not hang on
    LAPACK; for the same reason singular values that are mere rounding are left out. Of W = 0 one
    column of zeros remains.

    Parameters
    ----------
    W : array of shape (m, n)
    rank : int
        Number of columns, unless the rank of W is smaller.

    Returns
    -------
    left : array of shape (m, k)
    right : array of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> left, right = leading_factors(np.diag([1.0, 4.0]), 1)
    >>> left.ravel(), right.ravel()
    (array([0., 2.]), array([0., 2.]))
    """
    if not isinstance(rank, Integral) or rank < 1:
        raise InvalidInputError(f"rank must be an integer of at least 1, but it is {rank!r}.")
    U, singular, Vt = np.linalg.svd(W, full_matrices=False)
    noise = singular[0] * max(W.shape) * np.finfo(W.dtype).eps
    k = min(int(rank), max(1, np.count_nonzero(singular > noise)))
    U, V = U[:, :k], Vt[:k].T
    peaks = np.take_along_axis(U, np.abs(U).argmax(axis=0)[None], axis=0)
    roots = np.sqrt(singular[:k])
    signed = np.where(peaks < 0, -roots, roots)
    return U * signed, V * signed


def _embed(X: Matrix, F: Array) -> Array:
    return times(X, F.astype(X.dtype, copy=False))
