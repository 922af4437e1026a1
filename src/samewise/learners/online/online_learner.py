"""What online learners have in common: the contract with the user and with scikit-learn."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import alone, unchanged_if_refused
from samewise._typing import Array
from samewise.engine.averaging import Spec
from samewise.engine.directions import Directions
from samewise.engine.history import History
from samewise.engine.mover import Mover
from samewise.engine.online import Course, Online
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms import Form
from samewise.learners.counted import Counted
from samewise.learners.learner import Learner
from samewise.supervision import Pairs, Triplets


class OnlineLearner(Counted, Learner, storable=False):
    """A form learned online.

    A learner is a recipe of five things: the supervision it takes (`_supervision`), the directions
    it makes of it (`_directions`), what moves the matrix along them (`_mover`), the average of the
    hypotheses (`average`) and the form of the result (`_form`).

    Threads may share a learner: who learns and who reads what was learned takes turns (`alone`).
    """

    n_passes: int
    shuffle: bool
    verbose: int | bool
    random_state: Any
    average: Spec = "last"
    _keeps_random: ClassVar[bool] = True
    _moved_by: ClassVar[type]
    """The class of the mover."""
    _online: Online

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
        """The given supervision, checked: Pairs or Triplets. `more` is what else `fit` takes."""

    @abstractmethod
    def _mover(self, examples: Any) -> Mover:
        """The matrix before the first example, and how it moves."""

    @abstractmethod
    def _directions(self, examples: Any) -> Directions:
        """What examples would like to change."""

    @abstractmethod
    def _form(self, M: Array) -> Form:
        """The form of a learned matrix."""

    @property
    @abstractmethod
    def _shape(self) -> tuple[int, int]:
        """The shape of the matrix."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scratch.

        Parameters
        ----------
        X : Pairs or array of shape (n, 2, n_features), or labeled examples
            The pairs, used in their order, `n_passes` times. From a matrix of labeled examples,
            dense or CSR, pairs are sampled first.
        y : array of shape (n,), default=None
            ±1 for an array of pairs, class labels for examples, None for Pairs.
        sample_weight : array of shape (n,), default=None
            Weights of an array of pairs, or of examples: the weight of a pair is then the product
            of its members' weights. It multiplies the cost of slack, C. A pair of weight 0 moves
            nothing; averages over rounds count its round.

        Returns
        -------
        self
            The fitted learner.
        """
        self._begin(X, y, sample_weight, new=True)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue learning, with one pass over the given supervision, in its order.

        In whatever portions a stream arrives, the result is that of one `fit` over all of it. The
        first portion settles what depends on the data, such as margin="auto" and rank. Input that
        is refused changes nothing, also if that is found halfway through; in a stream of blocks,
        what was learned from the blocks before the refused one is kept. One error cannot be taken
        back, since a copy of the matrix would take as long as an example: memory that runs out
        amid one short portion. Load what was saved, or fit anew, after a MemoryError.

        Threads may share a learner. Each block is learned by one of them at a time; a thread that
        reads meanwhile waits, and meets what was learned before or after the block.

        Parameters
        ----------
        X : as for fit, or iterator of blocks
            The supervision. A block is what `fit` takes, or a tuple of arguments for `fit`.
        y : array of shape (n,), default=None
            Labels, as in `fit`.
        sample_weight : array of shape (n,), default=None
            Weights, as in `fit`.

        Returns
        -------
        self
            The learner, after this portion.
        """
        if not isinstance(X, Iterator):
            blocks: Any = [(X, y, sample_weight)]
        elif y is None and sample_weight is None:
            blocks = (block if isinstance(block, tuple) else (block,) for block in X)
        else:
            raise InvalidInputError(
                "An iterator yields whole blocks, with labels and weights in them: Pairs, Triplets "
                "or tuples (X, y). Got y or sample_weight beside it; leave them out."
            )
        for block in blocks:
            self._begin(*block, new=False)
        return self

    def _begin(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, new: bool, **more: Any
    ) -> None:
        """Learn: from scratch, all passes (`new`), or once more from the present state."""
        with alone(self):
            reset = new or not self.__sklearn_is_fitted__()
            random = check_random_state(self.random_state) if reset else self._random
            # Nothing is drawn for one pass over pairs or triplets: their numbers need no copy,
            # which would take as long as to learn from a few of them.
            drawn = new or not isinstance(X, Pairs | Triplets)
            with unchanged_if_refused(self, random if drawn else None):
                examples = self._supervision(X, y, sample_weight, random, reset, **more)
                if not reset:
                    with self._online.whole():
                        self._learn(examples, once=not new)
                        self._calibrate()
                    return
                # POLA's average depends on its mode.
                average = getattr(self, "_average", self.average)
                self._online = Online(self._mover(examples), average)
                self._random = random
                # Filled when the form is asked for: a stream need not pay for it.
                self._made: dict[int, tuple[Form, float]] = {}
                self._learn(examples, once=not new)
                self._online.check()
                self._calibrate()

    def _learn(self, examples: Any, once: bool, **how: Any) -> None:
        """Go through the examples; `how` are parameters of the course."""
        name = type(self).__name__
        if not once:
            how = {"n_passes": self.n_passes, "shuffle": self.shuffle, **how}
        course = Course(name, examples, self._show, self._random, verbose=self.verbose, **how)
        self._online.run(course)

    def _calibrate(self) -> None:
        """What follows learning, for the subclasses that have something to choose then."""

    def _show(self, examples: Any) -> None:
        """Learn from a portion of the examples."""
        self._online.learn(self._directions(examples))

    # What was learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_online")

    def _solution(self) -> tuple[Form, float]:
        """The form and threshold of the present state, computed once per state."""
        with alone(self):
            check_is_fitted(self)
            state = self._online.history.rounds
            if state not in self._made:
                M, b = self._online.solution()
                made = self._form(M), b
                # In place: to use a learner does not set attributes.
                self._made.clear()
                self._made[state] = made
            return self._made[state]

    @property
    def metric_(self) -> Any:
        """The learned form: a frozen copy that later learning does not move."""
        return self._solution()[0]

    @property
    def _history(self) -> History:
        with alone(self):
            check_is_fitted(self)
            return self._online.history.copy()

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
        with alone(self):
            super().save(path)

    def __getstate__(self) -> Any:
        # A copy: what is written of it later is not what another thread has learned by then.
        with alone(self):
            return copy.deepcopy(super().__getstate__())

    def _learned_state(self) -> State:
        return super()._learned_state().add("online", self._online.state())

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        online = self._online = Online.restore(saved.part("online"), self._moved_by)
        right = "average" in self.get_params(deep=False) or online.average.kind == "last"
        saved.check(right, "average must be last")
        right = online.mover.store.shape == self._shape
        saved.check(right, "matrix does not have the features of the data")
        self._made = {}
