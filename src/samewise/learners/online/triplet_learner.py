"""What the learners of triplets have in common: a similarity of queries and items."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import Interrupted, alone
from samewise._typing import Array, Matrix
from samewise.engine.directions import Directions, triplet_ranking
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Bilinear, Form, LowRankBilinear
from samewise.learners.attributes import Attribute, Count, Positive
from samewise.learners.constraints import POSITIVE
from samewise.learners.learner import PAIRS
from samewise.learners.online import initial_similarity as starts
from samewise.learners.online.early_stopping import Watch
from samewise.learners.online.margin_gauge import Bases, Gauge
from samewise.learners.online.online_learner import OnlineLearner
from samewise.scores import retrieval_scores
from samewise.supervision import Triplets
from samewise.supervision.gate import as_triplets, is_labeled
from samewise.supervision.supervision_checks import check_one_kind


class _Bases(Attribute):
    """Orthonormal columns for queries and for items, or None."""

    def keep(self, state: State, name: str, value: Bases | None) -> None:
        if value is not None:
            state.add(name, State(dict(zip(("left", "right"), value, strict=True))))

    def restored(self, saved: Saved, name: str, learner: TripletLearner) -> Bases:
        part = saved.part(name)
        left = part.array("left", learner.n_features_in_, None)
        return left, part.array("right", learner.n_features_items_, None)


class _Gauge(Attribute):
    """What is known of the rows of a stream, or None."""

    def keep(self, state: State, name: str, value: Gauge | None) -> None:
        if value is not None:
            state.add(name, value.state())

    def restored(self, saved: Saved, name: str, learner: TripletLearner) -> Gauge:
        return Gauge.restore(saved.part(name), *learner._shape)


class _Curve(Attribute):
    """Numbers of triplets, and a score for each."""

    def keep(self, state: State, name: str, value: list[tuple[int, float]]) -> None:
        state.arrays[name] = np.array(value, dtype=np.float64).reshape(-1, 2)

    def restored(self, saved: Saved, name: str, learner: Any) -> list[tuple[int, float]]:
        curve = saved.array(name, None, 2, dtypes=["float64"], empty=True)
        return [(int(rounds), score) for rounds, score in curve.tolist()]


class TripletLearner(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, OnlineLearner, storable=False
):
    """A similarity qᵀWp learned from triplets."""

    margin: float | str
    init: Any
    n_triplets: int | None
    rank: int | None
    validation_fraction: float | None
    evaluate_every: int | None
    patience: int
    path: str
    n_features_items_: int
    margin_: float
    _n_skipped: int
    _bases: Bases | None = None
    _gauge: Gauge | None = None
    _held_out: tuple[Any, Any] | None = None

    _learned: ClassVar[dict[str, Attribute]] = {
        "n_features_items_": Count(1),
        "margin_": Positive(),
        "_n_skipped": Count(),
        "_bases": _Bases(optional=True),
        "_gauge": _Gauge(optional=True),
        "validation_curve_": _Curve(optional=True),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "margin": [StrOptions({"auto"}), POSITIVE],
        "init": [str, "array-like"],
    }

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
        X : Triplets or array of shape (n, 3, n_features), or labeled examples
            The triplets, used in their order, `n_passes` times. From a matrix of labeled examples,
            dense or CSR, triplets are sampled first.
        y : array of shape (n,), default=None
            Class labels for examples, None for triplets.
        sample_weight : array of shape (n,), default=None
            Weights of an array of triplets, or of examples: the weight of a triplet is then the
            product of its members' weights. It multiplies the cost of slack; a triplet of weight 0
            is left out.
        validation : tuple (X, y), default=None
            Labeled examples for early stopping, see `evaluate_every` and `patience`. The state with
            the best mean average precision among them is kept.

        Returns
        -------
        self
            The fitted learner.
        """
        self._begin(X, y, sample_weight, new=True, validation=validation)
        return self

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
        if triplets is X or not is_labeled(X):
            self._set_features(triplets, reset)
        n_items = triplets.items.shape[1]
        if not reset and n_items != self.n_features_items_:
            raise InvalidInputError(
                f"Items have {n_items} features, but {type(self).__name__} is expecting "
                f"{self.n_features_items_}."
            )
        self.n_features_items_ = n_items
        if self._held_out is not None:
            self._held_out = self._checked_validation(*self._held_out)
        if self._gauge is not None and not reset:
            self._settle(self._gauge.wider(triplets, self._bases))
        return triplets

    def _hold_out(
        self, X: Matrix, y: Any, sample_weight: Any, fraction: float, random: Any
    ) -> tuple[Matrix, Any, Any]:
        """Keep a part of each class for validation; returns the rest."""
        # Imported where it is needed: it loads a large part of scikit-learn.
        from sklearn.model_selection import StratifiedShuffleSplit

        check_one_kind(y)
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
        check_one_kind(y)
        if len(np.unique(y)) == len(y):
            raise InvalidInputError(
                f"validation needs two examples of some class to rank. Got {len(y)} examples of as "
                "many classes."
            )
        return X, y

    def _start(self, triplets: Triplets) -> Array:
        """W to start from; settles the coordinates and the margin."""
        m, n = triplets.X.shape[1], triplets.items.shape[1]
        self._bases = None if self.rank is None else starts.bases(triplets, self.rank)
        automatic = isinstance(self.margin, str)
        init, unit = starts.named_start(self.init, triplets, automatic)
        W = starts.initial(init, m, n, self._bases)
        # From W = 0 the margin only sets the scale of W, and other vectors have no common one.
        self.margin_ = 1.0 if automatic else float(self.margin)
        self._gauge = None
        if automatic and unit and W.any():
            self._settle(Gauge.of(triplets, W, self._bases))
        self._n_skipped = 0
        return W.astype(np.result_type(triplets.X.dtype, triplets.items.dtype), copy=False)

    def _settle(self, gauge: Gauge) -> None:
        """Take the margin of the gauge, which is kept until it has seen enough."""
        self.margin_ = gauge.margin()
        self._gauge = None if gauge.settled else gauge

    def _directions(self, examples: Triplets) -> Directions:
        directions = triplet_ranking(examples, self.margin_)
        return directions if self._bases is None else directions.within(*self._bases)

    def _show(self, examples: Triplets) -> None:
        directions = self._directions(examples)
        self._online.learn(directions)
        self._n_skipped += int(np.count_nonzero(directions.weight == 0))

    def _learn(self, examples: Triplets, once: bool, **how: Any) -> None:
        # At least two whole blocks of a wide dense stream.
        if self._held_out is None:
            super()._learn(examples, once, sizes=(384, 8192), **how)
            return
        every = self.evaluate_every or -(-len(examples) // 10)
        watch = Watch(self._validation_score, every, self.patience)
        interrupted = None
        try:
            sizes = (384, min(8192, every))
            super()._learn(examples, once, sizes=sizes, enough=watch.look, **how)
        except Interrupted as error:
            interrupted = error
        watch.note(self._online)
        self._online = watch.best
        self._held_out = None
        self.validation_curve_ = watch.curve
        if interrupted is not None:
            raise interrupted

    def _validation_score(self) -> float:
        assert self._held_out is not None
        X, y = self._held_out
        blocks = self.metric_.blocks(X, X)
        return retrieval_scores(blocks, y, y, ks=(1,), exclude_self=True).means["map"]

    def _form(self, M: Array) -> Form:
        if self._bases is None:
            return Bilinear(M)
        left, right = self._bases
        return LowRankBilinear(left.astype(M.dtype) @ M, right.astype(M.dtype))

    @property
    def _shape(self) -> tuple[int, int]:
        if self._bases is None:
            return self.n_features_in_, self.n_features_items_
        return self._bases[0].shape[1], self._bases[1].shape[1]

    @property
    def n_skipped_(self) -> int:
        """Number of triplets from which nothing could be learned."""
        with alone(self):
            check_is_fitted(self)
            return self._n_skipped

    def get_bilinear_matrix(self) -> Array:
        """W of shape (n_features, n_item_features), as a copy.

        Returns
        -------
        array of shape (n_features, n_item_features)
            A copy of W.
        """
        return np.array(self.metric_.matrix)

    @property
    def _n_features_out(self) -> int:
        return self._shape[1]

    def transform(self, X: Matrix) -> Array:
        """X W: vectors whose dot product with the items is the learned score.

        With `rank`, the dot product is with `metric_.embed_item(items)`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Queries.

        Returns
        -------
        array of shape (n, n_item_features), or (n, rank)
            The queries, mapped.
        """
        return self.metric_.embed_query(self._rows(X))

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the similarity is on the given data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features), or Triplets
            Labeled examples, or triplets, also as an array of shape (n, 3, n_features).
        y : array of shape (n,), default=None
            Class labels of examples.

        Returns
        -------
        float
            For examples, the leave-one-out accuracy of the most similar one among them. For
            triplets, the fraction that is ranked right, qᵀWp⁺ > qᵀWp⁻.
        """
        if is_labeled(X):
            return super().score(X, y)
        return float(np.mean(self.triplet_margin(X) > 0))

    def triplet_margin(self, X: Any) -> Array:
        """By how much the positive is more similar to the anchor than the negative is.

        Parameters
        ----------
        X : Triplets or array of shape (n, 3, n_features)
            The triplets.

        Returns
        -------
        array of shape (n,)
            qᵀWp⁺ − qᵀWp⁻.
        """
        check_is_fitted(self)
        name = type(self).__name__
        triplets = as_triplets(X, None, None, learner=name, draw=Triplets.from_labels)
        parts = [triplets[start : start + PAIRS] for start in range(0, len(triplets), PAIRS)]
        form = self.metric_
        margins = [
            form.pairs(part.X[part.anchor], part.items[part.positive])
            - form.pairs(part.X[part.anchor], part.items[part.negative])
            for part in parts
        ]
        return np.concatenate(margins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _weighty(X: Matrix, y: Any, sample_weight: Any) -> tuple[Matrix, Any, Any]:
    """Without examples of weight 0, which are as if they were not there."""
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is None or weights.shape != (X.shape[0],):
        return X, y, sample_weight
    kept = weights != 0
    if kept.all() or not kept.any():
        return X, y, sample_weight
    return X[kept], y[kept], weights[kept]
