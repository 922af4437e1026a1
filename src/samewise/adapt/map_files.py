"""A query map in files that other programs read: safetensors and ONNX."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt.query_map import LARGEST_EXPONENT, QueryMap
from samewise.files.tensor_files import needed, save_graph, save_tensors
from samewise.kernels.event_cells import LEAST


def write_safetensors(
    mapped: QueryMap, path: str | os.PathLike[str], about: dict[str, str]
) -> None:
    """Write the arrays by name; `about` is added to the metadata."""
    tensors = {"weight": mapped.matrix.T, "bias": mapped.bias}
    metadata = {"kind": "samewise query map", **about}
    if len(mapped.queries):
        tensors |= {f"memory.{name}": array for name, array in _memory(mapped).items()}
        numbers = {"alpha": mapped.alpha, "beta": mapped.beta, "center": mapped.center}
        numbers |= {"least": LEAST, "largest_exponent": LARGEST_EXPONENT}
        metadata |= {f"memory.{name}": repr(float(value)) for name, value in numbers.items()}
    save_tensors(path, tensors, metadata)


def write_onnx(mapped: QueryMap, path: str | os.PathLike[str], about: dict[str, str]) -> None:
    """Write the graph: "query" in, "linear" out, and "mapped" where lists are remembered."""
    onnx = needed("onnx", "onnx")
    arrays = {"weight": mapped.matrix.T, "bias": mapped.bias}
    if len(mapped.queries):
        arrays |= {f"memory_{name}": array for name, array in _memory(mapped).items()}
        arrays |= _constants(mapped)
    rows = ["n", len(mapped.bias)]
    outputs = ["linear", "mapped"] if len(mapped.queries) else ["linear"]
    nodes = _nodes(onnx.helper, mapped, onnx.TensorProto.FLOAT)
    sides = {"query": rows}, dict.fromkeys(outputs, rows)
    remedy = "Leave the remembered lists out with memory=False."
    save_graph(path, "samewise query map", nodes, sides, arrays, about, remedy)


def _memory(mapped: QueryMap) -> dict[str, Array]:
    return {name: getattr(mapped, name) for name in ("queries", "directions", "weights")}


def _constants(mapped: QueryMap) -> dict[str, Array]:
    numbers = {
        "shift": -mapped.beta * mapped.center,
        "largest_exponent": LARGEST_EXPONENT,
        "least": LEAST,
        "alpha": mapped.alpha,
        "one": 1.0,
    }
    arrays: dict[str, Any] = {name: np.float32(value) for name, value in numbers.items()}
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    return arrays | {"across": np.array([1], dtype=np.int64)}


def _nodes(helper: Any, mapped: QueryMap, number: int) -> Iterator[Any]:
    """The formula of `QueryMap`, step by step."""
    yield helper.make_node("Gemm", ["query", "weight", "bias"], ["linear"], transB=1)
    if not len(mapped.queries):
        return
    yield helper.make_node(
        "Gemm", ["query", "memory_queries", "shift"], ["exponent"], transB=1, alpha=mapped.beta
    )
    for operation, inputs, output in (
        ("Min", ["exponent", "largest_exponent"], "bounded"),
        ("Exp", ["bounded"], "exponential"),
        ("Mul", ["exponential", "memory_weights"], "every"),
        ("GreaterOrEqual", ["every", "least"], "counts"),
    ):
        yield helper.make_node(operation, inputs, [output])
    yield helper.make_node("Cast", ["counts"], ["counted"], to=number)
    yield helper.make_node("Mul", ["every", "counted"], ["kernel"])
    yield helper.make_node("ReduceSum", ["kernel", "across"], ["total"], keepdims=1)
    for operation, inputs, output in (
        ("Add", ["total", "one"], "divisor"),
        ("MatMul", ["kernel", "memory_directions"], "sum"),
        ("Mul", ["sum", "alpha"], "scaled"),
        ("Div", ["scaled", "divisor"], "recalled"),
        ("Add", ["linear", "recalled"], "mapped"),
    ):
        yield helper.make_node(operation, inputs, [output])
