"""Learners that learn from all examples at once, on their way to a file and back."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.files.container import parse
from samewise.files.state import Saved, State
from samewise.forms import Form, KernelMahalanobis, Mahalanobis
from samewise.forms.files import form_state, restored_form

__all__ = ["Savable", "keep_names", "restore_names"]

COMMON = ("n_features_in_", "feature_names_in_?")
"""What every learner has; a name with a question mark may be missing."""

LABELS = (bool, int, float, str)
"""What a label may be in a file."""


class Savable:
    """A learner whose fitted attributes are all there is to save.

    A subclass lists them in `_fitted`, in an order in which they can be checked against those
    before, and the kinds of its form in `_forms`. What an attribute is, is known by its name
    (`KINDS`).
    """

    _fitted: ClassVar[tuple[str, ...]] = ("metric_", "components_")
    _forms: ClassVar[tuple[type[Form], ...]] = (Mahalanobis,)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner, with its parameters, to a file that `samewise.load` reads.

        The loaded learner has the same attributes, bit for bit, and with `warm_start` goes on from
        them. (`metric_.save` writes only what is needed to use it.)

        Parameters
        ----------
        path : str or path
            An older file is replaced whole or not at all. While it is written, a temporary file
            lies beside it.

        Notes
        -----
        No pickle: a file is data, checked when it is read. What is given as a callable or as an
        object of another class cannot be saved: set such a parameter to None first. Lists of
        numbers come back as tuples, and lists of lists as arrays.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import samewise
        >>> learner = samewise.LDA().fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     learner.save(pathlib.Path(folder) / "learner")
        ...     again = samewise.load(pathlib.Path(folder) / "learner")
        >>> again.metric_ == learner.metric_
        True
        """
        from samewise.learners.files import save_learner

        save_learner(self, path)

    def _state(self) -> State:
        """What was learned, beyond the parameters."""
        state = State()
        for name, optional in self._names():
            if hasattr(self, name) or not optional:
                KINDS[name].keep(state, name, getattr(self, name))
        return state

    def _restore(self, saved: Saved) -> None:
        """Take over what `_state` gave."""
        for name, optional in self._names():
            if saved.has(name) or not optional:
                setattr(self, name, KINDS[name].restored(saved, name, self))

    def _names(self) -> list[tuple[str, bool]]:
        """The attributes, and whether each may be missing."""
        return [(name.removesuffix("?"), name[-1] == "?") for name in (*COMMON, *self._fitted)]


class Kind(NamedTuple):
    """How an attribute is put into a state, and taken out of it."""

    keep: Callable[[State, str, Any], None]
    restored: Callable[[Saved, str, Any], Any]


def keep_names(state: State, name: str, names: NDArray[Any]) -> None:
    """Put in the names of features, which would be too many for the header of a file."""
    text = json.dumps(names.tolist()).encode()
    state.arrays[name] = np.frombuffer(text, dtype=np.uint8)


def restore_names(saved: Saved, name: str, learner: Any) -> NDArray[Any]:
    """The names of the features of a learner."""
    names = _texts(saved, name)
    right = all(isinstance(name, str) for name in names)
    saved.check(right and len(names) == learner.n_features_in_, "feature names must be texts")
    return np.array(names, dtype=object)


def _texts(saved: Saved, name: str) -> list[Any]:
    values = parse(saved.array(name, None, dtypes=["uint8"]).tobytes())
    saved.check(isinstance(values, list), f"{name} must be a list")
    assert isinstance(values, list)
    return values


def _keep_value(state: State, name: str, value: Any) -> None:
    state.values[name] = value


def _keep_number(state: State, name: str, value: float) -> None:
    # JSON has no infinities and no NaN.
    state.values[name] = float(value) if math.isfinite(value) else str(float(value))


def _restored_number(saved: Saved, name: str, learner: Any) -> float:
    if saved.is_a(str, name):
        return float(saved.choice(name, ("inf", "-inf", "nan")))
    return saved.number(name)


def _restored_bounds(saved: Saved, name: str, learner: Any) -> tuple[float, float]:
    low, high = saved.array(name, 2, dtypes=["float64"]).tolist()
    return low, high


def _keep_array(state: State, name: str, values: Any) -> None:
    values = np.asarray(values)
    state.arrays[name] = values.astype(np.int64) if values.dtype.kind == "i" else values


def _array(*shape: str, dtypes: tuple[str, ...] = ("float32", "float64")) -> Kind:
    """Arrays whose sides are of any length, or as long as there are features ("d")."""

    def restored(saved: Saved, name: str, learner: Any) -> NDArray[Any]:
        sides = [learner.n_features_in_ if side == "d" else None for side in shape]
        return saved.array(name, *sides, dtypes=dtypes)

    return Kind(_keep_array, restored)


def _keep_history(state: State, name: str, history: dict[str, NDArray[np.float64]]) -> None:
    """As bits: there is NaN where nothing was looked at."""
    columns = np.array(list(history.values()), dtype=np.float64)
    state.values[name] = list(history)
    state.arrays[name] = columns.view(np.int64)


def _restored_history(saved: Saved, name: str, learner: Any) -> dict[str, NDArray[np.float64]]:
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


def _keep_labels(state: State, name: str, labels: NDArray[Any]) -> None:
    values = labels.tolist()
    if not all(type(value) in LABELS for value in values):
        raise InvalidInputError(
            f"Labels that are neither numbers nor texts cannot be saved. Got {labels.dtype}; learn "
            "from other labels."
        )
    state.values[name] = "str" if labels.dtype.kind == "U" else labels.dtype.name
    state.arrays[name] = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)


def _restored_labels(saved: Saved, name: str, learner: Any) -> NDArray[Any]:
    dtype, values = saved.value(name), _texts(saved, name)
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


def _keep_form(state: State, name: str, form: Form) -> None:
    state.add(name, form_state(form))


def _restored_form(saved: Saved, name: str, learner: Any) -> Any:
    form, d = restored_form(saved.part(name)), learner.n_features_in_
    precomputed = isinstance(form, KernelMahalanobis) and form.kernel == "precomputed"
    right = form.n_features_in <= d if precomputed else form.n_features_in == d
    saved.check(type(form) in learner._forms and right, f"{name} must be a form of its features")
    return form


def _nothing(state: State, name: str, value: Any) -> None:
    """What follows from other attributes."""


def _components(saved: Saved, name: str, learner: Any) -> NDArray[Any]:
    form = learner.metric_
    L = form.coefficients if isinstance(form, KernelMahalanobis) else form.components
    return np.array(L)


def _count(least: int) -> Kind:
    return Kind(_keep_value, lambda saved, name, learner: saved.count(name, least=least))


_NUMBER = Kind(_keep_number, _restored_number)
_FORM = Kind(_keep_form, _restored_form)
_ROWS = _array("any", dtypes=("int64",))

KINDS: dict[str, Kind] = {
    "n_features_in_": _count(1),
    "feature_names_in_": Kind(keep_names, restore_names),
    "metric_": _FORM,
    "_metric": _FORM,
    "components_": Kind(_nothing, _components),
    "classes_": Kind(_keep_labels, _restored_labels),
    "n_iter_": _count(0),
    "n_active_": _count(0),
    "n_directions_": _count(1),
    "converged_": Kind(_keep_value, lambda saved, name, learner: saved.flag(name)),
    "history_": Kind(_keep_history, _restored_history),
    **dict.fromkeys(
        ("loss_", "loss_std_", "anchor_loss_", "gap_", "objective_", "margin_"), _NUMBER
    ),
    "bounds_": Kind(_keep_array, _restored_bounds),
    "duals_": _array("any"),
    "explained_variance_": _array("any"),
    "ranges_": _array("d"),
    "weights_": _array("d"),
    "matrix_": _array("d", "d"),
    "chunklets_": _ROWS,
    "landmarks_": _ROWS,
}
"""Every attribute of such a learner, by its name."""
