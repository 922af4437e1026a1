"""What every learner has in common: its contract with users, scikit-learn and files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.forms import KernelMahalanobis
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, Count, FeatureNames
from samewise.learners.class_checks import numbered
from samewise.learners.constraints import SHARED
from samewise.learners.dense_rows import dense_rows
from samewise.learners.parameters import (
    numbers_state,
    parameters_state,
    restored_numbers,
    restored_parameters,
)
from samewise.search import Index
from samewise.supervision import Pairs, Quadruplets, Triplets
from samewise.supervision.gate import as_members, as_pairs, is_labeled

ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
"""The rows that every learner takes."""

PAIRS = 4096
"""Pairs compared at a time."""


class Learner(Storable, BaseEstimator, storable=False):
    """Something that learns a form, `metric_`.

    What is refused leaves a learner as it was (`samewise._rollback`). What it has learned, beyond
    its parameters, is declared in `_learned`.
    """

    n_features_in_: int
    _random: np.random.RandomState

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    """What parameters may be, beyond what the bases declare and what is `SHARED`."""
    _learned: ClassVar[dict[str, Attribute]] = {}
    """What is learned, beyond what the bases declare."""
    _target_required: ClassVar[bool] = True
    _keeps_random: ClassVar[bool] = False
    """Whether learning can go on, with the random numbers `_random`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        constraints = {name: SHARED[name] for name in vars(cls) if name in SHARED}
        learned: dict[str, Attribute] = {}
        for kind in reversed(cls.__mro__):
            constraints |= vars(kind).get("_parameter_constraints", {})
            learned |= vars(kind).get("_learned", {})
        cls._parameter_constraints, cls._learned = constraints, learned

    if TYPE_CHECKING:

        @property
        def metric_(self) -> Any:
            """The learned form: an attribute, or a property of what is still learning."""

    # What goes in

    def _examples(self, X: Any, y: Any, reset: bool = True) -> tuple[Matrix, NDArray[Any]]:
        """Labeled examples, checked as scikit-learn does."""
        return validate_data(self, sound_rows(X), y, reset=reset, ensure_min_samples=2, **ROWS)

    def _dense_examples(self, X: Any, y: Any) -> tuple[Array, Indices]:
        """Labeled examples as dense rows, and the number of each one's class in `classes_`."""
        return self._dense(*self._examples(X, y))

    def _dense(self, X: Matrix, y: NDArray[Any]) -> tuple[Array, Indices]:
        """Checked examples as dense rows, and the number of each one's class in `classes_`."""
        owner = type(self).__name__
        X = dense_rows(X, owner)
        self.classes_, labels = numbered(y, owner)
        return X, labels

    def _rows(self, X: Any) -> Matrix:
        """Rows to use what was learned on, checked as scikit-learn does."""
        check_is_fitted(self)
        return validate_data(self, sound_rows(X), reset=False, **ROWS)

    def _set_features(self, examples: Pairs | Triplets | Quadruplets, reset: bool = True) -> None:
        """What scikit-learn's check of examples does, for examples named by row numbers."""
        n_features, names = examples.X.shape[1], examples.feature_names
        if not reset and n_features != self.n_features_in_:
            raise InvalidInputError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        self.n_features_in_ = n_features
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        elif names is not None and hasattr(self, "feature_names_in_"):
            known = tuple(self.feature_names_in_)
            if names != known:
                raise InvalidInputError(
                    f"The feature names should match those that {type(self).__name__} learned "
                    f"from, in their order: {', '.join(known[:5])}{'…' * (len(known) > 5)}. Got "
                    f"{', '.join(names[:5])}{'…' * (len(names) > 5)}."
                )

    # What was learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "metric_")

    def pair_score(self, X: Any) -> Array:
        """How close the two members of each pair are: larger is closer.

        Parameters
        ----------
        X : Pairs or array of shape (n, 2, n_features)
            The pairs.

        Returns
        -------
        array of shape (n,)
            A similarity, or a distance with a minus sign.
        """
        check_is_fitted(self)
        pairs = as_members(X, owner=type(self).__name__)
        form = self.metric_
        parts = [
            form.pair_closeness(pairs.X[part.left], pairs.X[part.right])
            for part in (pairs[start : start + PAIRS] for start in range(0, len(pairs), PAIRS))
        ]
        return np.concatenate([np.empty(0, dtype=pairs.X.dtype), *parts])

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the metric is on the given data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features), Pairs or array of shape (n, 2, n_features)
            Labeled examples, or pairs if the learner has a threshold for them.
        y : array of shape (n,), default=None
            Class labels of examples, or ±1 for an array of pairs.

        Returns
        -------
        float
            For examples, the leave-one-out accuracy of the nearest neighbor among them. For pairs,
            the fraction that `predict` gets right, weighted if the pairs are.
        """
        check_is_fitted(self)
        if is_labeled(X):
            X, y = self._examples(X, y, reset=False)
            nearest = Index(self.metric_.bind(X, y), X).query(X, 1, exclude_self=True)[1][:, 0]
            return float(np.mean(y[nearest] == y))
        if not hasattr(self, "predict"):
            raise InvalidInputError(
                f"{type(self).__name__} learns no threshold for pairs. Give labeled examples, or "
                "fit a Verifier to pairs."
            )
        pairs = as_pairs(X, y, None, learner=type(self).__name__, draw=Pairs.from_labels)
        return float(np.average(self.predict(pairs) == pairs.y, weights=pairs.sample_weight))

    # How it is stored

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file that `samewise.load` reads.

        The loaded learner equals this one bit for bit. It continues exactly where this one stopped.

        Parameters
        ----------
        path : str or path
            An existing file is replaced as a whole or not at all. A link is followed, and the
            folder must exist. While the file is written, a temporary file lies beside it.

        Notes
        -----
        No pickle: a file is data, checked when it is read. What is given as a callable, or as an
        object of a class that samewise does not know, cannot be saved.
        """
        check_is_fitted(self)
        super().save(path)

    def state(self) -> State:
        """The parameters and what was learned, if anything was."""
        self._validate_params()
        state = State().add("parameters", parameters_state(self))
        if not self.__sklearn_is_fitted__():
            return state
        if self._keeps_random:
            state.add("random", numbers_state(self._random))
        return state.add("learned", self._learned_state())

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The learner of that state."""
        fitted = saved.has("learned")
        random = restored_numbers(saved.part("random")) if fitted and cls._keeps_random else None
        learner = cls(**restored_parameters(cls, saved.part("parameters"), random))
        learner._validate_params()
        if random is not None:
            learner._random = random
        if fitted:
            learner._restore_learned(saved.part("learned"))
        return learner

    @classmethod
    def _former_parameters(cls, saved: Saved) -> dict[str, Any]:
        """Parameters that a file of a former version lacks; takes what it has in their place."""
        return {}

    def _learned_state(self) -> State:
        """What was learned, beyond the parameters."""
        state = State()
        for name, attribute in self._attributes().items():
            if hasattr(self, name) or not attribute.optional:
                attribute.keep(state, name, getattr(self, name))
        return state

    def _restore_learned(self, saved: Saved) -> None:
        """Take over what `_learned_state` returned."""
        for name, attribute in self._attributes().items():
            if saved.has(name) or not attribute.optional:
                setattr(self, name, attribute.restored(saved, name, self))

    @classmethod
    def _attributes(cls) -> dict[str, Attribute]:
        return {
            "n_features_in_": Count(1),
            "feature_names_in_": FeatureNames(optional=True),
            **cls._learned,
        }

    # What scikit-learn wants to know

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self._target_required
        return tags


class MapLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner, storable=False):
    """A learner whose form maps rows to coordinates in which it is the usual distance or cosine."""

    metric_: Any

    @property
    def components_(self) -> Array:
        """The learned map L of shape (n_components, n_features); under a kernel, coefficients."""
        form = self.metric_
        return form.coefficients if isinstance(form, KernelMahalanobis) else form.components

    def transform(self, X: Any) -> NDArray[Any]:
        """Map rows to where the learned metric is the usual one.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Rows to map.

        Returns
        -------
        array of shape (n, n_components)
            Euclidean distances of the result are the learned distances; under a learned cosine,
            rows have unit length and inner products are the learned similarities.
        """
        return self._mapped(self._rows(X))

    def _mapped(self, X: Matrix) -> NDArray[Any]:
        """Checked rows, mapped."""
        return self.metric_.embed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
