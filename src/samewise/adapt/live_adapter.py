"""A live adapter: it learns from feedback how to map queries, and is served only when it is better."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from samewise._rollback import alone, unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.adapt.adapter_course import AdapterCourse, Version
from samewise.adapt.event_log import EventLog, Heard
from samewise.adapt.event_reading import ItemStore, checked_query, read_event
from samewise.adapt.feedback_events import Event, Judged, Thumb
from samewise.adapt.guard import PLACES, GuardReport
from samewise.adapt.item_units import ItemUnits, checked_items
from samewise.adapt.query_form import QueryForm
from samewise.adapt.shown_lists import Slots, fill_slots, team_draft
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, restored, stored
from samewise.forms import Bilinear, LowRankBilinear
from samewise.kernels.neighbors import top_k
from samewise.learners.parameters import numbers_state, restored_numbers

EXPANDED = 5
"""Items whose mean is added to a query, with expand=True."""

_POSITIVE = Interval(Real, 0, None, closed="neither")


def _parameter(default: Any, *allowed: Any) -> Any:
    return field(default=default, metadata={"allowed": list(allowed)})


@dataclass(eq=False, repr=False)
class LiveAdapter(Storable):
    """Adapts frozen embeddings to feedback: live, without re-indexing, guarded against getting worse.

    Items stay as they are in their dot-product index; only queries are mapped,

        q' = q + phi(q) D̄ + 2 Σ K_i v_i / (Σ K_i + 1),   phi(q) = (q − μ)L,

    by a linear part, moved by a passive–aggressive step for each judged list, and by remembered lists,
    where v_i is the mean of the liked minus the mean of the disliked items of a list whose query was
    near: K_i = exp(14/g (q·q_i − s̄) − 13.3), s̄ the mean similarity of items, and s̄ + g the median
    similarity to the nearest. With s the scores of the shown items under q + phi(q) D,

        v = mean of p_i − p_j over liked i and disliked j with s_i − s_j < margin · g,
        ℓ = mean of margin · g − (s_i − s_j) over them,   τ = ℓ / (‖v‖² ‖phi‖² + 0.5),
        D += τ phi(q) vᵀ,

    and D̄ is the mean of D that gives the newest the weight 4/(t + 3).

    What is served is the start, until judged lists have shown that the live form is better; then a
    frozen copy of it. The order and the first place are tested apart, each by a wealth that, were the
    live form no better, would ever reach what is needed with probability `guard`/2 at most, whenever
    one looks (Ville's inequality). A promotion also requires answers that agree with the start better
    than chance. Should the start turn out to be better than what is served, it is served again.

    Parameters
    ----------
    guard : float or None, default=0.05
        The probability that anything is ever promoted that is no better than what was served. None
        serves the live form.
    margin : float, default=0.3
        By how much a liked item should score above a disliked one, in units of g.
    memory : int, default=20000
        How many lists are remembered; 0 leaves the linear part alone.
    half_life : float or None, default=None
        After how many events what was learned counts half. None keeps it: new answers then win over
        old ones as they become more.
    expand : bool, default=False
        Whether `rank` and `rerank` add the mean of the five best items to a query and rank again,
        below the first place: pseudo-relevance feedback, which needs no answers.
    initial : Bilinear, LowRankBilinear or None, default=None
        The form to start from, qᵀWp with W square; the dot product by default.
    items : array of shape (n, d) or callable, default=None
        The item store: with it, events may name items by ids. Row numbers of an array; or whatever a
        callable takes, which is given a list of ids and returns an array of their vectors. It is not
        saved; set it again after loading.
    log : bool, default=True
        Whether events are kept, as `forget` requires: a query of d numbers and, for each shown
        item, its id, or its vector where events come without ids.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for the sampling; pass an int for reproducible output. It matters for `fit`
        with more than 20 000 items, `slots`, `interleave` and thumbs.

    Attributes
    ----------
    n_features_in_ : int
        The number of features of items and queries.
    n_events_ : int
        How many events were taken.

    See Also
    --------
    OASIS : The learner of triplets whose step this is.
    Bilinear : The form to start from.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import LiveAdapter
    >>> rng = np.random.RandomState(0)
    >>> items = rng.randn(500, 16)
    >>> items /= np.linalg.norm(items, axis=1, keepdims=True)
    >>> adapter = LiveAdapter(items=items, random_state=0).fit(items)
    >>> shown = adapter.rank(items[0], k=10)
    >>> adapter.feedback(items[0], shown, [1, 1, -1, -1, -1, 1, 0, 0, 0, 0])
    True
    >>> adapter.n_events_, adapter.guard_.served
    (1, {'rest': 0, 'first': 0})
    """

    guard: float | None = _parameter(0.05, Interval(Real, 0, 1, closed="neither"), None)
    margin: float = _parameter(0.3, _POSITIVE)
    memory: int = _parameter(20_000, Interval(Integral, 0, 10**7, closed="both"))
    half_life: float | None = _parameter(None, Interval(Real, 1, None, closed="left"), None)
    expand: bool = _parameter(False, bool)
    initial: Bilinear | LowRankBilinear | None = _parameter(None, Bilinear, LowRankBilinear, None)
    items: Any = None
    log: bool = _parameter(True, bool)
    random_state: Any = _parameter(None, "random_state")

    _saved: ClassVar[tuple[str, ...]] = ("guard", "margin", "memory", "half_life", "expand", "log")

    def __post_init__(self) -> None:
        self._course: AdapterCourse | None = None

    def __repr__(self) -> str:
        changed = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.name != "items" and getattr(self, each.name) != each.default
        ]
        return f"LiveAdapter({', '.join(changed)})"

    def fit(self, items: Any) -> Self:
        """Take the units of the space from items without labels, and start at the start.

        Parameters
        ----------
        items : array of shape (n, d)
            Items, all or a sample of at least a few hundred; of more than 20 000 a sample is taken.

        Returns
        -------
        LiveAdapter
            This adapter.
        """
        allowed = {each.name: each.metadata["allowed"] for each in fields(self) if each.metadata}
        parameters = {name: getattr(self, name) for name in allowed}
        validate_parameter_constraints(allowed, parameters, caller_name="LiveAdapter")
        rows = checked_items(items)
        if len(rows) < 2:
            raise InvalidInputError(f"fit needs at least two items. Got {len(rows)}.")
        random = check_random_state(self.random_state)
        with alone(self), unchanged_if_refused(self, random):
            self._random = random
            W = None if self.initial is None else np.asarray(self.initial.matrix)
            if W is not None and W.shape != (rows.shape[1],) * 2:
                raise InvalidInputError(
                    f"initial must be a form of {rows.shape[1]} features, as the items have, for "
                    f"queries and items alike. Got one of {W.shape[0]} and {W.shape[1]}."
                )
            self._W = None if W is None else W.astype(np.float32)
            self._store = ItemStore(self.items, rows.shape[1])
            self._begin(ItemUnits.of(rows, random))
            self.log_ = EventLog(self.log)
        return self

    def _begin(self, units: ItemUnits) -> None:
        rest = (self.margin, self.memory, self.half_life)
        self._course = AdapterCourse(units, self.guard, *rest)

    # What was learned

    @property
    def _fitted(self) -> AdapterCourse:
        if self._course is None:
            raise NotFittedError("This LiveAdapter is not fitted; call fit(items) first.")
        return self._course

    @property
    def n_features_in_(self) -> int:
        """The number of features of items and queries."""
        return self._fitted.units.n_features

    @property
    def n_events_(self) -> int:
        """How many events were taken."""
        return self._fitted.n_events

    @property
    def guard_(self) -> GuardReport:
        """What the guard knows at this time."""
        with alone(self):
            return self._guarded().guard.report()

    @property
    def versions_(self) -> tuple[Version, ...]:
        """The frozen copies that were made and are kept, the oldest first."""
        return tuple(self._fitted.versions.values())

    def _guarded(self) -> Any:
        course = self._fitted
        if course.guard is None:
            raise InvalidInputError(
                "With guard=None the live form is served, and there is neither a report nor a version."
            )
        return course

    # Forms

    @property
    def start(self) -> QueryForm:
        """The form before any feedback."""
        return QueryForm(self, "start")

    @property
    def live(self) -> QueryForm:
        """The form that learns."""
        return QueryForm(self, "live")

    @property
    def served(self) -> QueryForm:
        """The form that is served."""
        return QueryForm(self, "served")

    def embed_query(self, Q: Any, place: str = "rest") -> Array:
        """Vectors to search a dot-product index of the items with: what is served.

        Parameters
        ----------
        Q : array of shape (n, d) or (d,)
            Queries.
        place : {"rest", "first"}, default="rest"
            The vector that decides the order, or the one that decides the first place, which is
            guarded apart; `rank` and `rerank` use both.

        Returns
        -------
        array of float32 of shape (n, d) or (d,)
            The mapped queries.
        """
        return self._embed(Q, "served", place)

    def _embed(self, Q: Any, which: str, place: str) -> Array:
        if place not in PLACES:
            raise InvalidInputError(f"place must be 'rest' or 'first'. Got {place!r}.")
        course = self._fitted
        one = np.ndim(Q) == 1
        rows = checked_items([Q] if one else Q, course.units.n_features, "Q")
        rows = np.array(rows, dtype=np.float32, order="C")
        with alone(self):
            found = course.embed(rows, self._base(rows), *course.form(which, place))
        return found[0] if one else found

    def _base(self, Q: Array) -> Array:
        """Queries under the start."""
        return Q if self._W is None else Q @ self._W

    def rank(self, query: Any, items: Any = None, k: int = 10) -> Indices:
        """The k best items for a query, under what is served.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        items : array of shape (n, d) or sequence of ids, default=None
            What to rank; the item store by default.
        k : int, default=10
            How many; fewer where there are fewer items.

        Returns
        -------
        array of shape (k,)
            Places in `items`, the best first.
        """
        return self._rank(query, items, k, "served")

    def rerank(self, query: Any, candidates: Any) -> Indices:
        """All candidates in the order of what is served.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        candidates : array of shape (n, d) or sequence of ids
            Items, such as the best of an approximate index.

        Returns
        -------
        array of shape (n,)
            Places in `candidates`, the best first.
        """
        return self._rank(query, candidates, None, "served")

    def _rank(self, query: Any, items: Any, k: int | None, which: str) -> Indices:
        if k is not None and (not isinstance(k, int | np.integer) or k < 1):
            raise InvalidInputError(f"k must be an integer of at least 1. Got {k!r}.")
        q = checked_query(query, self.n_features_in_)
        rows = self._rows(items)
        k = len(rows) if k is None else min(int(k), len(rows))
        with alone(self):
            rest = self._embed(q, which, "rest")
            pinned = which == "served" and (self.expand or self._parted)
            best = int(np.argmax(rows @ self._embed(q, which, "first"))) if pinned else -1
        scores = rows @ rest
        if which == "served" and self.expand:
            near = top_k(scores[None], min(EXPANDED, len(rows)))[0]
            scores = rows @ (rest + rows[near].mean(axis=0, dtype=np.float32))
        if pinned:
            scores[best] = np.inf
        return top_k(scores[None], k)[0]

    @property
    def _parted(self) -> bool:
        """Whether the order and the first place are served by different versions."""
        guard = self._fitted.guard
        return guard is not None and len(set(guard.served.values())) > 1

    def _rows(self, items: Any) -> NDArray[Any]:
        if items is None:
            return self._items().array
        if np.ndim(items) == 1:
            return self._items().vectors(list(items))
        return checked_items(items, self.n_features_in_)

    def _items(self) -> ItemStore:
        """The item store, which may have been set since fit."""
        if self._store.items is not self.items:
            self._store = ItemStore(self.items, self.n_features_in_)
        return self._store

    def slots(self, query: Any, candidates: Any = None, k: int = 10, explored: int = 3) -> Slots:
        """The list to show so that the answers teach and test most.

        The best of what is served; then the best item of the live form that is not among them,
        without which first places are not compared; then items sampled from the rest of the 100
        best, without which what lies below the tenth place is never learned.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        candidates : array of shape (n, d) or sequence of ids, default=None
            Items to choose from; the item store by default.
        k : int, default=10
            How many items.
        explored : int, default=3
            How many of them are sampled.

        Returns
        -------
        Slots
            Places among the candidates, why each is shown, and with which probability.
        """
        rows = self._rows(candidates)
        served = self._rank(query, rows, 100, "served")
        live = self._rank(query, rows, 100, "live")
        return fill_slots(served, live, k, explored, self._random)

    def interleave(
        self, a: Sequence[Any], b: Sequence[Any], k: int = 10
    ) -> tuple[list[Any], NDArray[np.int64]]:
        """One list of two rankings, whose clicks say which ranking is better.

        Parameters
        ----------
        a, b : sequences
            Rankings of ids, the best first: that of what is served, and that of the live form.
        k : int, default=10
            How many items.

        Returns
        -------
        shown : list
            The items.
        teams : array of shape (k,)
            0 for an item that came from a, 1 for b; to be passed on with the clicks.

        References
        ----------
        Radlinski, Kurup, Joachims: How does clickthrough data reflect retrieval quality?, CIKM 2008.
        """
        return team_draft(a, b, k, self._random)

    # Feedback

    def feedback(
        self,
        query: Any,
        shown: Any = None,
        y: Any = None,
        *,
        candidate: int | None = None,
        weight: float = 1.0,
        user: str | int | None = None,
        event: str | int | None = None,
    ) -> bool:
        """Learn from what a user said; first, all forms are tested on it.

        Parameters
        ----------
        query : array of shape (d,), or an event
            The query; or a `Click`, `Thumb`, `RankedList` or `Judged`, without `shown` and `y`.
        shown : array of shape (n, d) or sequence of ids, default=None
            The items that were shown.
        y : array of shape (n,), default=None
            +1 for liked, −1 for disliked, 0 for not judged.
        candidate : int, default=None
            The place of the live form's candidate, as `slots` says: it counts in the comparison of
            first places only.
        weight : float, default=1.0
            How much the event counts; 0 only marks it as seen.
        user : str or int, default=None
            Who said it, for `forget`.
        event : str or int, default=None
            The id of the event; an id that was seen before changes nothing.

        Returns
        -------
        bool
            False if the event was seen before.
        """
        course = self._fitted
        said: Event
        if isinstance(query, Event):
            if not (shown is None and y is None and candidate is None):
                raise InvalidInputError("An event has its own items and answers: pass it alone.")
            said = query
        else:
            said = Judged(query, shown, y, candidate)
        _check_names(weight, user, event)
        with alone(self):
            if event is not None and event in self.log_.seen:
                return False
            # All is read and checked before anything changes; only a thumb takes random numbers.
            with (
                unchanged_if_refused(self, self._random)
                if isinstance(said, Thumb)
                else nullcontext()
            ):
                read = read_event(said, self._items(), self._contrast)
            shown = read.vectors if read.names is None else read.names
            heard = Heard(
                event,
                user,
                read.query,
                shown,
                read.grades,
                float(weight),
                read.tested,
                read.lead,
                read.candidate,
                read.two_kinds,
            )
            self._hear(course, heard, read.vectors)
            self.log_.add(heard)
        return True

    def _hear(self, course: AdapterCourse, heard: Heard, vectors: Array) -> None:
        """Learn from an event, if there is something to learn."""
        course.n_events += 1
        if heard.two_kinds and heard.weight:
            base = self._base(heard.query)
            tests = (heard.tested, heard.lead, heard.candidate)
            course.hear(heard.query, base, vectors, heard.grades, heard.weight, tests)

    def _contrast(self, query: Array, up: bool) -> Indices:
        """What a single item is set against: five from ranks 100 to 1000, or the best seven."""
        n = len(self._items().array)
        ranks = self._rank(query, None, 1000 if up else 8, "live")
        if not up:
            return ranks[:7]
        far = ranks[min(100, n // 2) :]
        return self._random.choice(far, min(5, len(far)), replace=False)

    # What is served

    def promote(self, version: int | None = None) -> int:
        """Serve a version by hand.

        Parameters
        ----------
        version : int, default=None
            Its number, 0 for the start; by default a new frozen copy of the live form.

        Returns
        -------
        int
            The number of the version.
        """
        with alone(self):
            course = self._guarded()
            kept = [0, *course.versions]
            if version is not None and version not in kept:
                raise InvalidInputError(f"version must be one of {kept}. Got {version!r}.")
            number = course.freeze() if version is None else int(version)
            course.serve(PLACES, number, "by hand")
            return number

    def rollback(self) -> int:
        """Serve for all places the version before the newest that is served.

        Returns
        -------
        int
            Its number, 0 for the start.
        """
        with alone(self):
            course = self._guarded()
            newest = max(course.guard.served.values())
            if newest == 0:
                raise InvalidInputError("The start is served; there is nothing to roll back to.")
            return self.promote(max([0, *(n for n in course.versions if n < newest)]))

    def reset(self) -> None:
        """Forget all feedback: everything is as after `fit`."""
        with alone(self):
            self._begin(self._fitted.units)
            self.log_ = EventLog(self.log_.whole)

    def forget(
        self,
        users: Collection[str | int] = (),
        events: Collection[str | int] = (),
    ) -> int:
        """Forget what some users said, or some events, as if it had never been said.

        All other events are replayed from the beginning, and the guard decides anew; versions that
        were promoted by hand are not made again.

        Parameters
        ----------
        users : collection of str or int, default=()
            Whose events to forget.
        events : collection of str or int, default=()
            Ids of events to forget; they stay known, so that they are not learned from again.

        Returns
        -------
        int
            How many events were forgotten.
        """
        with alone(self), unchanged_if_refused(self, self._random):
            old, units = self.log_, self._fitted.units
            if not old.whole:
                raise InvalidInputError("Events can be forgotten only where log=True kept them.")
            gone_users, gone_events = set(users), set(events)
            kept = [e for e in old if e.user not in gone_users and e.event not in gone_events]
            self._begin(units)
            self.log_ = EventLog(True)
            self.log_.seen = dict(old.seen)
            for heard in kept:
                vectors = self._items().vectors(heard.shown) if heard.by_ids else heard.shown
                self._hear(self._fitted, heard, vectors)
                self.log_.add(heard)
            return len(old) - len(kept)

    # Files

    def state(self) -> State:
        """All that the next event meets.

        Returns
        -------
        State
            Arrays and plain values, by name.
        """
        with alone(self):
            state = State(values={name: getattr(self, name) for name in self._saved})
            if self.initial is not None:
                state.add("initial", stored(self.initial))
            state.add("random", numbers_state(self._random))
            return state.add("course", self._fitted.state()).add("log_", self.log_.state())

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The adapter of a state; it has no item store.

        Parameters
        ----------
        saved : Saved
            The state, read from a file.

        Returns
        -------
        LiveAdapter
            The restored object.
        """
        parameters = {name: saved.value(name) for name in cls._saved}
        initial = None
        if saved.has("initial"):
            initial = restored(saved.part("initial"), Bilinear, LowRankBilinear)
        random = restored_numbers(saved.part("random"))
        adapter = cls(**parameters, initial=initial, random_state=random)
        adapter._random = random
        adapter._course = AdapterCourse.restore(saved.part("course"))
        d = adapter._course.units.n_features
        adapter._W = None if initial is None else np.asarray(initial.matrix, dtype=np.float32)
        right = adapter._W is None or adapter._W.shape == (d, d)
        saved.check(right, "initial must be a form of the items' features")
        adapter._store = ItemStore(None, d)
        adapter.log_ = EventLog.restore(saved.part("log_"), d)
        return adapter


def _check_names(weight: Any, *names: Any) -> None:
    kind = type(weight)
    if not (kind is float or kind is int or isinstance(weight, Real)) or not 0 <= weight <= 1e6:
        raise InvalidInputError(f"weight must be a number from 0 to 1e6. Got {weight!r}.")
    for name in names:
        if name is not None and type(name) not in (str, int):
            raise InvalidInputError(
                f"Users and events are named by strings or integers. Got {name!r}."
            )
