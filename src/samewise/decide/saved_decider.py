"""How what decides is stored: its parameters, its metric, and the examples it decides by."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.label_state import keep_labels, keep_names, restored_labels, restored_names
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.forms import Form
from samewise.kernels.sparse_structure import sound_rows

_CSR = ("data", "indices", "indptr")


class SavedDecider(Storable, storable=False):
    """A fitted estimator with a metric, which a file can hold."""

    def state(self) -> State:
        """The parameters and what was learned."""
        check_is_fitted(self)
        state = State().add("parameters", _parameters_state(self))
        return state.add("learned", self._learned_state())

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The estimator of that state.

        Parameters
        ----------
        saved : Saved
            The state, read from a file.

        Returns
        -------
        object
            Fitted.
        """
        made: Any = cls(**_restored_parameters(cls, saved.part("parameters")))
        made._validate_params()
        made._restore_learned(saved.part("learned"))
        return made

    @abstractmethod
    def _learned_state(self) -> State:
        """What was learned, beyond the parameters."""

    @abstractmethod
    def _restore_learned(self, saved: Saved) -> None:
        """Take over what `_learned_state` returned."""


def _parameters_state(estimator: Any) -> State:
    state = State()
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Storable):
            state.add(name, stored(value))
        elif hasattr(value, "fit"):
            raise InvalidInputError(
                f"A {type(estimator).__name__} whose {name} is a {type(value).__name__} cannot be "
                "saved. Give a learner of samewise, or the metric_ of what was learned."
            )
        elif value is not None and np.ndim(value) > 0:
            state.add(name, State({"array": np.asarray(value, dtype=np.int64)}))
        else:
            state.values[name] = value
    return state


def _restored_parameters(cls: Any, saved: Saved) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in cls._get_param_names():
        if not saved.is_a(dict, name):
            found[name] = saved.value(name)
            continue
        part = saved.part(name)
        if part.has("array"):
            found[name] = part.array("array", None, None, dtypes=["int64"])
        else:
            found[name] = restored(part, Storable)
    return found


def keep_metric(estimator: Any, state: State) -> None:
    """Put the learner into the state, if it is not the parameter itself."""
    learner = getattr(estimator, "learner_", None)
    if learner is not None and learner is not estimator.metric:
        state.add("learner", stored(learner))


def restore_metric(estimator: Any, saved: Saved) -> None:
    """Set `metric_`, and `learner_` if there is one."""
    if saved.has("learner"):
        estimator.learner_ = restored(saved.part("learner"), Storable)
    elif estimator.metric is not None and not isinstance(estimator.metric, Form):
        estimator.learner_ = estimator.metric
    owner = getattr(estimator, "learner_", None)
    found = estimator.metric if owner is None else getattr(owner, "metric_", None)
    is_form = isinstance(found, Form)
    saved.check(is_form or (owner is None and found is None), "must have a metric")
    estimator.metric_ = found


def keep_examples(estimator: Any, state: State, labels: Indices) -> None:
    """Put rows, the numbers of their classes, and the classes into the state."""
    X = estimator._rows
    if sp.issparse(X):
        parts = {name: getattr(X, name) for name in _CSR}
        arrays = {k: v if k == "data" else v.astype(np.int64) for k, v in parts.items()}
        state.add("rows", State(arrays, {"n_features": X.shape[1]}))
    else:
        state.add("rows", State({"dense": np.asarray(X)}))
    state.arrays["labels"] = np.asarray(labels, dtype=np.int64)
    keep_labels(state, "classes", estimator.classes_)
    if hasattr(estimator, "feature_names_in_"):
        keep_names(state, "feature_names", estimator.feature_names_in_)


def restore_examples(estimator: Any, saved: Saved) -> tuple[Matrix, NDArray[np.intp]]:
    """Set the classes and the names of features; returns rows and numbers of classes."""
    X = _rows(saved.part("rows"))
    n, d = X.shape
    labels: NDArray[np.intp] = saved.array("labels", n, dtypes=["int64"]).astype(np.intp)
    classes = restored_labels(saved, "classes")
    in_order = len(classes) == len(np.unique(classes)) and bool(np.all(np.sort(classes) == classes))
    used = np.unique(labels)
    right = in_order and used.tolist() == list(range(len(classes)))
    saved.check(right, "classes must be in order, and labels be numbers of them")
    estimator.classes_, estimator.n_features_in_ = classes, d
    if saved.has("feature_names"):
        estimator.feature_names_in_ = restored_names(saved, "feature_names", d)
    return X, labels


def _rows(saved: Saved) -> Matrix:
    if saved.has("dense"):
        return saved.array("dense", None, None)
    d = saved.count("n_features", least=1)
    data = saved.array("data", None, empty=True)
    indices, indptr = (saved.array(k, None, dtypes=["int64"], empty=True) for k in _CSR[1:])
    saved.check(len(indptr) > 1, "indptr must have an entry for each row and one more")
    return sound_rows(sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, d)))
