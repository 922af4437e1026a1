"""The explicit state of an object: named arrays and JSON values, on their way to a file and back.

An object that is saved gives its `state()`; its class has `restore(saved)`, which takes every array
and value by name and checks it, so that a forged file gets no further.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError

FLOATS = ("float32", "float64")
MOST = 2**53
"""The largest counter: up to here a float64, as a learning curve holds them, counts exactly."""


@dataclass(frozen=True)
class State:
    """Arrays and values that make an object.

    Examples
    --------
    >>> import numpy as np
    >>> state = State(values={"b": 1.0}).add("store", State({"W": np.eye(2)}))
    >>> list(state.arrays), state.values
    (['store.W'], {'b': 1.0, 'store': {}})
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, part: State) -> State:
        """Take in the state of a part; returns the whole."""
        self.arrays.update({f"{name}.{key}": array for key, array in part.arrays.items()})
        self.values[name] = part.values
        return self


class Saved:
    """A state out of a file: every piece is taken once, and checked, by who knows what it must be.

    Whatever is not as it must be raises an InvalidInputError.

    Examples
    --------
    >>> saved = Saved({}, {"history": {"rounds": 3}})
    >>> saved.part("history").count("rounds")
    3
    >>> saved.finish()
    """

    def __init__(
        self, arrays: dict[str, NDArray[Any]], values: dict[str, Any], where: str = ""
    ) -> None:
        self._arrays, self._values, self._where = dict(arrays), dict(values), where
        self._parts: list[Saved] = []

    def has(self, name: str) -> bool:
        """Whether an array, a value or a part of that name is still there."""
        return name in self._arrays or name in self._values

    def is_a(self, kind: type, name: str) -> bool:
        """Whether a value is of that type; it is not taken."""
        return type(self._values.get(name)) is kind

    def value(self, name: str) -> Any:
        """A value as it is, for the caller to check."""
        if name not in self._values:
            raise InvalidInputError(f"{self._where}{name} is missing")
        return self._values.pop(name)

    def part(self, name: str) -> Saved:
        """The state of a part."""
        values = self.value(name)
        if not isinstance(values, dict):
            self._refuse(name, "a group of values")
        prefix = f"{name}."
        mine = [key for key in self._arrays if key.startswith(prefix)]
        arrays = {key.removeprefix(prefix): self._arrays.pop(key) for key in mine}
        self._parts.append(Saved(arrays, values, f"{self._where}{prefix}"))
        return self._parts[-1]

    def number(self, name: str, least: float = -math.inf, none: float | None = None) -> float:
        """A finite number of at least `least`; None stands for `none`, if that is given."""
        value = self.value(name)
        if value is None and none is not None:
            return none
        if type(value) not in (int, float) or not least <= value < math.inf:
            self._refuse(name, f"a finite number, at least {least:g}")
        return float(value)

    def positive(self, name: str) -> float:
        """A finite number above 0."""
        value = self.number(name, least=0.0)
        if value == 0:
            self._refuse(name, "positive")
        return value

    def count(self, name: str, least: int = 0, most: int = MOST) -> int:
        """An integer from `least` to `most`."""
        value = self.value(name)
        if type(value) is not int or not least <= value <= most:
            self._refuse(name, f"an integer from {least} to {most}")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        return self.choice(name, (False, True)) is True

    def choice(self, name: str, choices: Collection[Any]) -> Any:
        """One of some values."""
        value = self.value(name)
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            self._refuse(name, f"one of {', '.join(map(repr, choices))}")
        return value

    def array(
        self, name: str, *shape: int | None, dtypes: Collection[str] = FLOATS, empty: bool = False
    ) -> NDArray[Any]:
        """A finite array of that shape and one of these types, as a copy that may be written.

        A side of any length is None. No side may be 0 unless `empty`: the other one could then be
        any number without taking a byte of the file.
        """
        if name not in self._arrays:
            raise InvalidInputError(f"{self._where}{name} is missing")
        values = self._arrays.pop(name)
        fits = len(shape) == values.ndim and all(
            side in (None, n) for side, n in zip(shape, values.shape, strict=True)
        )
        if not fits or (values.size == 0 and not empty):
            wanted = ", ".join("any" if side is None else str(side) for side in shape)
            self._refuse(name, f"an array of the shape ({wanted}), not {values.shape}")
        if values.dtype.name not in dtypes:
            self._refuse(name, f"of the type {' or '.join(dtypes)}, not {values.dtype}")
        if not np.isfinite(values).all():
            self._refuse(name, "finite")
        return np.array(values, order="C")

    def everything(self) -> dict[str, Any]:
        """All arrays, read-only, and values that are left, for an object that checks them itself.

        The arrays are of the types and sizes that a file can hold, and need not be finite.
        """
        twice = self._arrays.keys() & self._values.keys()
        self.check(not twice, "has a name twice")
        found = {**self._arrays, **self._values}
        self._arrays, self._values = {}, {}
        for value in found.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        return found

    def check(self, right: bool, what: str) -> None:
        """Refuse what does not belong together."""
        if not right:
            raise InvalidInputError(f"{self._where or 'it '}{what}")

    def finish(self) -> None:
        """Refuse pieces that nobody took."""
        left = [*self._arrays, *self._values]
        if left:
            raise InvalidInputError(f"{self._where}{left[0]} does not belong there")
        for part in self._parts:
            part.finish()

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        raise InvalidInputError(f"{self._where}{name} must be {wanted}")
