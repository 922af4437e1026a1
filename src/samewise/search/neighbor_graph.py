"""Exact nearest neighbors among a few stored rows, as an ONNX model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.tensor_files import needed, save_graph
from samewise.forms import Bilinear, Form, LowRankBilinear, Mahalanobis
from samewise.kernels.pairwise import dense
from samewise.supervision.supervision_checks import checked_rows


def to_onnx(form: Form, X: Matrix, path: str | os.PathLike[str], n_neighbors: int = 10) -> None:
    """Write a search among stored rows under a learned form as an ONNX model.

    Parameters
    ----------
    form : Mahalanobis, Bilinear or LowRankBilinear
        What close means.
    X : array or CSR matrix of shape (n, d)
        The stored rows. They are mapped and written into the file, which holds at most 2 GiB; each
        query is compared with all of them.
    path : str or path
        An existing file is replaced as a whole or not at all.
    n_neighbors : int, default=10
        Number k of neighbors.

    Notes
    -----
    Input "queries" of shape (q, m); outputs "closeness" of shape (q, k), largest first, and "rows",
    their numbers in X. The others have the type of the form, float32 or float64. Distances come of
    ‖a‖² + ‖b‖² − 2ab, of rows from which the mean of the stored ones is taken: of very near rows
    they are less exact than those of `Index`. It needs the package onnx:
    ``pip install 'samewise[onnx]'``.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis
    >>> from samewise.search import to_onnx
    >>> rows = np.array([[0.0], [1.0], [5.0]])
    >>> to_onnx(Mahalanobis.identity(1), rows, "search.onnx", 2)  # doctest: +SKIP
    """
    if type(form) not in (Mahalanobis, Bilinear, LowRankBilinear):
        raise InvalidInputError(
            "to_onnx needs a Mahalanobis distance or a bilinear similarity, whose maps are "
            f"matrices. Got a {type(form).__name__}."
        )
    rows = checked_rows(X, form.n_features_items, "X")
    if not isinstance(n_neighbors, int | np.integer) or not 1 <= n_neighbors <= rows.shape[0]:
        raise InvalidInputError(
            f"n_neighbors must be an integer from 1 to the {rows.shape[0]} stored rows. Got "
            f"{n_neighbors!r}."
        )
    node = needed("onnx", "onnx").helper.make_node
    arrays, nodes = (
        _distances(node, form, rows) if isinstance(form, Mahalanobis) else _dots(node, form, rows)
    )
    arrays["k"] = np.array([n_neighbors], dtype=np.int64)
    nodes.append(node("TopK", ["closeness_to_all", "k"], ["closeness", "rows"], axis=1))
    sides = (
        {"queries": ["q", form.n_features_in]},
        {"closeness": ["q", int(n_neighbors)], "rows": ["q", int(n_neighbors)]},
    )
    about = {"form": type(form).__name__}
    whole, remedy = frozenset({"rows"}), "Store fewer rows."
    save_graph(path, "samewise search", nodes, sides, arrays, about, remedy, whole)


def _distances(
    node: Any, form: Mahalanobis, X: Matrix
) -> tuple[dict[str, NDArray[Any]], list[Any]]:
    """−‖Lq − Lx‖ to each stored row."""
    dtype = form.components.dtype
    Z = np.asarray(form.embed(X), dtype=np.float64)
    mean = Z.mean(axis=0)
    Z = (Z - mean).astype(dtype)
    arrays = {
        "weight": form.components,
        "shift": -mean.astype(dtype),
        "stored": -2 * Z,
        "sizes": (Z.astype(np.float64) ** 2).sum(axis=1).astype(dtype),
        "across": np.array([1], dtype=np.int64),
    }
    nodes = [
        node("Gemm", ["queries", "weight", "shift"], ["mapped"], transB=1),
        node("Mul", ["mapped", "mapped"], ["squares"]),
        node("ReduceSum", ["squares", "across"], ["own"], keepdims=1),
        node("Gemm", ["mapped", "stored", "sizes"], ["rest"], transB=1),
        node("Add", ["rest", "own"], ["squared"]),
        node("Relu", ["squared"], ["squared_distances"]),
        node("Sqrt", ["squared_distances"], ["distances"]),
        node("Neg", ["distances"], ["closeness_to_all"]),
    ]
    return arrays, nodes


def _dots(node: Any, form: Any, X: Matrix) -> tuple[dict[str, NDArray[Any]], list[Any]]:
    """qᵀWx to each stored row."""
    low = isinstance(form, LowRankBilinear)
    left = form.left if low else form.matrix
    stored = np.asarray(form.embed_item(X) if low else dense(X), dtype=left.dtype)
    nodes = [
        node("MatMul", ["queries", "left"], ["mapped"]),
        node("Gemm", ["mapped", "stored"], ["closeness_to_all"], transB=1),
    ]
    return {"left": left, "stored": stored}, nodes
