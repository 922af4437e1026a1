"""What the learners of pairs have in common: a metric, and a threshold on it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from samewise._rollback import alone
from samewise._typing import Array, Matrix
from samewise.engine.directions import Directions, pair_difference
from samewise.engine.policy import Psd
from samewise.engine.rank_one_mover import RankOneMover
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import FLOATS
from samewise.forms import Form, Mahalanobis
from samewise.kernels.steps import Step
from samewise.learners.attributes import Attribute, Number, OneOf
from samewise.learners.learner import MapLearner
from samewise.learners.online.online_learner import OnlineLearner
from samewise.learners.pair_sampler import PairSampler
from samewise.supervision import Pairs
from samewise.supervision.gate import as_pairs, is_labeled

LEAST_B = 1.0
"""The smallest admissible threshold on squared distances: b ≥ 1 belongs to M ⪰ 0 (POLA §3)."""


class PairLearner(PairSampler, MapLearner, OnlineLearner, storable=False):
    """A metric learned from pairs, and a threshold on it: a Mahalanobis distance by default."""

    _dtype: str
    """The type of the data, and of the form."""
    _calibrated_b: float
    """The threshold, where the last portion had labels."""
    _held_out: Pairs | None
    """Pairs for the threshold, until the portion is learned."""
    _learned: ClassVar[dict[str, Attribute]] = {
        "_dtype": OneOf(FLOATS),
        "_calibrated_b": Number(optional=True),
    }

    def _supervision(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        random: np.random.RandomState,
        reset: bool,
        **more: Any,
    ) -> Pairs:
        def draw(X: Any, y: Any, sample_weight: Any) -> Pairs:
            X, y = self._examples(X, y, reset)
            learned, self._held_out = self._sampled(X, y, random, sample_weight, merge=True)
            return learned

        self._held_out = None
        pairs = as_pairs(X, y, sample_weight, learner=type(self).__name__, draw=draw)
        if pairs is X or not is_labeled(X):
            self._set_features(pairs, reset)
        if reset:
            self._dtype = pairs.X.dtype.name
        return pairs

    def _calibrate(self) -> None:
        held_out = self.__dict__.pop("_held_out")
        self.__dict__.pop("_calibrated_b", None)
        if held_out is None:
            return
        self._online.check()
        # Anew: should what follows be refused, forms made here are of a state that never was.
        self._made = {}
        if (b := self._calibrated(held_out)) is not None:
            self._calibrated_b = b

    def _directions(self, examples: Pairs) -> Directions:
        return pair_difference(examples)

    def _form(self, M: Array) -> Form:
        return Mahalanobis.nearest(M.astype(self._dtype, copy=False))

    @property
    def _shape(self) -> tuple[int, int]:
        return self.n_features_in_, self.n_features_in_

    @property
    def components_(self) -> Array:
        """L = M^½, the symmetric root of M: it moves no more than M, and keeps its shape."""
        return self.metric_.root

    def _mapped(self, X: Matrix) -> Array:
        return self.metric_.embed(X, symmetric=True)

    @property
    def threshold_(self) -> float:
        """The threshold b: a pair is called similar if its squared distance is at most b."""
        with alone(self):
            own = self._solution()[1]
            return getattr(self, "_calibrated_b", own)


def rank_one_mover(
    learner: Any, pairs: Pairs, step: Step, psd: Psd = "each", b: float = LEAST_B
) -> RankOneMover:
    """Steps −τ y v vᵀ from the `init` of a learner, by its `path`."""
    # A projection finds eigenvalues of the size of float32's rounding: keep the state exact.
    dtype = np.float64 if psd == "each" else pairs.X.dtype
    M = initial_matrix(learner.init, pairs.X.shape[1], dtype)
    return RankOneMover(Symmetric(M), b, step, learner.path, psd=psd, least_b=LEAST_B)


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
        form = init if isinstance(init, Mahalanobis) else Mahalanobis(init)
    except InvalidInputError as error:
        raise type(error)(f"The 'init' parameter is not a metric. {error}") from error
    if form.n_features_in != d:
        raise InvalidInputError(
            f"init has {form.n_features_in} features, but the data have {d}; give a matrix of "
            f"shape ({d}, {d})."
        )
    return form.matrix.astype(dtype)
