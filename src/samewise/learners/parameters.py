"""The parameters and the random numbers of a learner, on their way to a file and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.files.state import FLOATS, Saved, State
from samewise.files.storable import refuse_callables, restored, stored
from samewise.forms import Form

GENERATOR = "MT19937"
"""What draws the numbers of a RandomState, unless another generator was put into it."""


def parameters_state(learner: Any) -> State:
    """The parameters; arrays, forms, mappings and a RandomState are parts of their own."""
    state = State()
    owner = type(learner).__name__
    parameters = learner.get_params(deep=False)
    refuse_callables(parameters, owner)
    for name, value in parameters.items():
        if isinstance(value, np.random.RandomState):
            # The one that an online learner uses is saved anyway.
            shared = value is getattr(learner, "_random", None)
            state.add(name, State() if shared else numbers_state(value))
        elif isinstance(value, Form):
            state.add(name, stored(value))
        elif isinstance(value, np.ndarray) or (
            isinstance(value, list | tuple) and np.ndim(value) > 1
        ):
            state.add(name, _array_state(np.asarray(value), name, owner))
        elif isinstance(value, Mapping) and name != "kernel_params":
            # Keys may be numbers, which those of a JSON object are not.
            state.add(name, State(values={"pairs": [list(pair) for pair in value.items()]}))
        elif hasattr(value, "fit"):
            raise InvalidInputError(
                f"A {owner} whose {name} is a {type(value).__name__} cannot be saved. Give {name} "
                "as an array, such as components_ of what it learned."
            )
        else:
            state.values[name] = value
    return state


def restored_parameters(cls: Any, saved: Saved, random: Any) -> dict[str, Any]:
    """The parameters of a learner of class `cls` that uses the random numbers `random`."""
    parameters: dict[str, Any] = cls._former_parameters(saved)
    for name in cls._get_param_names():
        if name in parameters:
            continue
        if not saved.is_a(dict, name) or name == "kernel_params":
            value = saved.value(name)
            # JSON knows no tuples; averages and bounds are written as such.
            parameters[name] = tuple(value) if isinstance(value, list) else value
            continue
        part = saved.part(name)
        if name == "random_state":
            shared = random is not None and not part.has("key")
            parameters[name] = random if shared else restored_numbers(part)
        elif part.has("array"):
            parameters[name] = _restored_array(part)
        elif part.has("pairs"):
            parameters[name] = {key: value for key, value in part.value("pairs")}
        else:
            parameters[name] = restored(part, Form)
    return parameters


def numbers_state(random: np.random.RandomState) -> State:
    """Where a sequence of random numbers stands."""
    numbers: Any = random.get_state(legacy=False)
    if numbers["bit_generator"] != GENERATOR:
        raise InvalidInputError(
            f"A file holds the random numbers of {GENERATOR}, which RandomState(seed) has. Got a "
            f"RandomState of {numbers['bit_generator']}; give random_state a seed."
        )
    key = numbers["state"]["key"].astype(np.int64)
    values = {"pos": numbers["state"]["pos"]}
    values |= {name: numbers[name] for name in ("has_gauss", "gauss")}
    return State({"key": key}, values)


def restored_numbers(saved: Saved) -> np.random.RandomState:
    """The random numbers of that state."""
    key = saved.array("key", 624, dtypes=["int64"])
    saved.check(bool(np.all((key >= 0) & (key < 2**32)) and key.any()), "key must be of 32 bits")
    numbers = (
        GENERATOR,
        key.astype(np.uint32),
        saved.count("pos", most=624),
        saved.count("has_gauss", most=1),
        saved.number("gauss"),
    )
    random = np.random.RandomState()
    random.set_state(numbers)
    return random


def _array_state(values: NDArray[Any], name: str, owner: str) -> State:
    kinds = {"f": FLOATS, "i": ("int64",), "u": ("int64",), "b": ("bool",)}.get(values.dtype.kind)
    if kinds is None or not np.isfinite(values).all():
        raise InvalidInputError(
            f"A {owner} whose {name} holds something else than finite numbers cannot be saved. Got "
            f"an array of {values.dtype}."
        )
    kept = values if values.dtype.name in kinds else values.astype(kinds[-1])
    # A file has arrays of two sides.
    flat = kept.reshape(-1, kept.shape[-1]) if kept.size else kept.reshape(1, 0)
    return State({"array": flat}, {} if values.ndim == 2 else {"shape": list(values.shape)})


def _restored_array(saved: Saved) -> NDArray[Any]:
    dtypes = [*FLOATS, "int64", "bool"]
    values = saved.array("array", None, None, dtypes=dtypes, empty=saved.has("shape"))
    return values.reshape(saved.value("shape")) if saved.has("shape") else values
