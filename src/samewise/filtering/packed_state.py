"""Long lists, and rows by their keys, on their way to a file and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.files.container import parse
from samewise.files.state import Saved, State
from samewise.filtering.sparse_store import Rows, stacked


def packed(values: Iterable[Any]) -> NDArray[np.uint8]:
    """A list of JSON values as bytes: a long one would not fit into the header of a file."""
    return np.frombuffer(json.dumps(list(values)).encode(), dtype=np.uint8)


def _unpacked(saved: Saved, name: str) -> list[Any]:
    """The list that was packed."""
    try:
        values = parse(saved.array(name, None, dtypes=["uint8"]).tobytes())
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a list of values ({error}).") from error
    saved.check(isinstance(values, list), f"{name} must be a list of values")
    return values


def unpacked_names(saved: Saved, name: str) -> list[str]:
    """The list of texts that was packed."""
    names = _unpacked(saved, name)
    saved.check(all(isinstance(each, str) for each in names), f"{name} must be a list of texts")
    return names


def keyed_state(kept: Mapping[tuple[Any, Any], Rows], n_features: int) -> State:
    """Single rows by their keys."""
    state = State({"keys": packed(kept)})
    return state.add("rows", stacked(list(kept.values()), n_features).state())


def restored_keyed(saved: Saved, first: type, second: type) -> dict[tuple[Any, Any], Rows]:
    """The rows that `keyed_state` describes, if the keys are pairs of these types."""
    keys = _unpacked(saved, "keys")
    right = all(isinstance(key, list) and list(map(type, key)) == [first, second] for key in keys)
    saved.check(right, f"keys must be pairs of {first.__name__} and {second.__name__}")
    rows = Rows.restore(saved.part("rows"), len(keys))
    return {(key[0], key[1]): rows.row(k) for k, key in enumerate(keys)}
