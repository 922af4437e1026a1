"""What a learner has learned, attribute by attribute: how each is stored, and checked when read.

A learner declares its attributes in `_learned`, in an order in which each can be checked against
those before it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.files.label_state import keep_labels, keep_names, restored_labels, restored_names
from samewise.files.state import FLOATS, Saved, State
from samewise.files.storable import restored, stored
from samewise.forms import Form, KernelMahalanobis


@dataclass(frozen=True)
class Attribute(ABC):
    """How an attribute is put into a state and taken out of it."""

    _: KW_ONLY
    optional: bool = False

    @abstractmethod
    def keep(self, state: State, name: str, value: Any) -> None:
        """Put the value into the state."""

    @abstractmethod
    def restored(self, saved: Saved, name: str, learner: Any) -> Any:
        """The value of that name, which must suit what the learner has already."""


class _Value(Attribute):
    """A value that JSON knows."""

    def keep(self, state: State, name: str, value: Any) -> None:
        """Put the value into the state."""
        state.values[name] = value


@dataclass(frozen=True)
class Count(_Value):
    """An integer of at least `least`."""

    least: int = 0

    def restored(self, saved: Saved, name: str, learner: Any) -> int:
        """The integer."""
        return saved.count(name, least=self.least)


@dataclass(frozen=True)
class OneOf(_Value):
    """One of some texts."""

    choices: tuple[str, ...]

    def restored(self, saved: Saved, name: str, learner: Any) -> str:
        """The text."""
        return saved.choice(name, self.choices)


class Positive(_Value):
    """A finite number above 0."""

    def restored(self, saved: Saved, name: str, learner: Any) -> float:
        """The number."""
        return saved.positive(name)


class Flag(_Value):
    """True or false."""

    def restored(self, saved: Saved, name: str, learner: Any) -> bool:
        """The flag."""
        return saved.flag(name)


class Number(Attribute):
    """A number that may be infinite or NaN, which JSON does not know."""

    def keep(self, state: State, name: str, value: float) -> None:
        """Put the number into the state."""
        state.values[name] = float(value) if math.isfinite(value) else str(float(value))

    def restored(self, saved: Saved, name: str, learner: Any) -> float:
        """The number."""
        if saved.is_a(str, name):
            return float(saved.choice(name, ("inf", "-inf", "nan")))
        return saved.number(name)


@dataclass(frozen=True)
class Values(Attribute):
    """An array whose sides have any length (None), or that of the features ("d")."""

    shape: tuple[str | None, ...] = (None,)
    dtypes: tuple[str, ...] = FLOATS

    def keep(self, state: State, name: str, value: Any) -> None:
        """Put the array into the state."""
        values = np.asarray(value)
        state.arrays[name] = values.astype(np.int64) if values.dtype.kind == "i" else values

    def restored(self, saved: Saved, name: str, learner: Any) -> NDArray[Any]:
        """The array."""
        sides = [None if side is None else learner.n_features_in_ for side in self.shape]
        return saved.array(name, *sides, dtypes=self.dtypes)


class TwoNumbers(Attribute):
    """Two numbers."""

    def keep(self, state: State, name: str, value: Any) -> None:
        """Put the numbers into the state."""
        state.arrays[name] = np.asarray(value)

    def restored(self, saved: Saved, name: str, learner: Any) -> tuple[float, float]:
        """The numbers."""
        low, high = saved.array(name, 2, dtypes=["float64"]).tolist()
        return low, high


class FeatureNames(Attribute):
    """Names of features."""

    def keep(self, state: State, name: str, value: NDArray[Any]) -> None:
        """Put the names into the state."""
        keep_names(state, name, value)

    def restored(self, saved: Saved, name: str, learner: Any) -> NDArray[Any]:
        """The names."""
        return restored_names(saved, name, learner.n_features_in_)


class Labels(Attribute):
    """Class labels: numbers or texts."""

    def keep(self, state: State, name: str, value: NDArray[Any]) -> None:
        """Put the labels into the state."""
        keep_labels(state, name, value)

    def restored(self, saved: Saved, name: str, learner: Any) -> NDArray[Any]:
        """The labels."""
        return restored_labels(saved, name)


class Records(Attribute):
    """A dict of arrays with an entry for each iteration."""

    def keep(self, state: State, name: str, value: dict[str, NDArray[np.float64]]) -> None:
        """Put the arrays into the state, as bits: there is NaN where nothing was measured."""
        columns = np.array(list(value.values()), dtype=np.float64)
        state.values[name] = list(value)
        state.arrays[name] = columns.view(np.int64)

    def restored(self, saved: Saved, name: str, learner: Any) -> dict[str, NDArray[np.float64]]:
        """The dict."""
        fields = saved.value(name)
        saved.check(
            isinstance(fields, list)
            and all(isinstance(field, str) for field in fields)
            and len(set(fields)) == len(fields),
            f"{name} must have names",
        )
        columns = saved.array(name, len(fields), None, dtypes=["int64"], empty=True)
        saved.check(columns.shape[1] == learner.n_iter_, f"{name} must have n_iter_ entries")
        return dict(zip(fields, columns.view(np.float64), strict=True))


RAN: dict[str, Attribute] = {"n_iter_": Count(), "converged_": Flag(), "history_": Records()}
"""What every run leaves."""


@dataclass(frozen=True)
class FormOf(Attribute):
    """A form of one of some kinds, of the learner's features."""

    kinds: tuple[type[Form], ...]

    def keep(self, state: State, name: str, value: Form) -> None:
        """Put the form into the state."""
        state.add(name, stored(value))

    def restored(self, saved: Saved, name: str, learner: Any) -> Form:
        """The form."""
        form: Form = restored(saved.part(name), *self.kinds)
        d = learner.n_features_in_
        precomputed = isinstance(form, KernelMahalanobis) and form.kernel == "precomputed"
        right = form.n_features_in <= d if precomputed else form.n_features_in == d
        saved.check(right, f"{name} must be a form of its features")
        return form
