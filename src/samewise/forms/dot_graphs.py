"""Similarities that are dot products of a mapped query and a mapped item, in files of others."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.files.tensor_files import needed, save_graph, save_tensors

OUTPUTS = ("query", "item", "pairs")


def save_dot_weight(
    path: str | os.PathLike[str],
    owner: str,
    left: NDArray[Any],
    right: NDArray[Any] | None,
    output: str,
) -> None:
    """Write the map of queries, or that of items, as the weight of a linear layer.

    Parameters
    ----------
    path : str or path
    owner : str
        The form's class.
    left : array of shape (m, k)
        Queries become QL.
    right : array of shape (n, k) or None
        Items become PR; None is the identity.
    output : {"query", "item"}
    """
    if output not in OUTPUTS[:2]:
        raise InvalidInputError(f"output must be one of 'query', 'item'. Got {output!r}.")
    matrix = left if output == "query" else right
    if matrix is None:
        raise InvalidInputError(
            f"Under a {owner} items stay as they are: only queries are mapped. Use "
            "output='query', or reduce the form first."
        )
    about = {"kind": "samewise linear map", "form": owner, "output": output}
    save_tensors(path, {"weight": matrix.T}, about)


def save_dot_graph(
    path: str | os.PathLike[str],
    owner: str,
    left: NDArray[Any],
    right: NDArray[Any] | None,
    output: str,
) -> None:
    """Write the map of queries, that of items, or the similarity of pairs.

    Parameters
    ----------
    path : str or path
    owner : str
        The form's class.
    left : array of shape (m, k)
        Queries become QL.
    right : array of shape (n, k) or None
        Items become PR; None is the identity.
    output : {"query", "item", "pairs"}
    """
    if output not in OUTPUTS:
        raise InvalidInputError(
            f"output must be one of {', '.join(map(repr, OUTPUTS))}. Got {output!r}."
        )
    node = needed("onnx", "onnx").helper.make_node
    (m, k), n = left.shape, left.shape[1] if right is None else right.shape[0]
    arrays: dict[str, Any] = {"left": left}
    maps = [node("MatMul", ["queries", "left"], ["mapped_queries"])]
    if right is None:
        maps.append(node("Identity", ["items"], ["mapped_items"]))
    else:
        arrays["right"] = right.astype(left.dtype)
        maps.append(node("MatMul", ["items", "right"], ["mapped_items"]))
    queries, items = {"queries": ["n", m]}, {"items": ["n", n]}
    if output == "pairs":
        arrays["across"] = np.array([1], dtype=np.int64)
        nodes = [
            *maps,
            node("Mul", ["mapped_queries", "mapped_items"], ["products"]),
            node("ReduceSum", ["products", "across"], ["closeness"], keepdims=0),
        ]
        sides = {**queries, **items}, {"closeness": ["n"]}
    else:
        place = OUTPUTS.index(output)
        nodes = [maps[place]]
        sides = ((queries, items)[place], {("mapped_queries", "mapped_items")[place]: ["n", k]})
    # The first tells the type of all sides.
    used = {name for each in nodes for name in each.input}
    kept = {name: array for name, array in arrays.items() if name in used} or {"left": left[:1, :1]}
    about = {"form": owner}
    save_graph(path, "samewise form", nodes, sides, kept, about, "Reduce the form first.")
