"""Learners of pairs whose metric is a matrix on the features themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._typing import Array
from samewise.engine.averaging import Spec, checked_average
from samewise.engine.directions import pair_difference
from samewise.engine.online import PATHS, Online, chunks
from samewise.engine.policy import Policy, checked_psd
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import FLOATS, Saved, State
from samewise.forms import Mahalanobis
from samewise.kernels.steps import Step
from samewise.learners.online.pair_learner import LEAST_B, PairLearner
from samewise.supervision import Pairs


class LinearPairLearner(PairLearner):
    """M moved by rank-one steps −τ y v vᵀ; a subclass names the step, the policy and the start."""

    init: Any
    average: Spec
    tolerance: float
    path: str

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "average": [str, tuple, list],
        "init": [str, "array-like", Mahalanobis],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "n_pairs": [None, Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"balanced", "random", "nearest"})],
        "path": [StrOptions(set(PATHS))],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _combination(self) -> tuple[Step, Policy, float]:
        """The step, when M ⪰ 0 is restored, and the b to start from."""

    def _begin(self, pairs: Pairs) -> Online:
        step, psd, b = self._combination()
        checked_average(self.average)
        # A projection finds eigenvalues of the size of float32's rounding: keep the state exact.
        dtype = np.float64 if checked_psd(psd) == "each" else pairs.X.dtype
        self._dtype = pairs.X.dtype
        return Online(
            Symmetric(initial_matrix(self.init, pairs.X.shape[1], dtype)),
            b,
            step,
            psd=psd,
            least_b=LEAST_B,
            average=self.average,
            tolerance=self.tolerance,
            path=self.path,
        )

    def _portions(self, pairs: Pairs) -> Iterator[slice]:
        return chunks(len(pairs), pairs.X)

    def _show(self, online: Online, pairs: Pairs) -> None:
        online.learn(pair_difference(pairs))

    def _form(self, M: Array) -> Mahalanobis:
        return Mahalanobis.nearest(M.astype(self._dtype, copy=False))

    @property
    def metric_(self) -> Mahalanobis:
        """The learned distance: a frozen copy that later learning does not move."""
        return cast(Mahalanobis, self._solution()[0])

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def components_(self) -> Array:
        """L of shape (rank, n_features) with M = LᵀL, leading directions first."""
        return self.metric_.components

    def get_mahalanobis_matrix(self) -> Array:
        """M of shape (n_features, n_features), as a copy."""
        return self.metric_.matrix.copy()

    def _learned_state(self) -> State:
        state = super()._learned_state()
        state.values["dtype"] = np.dtype(self._dtype).name
        return state

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        self._dtype = np.dtype(saved.choice("dtype", FLOATS))
        d = self.n_features_in_
        saved.check(self._online.store.shape == (d, d), "matrix has not the features of the data")

    def _restored_engine(self, saved: Saved) -> Online:
        return Online.restore(saved, Symmetric)


def initial_matrix(init: Any, d: int, dtype: Any) -> Array:
    """M to start from: "zero", "identity", an array or a form."""
    if isinstance(init, str):
        if init not in ("zero", "identity"):
            raise InvalidInputError(
                "The 'init' parameter must be 'zero', 'identity', an array of shape (n_features, "
                f"n_features) or a Mahalanobis form. Got {init!r} instead."
            )
        return np.zeros((d, d), dtype=dtype) if init == "zero" else np.eye(d, dtype=dtype)
    try:
        form = init if isinstance(init, Mahalanobis) else Mahalanobis(np.asarray(init))
    except InvalidInputError as error:
        raise type(error)(f"The 'init' parameter is not a metric. {error}") from error
    if form.n_features_in != d:
        raise InvalidInputError(
            f"init has {form.n_features_in} features, but the data have {d}; give a matrix of "
            f"shape ({d}, {d})."
        )
    return form.matrix.astype(dtype)
