"""Class labels and names, on their way to a file and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.files.container import parse
from samewise.files.state import Saved, State

LABELS = (bool, int, float, str)
"""What a label may be in a file."""


def keep_labels(state: State, name: str, value: NDArray[Any]) -> None:
    """Put labels, numbers or texts, into a state."""
    labels = value.tolist()
    if not all(type(label) in LABELS for label in labels):
        raise InvalidInputError(
            f"Labels that are neither numbers nor texts cannot be saved. Got {value.dtype}; "
            "learn from other labels."
        )
    state.values[name] = "str" if value.dtype.kind == "U" else value.dtype.name
    state.arrays[name] = _as_bytes(labels)


def restored_labels(saved: Saved, name: str) -> NDArray[Any]:
    """The labels of that name, checked."""
    dtype, values = saved.value(name), _listed(saved, name)
    saved.check(
        isinstance(dtype, str) and all(type(value) in LABELS for value in values),
        f"{name} must be labels",
    )
    kind = np.dtype(dtype).kind
    saved.check(dtype == "str" or kind in "biufO", f"{name} must be numbers or texts")
    labels = np.array(values, dtype=None if dtype == "str" else dtype)
    saved.check(
        len(values) > 0
        and labels.tolist() == values
        and (dtype != "str" or labels.dtype.kind == "U"),
        f"{name} must be of the type {dtype}",
    )
    return labels


def keep_names(state: State, name: str, value: NDArray[Any]) -> None:
    """Put names of features into a state, as an array: a header has no room for many names."""
    state.arrays[name] = _as_bytes(value.tolist())


def restored_names(saved: Saved, name: str, n_features: int) -> NDArray[Any]:
    """The names of so many features."""
    names = _listed(saved, name)
    right = all(isinstance(each, str) for each in names) and len(names) == n_features
    saved.check(right, "feature names must be texts")
    return np.array(names, dtype=object)


def _as_bytes(values: list[Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)


def _listed(saved: Saved, name: str) -> list[Any]:
    values = parse(saved.array(name, None, dtypes=["uint8"]).tobytes())
    saved.check(isinstance(values, list), f"{name} must be a list")
    assert isinstance(values, list)
    return values
