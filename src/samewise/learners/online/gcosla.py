"""gCosLA: a generalized cosine and a threshold, learned online from pairs."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Matrix
from samewise.engine.averaging import Spec, checked_average
from samewise.engine.cosine_mover import Cosine
from samewise.engine.online import Online, chunks
from samewise.engine.policy import Policy, checked_psd
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import FLOATS, Saved, State
from samewise.forms import GeneralizedCosine
from samewise.kernels.pairwise import squared_norms
from samewise.kernels.psd import project
from samewise.learners.neighbors.base_similarity import refuse_zero
from samewise.learners.neighbors.class_checks import numbered
from samewise.learners.online.online_learner import OnlineLearner
from samewise.learners.per_class import PerClass
from samewise.supervision import Pairs
from samewise.supervision.gate import as_members, as_pairs, is_labeled

__all__ = ["GCosLA"]


class GCosLA(PerClass, OnlineLearner):
    """Generalized cosine learning: s_A(x, x') = xᵀAx'/√(xᵀAx · x'ᵀAx'), A ⪰ 0, and a threshold b.

    A similar pair (y = +1) should have s_A ≥ b + γ, a dissimilar one (y = −1) s_A ≤ b − γ. A starts
    at the identity and b at 0. A pair with a loss, max(0, y(b − s_A) + γ) > 0, freezes the
    denominator on the safe side, R = 1/max(xᵀAx, x'ᵀAx') if similar and 1/min(…) if not, and moves
    (A, b) to the nearest point with y(R xᵀAx' − b) ≥ β: with S = (xx'ᵀ + x'xᵀ)/2,

        a = max(0, β − y(R xᵀAx' − b)) / (R²‖S‖² + 1),   A ← A + y a R S,   b ← b − y a,

    and then to the nearest A ⪰ 0 and −1 + γ ≤ b ≤ 1 − γ.

    Parameters
    ----------
    gamma : float in (0, 1), default=0.1
        Margin γ between the cosines of pairs and the threshold.
    beta : float, default=None
        Margin β = γ − γ₁ in (−2, γ] that a step establishes: less than γ, and even negative, where
        pairs cannot all be satisfied. By default γ.
    psd : "each", "end" or int, default="each"
        When positive semi-definiteness is restored. A ⪰ 0 is restored after each step ("each"),
        after every n steps (a number n of at least 2), or only in the result ("end"). In between, a
        pair with xᵀAx ≤ 0 has no cosine and is skipped.
    update : {"projection", "thesis"}, default="projection"
        "projection": as above. "thesis": as printed there, a = (β − y(R xᵀAx' − b))/(R‖x‖²‖x'‖²),
        A ← A + y a S, b ← b + y a, which is no projection: b moves the wrong way.
    average : {"uniform", "last", "survival"}, ("suffix", q) or ("cutoff", k), default="uniform"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; the mean of the last q; the mean of those that survived more than k rounds,
        weighted by the rounds beyond k.
    mode : {"multiclass", "binary"}, default="multiclass"
        With labels: one A for all classes, or one for each class against the others (`metrics_`),
        to decide with by `PerClassClassifier`.
    n_passes : int, default=1
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    n_neighbors : int, default=5
        Number k of neighbors. With labels, the pairs are those of each example with its k nearest
        (by the cosine) of its own class and its k nearest of the others.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all pairs of examples with their
        neighbors.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : GeneralizedCosine
        The learned similarity; not for mode="binary". In its scores a row with xᵀAx = 0 has
        similarity 0 with everything.
    threshold_, closeness_threshold_ : float
        b: a pair is called similar when its similarity is at least b.
    metrics_, learners_ : lists
        For mode="binary": the similarity and the learner of each class, in the order of classes_.
    n_updates_, n_seen_, n_mistakes_ : int
        A mistake is a pair on the wrong side of b when it was shown.
    loss_ : float
    history_ : dict of arrays
    n_features_in_, feature_names_in_

    Notes
    -----
    Zero vectors have no cosine and are refused. Weights of pairs do not change a step; pairs of
    weight 0 are passed over. No eigendecomposition is made for a step: from A ⪰ 0 it leads to at
    most one negative eigenvalue, which is found by Lanczos' method.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, section 4.5.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from samewise.decide import KNNClassifier
    >>> from samewise.learners.online.gcosla import GCosLA
    >>> X, y = load_wine(return_X_y=True)
    >>> X = minmax_scale(X) + 0.01
    >>> learner = GCosLA(n_passes=3).fit(X[::2], y[::2])
    >>> KNNClassifier(learner).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, 1, closed="neither")],
        "beta": [None, Interval(Real, -2, 1, closed="neither")],
        "psd": [str, Integral],
        "update": [StrOptions({"projection", "thesis"})],
        "average": [str, tuple, list],
        "mode": [StrOptions({"multiclass", "binary"})],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_pairs": [None, Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        gamma: float = 0.1,
        beta: float | None = None,
        *,
        psd: Policy = "each",
        update: str = "projection",
        average: Spec = "uniform",
        mode: str = "multiclass",
        n_passes: int = 1,
        shuffle: bool = False,
        n_neighbors: int = 5,
        n_pairs: int | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.beta = beta
        self.psd = psd
        self.update = update
        self.average = average
        self.mode = mode
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.n_neighbors = n_neighbors
        self.n_pairs = n_pairs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features), or labeled examples
            Pairs are shown in the order given, `n_passes` times. From a matrix of labeled examples,
            dense or CSR, pairs of near ones are made first.
        y : array, optional
            ±1 with an array of pairs; class labels with examples; nothing otherwise.
        sample_weight : array, optional
            Of pairs in an array, or of examples; those of weight 0 are left out.
        """
        if self.mode == "multiclass":
            return self._fit(X, y, sample_weight)
        if not is_labeled(X) or y is None or sample_weight is not None:
            raise InvalidInputError(
                "mode='binary' learns from labeled examples without weights: call fit(X, y). Use "
                "mode='multiclass' for pairs and weights."
            )
        with unchanged_if_refused(self, np.random.RandomState(0)):
            X, y = self._examples(X, y, reset=True)
            numbered(np.asarray(y), type(self).__name__)
            self.__dict__.pop("_online", None)
            self._one_by_one(X, np.asarray(y))
        return self

    def _go_on(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        if self.mode == "binary":
            raise InvalidInputError(
                "mode='binary' has no partial_fit; fit it to labeled examples at once, or use "
                "mode='multiclass'."
            )
        return super()._go_on(X, y, sample_weight)

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
            _refuse_zero(X, np.arange(X.shape[0]))
            return Pairs.from_labels(
                X,
                y,
                self.n_pairs,
                strategy="nearest",
                n_neighbors=self.n_neighbors,
                form=GeneralizedCosine(np.eye(X.shape[1], dtype=X.dtype)),
                merge_duplicates=True,
                sample_weight=sample_weight,
                random_state=random,
            )

        pairs = as_pairs(X, y, sample_weight, learner=type(self).__name__, draw=draw)
        if not is_labeled(X):
            self._set_n_features(pairs.X.shape[1], reset)
            _refuse_zero(pairs.X, np.union1d(pairs.left, pairs.right))
        return pairs

    def _begin(self, pairs: Pairs) -> Online:
        checked_average(self.average)
        beta = self.gamma if self.beta is None else self.beta
        if beta > self.gamma:
            raise InvalidInputError(
                f"beta must be at most gamma={self.gamma:g}, the margin it relaxes. Got {beta:g}."
            )
        self.__dict__.pop("learners_", None)
        self._dtype = pairs.X.dtype
        return Cosine(
            np.eye(pairs.X.shape[1]),
            self.gamma,
            beta,
            printed=self.update == "thesis",
            psd=checked_psd(self.psd),
            average=self.average,
        )

    def _portions(self, pairs: Pairs) -> Iterator[slice]:
        return chunks(len(pairs), pairs.X)

    def _show(self, online: Online, pairs: Pairs) -> None:
        online.learn(cast(Cosine, online).members(pairs))

    def _form(self, M: Array) -> GeneralizedCosine:
        return GeneralizedCosine(project(M).astype(self._dtype), on_zero="zero")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_online") or hasattr(self, "learners_")

    @property
    def metric_(self) -> GeneralizedCosine:
        """The learned similarity: a frozen copy that later learning does not move."""
        self._check_single()
        return cast(GeneralizedCosine, self._solution()[0])

    @property
    def threshold_(self) -> float:
        """b: a pair is called similar when its similarity is at least b."""
        self._check_single()
        return self._solution()[1]

    @property
    def closeness_threshold_(self) -> float:
        """The same threshold on the scale of `metric_.closeness`, which is that of similarities."""
        return self.threshold_

    @property
    def _n_features_out(self) -> int:
        return len(self.metric_.components)

    def transform(self, X: Matrix) -> Array:
        """Lx/‖Lx‖ with A = LᵀL: unit vectors whose inner products are the similarities.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)

        Returns
        -------
        array of shape (n, rank of A)
            A row with xᵀAx = 0 becomes zero.
        """
        X = self._rows(X)
        return self.metric_.embed(X)

    def pair_score(self, pairs: Any) -> Array:
        """s_A of each pair: Pairs, or an array of shape (n, 2, n_features)."""
        pairs = as_members(pairs, owner=type(self).__name__)
        form = self.metric_
        parts = [
            form.pairs(pairs.X[part.left], pairs.X[part.right])
            for part in (pairs[start : start + 4096] for start in range(0, len(pairs), 4096))
        ]
        return np.concatenate([np.empty(0, dtype=pairs.X.dtype), *parts])

    def predict_pairs(self, pairs: Any) -> NDArray[np.int64]:
        """+1 for each pair called similar (s_A ≥ b), −1 for the others."""
        return np.where(self.pair_score(pairs) >= self.threshold_, 1, -1)

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """How good the similarity is on what is given.

        With Pairs, or an array of pairs and labels ±1: the part of the pairs that `predict_pairs`
        gets right. With labeled examples: leave-one-out accuracy of the most similar example.
        """
        if is_labeled(X):
            return super().score(X, y)
        pairs = as_pairs(X, y, None, learner=type(self).__name__, draw=Pairs.from_labels)
        return float(np.mean(self.predict_pairs(pairs) == pairs.y))

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
        return Cosine.restore(saved, Symmetric)


def _refuse_zero(X: Matrix, rows: NDArray[Any]) -> None:
    refuse_zero(rows[squared_norms(X)[rows] == 0], "which have no cosine")
