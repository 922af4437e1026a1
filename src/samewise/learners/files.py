"""The file of a learner: parameters, random numbers and what was learned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.files.state import FLOATS, Saved, State
from samewise.forms import Form
from samewise.forms.files import form_state, restored_form
from samewise.learners.batch.hier import HIER
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.lmnn import LMNN, KernelLMNN, MultiMetricLMNN
from samewise.learners.batch.mcml import MCML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.nca import NCA
from samewise.learners.batch.snn import SNN
from samewise.learners.closed.classical import LDA, PCA, Cosine, Covariance, Euclidean
from samewise.learners.closed.igml import IGML, KIGML
from samewise.learners.closed.rca import KRCA, RCA
from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.neighbors.srbs import SRBS
from samewise.learners.online.aroma import DiagonalAROMA, FactoredAROMA
from samewise.learners.online.gcosla import GCosLA
from samewise.learners.online.kernel_pola import KernelPOLA
from samewise.learners.online.lego import LEGO
from samewise.learners.online.oasis import OASIS
from samewise.learners.online.online_learner import OnlineLearner
from samewise.learners.online.passive_aggressive import PassiveAggressive
from samewise.learners.online.pola import POLA
from samewise.learners.savable import Savable

__all__ = ["BATCH", "LEARNERS", "learner_of", "save_learner"]

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
"""Every online learner that a file may hold, by its name there."""

BATCH: dict[str, type[Savable]] = {
    cls.__name__: cls
    for cls in (
        Cosine,
        Covariance,
        Euclidean,
        HIER,
        IGML,
        ITML,
        KIGML,
        KRCA,
        KernelLMNN,
        LDA,
        LMNN,
        MCML,
        MMC,
        MultiMetricLMNN,
        NCA,
        PCA,
        RBS,
        RCA,
        Relief,
        SNN,
        SRBS,
        SiLA,
    )
}
"""Every other learner that a file may hold."""

GENERATOR = "MT19937"
"""What draws the numbers of a RandomState, unless another generator was put into it."""


def save_learner(learner: OnlineLearner | Savable, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file; see `OnlineLearner.save` and `Savable.save`."""
    check_is_fitted(learner)
    name = type(learner).__name__
    if (LEARNERS | BATCH).get(name) is not type(learner):
        raise InvalidInputError(
            f"{name} is a class of your own, which a file cannot name; save metric_, or a learner "
            f"of {', '.join(LEARNERS | BATCH)}"
        )
    learner._validate_params()  # type: ignore[union-attr]
    state = State(values={"class": name})
    state.add("parameters", _parameters(learner))
    if isinstance(learner, OnlineLearner):
        state.add("random", _random_state(learner._random))
    state.add("learned", learner._state())
    container.write(path, container.LEARNER, state.arrays, _plain(state.values), owner=name)


def learner_of(content: container.Content) -> Any:
    """The learner that a file holds."""
    name = content.params.get("class")
    cls: Any = (LEARNERS | BATCH).get(name) if isinstance(name, str) else None
    if cls is None:
        content.refuse(f"holds a learner of the unknown class {name!r}")
    with content.making(cls.__name__):
        saved = Saved(content.arrays, content.params)
        saved.value("class")
        online = name in LEARNERS
        random = _restored_random(saved.part("random")) if online else None
        learner = cls(**_restored_parameters(cls, saved.part("parameters"), random))
        learner._validate_params()
        if online:
            learner._random = random
        learner._restore(saved.part("learned"))
        saved.finish()
        return learner


def _parameters(learner: Any) -> State:
    """The parameters; arrays, forms, mappings and a RandomState are parts of their own."""
    state = State()
    for name, value in learner.get_params(deep=False).items():
        if callable(value):
            raise InvalidInputError(
                f"A {type(learner).__name__} whose {name} is a callable cannot be saved; use a "
                f"named {name}, or set it to None if it may be"
            )
        if isinstance(value, np.random.RandomState):
            # The one an online learner draws from is saved anyway.
            shared = value is getattr(learner, "_random", None)
            state.add(name, State() if shared else _random_state(value))
        elif isinstance(value, Form):
            state.add(name, form_state(value))
        elif isinstance(value, np.ndarray) or (
            isinstance(value, list | tuple) and np.ndim(value) > 1
        ):
            state.add(name, _array_state(np.asarray(value), name, type(learner).__name__))
        elif isinstance(value, Mapping) and name != "kernel_params":
            # Keys may be numbers, which those of a JSON object are not.
            state.add(name, State(values={"pairs": [list(pair) for pair in value.items()]}))
        elif hasattr(value, "fit"):
            raise InvalidInputError(
                f"A {type(learner).__name__} whose {name} is a {type(value).__name__} cannot be "
                f"saved; give {name} as an array, such as components_ of what it learned"
            )
        else:
            state.values[name] = value
    return state


def _restored_parameters(cls: type[Any], saved: Saved, random: Any) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for name in cls._get_param_names():
        if not saved.is_a(dict, name) or name == "kernel_params":
            value = saved.value(name)
            # JSON knows no tuples; averages and bounds are written as such.
            parameters[name] = tuple(value) if isinstance(value, list) else value
            continue
        part = saved.part(name)
        if name == "random_state":
            shared = random is not None and not part.has("key")
            parameters[name] = random if shared else _restored_random(part)
        elif part.has("array"):
            parameters[name] = _restored_array(part)
        elif part.has("pairs"):
            parameters[name] = {key: value for key, value in part.value("pairs")}
        else:
            parameters[name] = restored_form(part)
    return parameters


def _array_state(values: NDArray[Any], name: str, owner: str) -> State:
    stored = {"f": FLOATS, "i": ("int64",), "u": ("int64",), "b": ("bool",)}.get(values.dtype.kind)
    if stored is None or not np.isfinite(values).all():
        raise InvalidInputError(
            f"A {owner} whose {name} holds something else than finite numbers cannot be saved. Got "
            f"an array of {values.dtype}."
        )
    kept = values if values.dtype.name in stored else values.astype(stored[-1])
    # A file has arrays of two sides.
    flat = kept.reshape(-1, kept.shape[-1]) if kept.size else kept.reshape(1, 0)
    return State({"array": flat}, {} if values.ndim == 2 else {"shape": list(values.shape)})


def _restored_array(saved: Saved) -> NDArray[Any]:
    dtypes = [*FLOATS, "int64", "bool"]
    values = saved.array("array", None, None, dtypes=dtypes, empty=saved.has("shape"))
    return values.reshape(saved.value("shape")) if saved.has("shape") else values


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
