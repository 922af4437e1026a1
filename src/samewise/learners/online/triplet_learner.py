"""What the learners of triplets have in common: a similarity of queries and items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from samewise._typing import Array, Matrix
from samewise.engine.averaging import Spec, checked_average
from samewise.engine.directions import triplet_ranking
from samewise.engine.online import PATHS, Online, chunks
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Bilinear, LowRankBilinear
from samewise.learners.online import initial_similarity as starts
from samewise.learners.online.early_stopping import Watch
from samewise.learners.online.online_learner import OnlineLearner
from samewise.scores import retrieval_scores
from samewise.supervision import Triplets
from samewise.supervision.gate import as_triplets, is_labeled


class TripletLearner(OnlineLearner):
    """A similarity qᵀWp learned from triplets; a subclass names how W moves (`_engine`)."""

    margin: float | str
    init: Any
    average: Spec
    n_triplets: int | None
    rank: int | None
    validation_fraction: float | None
    evaluate_every: int | None
    patience: int
    path: str
    n_features_items_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "margin": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "init": [str, "array-like"],
        "average": [str, tuple, list],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "n_triplets": [None, Interval(Integral, 1, None, closed="left")],
        "rank": [None, Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [None, Interval(Real, 0, 1, closed="neither")],
        "evaluate_every": [None, Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "path": [StrOptions(set(PATHS))],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _engine(self, W: Array) -> Online:
        """The state that starts at W."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[Any, ArrayLike] | None = None,
    ) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : Triplets, array of shape (n, 3, n_features), or labeled examples
            Shown in the order given, `n_passes` times. From a matrix of labeled examples, dense or
            CSR, triplets are drawn first.
        y : array, optional
            Class labels with examples; nothing otherwise.
        sample_weight : array, optional
            With an array, a weight for each triplet; with examples, for each example: a triplet
            then counts the product of its members', and an example of weight 2 is the same as two.
        validation : tuple (X, y), optional
            Labeled examples to stop early on: see `evaluate_every` and `patience`. The state with
            the best mean average precision among them is kept.
        """
        return self._fit(X, y, sample_weight, validation=validation)

    def _supervision(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        random: np.random.RandomState,
        reset: bool,
        **more: Any,
    ) -> Triplets:
        # Only `fit` names validation, as None or examples: a stream does not stop early.
        self._held_out = more.get("validation")
        hold = "validation" in more and self._held_out is None
        fraction = self.validation_fraction if hold else None
        if fraction is not None and not is_labeled(X):
            raise InvalidInputError(
                "validation_fraction holds out labeled examples. Got triplets; give labeled "
                "examples to stop early on to fit(triplets, validation=(X, y)) instead."
            )

        def draw(X: Any, y: Any, sample_weight: Any) -> Triplets:
            X, y, sample_weight = _weighty(*self._examples(X, y, reset), sample_weight)
            if fraction is not None:
                X, y, sample_weight = self._hold_out(X, y, sample_weight, fraction, random)
            return Triplets.from_labels(
                X,
                y,
                self.n_triplets,
                merge_duplicates=True,
                sample_weight=sample_weight,
                random_state=random,
            )

        triplets = as_triplets(X, y, sample_weight, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_n_features(triplets.X.shape[1], reset)
        n_items = triplets.items.shape[1]
        if not reset and n_items != self.n_features_items_:
            raise InvalidInputError(
                f"Items have {n_items} features, but {type(self).__name__} is expecting "
                f"{self.n_features_items_}."
            )
        self.n_features_items_ = n_items
        if self._held_out is not None:
            self._held_out = self._checked_validation(*self._held_out)
        return triplets

    def _hold_out(
        self, X: Matrix, y: Any, sample_weight: Any, fraction: float, random: Any
    ) -> tuple[Matrix, Any, Any]:
        """Keep a part of each class for validation; returns the rest."""
        split = StratifiedShuffleSplit(1, test_size=fraction, random_state=random)
        kept, held = next(split.split(np.empty(len(y)), y))
        self._held_out = X[held], y[held]
        weights = None if sample_weight is None else np.asarray(sample_weight)[kept]
        return X[kept], y[kept], weights

    def _checked_validation(self, X: Any, y: Any) -> tuple[Matrix, Any]:
        if self.n_features_in_ != self.n_features_items_:
            raise InvalidInputError(
                "Early stopping ranks validation examples by each other, so queries and items need "
                f"the same features. Got {self.n_features_in_} and {self.n_features_items_}."
            )
        X, y = self._examples(X, y, reset=False)
        if len(np.unique(y)) == len(y):
            raise InvalidInputError(
                f"validation needs two examples of some class to rank. Got {len(y)} examples of as "
                "many classes."
            )
        return X, y

    def _begin(self, told: Triplets) -> Online:
        checked_average(self.average)
        m, n = told.X.shape[1], told.items.shape[1]
        self._bases = None if self.rank is None else starts.bases(told, self.rank)
        W = starts.initial(self.init, m, n, self._bases)
        self.margin_ = (
            starts.automatic_margin(told, W, self._bases)
            if isinstance(self.margin, str)
            else self.margin
        )
        self._n_skipped = 0
        self._watch: Watch | None = None
        dtype = np.result_type(told.X.dtype, told.items.dtype)
        return self._engine(W.astype(dtype, copy=False))

    def _portions(self, triplets: Triplets) -> Iterator[slice]:
        most = 8192 if self._watch is None else min(8192, self._watch.every)
        # Two whole blocks of a wide dense stream.
        return chunks(len(triplets), triplets.X, triplets.items, least=384, most=most)

    def _show(self, online: Online, told: Triplets) -> None:
        directions = triplet_ranking(told, self.margin_)
        if self._bases is not None:
            directions = directions.within(*self._bases)
        online.learn(directions)
        self._n_skipped += int(np.count_nonzero(directions.weight == 0))

    def _learn(self, online: Online, told: Triplets, once: bool) -> None:
        if self._held_out is None:
            super()._learn(online, told, once)
            return
        every = self.evaluate_every or -(-len(told) // 10)
        self._watch = watch = Watch(self._validation_score, every, self.patience)
        try:
            super()._learn(online, told, once)
        finally:
            watch.note(online)
            self._online = watch.best
            self._watch = self._held_out = None
            self.validation_curve_ = watch.curve

    def _enough(self, online: Online) -> bool:
        return self._watch is not None and self._watch.look(online)

    def _validation_score(self) -> float:
        assert self._held_out is not None
        X, y = self._held_out
        blocks = self.metric_.blocks(X, X)
        return retrieval_scores(blocks, y, y, ks=(1,), exclude_self=True).means["map"]

    def _form(self, M: Array) -> Bilinear | LowRankBilinear:
        if self._bases is None:
            return Bilinear(M)
        left, right = self._bases
        return LowRankBilinear(left.astype(M.dtype) @ M, right.astype(M.dtype))

    @property
    def n_skipped_(self) -> int:
        """Triplets from which nothing could be learned."""
        check_is_fitted(self)
        return self._n_skipped

    def get_bilinear_matrix(self) -> Array:
        """W of shape (n_features, n_item_features), as a copy."""
        return np.array(self.metric_.matrix)  # type: ignore[attr-defined]

    @property
    def _n_features_out(self) -> int:
        return self.n_features_items_ if self._bases is None else self._bases[1].shape[1]

    def transform(self, X: Matrix) -> Array:
        """X W: vectors whose dot product with the items is the learned score.

        With `rank`, the dot product is with `metric_.embed_item(items)`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)

        Returns
        -------
        array of shape (n, n_item_features), or (n, rank)
        """
        return self.metric_.embed_query(self._rows(X))  # type: ignore[attr-defined]

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the similarity is on what is given.

        With Triplets, or an array of triplets: the part that is ranked right, qᵀWp⁺ > qᵀWp⁻.
        With labeled examples: leave-one-out accuracy of the most similar example among them.
        """
        if is_labeled(X):
            return super().score(X, y)
        return float(np.mean(self.triplet_margin(X) > 0))

    def triplet_margin(self, triplets: Any) -> Array:
        """qᵀWp⁺ − qᵀWp⁻ of Triplets, or of an array of shape (n, 3, n_features)."""
        check_is_fitted(self)
        told = as_triplets(
            triplets, None, None, learner=type(self).__name__, draw=Triplets.from_labels
        )
        parts = [told[start : start + 4096] for start in range(0, len(told), 4096)]
        margins = [
            self.metric_.pairs(part.X[part.anchor], part.items[part.positive])
            - self.metric_.pairs(part.X[part.anchor], part.items[part.negative])
            for part in parts
        ]
        return np.concatenate(margins)

    def _learned_state(self) -> State:
        state = super()._learned_state()
        state.values.update(
            n_features_items_=self.n_features_items_,
            margin_=float(self.margin_),
            n_skipped=self._n_skipped,
        )
        if self._bases is not None:
            state.add("bases", State(dict(zip(("left", "right"), self._bases, strict=True))))
        if hasattr(self, "validation_curve_"):
            curve = np.array(self.validation_curve_, dtype=np.float64)
            state.arrays["validation_curve_"] = curve.reshape(-1, 2)
        return state

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        self.n_features_items_ = saved.count("n_features_items_", least=1)
        self.margin_ = saved.positive("margin_")
        self._n_skipped = saved.count("n_skipped")
        shape: tuple[int, ...] = (self.n_features_in_, self.n_features_items_)
        self._bases = self._held_out = self._watch = None
        if saved.has("bases"):
            bases = saved.part("bases")
            left, right = bases.array("left", shape[0], None), bases.array("right", shape[1], None)
            self._bases, shape = (left, right), (left.shape[1], right.shape[1])
        saved.check(self._online.store.shape == shape, "matrix has not the features of the data")
        if saved.has("validation_curve_"):
            curve = saved.array("validation_curve_", None, 2, dtypes=["float64"], empty=True)
            self.validation_curve_ = [(int(rounds), score) for rounds, score in curve.tolist()]


def _weighty(X: Matrix, y: Any, sample_weight: Any) -> tuple[Matrix, Any, Any]:
    """Without examples of weight 0, which are as if they were not there."""
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is None or weights.shape != (X.shape[0],):
        return X, y, sample_weight
    kept = weights != 0
    if kept.all() or not kept.any():
        return X, y, sample_weight
    return X[kept], y[kept], weights[kept]
