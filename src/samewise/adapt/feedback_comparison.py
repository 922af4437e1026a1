"""Two forms compared by what users said: on held-out events, or test-then-train."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from samewise._rollback import alone
from samewise._typing import Array
from samewise.adapt import feedback_events as fe
from samewise.adapt.event_log import Heard
from samewise.adapt.event_reading import ItemStore, Reading, read_event
from samewise.adapt.guard import PLACES
from samewise.adapt.list_measures import MEASURES, JudgedLists, Scorer, list_measures, scorer
from samewise.adapt.query_form import QueryForm
from samewise.adapt.serving_adapter import ServingAdapter
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.pairwise import dense
from samewise.scores.sequential import SequentialTest, sequential_test
from samewise.supervision import Judgements

BLOCK = 256
"""Lists that are ranked together."""


@dataclass(frozen=True)
class ComparedMeasure:
    """One measure of two forms.

    Attributes
    ----------
    a, b : float
        Its mean under each form.
    test : SequentialTest
        Of the differences, b minus a, event by event.
    """

    a: float
    b: float
    test: SequentialTest

    @property
    def difference(self) -> float:
        """The mean under b minus that under a."""
        return self.test.mean

    @property
    def interval(self) -> tuple[float, float]:
        """Limits of the difference, which hold whenever one looks."""
        return self.test.low, self.test.high

    @property
    def verdict(self) -> str:
        """How b compares with a: "better", "no difference shown" or "worse", with p."""
        return self.test.verdict


@dataclass(frozen=True, eq=False)
class FeedbackComparison:
    """Result of `evaluate_feedback`.

    Attributes
    ----------
    measures : dict of str to ComparedMeasure
        Of judged lists "auc", the share of pairs of a liked and a disliked item in that order;
        "precision@1", whether the best of the judged items is liked; "ndcg". Of interleaved lists
        "clicks": of those where one form's items got more clicks, the share of each form. Each
        measure has a test and an interval for itself.
    n_events : int
        How many events there were.
    n_compared : int
        How many of them can compare two forms.
    """

    measures: dict[str, ComparedMeasure]
    n_events: int
    n_compared: int

    @property
    def verdict(self) -> str:
        """How b compares with a in the order of judged lists, or by clicks if there are none."""
        return next(iter(self.measures.values())).verdict

    def __str__(self) -> str:
        lines = [f"{self.n_compared:,} of {self.n_events:,} events compare the two forms."]
        for name, found in self.measures.items():
            low, high = found.interval
            lines.append(
                f"{name}: {found.a:.3f} and {found.b:.3f}, difference {found.difference:+.3f} "
                f"({low:+.3f} to {high:+.3f}), {found.verdict}"
            )
        return "\n".join(lines)


def evaluate_feedback(
    form_a: Any,
    form_b: Any,
    events: Any,
    *,
    items: Any = None,
    level: float = 0.05,
    prequential: bool = False,
) -> FeedbackComparison:
    """Compare two forms by what users said, without labels.

    Each list of which some items were liked and others disliked is ranked by both forms. Whether
    the mean of the differences is above or below zero is tested by bets (`sequential_test`): the
    verdicts and intervals hold whenever one looks, so that one may evaluate after every event, and
    stop. Clicks compare forms only where their rankings were interleaved.

    Parameters
    ----------
    form_a, form_b : forms
        Forms (`Bilinear`, `Mahalanobis`, …), fitted learners, forms of a `LiveAdapter` (`start`,
        `live`, `served`; an adapter stands for what it serves), or objects with
        ``embed_query(Q)``, whose vectors are compared with items by the dot product.
    events : iterable of events, or Judgements
        What neither form has learned from: `Judged`, `RankedList`, `Click` with `teams` (0 for a,
        1 for b); or the `log_` of an adapter. Other clicks, thumbs, and lists of which all items
        were judged alike, do not compare forms; they are counted. Lists of weight 0 are left out.
    items : array of shape (n, d) or callable, default=None
        The item store, where events name items by ids; that of the adapter by default.
    level : float, default=0.05
        The probability with which an interval may miss the true difference.
    prequential : bool, default=False
        Whether the adapters of form_a and form_b learn on the way: every event is first ranked and
        then learned from, by copies of the adapters, which themselves stay as they are.

    Returns
    -------
    FeedbackComparison
        For each measure both means, their difference (b minus a), its interval, and whether b is
        better.

    See Also
    --------
    evaluate : Measures a model by labels.
    samewise.scores.sequential_test : The test.

    Notes
    -----
    Items that were shown because one of the forms ranked them high are a test that this form
    passes less easily: its errors were shown, and those of the other form were not. Lists with
    explored items (`LiveAdapter.slots`), whose `candidate` counts for the first place only, or
    lists that neither form has made, are fair.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from samewise import LiveAdapter, evaluate_feedback
    >>> from samewise.adapt import Judged
    >>> X, y = load_digits(return_X_y=True)
    >>> items = X / np.linalg.norm(X, axis=1, keepdims=True)
    >>> rng = np.random.RandomState(0)
    >>> lists = [(q, rng.choice(len(items), 10, replace=False)) for q in rng.choice(1797, 600)]
    >>> events = [Judged(items[q], rows, np.where(y[rows] == y[q], 1, -1)) for q, rows in lists]
    >>> adapter = LiveAdapter(items=items, random_state=0).fit(items)
    >>> found = evaluate_feedback(adapter.start, adapter.live, events, prequential=True)
    >>> found.n_compared, found.verdict
    (406, 'better, p < 0.001')
    >>> adapter.n_events_
    0
    """
    if not isinstance(prequential, bool):
        raise InvalidInputError(f"prequential must be True or False. Got {prequential!r}.")
    forms = [_resolved(form_a), _resolved(form_b)]
    copies = _copies(forms) if prequential else {}
    if prequential:
        forms = [_rebound(form, copies) for form in forms]
    scorers = [scorer(form, name) for form, name in zip(forms, ("form_a", "form_b"), strict=True)]
    tally = _Tally()
    heard = _read(events, _store(forms, items), tally)
    if prequential:
        for event, reading in heard:
            tally.add([] if reading is None else [reading], scorers)
            for adapter in copies.values():
                _learn(adapter, event)
    else:
        found = (reading for _, reading in heard if reading is not None)
        while block := list(islice(found, BLOCK)):
            tally.add(block, scorers)
    return tally.result(level)


class _Tally:
    """What was counted so far."""

    def __init__(self) -> None:
        self.n_events = 0
        self._waiting: list[tuple[list[Reading], list[Array]]] = []
        self._measured: dict[str, list[Any]] = {name: [] for name in MEASURES}
        self._leads: list[float] = []

    def add(self, readings: list[Reading], scorers: list[Scorer]) -> None:
        """Score lists by both forms; they are measured when there are enough."""
        self._leads += [reading.lead for reading in readings if not reading.tested]
        readings = [reading for reading in readings if reading.tested]
        if readings:
            lists = JudgedLists.of(readings)
            scores = [score(lists, place) for score in scorers for place in PLACES]
            self._waiting.append((readings, scores))
            if sum(len(some) for some, _ in self._waiting) >= BLOCK:
                self._measure()

    def _measure(self) -> None:
        lists = JudgedLists.of([each for readings, _ in self._waiting for each in readings])
        scores = [np.concatenate(s) for s in zip(*(s for _, s in self._waiting), strict=True)]
        a, b = list_measures(lists, *scores[:2]), list_measures(lists, *scores[2:])
        for name, found in self._measured.items():
            found.append(np.stack([a[name], b[name]]))
        self._waiting = []

    def result(self, level: float) -> FeedbackComparison:
        """The tests of all that was counted."""
        if self._waiting:
            self._measure()
        values = {
            name: np.concatenate(found, axis=1) for name, found in self._measured.items() if found
        }
        n = max((found.shape[1] for found in values.values()), default=0) + len(self._leads)
        if self._leads:
            leads = np.array(self._leads)
            values["clicks"] = np.stack([leads < 0, leads > 0]).astype(np.float64)
        values = {name: found[:, ~np.isnan(found[0])] for name, found in values.items()}
        measures = {
            name: ComparedMeasure(
                float(a.mean()), float(b.mean()), sequential_test(_within(b - a), level)
            )
            for name, (a, b) in values.items()
            if a.size
        }
        if not measures:
            raise InvalidInputError(
                f"None of the {self.n_events} events can compare two forms. Give judged lists with "
                "liked and disliked items, ranked lists, or clicks in interleaved lists."
            )
        return FeedbackComparison(measures, self.n_events, n)


def _within(x: Any) -> Any:
    """Differences of values in [0, 1] may round to a little more than 1."""
    return np.clip(x, -1.0, 1.0)


# Forms


def _resolved(form: Any) -> Any:
    """The form; an adapter stands for what it serves, and must be fitted."""
    form = form.served if isinstance(form, ServingAdapter) else form
    if isinstance(form, QueryForm):
        form._adapter.n_features_in_  # noqa: B018 (it refuses if nothing is fitted)
    return form


def _copies(forms: list[Any]) -> dict[int, Any]:
    """A copy of each adapter that the forms are of; item stores are shared, not copied."""
    adapters = {id(form._adapter): form._adapter for form in forms if isinstance(form, QueryForm)}
    if not adapters:
        raise InvalidInputError(
            "prequential=True needs forms of a LiveAdapter, such as adapter.start and adapter.live."
        )
    found = {}
    for key, adapter in adapters.items():
        with alone(adapter):
            kept = [adapter.items, adapter._items().items]
            found[key] = copy.deepcopy(adapter, {id(each): each for each in kept})
    return found


def _rebound(form: Any, copies: dict[int, Any]) -> Any:
    if not isinstance(form, QueryForm):
        return form
    return QueryForm(copies[id(form._adapter)], form._which)


def _learn(adapter: Any, event: Any) -> None:
    """Let a copy hear an event."""
    if isinstance(event, Heard):
        vectors = adapter._items().vectors(event.shown) if event.by_ids else event.shown
        adapter._hear(adapter._fitted, event, vectors)
    else:
        adapter.feedback(event)


# Events


def _store(forms: list[Any], items: Any) -> ItemStore | None:
    """Where vectors of ids are found; None where the number of features is that of the events."""
    adapters = [form._adapter for form in forms if isinstance(form, QueryForm)]
    if items is None and adapters:
        stores = [adapter._items() for adapter in adapters]
        return next((store for store in stores if store.items is not None), stores[0])
    for form in forms:
        metric = getattr(form, "metric_", form)
        if isinstance(metric, Form):
            return ItemStore(items, metric.n_features_in)
    if adapters:
        return ItemStore(items, adapters[0].n_features_in_)
    if items is not None and not callable(items):
        return ItemStore(items, np.shape(items)[-1])
    return None


def _read(
    events: Any, store: ItemStore | None, tally: _Tally
) -> Iterator[tuple[Any, Reading | None]]:
    """Events, each with its reading if it can compare two forms."""
    if isinstance(events, Judgements):
        events = _lists(events)
    if not isinstance(events, Iterable) or isinstance(events, str | bytes | np.ndarray):
        raise InvalidInputError(
            f"events must be Judgements or events such as Judged and Click. Got {events!r}."
        )
    for event in events:
        tally.n_events += 1
        if not isinstance(event, fe.Event | Heard):
            raise InvalidInputError(
                f"events must be Judged, RankedList, Click or Thumb. Event {tally.n_events - 1} is "
                f"{event!r}."
            )
        if store is None:
            store = ItemStore(None, np.size(event.query))
        try:
            reading = _reading(event, store)
        except InvalidInputError as error:
            raise InvalidInputError(f"Event {tally.n_events - 1}: {error}") from error
        yield event, reading


def _reading(event: Any, store: ItemStore) -> Reading | None:
    """What compares two forms: lists with items of two kinds, and clicks with a winner."""
    if isinstance(event, fe.Thumb):
        return None
    if isinstance(event, Heard):
        reading = _heard_again(event, store)
        if not event.weight:
            return None
    else:
        reading = read_event(event, store, lambda query, up: ())
    return reading if (reading.tested and reading.two_kinds) or reading.lead else None


def _heard_again(heard: Heard, store: ItemStore) -> Reading:
    vectors = store.vectors(heard.shown) if heard.by_ids else heard.shown
    d = store.n_features
    if heard.query.shape != (d,) or vectors.shape[1] != d:
        raise InvalidInputError(
            f"queries and items must have {d} features. Got {heard.query.size} and "
            f"{vectors.shape[1]}."
        )
    names = heard.shown if heard.by_ids else None
    rest = (heard.tested, heard.lead, heard.candidate, heard.two_kinds)
    return Reading(heard.query, vectors, names, heard.grades, *rest)


def _lists(told: Judgements) -> Iterator[Heard]:
    """Judgements, list by list."""
    weights = np.ones(len(told)) if told.sample_weight is None else told.sample_weight
    for i in range(len(told)):
        query = dense(told.X[[told.query[i]]])[0].astype(np.float32)
        shown = dense(told.items[told.shown[i]]).astype(np.float32)
        grades = told.y[i].astype(np.int64)
        two_kinds = bool(grades.min() < 0 < grades.max())
        rest = (float(weights[i]), True, 0.0, -1, two_kinds)
        yield Heard(None, None, query, shown, grades, *rest)
