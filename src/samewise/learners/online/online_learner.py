"""What online learners have in common: the contract with the user and with scikit-learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array
from samewise.engine.online import Online, few_threads
from samewise.engine.progress import Progress
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Form
from samewise.learners.learner import Learner
from samewise.supervision.streams import passes


class OnlineLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner, storable=False):
    """A form learned online.

    A kind of learner says what supervision it takes (`_supervision`); a concrete one how it begins
    (`_begin`), what it does with a portion of its examples (`_portions`, `_show`) and what form it
    hands out (`_form`).
    """

    n_passes: int
    shuffle: bool
    verbose: int | bool
    random_state: Any
    _keeps_random: ClassVar[bool] = True

    @abstractmethod
    def _supervision(
        self,
        X: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        random: np.random.RandomState,
        reset: bool,
        **more: Any,
    ) -> Any:
        """What was handed in, checked: Pairs or Triplets. `more` is what else `fit` took."""

    @abstractmethod
    def _begin(self, told: Any) -> Online:
        """The state before the first example."""

    @abstractmethod
    def _portions(self, told: Any) -> Iterator[slice]:
        """The examples in portions, between which a run may be interrupted."""

    @abstractmethod
    def _show(self, online: Online, told: Any) -> None:
        """Learn from one portion."""

    @abstractmethod
    def _form(self, M: Array) -> Form:
        """The form of a learned matrix."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : Pairs or Triplets, array of shape (n, 2 or 3, n_features), or labeled examples
            What the learner takes, see its docstring. It is shown in the order given, `n_passes`
            times. From a matrix of labeled examples, dense or CSR, pairs or triplets are drawn
            first.
        y : array, optional
            ±1 with an array of pairs; class labels with examples; nothing otherwise.
        sample_weight : array, optional
            With an array, a weight for each pair or triplet; with examples, for each example: a
            pair or triplet then counts the product of its members', and an example of weight 2
            is the same as two. The weight multiplies the cost of the slack, C; 0 leaves it out.
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> Self:
        random = check_random_state(self.random_state)
        with unchanged_if_refused(self, random):
            told = self._supervision(X, y, sample_weight, random, reset=True, **more)
            self._restart(told, random)
        self._learn(self._online, told, once=False)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on learning, once through what is given, in its order.

        Takes what `fit` takes, or an iterator of blocks: Pairs or Triplets, or tuples of
        arguments for `fit`. In whatever portions a stream arrives, the result is that of one `fit`
        over all of it (the first portion settles what is taken from the data: margin="auto",
        rank). Input that is refused changes nothing; in a stream of blocks, what the
        blocks before the refused one taught is kept.
        """
        if not isinstance(X, Iterator):
            return self._go_on(X, y, sample_weight)
        if y is not None or sample_weight is not None:
            raise InvalidInputError(
                "An iterator yields whole blocks, with labels and weights in them: Pairs, Triplets "
                "or tuples (X, y). Got y or sample_weight beside it; leave them out."
            )
        for block in X:
            self._go_on(*(block if isinstance(block, tuple) else (block,)))
        return self

    def _go_on(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        new = not self.__sklearn_is_fitted__()
        random = check_random_state(self.random_state) if new else self._random
        with unchanged_if_refused(self, random):
            told = self._supervision(X, y, sample_weight, random, reset=new)
            if new:
                self._restart(told, random)
        self._learn(self._online, told, once=True)
        return self

    def _restart(self, told: Any, random: np.random.RandomState) -> None:
        online = self._begin(told)
        self._online, self._random = online, random
        # Filled when the form is asked for: an eigendecomposition that a stream need not pay for.
        self._handed: dict[int, tuple[Form, float]] = {}

    def _learn(self, online: Online, told: Any, once: bool) -> None:
        """Go through the examples: `once` for `partial_fit`, as often as configured for `fit`."""
        n_passes, shuffle = (1, False) if once else (self.n_passes, self.shuffle)
        with Progress(type(self).__name__, n_passes * len(told), self.verbose) as progress:
            for ordered in passes(told, n_passes, shuffle, self._random):
                if not self._pass(online, ordered, progress):
                    break

    def _pass(self, online: Online, told: Any, progress: Progress) -> bool:
        """Go through the examples once; whether to go on with another pass."""
        with few_threads(told.X.shape[1]):
            for part in self._portions(told):
                self._show(online, told[part])
                progress.report(online.history)
                if progress.interrupted or self._enough(online):
                    return False
        return True

    def _enough(self, online: Online) -> bool:
        """Whether to stop before the end."""
        return False

    # What was learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_online")

    def _solution(self) -> tuple[Form, float]:
        """The form and threshold of the present state, computed once per state."""
        check_is_fitted(self)
        state = self._online.history.rounds
        if state not in self._handed:
            M, b = self._online.solution()
            form = self._form(M)
            self._handed.clear()
            self._handed[state] = (form, b)
        return self._handed[state]

    @property
    def metric_(self) -> Form:
        """The learned form: a frozen copy that later learning does not move."""
        return self._solution()[0]

    @property
    def n_updates_(self) -> int:
        """Rounds that moved the matrix."""
        check_is_fitted(self)
        return self._online.history.updates

    @property
    def n_seen_(self) -> int:
        """Pairs or triplets shown so far."""
        check_is_fitted(self)
        return self._online.history.rounds

    @property
    def n_mistakes_(self) -> int:
        """Pairs or triplets judged wrongly when they were shown."""
        check_is_fitted(self)
        return self._online.history.mistakes

    @property
    def loss_(self) -> float:
        """Σ ℓ_t: the hinge loss suffered along the way."""
        check_is_fitted(self)
        return self._online.history.loss

    @property
    def history_(self) -> dict[str, NDArray[np.float64]]:
        """The learning curve: running totals "rounds", "loss", "mistakes", "updates"."""
        check_is_fitted(self)
        return self._online.history.curve

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Columns that `transform` gives."""

    # How it is stored

    def _learned_state(self) -> State:
        return super()._learned_state().add("online", self._online.state())

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        self._online = self._restored_engine(saved.part("online"))
        self._handed = {}

    @abstractmethod
    def _restored_engine(self, saved: Saved) -> Online:
        """The loop of a saved state."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
