"""What the filters share that compare a document with topics and with their documents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.filtering.assigned_documents import (
    AssignedDocuments,
    assigned_state,
    restore_assigned,
)
from samewise.filtering.document_filter import BLOCK, Decision, Filter, Judge
from samewise.filtering.document_similarity import check_metric, compare_by, teach
from samewise.filtering.recent_documents import is_mark
from samewise.filtering.relevance_model import TIP, TOP, RelevanceModel
from samewise.filtering.sparse_store import (
    Rows,
    keyed_state,
    packed,
    restored_keyed,
    unpacked_names,
)
from samewise.kernels import sparse_rows
from samewise.learners.online.online_learner import OnlineLearner

# So many of the last documents show how scores are distributed.
_SAMPLE = 4096


@dataclass(frozen=True)
class Limits:
    """For each topic: the least score that is assigned, and the range that is asked about."""

    assign: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class Arrival:
    """A document that meets the rule of a topic: its counts, its vector, s₁, and what decided."""

    id: str
    raw: Rows
    item: Rows
    s1: float
    score: float


class AdaptiveFilter(Filter, storable=False):
    """What the filters by sim = α s₁ + (1 − α) s₂ share; a subclass has its rule for a topic.

    With thresholds="auto" they share the rule too: a topic holds the documents that were judged
    relevant, and the model of relevance says which scores are assigned or asked about.
    """

    alpha: float
    thresholds: Any
    utility: float | str
    n_initial: int
    max_documents: int | None
    metric: Any
    _limits: Limits | None

    @property
    def _grows(self) -> bool:
        """Whether a topic decides by its documents only when it has `n_initial` of them."""
        return True

    @property
    def _fits(self) -> bool:
        """Whether thresholds follow the distribution of scores and the judgments."""
        return isinstance(self.thresholds, str) and self.thresholds == "auto"

    @abstractmethod
    def _fixed_rule(self, i: int) -> tuple[float, bool, bool]:
        """What `_rule` is if thresholds are not "auto"."""

    def _rule(self, i: int) -> tuple[float, bool, bool]:
        """For topic i: the limit, whether sim decides (or s₁ alone), and whether strictly."""
        if not self._fits:
            return self._fixed_rule(i)
        limits = self._present_limits()
        asks = limits.low[i] <= limits.high[i]
        least = min(limits.assign[i], limits.low[i]) if asks else limits.assign[i]
        return float(least), len(self._held[i]) > 0, False

    def _questions_left(self) -> int:
        """How many questions may still be asked."""
        return 0

    def _present_limits(self) -> Limits:
        """What follows from the model as it is; kept until the model or the budget changes."""
        if self._limits is None:
            assign = self._model.thresholds()
            low = np.full(len(assign), np.inf)
            high = -low
            if (left := self._questions_left()) > 0:
                low, high = self._model.questions(left / len(assign))
            self._limits = Limits(assign, low, high)
        return self._limits

    def _met(self, i: int, row: Arrival) -> Decision | None:
        """Act on a document that meets the rule of topic i."""
        if not self._fits:
            self._assign(i, row)
        elif row.score < self._present_limits().assign[i]:
            return None
        return Decision(row.id, self.topics_[i], row.score)

    def _check_fit(self, raw: Rows) -> None:
        check_metric(self.metric, raw.n_features)
        if self._grows and self.max_documents is not None and self.max_documents < self.n_initial:
            raise InvalidInputError(
                f"max_documents={self.max_documents} is below n_initial={self.n_initial}: no topic "
                "could ever decide by its documents. Raise max_documents or lower n_initial."
            )

    def _begin(self) -> None:
        self._held = [AssignedDocuments(self._topics.n_features) for _ in self.topics_]
        self._pending: dict[tuple[str, int], Rows] = {}
        # For a learner of triplets: the last document judged relevant, and irrelevant.
        self._judged: dict[tuple[int, bool], Rows] = {}
        self._model = RelevanceModel(len(self.topics_), self.utility, self.recent)
        self._limits = None
        # Documents to measure scores on: the last ones before a mark, however documents come.
        self._sample: tuple[list[str], Rows] = [], Rows.empty(self._topics.n_features)
        self._reweigh()

    # A block of documents

    def _decide(self, ids: Sequence[str], raw: Rows, judge: Judge | None) -> list[list[Decision]]:
        return self._go_through(ids, raw, *self._compared(raw), judge)

    def _compared(self, raw: Rows) -> tuple[Rows, Any]:
        """Documents as items, and their s₁ with each topic."""
        items = self._comparison.items(self._vectors.weigh(raw))
        return items, sparse_rows.tables(items.parts, self._columns, len(self.topics_))

    def _go_through(
        self,
        ids: Sequence[str],
        raw: Rows,
        items: Rows,
        S1: Any,
        judge: Judge | None,
        seeded: Collection[tuple[str, int]] = (),
    ) -> list[list[Decision]]:
        """From one document that meets a rule to the next; the others change nothing."""
        decisions: list[list[Decision]] = [[] for _ in ids]
        first, scores = self._first_met(items, S1)
        while (row := int(first.min())) < len(ids):
            document = ids[row], raw.row(row), items[row : row + 1]
            arrivals = {
                i: Arrival(*document, float(S1[row, i]), float(scores[i]))
                for i in np.flatnonzero(first == row).tolist()
            }
            before = self._limits
            new = {i: self._met(i, a) for i, a in arrivals.items() if (a.id, i) not in seeded}
            made = {i: decision for i, decision in new.items() if decision is not None}
            answers = {
                i: judge(ids[row], d.topic) for i, d in made.items() if judge and d.action == "ask"
            }
            for i, answer in answers.items():
                if answer is not None:
                    made[i] = replace(made[i], answer=bool(answer))
                    self._take_feedback(ids[row], i, bool(answer), raw.row(row))
            decisions[row] = list(made.values())
            if any(answer is not None for answer in answers.values()) and self._learns:
                # What is similar has changed for all that follow.
                return decisions[: row + 1]
            if self._limits is not before:
                # A question or an answer about one topic moves the limits of all.
                first, scores = self._first_met(items, S1, row + 1)
                continue
            for i in arrivals:
                first[i], scores[i] = self._next_met(i, row + 1, items, S1)
        return decisions

    def _first_met(self, items: Rows, S1: Any, start: int = 0) -> tuple[Any, Any]:
        """For each topic the first document that meets its rule (their number if none), and sim."""
        first, scores = np.full(len(self.topics_), len(items)), np.zeros(len(self.topics_))
        limits, by_sim, _ = map(np.array, zip(*map(self._rule, range(len(first))), strict=True))
        most = np.where(by_sim, self._most(S1), S1)
        for i in np.flatnonzero((most[start:] >= limits).any(axis=0)).tolist():
            first[i], scores[i] = self._next_met(i, start, items, S1)
        return first, scores

    def _most(self, S1: Any) -> Any:
        """A bound on sim: with s₂ as large as it can be."""
        if self.alpha == 1:
            return S1
        return self.alpha * S1 + (1 - self.alpha) * self._comparison.most

    def _next_met(self, i: int, start: int, items: Rows, S1: Any) -> tuple[int, float]:
        limit, by_sim, strict = self._rule(i)
        s1 = np.ascontiguousarray(S1[:, i])
        if not by_sim:
            met = np.flatnonzero(s1[start:] > limit if strict else s1[start:] >= limit)
            return (start + int(met[0]), s1[start + met[0]]) if len(met) else (len(s1), 0.0)
        # No product for documents whose s₁ is too small for any s₂.
        rows = start + np.flatnonzero(self._most(s1[start:]) >= limit)
        held, vocabulary = self._held[i].queries, self._held[i].vocabulary
        place, sim = sparse_rows.first_above(
            rows, s1, items.parts, held.parts, self.alpha, limit, strict, vocabulary, self._work
        )
        return (int(rows[place]), sim) if place < len(rows) else (len(s1), 0.0)

    def _assign(self, i: int, row: Arrival) -> None:
        held = self._held[i]
        query = row.item
        if self._comparison.queries is not self._comparison.items:
            query = self._comparison.queries(self._vectors.weigh(row.raw))
        held.add(row.id, row.raw, query, row.item, row.s1, self._work)
        if self.max_documents is not None and len(held) > self.max_documents:
            held.forget_oldest(self.alpha)

    # Feedback

    def _find(self, document: str, topic: int) -> Rows | None:
        if (document, topic) in self._pending:
            return self._pending[document, topic]
        place = _last(self._held[topic].ids, document)
        return self._held[topic].raw.row(place) if place >= 0 else super()._find(document, topic)

    def _take_feedback(self, document: str, topic: int, relevant: bool, raw: Rows) -> None:
        held = self._held[topic]
        place = _last(held.ids, document)
        if self._fits:
            score = held.similarities(self.alpha)[place] if place >= 0 else self._sim(topic, raw)
            self._model.judge(document, topic, float(score), relevant)
            self._limits = None
        self._learn(topic, raw, relevant)
        self._pending.pop((document, topic), None)
        if relevant and place < 0:
            self._assign(topic, self._arrival(document, raw, topic))
            self._changed(topic)
        elif not relevant and place >= 0:
            held.remove(place, self._work)
            self._changed(topic)

    def _changed(self, i: int) -> None:
        """Documents of topic i were added or taken out by feedback."""
        # Each changes the scores of the topic, but the more there are the less.
        if self._fits and (not len(self._held[i]) or is_mark(len(self._held[i]))):
            self._measure([i], *self._sample)

    def _sim(self, i: int, raw: Rows) -> float:
        """sim of one document that topic i does not hold."""
        row, held = self._arrival("", raw, i), self._held[i]
        if not len(held):
            return row.s1
        s2 = float(np.max(held.queries.dots(row.item, self._work)))
        return self.alpha * row.s1 + (1 - self.alpha) * s2

    # The distribution of scores

    def _look(self) -> None:
        if self._fits:
            self._sample_last()
            self._measure(range(len(self.topics_)), *self._sample)

    def _sample_last(self) -> None:
        if self._fits:
            self._sample = self._window.last(_SAMPLE)

    def _measure(self, topics: Sequence[int], ids: Sequence[str], raw: Rows) -> None:
        """Let the model see the highest scores of some topics in these documents."""
        if not len(raw):
            return
        top, tip = int(TOP * len(raw)), int(TIP * len(raw))
        best = np.empty((0, len(topics)))
        for start in range(0, len(raw), BLOCK):
            items, S1 = self._compared(raw[start : start + BLOCK])
            some = ids[start : start + BLOCK]
            scores = np.stack([self._scores(i, some, items, S1[:, i]) for i in topics], axis=1)
            best = -np.sort(-np.concatenate([best, scores]), axis=0)[: top + 1]
        self._model.measure(np.asarray(topics), (best[top], best[tip]), len(raw))
        self._limits = None

    def _scores(self, i: int, ids: Sequence[str], items: Rows, s1: Any) -> Any:
        """sim of documents with topic i; one that the topic holds is compared with the others."""
        held = self._held[i]
        if not len(held):
            return s1
        columns = sparse.csc_array(held.queries.csr())
        parts = columns.indptr.astype(np.int64), columns.indices, columns.data
        near = sparse_rows.tables(items.parts, parts, len(held))
        sim = self.alpha * s1 + (1 - self.alpha) * near.max(axis=1)
        place = {id: k for k, id in enumerate(held.ids)}
        own = [(k, place[id]) for k, id in enumerate(ids) if id in place]
        if own:
            rows, places = map(list, zip(*own, strict=True))
            sim[rows] = held.similarities(self.alpha)[places]
        return sim

    def _arrival(self, id: str, raw: Rows, i: int) -> Arrival:
        item = self._comparison.items(self._vectors.weigh(raw))
        s1 = float(item.dots(self._topic_queries[i : i + 1], self._work)[0])
        return Arrival(id, raw, item, s1, s1)

    @property
    def _learns(self) -> bool:
        return isinstance(self.metric, OnlineLearner)

    def _learn(self, i: int, raw: Rows, relevant: bool) -> None:
        if not self._learns:
            return
        held, weigh = self._held[i], self._vectors.weigh
        nearest = None
        if len(held):
            item = self._comparison.items(weigh(raw))
            nearest = weigh(held.raw.row(held.nearest_to(item, self._work)))
        other = self._judged.get((i, not relevant), Rows.empty(raw.n_features))
        topic = weigh(self._topics.row(i))
        changed = teach(self.metric, topic, weigh(raw), relevant, nearest, weigh(other))
        if len(raw.indices):
            self._judged[i, relevant] = raw
        if changed:
            self._reweigh()

    # Weights and state

    def _reweigh(self) -> None:
        self._comparison = compare_by(self.metric)
        self._topic_queries = self._comparison.queries(self._vectors.weigh(self._topics))
        columns = sparse.csc_array(self._topic_queries.csr())
        self._columns = columns.indptr.astype(np.int64), columns.indices, columns.data
        self._work = np.zeros(self._topic_queries.n_features)
        n_terms = self._topic_queries.n_features if self._comparison.plain else 0
        for i, held in enumerate(self._held):
            held.vocabulary = np.zeros(n_terms, dtype=np.uint8)
            if not len(held):
                held.queries = held.items = Rows.empty(self._topic_queries.n_features)
                continue
            topic = self._topic_queries[i : i + 1]
            held.compare_again(self._comparison, self._vectors.weigh(held.raw), topic, self._work)
            if not self._fits:
                self._changed(i)
        if self._fits:
            self._measure(range(len(self.topics_)), *self._sample)

    def _state(self) -> State:
        d = self._topics.n_features
        state = State().add("held", assigned_state(self._held, d))
        if self._fits:
            ids, rows = self._sample
            state.arrays["sample"] = packed(ids)
            state.add("model", self._model.state()).add("sampled", rows.state())
        state.add("pending", keyed_state(self._pending, d))
        return state.add("judged", keyed_state(self._judged, d))

    def _restore(self, saved: Saved) -> None:
        self._begin()
        restore_assigned(saved.part("held"), self._held)
        self._pending = restored_keyed(saved.part("pending"), str, int)
        self._judged = restored_keyed(saved.part("judged"), int, bool)
        topics = [*(i for _, i in self._pending), *(i for i, _ in self._judged)]
        right = all(0 <= i < len(self.topics_) for i in topics)
        saved.check(right, "questions and judgments must be about topics")
        marks = [(held.s2, held.nearest) for held in self._held]
        self._reweigh()
        # Comparing again could decide otherwise between equally near ones.
        for held, (s2, nearest) in zip(self._held, marks, strict=True):
            held.s2, held.nearest = s2, nearest
        if self._fits:
            self._model.restore(saved.part("model"))
            ids = unpacked_names(saved, "sample")
            rows = Rows.restore(saved.part("sampled"), len(ids))
            right = rows.n_features == self._topics.n_features
            saved.check(right, "documents must have the features of the topics")
            self._sample, self._limits = (ids, rows), None


def _last(ids: list[str], id: str) -> int:
    """Where an id is, the last time if several times; −1 if nowhere."""
    return len(ids) - 1 - ids[::-1].index(id) if id in ids else -1
