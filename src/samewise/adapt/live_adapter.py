"""A live adapter: it learns from feedback to map queries, and is served when it is better."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from samewise._rollback import alone, unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.adapt.adapter_course import AdapterCourse
from samewise.adapt.event_log import EventLog, Heard
from samewise.adapt.event_reading import (
    ItemStore,
    Reading,
    check_weight,
    checked_name,
    names_of,
    read_event,
)
from samewise.adapt.feedback_events import Event, Judged, Thumb
from samewise.adapt.item_units import ItemUnits, checked_items
from samewise.adapt.serving_adapter import ServingAdapter, start_matrix
from samewise.adapt.warm_start import WarmStart, WarmStarter, read_pairs
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import restored, stored
from samewise.forms import Bilinear, LowRankBilinear
from samewise.learners.parameters import numbers_state, restored_numbers


def _parameter(default: Any, *allowed: Any) -> Any:
    return field(default=default, metadata={"allowed": list(allowed)})


@dataclass(eq=False, repr=False)
class LiveAdapter(ServingAdapter):
    """Adapts frozen embeddings to feedback: live, guarded, and without indexing items again.

    Items stay as they are in their dot-product index; only queries are mapped,

        q' = q + phi(q) D̄ + 2 Σ K_i v_i / (Σ K_i + 1),   phi(q) = (q − μ)L,

    by a linear part, moved by a passive–aggressive step for each judged list, and by remembered
    lists, where v_i is the mean of the liked minus the mean of the disliked items of one of the 32
    lists whose queries were nearest: K_i = exp(14/g (q·q_i − s̄) − 13.3), s̄ the mean similarity of
    items, and s̄ + g the median similarity to the nearest. With s the scores of the shown items
    under q + phi(q) D,

        v = mean of p_i − p_j over liked i and disliked j with s_i − s_j < margin · g,
        ℓ = mean of margin · g − (s_i − s_j) over them,   τ = ℓ / (‖v‖² ‖phi‖² + 0.5),
        D += τ phi(q) vᵀ,

    and D̄ is the mean of D that gives the newest the weight 4/(min(t, 3000) + 3). A judged list ends
    remembered ones that are close (K_i ≥ 0.3) and say the opposite (v·v_i < −0.4 ‖v‖‖v_i‖).

    What is served is the start, until judged lists have shown that the live form is better; then a
    frozen copy of it. The order and the first place are tested apart, each by a wealth that, were
    the live form better on no more lists than it is worse, would ever reach what is needed with a
    small probability, whenever one looks (Ville's inequality): 0.8 `guard` at most for the order,
    0.2 `guard` for the first place. A promotion also
    requires answers that agree with the start better than chance, and of the order an AUC that is
    not lower in the mean. Should the start turn out to be better than what is served, it is served
    again.

    Parameters
    ----------
    guard : float or None, default=0.05
        The probability that anything is ever promoted that is no better than what was served. None
        serves the live form.
    margin : float in (0, 1e6], default=0.3
        By how much a liked item should score above a disliked one, in units of g.
    memory : int, default=20000
        How many lists are remembered; 0 leaves the linear part alone.
    half_life : float or None, default=None
        After how many events what was learned counts half. None keeps what is not contradicted.
    expand : bool, default=False
        Whether `rank` and `rerank` add the mean of the five best items to a query and rank again,
        below the first place: pseudo-relevance feedback, which needs no answers.
    initial : Bilinear, LowRankBilinear or None, default=None
        The form to start from, qᵀWp with W square; the dot product by default.
    items : array of shape (n, d) or callable, default=None
        The item store: with it, events may name items by ids. Row numbers of an array; or whatever
        a callable takes, which is given a list of ids and returns an array of their vectors. It is
        not saved; set it again after loading.
    log : bool, default=True
        Whether events are kept, as `forget` requires: a query of d numbers and, for each shown
        item, its id, or its vector where events come without ids.
    random_state : int, RandomState instance or None, default=None
        Seed or generator for the sampling; pass an int for reproducible output. It matters for
        `fit` with more than 20 000 items, `slots`, `interleave` and thumbs.

    Attributes
    ----------
    n_features_in_ : int
        The number of features of items and queries.
    n_events_ : int
        How many events were taken.
    warm_start_ : WarmStart or None
        What `warm_start` found, if it was called.

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
    margin: float = _parameter(0.3, Interval(Real, 0, 1e6, closed="right"))
    memory: int = _parameter(20_000, Interval(Integral, 0, 10**7, closed="both"))
    half_life: float | None = _parameter(None, Interval(Real, 1, None, closed="left"), None)
    expand: bool = _parameter(False, bool)
    initial: Bilinear | LowRankBilinear | None = field(
        default=None, metadata={"allowed": [Bilinear, LowRankBilinear, None]}
    )
    items: Any = None
    log: bool = _parameter(True, bool)
    random_state: Any = field(default=None, metadata={"allowed": ["random_state"]})

    _saved: ClassVar[tuple[str, ...]] = ("guard", "margin", "memory", "half_life", "expand", "log")

    def __post_init__(self) -> None:
        self._course: AdapterCourse | None = None
        self._warm: tuple[Array, WarmStart] | None = None

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
        self._check_parameters()
        rows = checked_items(items)
        if len(rows) < 2:
            raise InvalidInputError(f"fit needs at least two items. Got {len(rows)}.")
        random = check_random_state(self.random_state)
        with alone(self), unchanged_if_refused(self, random):
            self._random = random
            self._W = start_matrix(self.initial, rows.shape[1])
            self._store = ItemStore(self.items, rows.shape[1])
            self._warm = None
            self._begin(ItemUnits.of(rows, random))
            self.log_ = EventLog(self.log)
        return self

    def _check_parameters(self) -> None:
        allowed = {each.name: each.metadata["allowed"] for each in fields(self) if each.metadata}
        parameters = {name: getattr(self, name) for name in allowed}
        validate_parameter_constraints(allowed, parameters, caller_name="LiveAdapter")

    def _begin(self, units: ItemUnits) -> None:
        rest = (self.margin, self.memory, self.half_life)
        self._course = AdapterCourse(units, self.guard, *rest)
        if self._warm is not None:
            self._course.begin(self._warm[0], self._warm[1].served)

    @property
    def warm_start_(self) -> WarmStart | None:
        """What `warm_start` found, if it was called."""
        return None if self._warm is None else self._warm[1]

    def warm_start(self, queries: Any, relevant: Any) -> Self:
        """Learn a linear part to begin with from queries and items that are relevant to them.

        Several passes over the pairs, in blocks; a fifth of the queries, at most 1 000, are held
        out. By one half of these it is decided after how many passes to stop; if none ranks
        relevant items better, the start is kept. What was learned is where the live form begins.
        On the other half it is compared with the start, by the s-test: if it ranks relevant items
        higher it is served as version 1, with "warm start" as the reason in the guard's history,
        and if more of them come first, for the first place too. The guard goes on from there.
        `reset` and `forget` keep it; a second call begins anew.

        Parameters
        ----------
        queries : array of shape (n, d)
            Queries, at least 20.
        relevant : array of shape (n, d), or sequence of n ids, lists of ids or arrays
            For each query a relevant item, or several. Relevant items are ranked among those of the
            item store if it is an array, of more than 20 000 a sample, and otherwise among each
            other.

        Returns
        -------
        LiveAdapter
            This adapter; `warm_start_` says what was gained.

        Examples
        --------
        >>> import numpy as np
        >>> from samewise import LiveAdapter
        >>> rng = np.random.RandomState(0)
        >>> items = rng.randn(600, 16)
        >>> items /= np.linalg.norm(items, axis=1, keepdims=True)
        >>> questions = items.copy()
        >>> questions[:, :4] += 0.5 * rng.randn(600, 4)
        >>> adapter = LiveAdapter(items=items, random_state=0).fit(items)
        >>> adapter.warm_start(questions, range(600)).warm_start_.served
        ('rest', 'first')
        """
        with alone(self), unchanged_if_refused(self, self._random):
            course, store = self._fitted, self._items()
            if course.n_events:
                raise InvalidInputError(
                    "warm_start comes before the first event. Call reset() to forget "
                    f"{course.n_events} events first."
                )
            pairs = read_pairs(queries, relevant, store)
            learner = WarmStarter(course.units, self._W, store, self._random)
            self._warm = learner.learn(pairs)
            self._begin(course.units)
        return self

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
            The items that were shown. Ids in a list differ; equal vectors may be different items.
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
        said: Event = Judged(query, shown, y, candidate)
        if isinstance(query, Event):
            if not (shown is None and y is None and candidate is None):
                raise InvalidInputError("An event has its own items and answers: pass it alone.")
            said = query
        with alone(self):
            found = self._read(said, weight, user, event)
            if found is not None:
                self._take(course, *found)
        return found is not None

    def _read(self, said: Event, weight: Any, user: Any, event: Any) -> tuple[Heard, Array] | None:
        """An event and the vectors of its items, all checked; None if it was seen before."""
        check_weight(weight)
        user, event = checked_name(user), checked_name(event)
        if event is not None and event in self.log_.seen:
            return None
        read = self._reading(said)
        heard = Heard(
            event,
            user,
            read.query,
            read.vectors if read.names is None else read.names,
            read.grades,
            float(weight),
            read.tested,
            read.lead,
            read.candidate,
            read.two_kinds,
        )
        return heard, read.vectors

    def _take(self, course: AdapterCourse, heard: Heard, vectors: Array) -> None:
        """Learn from an event that was read, and keep it."""
        self._hear(course, heard, vectors)
        self.log_.add(heard)

    def _reading(self, said: Event) -> Reading:
        if not isinstance(said, Thumb):
            return read_event(said, self._items(), self._contrast)
        # It takes random numbers.
        with unchanged_if_refused(self, self._random):
            return read_event(said, self._items(), self._contrast)

    def _hear(self, course: AdapterCourse, heard: Heard, vectors: Array) -> None:
        """Learn from an event, or bet on an interleaved one, of which nothing was skipped."""
        course.n_events += 1
        if heard.two_kinds and heard.weight:
            base = self._base(heard.query)
            tests = (heard.tested, heard.lead, heard.candidate)
            course.hear(heard.query, base, vectors, heard.grades, heard.weight, tests)
        elif heard.lead and heard.weight:
            course.hear_lead(heard.lead)

    def _contrast(self, query: Array, up: bool) -> Indices:
        """What a single item is set against: five from ranks 100 to 1000, or the best seven."""
        n = len(self._items().array)
        ranks = self._rank(query, None, 1000 if up else 8, "live")
        if not up:
            return ranks[:7]
        far = ranks[min(100, n // 2) :]
        return self._random.choice(far, min(5, len(far)), replace=False)

    def reset(self) -> None:
        """Forget all feedback: everything is as after `fit`, or `warm_start` if it was called."""
        with alone(self):
            self._begin(self._fitted.units)
            self.log_ = EventLog(self.log_.whole)

    def forget(
        self,
        users: str | int | Collection[str | int] = (),
        events: str | int | Collection[str | int] = (),
    ) -> int:
        """Forget what some users said, or some events, as if it had never been said.

        All other events are replayed from the beginning, and the guard decides anew; versions that
        were promoted by hand are not made again.

        Parameters
        ----------
        users : str, int or collection of these, default=()
            Whose events to forget.
        events : str, int or collection of these, default=()
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
            gone_users, gone_events = names_of(users, "users"), names_of(events, "events")
            kept = [e for e in old if e.user not in gone_users and e.event not in gone_events]
            self._begin(units)
            self.log_ = EventLog(True)
            self.log_.seen = dict(old.seen)
            for heard in kept:
                vectors = self._items().vectors(heard.shown) if heard.by_ids else heard.shown
                self._take(self._fitted, heard, vectors)
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
            if self._warm is not None:
                D, found = self._warm
                state.add("warm", found.state()).arrays["warm.D"] = D
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
        adapter._check_parameters()
        adapter._random = random
        adapter._course = AdapterCourse.restore(saved.part("course"))
        d = adapter._course.units.n_features
        adapter._W = start_matrix(initial, d)
        if saved.has("warm"):
            warm, rank = saved.part("warm"), adapter._course.units.L.shape[1]
            D = warm.array("D", rank, d, dtypes=["float32"])
            adapter._warm = D, WarmStart.restore(warm)
        adapter._store = ItemStore(None, d)
        adapter.log_ = EventLog.restore(saved.part("log_"), d)
        return adapter
