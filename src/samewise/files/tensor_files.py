"""Arrays and graphs in files that other programs read: safetensors and ONNX."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import TooLargeError
from samewise.files.writing import write_atomically

OPSET, IR_VERSION = 17, 8
"""Of 2022: what is written runs in every onnxruntime since 1.12."""
LARGEST_MODEL = 2**31 - 2**20
"""An ONNX file is one protobuf message, which may have 2 GiB."""

Sides = tuple[dict[str, list[Any]], dict[str, list[Any]]]
"""Shapes of inputs and of outputs, by name."""


def save_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, NDArray[Any]], metadata: dict[str, str]
) -> None:
    """Write arrays by name as safetensors that torch reads."""
    save = needed("safetensors.numpy", "safetensors").save
    # It writes the bytes of arrays as they lie in memory.
    found = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    write_atomically(path, [save(found, {"format": "pt", **metadata})])


def save_graph(
    path: str | os.PathLike[str],
    name: str,
    nodes: Iterable[Any],
    sides: Sides,
    arrays: Mapping[str, NDArray[Any]],
    about: dict[str, str],
    remedy: str = "",
    whole: frozenset[str] = frozenset(),
) -> None:
    """Write an ONNX model.

    Parameters
    ----------
    path : str or path
    name : str
        What the graph is.
    nodes : iterable of onnx nodes
    sides : pair of dicts
        Shapes of inputs and of outputs by name; all have the type of the first array.
    arrays : dict of arrays
        What the nodes name.
    about : dict of str
        Properties of the model.
    remedy : str
        What can be done if the model is too large.
    whole : frozenset of str
        Inputs and outputs that are int64 instead.
    """
    onnx = needed("onnx", "onnx")
    size = sum(array.nbytes for array in arrays.values())
    if size > LARGEST_MODEL:
        raise TooLargeError(
            f"An ONNX file holds at most 2 GiB; this one would have {size / 2**30:.1f}. {remedy}"
        )
    helper = onnx.helper
    number = helper.np_dtype_to_tensor_dtype(next(iter(arrays.values())).dtype)
    inputs, outputs = (
        [
            helper.make_tensor_value_info(
                key, onnx.TensorProto.INT64 if key in whole else number, shape
            )
            for key, shape in side.items()
        ]
        for side in sides
    )
    kept = [
        onnx.numpy_helper.from_array(np.ascontiguousarray(array), key)
        for key, array in arrays.items()
    ]
    model = helper.make_model(
        helper.make_graph(list(nodes), name, inputs, outputs, kept),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="samewise",
    )
    helper.set_model_props(model, about)
    onnx.checker.check_model(model)
    write_atomically(path, [model.SerializeToString()])


def needed(module: str, extra: str) -> Any:
    """A module of an extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Writing this file needs the package {extra}: pip install 'samewise[{extra}]'."
        ) from error
