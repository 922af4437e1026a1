"""The file of a learner: parameters, random numbers and what was learned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.files.state import Saved, State
from samewise.forms import Bilinear, Mahalanobis
from samewise.learners.aroma import DiagonalAROMA, FactoredAROMA
from samewise.learners.base import OnlineLearner
from samewise.learners.gcosla import GCosLA
from samewise.learners.itml import LEGO
from samewise.learners.kernel_pola import KernelPOLA
from samewise.learners.oasis import OASIS
from samewise.learners.passive_aggressive import PassiveAggressive
from samewise.learners.pola import POLA

__all__ = ["LEARNERS", "learner_of", "save_learner"]

LEARNERS: dict[str, type[OnlineLearner]] = {
    cls.__name__: cls
    for cls in (
        DiagonalAROMA,
        FactoredAROMA,
        GCosLA,
        KernelPOLA,
        LEGO,
        OASIS,
        PassiveAggressive,
        POLA,
    )
}
"""Every learner that a file may hold, by its name there."""

GENERATOR = "MT19937"
"""What draws the numbers of a RandomState, unless another generator was put into it."""


def save_learner(learner: OnlineLearner, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file; see `OnlineLearner.save`."""
    check_is_fitted(learner)
    name = type(learner).__name__
    if LEARNERS.get(name) is not type(learner):
        raise InvalidInputError(
            f"{name} is a class of your own, which a file cannot name; save metric_, or a learner "
            f"of {', '.join(LEARNERS)}"
        )
    learner._validate_params()
    state = State(values={"class": name})
    state.add("parameters", _parameters(learner)).add("random", _random_state(learner._random))
    state.add("learned", learner._state())
    container.write(path, container.LEARNER, state.arrays, _plain(state.values), owner=name)


def learner_of(content: container.Content) -> OnlineLearner:
    """The learner that a file holds."""
    name = content.params.get("class")
    cls = LEARNERS.get(name) if isinstance(name, str) else None
    if cls is None:
        content.refuse(f"holds a learner of the unknown class {name!r}")
    with content.making(cls.__name__):
        saved = Saved(content.arrays, content.params)
        saved.value("class")
        random = _restored_random(saved.part("random"))
        learner = cls(**_restored_parameters(cls, saved.part("parameters"), random))
        learner._validate_params()
        learner._random = random
        learner._restore(saved.part("learned"))
        saved.finish()
        return learner


def _parameters(learner: OnlineLearner) -> State:
    """The parameters; matrices among them and a RandomState are parts of their own."""
    state = State()
    for name, value in learner.get_params(deep=False).items():
        if callable(value):
            raise InvalidInputError(
                f"A {type(learner).__name__} whose {name} is a callable cannot be saved; use a "
                f"named {name}"
            )
        if isinstance(value, np.random.RandomState):
            # The one it draws from is saved anyway.
            shared = value is learner._random
            state.add(name, State() if shared else _random_state(value))
        elif isinstance(value, Mahalanobis):
            state.add(name, State(value._state()[0]))
        elif name == "init" and not isinstance(value, str):
            state.add(name, State({"array": Bilinear(np.asarray(value)).matrix}))
        else:
            state.values[name] = value
    return state


def _restored_parameters(cls: type[OnlineLearner], saved: Saved, random: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for name in cls._get_param_names():
        if not saved.is_a(dict, name) or name not in ("init", "random_state"):
            value = saved.value(name)
            # JSON knows no tuples; averages are written as such.
            parameters[name] = tuple(value) if isinstance(value, list) else value
            continue
        part = saved.part(name)
        if name == "random_state":
            parameters[name] = _restored_random(part) if part.has("key") else random
        elif part.has("array"):
            parameters[name] = part.array("array", None, None)
        else:
            parameters[name] = _restored_mahalanobis(part)
    return parameters


def _restored_mahalanobis(saved: Saved) -> Mahalanobis:
    sides = {"components": 2, "matrix": 2, "eigenvalues": 1}
    arrays = {
        name: saved.array(name, *[None] * ndim, empty=True)
        for name, ndim in sides.items()
        if saved.has(name)
    }
    for values in arrays.values():
        values.setflags(write=False)
    return Mahalanobis._restore(arrays, {})


def _random_state(random: np.random.RandomState) -> State:
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


def _restored_random(saved: Saved) -> np.random.RandomState:
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


def _plain(value: Any) -> Any:
    """Values of NumPy's own types as Python's, which JSON knows."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
