"""A query map in files that other programs read: safetensors and ONNX."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt.query_map import LARGEST_EXPONENT, QueryMap
from samewise.exceptions import TooLargeError
from samewise.files.writing import write_atomically
from samewise.kernels.event_cells import LEAST

OPSET, IR_VERSION = 17, 8
"""Of 2022: what is written runs in every onnxruntime since 1.12."""
LARGEST_MODEL = 2**31 - 2**20
"""An ONNX file is one protobuf message, which may have 2 GiB."""


def write_safetensors(
    mapped: QueryMap, path: str | os.PathLike[str], about: dict[str, str]
) -> None:
    """Write the arrays by name; `about` is added to the metadata."""
    save = _needed("safetensors.numpy", "safetensors").save
    tensors = {"weight": mapped.matrix.T, "bias": mapped.bias}
    metadata = {"format": "pt", "kind": "samewise query map", **about}
    if len(mapped.queries):
        tensors |= {f"memory.{name}": array for name, array in _memory(mapped).items()}
        numbers = {"alpha": mapped.alpha, "beta": mapped.beta, "center": mapped.center}
        numbers |= {"least": LEAST, "largest_exponent": LARGEST_EXPONENT}
        metadata |= {f"memory.{name}": repr(float(value)) for name, value in numbers.items()}
    # It writes the bytes of arrays as they lie in memory.
    tensors = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomically(path, [save(tensors, metadata)])


def write_onnx(mapped: QueryMap, path: str | os.PathLike[str], about: dict[str, str]) -> None:
    """Write the graph: "query" in, "linear" out, and "mapped" where lists are remembered."""
    onnx = _needed("onnx", "onnx")
    arrays = {"weight": mapped.matrix.T, "bias": mapped.bias}
    if len(mapped.queries):
        arrays |= {f"memory_{name}": array for name, array in _memory(mapped).items()}
        arrays |= _constants(mapped)
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST_MODEL:
        raise TooLargeError(
            f"An ONNX file holds at most 2 GiB; this one would have {size / 2**30:.1f}. Leave the "
            "remembered lists out with memory=False."
        )
    helper, d = onnx.helper, len(mapped.bias)
    outputs = ["linear", "mapped"] if len(mapped.queries) else ["linear"]
    rows, number = ["n", d], onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        list(_nodes(helper, mapped, number)),
        "samewise query map",
        [helper.make_tensor_value_info("query", number, rows)],
        [helper.make_tensor_value_info(name, number, rows) for name in outputs],
        [
            onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            for name, array in arrays.items()
        ],
    )
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(
        graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="samewise"
    )
    helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    write_atomically(path, [model.SerializeToString()])


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


def _needed(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Writing this file needs the package {extra}: pip install 'samewise[{extra}]'."
        ) from error
