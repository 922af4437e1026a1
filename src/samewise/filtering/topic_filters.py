"""The topic filters: online, and seeded from a whole collection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.filtering.adaptive_filter import AdaptiveFilter, Arrival
from samewise.filtering.document_filter import BLOCK, Decision, unpacked_documents
from samewise.filtering.filter_parameters import COUNT, SHARE, UTILITY, parameter
from samewise.filtering.relevance_model import PATIENCE
from samewise.filtering.sparse_store import Rows


@dataclass(eq=False, repr=False)
class TopicFilter(AdaptiveFilter):
    """Assign documents to topics by their nearest relevant document, with little or no feedback.

    For a document d and a topic t, with unit vectors,

        s₁ = cos(t, d),   s₂ = max over the documents d′ of t of cos(d, d′),
        sim = α s₁ + (1 − α) s₂   (s₁ alone while t has no documents).

    thresholds="auto": t holds the documents that were judged relevant, and d is assigned iff
    sim ≥ θ_t. The scores of the last 4096 documents say how those of irrelevant documents fall off,
    and judgments say how much more slowly relevant ones do; θ_t maximizes the expected utility.
    mode="online" asks about d where the answer says most about θ_t, if the budget for questions
    allows, and then assigns d only on a yes; mode="simple" asks nothing. The Notes have the model.

    thresholds=(θ¹, θ²) is the thesis' filter, in which t holds what was assigned to it.
    mode="online": while t holds fewer than `n_initial` documents, one with s₁ > θ¹ is asked about
    if the budget for questions allows, and assigned only on a yes; without budget it is assigned.
    Afterwards d is assigned iff sim > θ²_t, the smallest sim(t, d′) among the documents of t, each
    compared with the others. mode="simple": d is assigned iff sim ≥ α θ¹ + (1 − α) θ², without
    questions.

    Parameters
    ----------
    mode : {"online", "simple"}, default="online"
        Whether questions are asked.
    alpha : float, default=0.7
        α, the weight of the topic's own words.
    thresholds : "auto" or tuple (θ¹, θ²) of floats, default="auto"
        Whether each topic's threshold follows the scores and the judgments, or the thresholds of
        the thesis: θ¹ on s₁, and θ², for mode="simple" only. Its own are (0.42, 0.7).
    utility : float or {"linear", "detection"}, default=1.0
        What thresholds="auto" maximizes: β of F_β; the scaled linear utility; or, as its opposite,
        the detection cost, with the weights of `samewise.scores`.
    n_initial : int, default=10
        Documents that a topic must have before its own threshold decides; for mode="online" with
        thresholds that are given.
    feedback_budget : int, default=50
        Questions that may be asked in the whole stream; for mode="online".
    max_documents : int or None, default=None
        The largest number of documents that a topic holds. With one more, the oldest is forgotten:
        it is no neighbor any more to documents that come. What it meant to the threshold of the
        topic and to the documents before it stays, so that a topic does not become lenient by
        forgetting. By default there is no limit.
    metric : Form, online learner or None, default=None
        Used in place of the cosine, for unit vectors: a similarity, with the topic or the held
        document as query and d as item; of a distance, 1 − D/2 with its square D, which for the
        Euclidean distance is the cosine. A learner of pairs (POLA, PassiveAggressive, GCosLA) or of
        triplets (OASIS, AROMA) starts as the cosine if it was not fitted before, and learns from
        each feedback; it is changed in place. A learner that learns from labels as a whole (SiLA,
        LMNN) is fitted to judged documents before, and its `metric_` given: see the examples of
        `TopicFilter`.
    vectorizer : TextVectors, fitted vectorizer of scikit-learn, or None, default=None
        Makes vectors of texts. By default `TextVectors()`. Of TextVectors a copy is used.
    recent : int, default=10000
        How many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
        The ids of the topics.
    thresholds_ : array of shape (n_topics,)
        The present limit of each topic.
    n_asked_ : int
        Questions asked.
    n_seen_ : int
        Documents decided.

    Notes
    -----
    Of the scores s of a topic, let 5 % be above s₀ and 1 % above s₁. In x = (s − s₀) / m with
    m = (s₁ − s₀) / ln 5, a part e⁻ˣ of the irrelevant documents above s₀ is above x, if they fall
    off exponentially; of the relevant ones e^(−0.3x). The log-odds of relevance are then
    a_t + 0.7x, and w = e^a/0.3 documents above s₀ are relevant to each one that is not. F_β is

        (1 + β²) w e^(−0.3x) / (e⁻ˣ + w e^(−0.3x) + β² w),

    and θ_t has the largest expected one under the posterior of a_t, given judgments: a priori
    a_t = μ + δ_t with μ ~ N(−4.9, ¼) for the collection and δ_t ~ N(0, 4) for the topic. A judgment
    at probability p teaches about p(1 − p) Var(a_t); a question is asked where this is at least
    0.8 / (1 + q), with q questions left for each topic, but not among the first 256 documents,
    whose weights of terms still change much. s₀ and m are measured when the number of documents is
    2ᵏ or 3·2ᵏ, on the last 4096 of them, and on the same ones again when the topic holds so many,
    or when weights of terms or the metric change. At first they are those of cosines of texts
    (0.065, 1/28), which count as 50 documents. The last `recent` judgments are remembered.

    Feedback that comes unasked costs no budget: a document that is relevant is held, and one that
    is not is taken out of the topic. A document without any known term has the similarity 0 to
    everything.

    The filter keeps the documents that are held, the open questions, and the recent documents; the
    cost of a document does not depend on how many were not assigned.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, §3.2.1.

    A. Arampatzis, A. van Hameren: The score-distributional threshold optimization for adaptive
    binary classification tasks. SIGIR 2001.

    Examples
    --------
    >>> from samewise import TopicFilter
    >>> cocoa = TopicFilter().fit({"cocoa": "cocoa beans", "gold": "gold"})
    >>> cocoa.observe("Cocoa beans were dear.", "d1")
    [Decision(document='d1', topic='cocoa', score=0.81..., action='assign', answer=None)]
    >>> cocoa.feedback("d1", "cocoa", True)
    >>> [len(cocoa.observe(text)) for text in ("Dear beans.", "Rain in the north.")]
    [1, 0]

    The thesis' rule:

    >>> settings = {"thresholds": (0.3, 0.7), "n_initial": 1}
    >>> cocoa = TopicFilter(**settings).fit({"cocoa": "cocoa beans", "gold": "gold"})
    >>> cocoa.observe("Cocoa beans were dear.", "d1")[0].action
    'ask'
    >>> cocoa.feedback("d1", "cocoa", True)
    >>> cocoa.observe("Dear cocoa beans again.", "d2")[0].action
    'assign'

    A learner that improves with the filter, from the same answers:

    >>> from samewise import GCosLA, TextVectors
    >>> words, learner = TextVectors(256), GCosLA()
    >>> filter = TopicFilter(metric=learner, vectorizer=words).fit({"gold": "gold ore"})
    >>> _ = filter.observe("gold and rain", "d1")
    >>> filter.feedback("d1", "gold", False)
    >>> learner.n_seen_
    1

    One that was fitted to judged documents. Thresholds that are given are on the scale of its
    similarity, which for SiLA is not that of the cosine:

    >>> from samewise import SiLA
    >>> judged = ["gold ore", "an ounce of gold", "rain and snow", "snow and ice"]
    >>> words.fit(judged)
    TextVectors(n_features=256)
    >>> sila = SiLA(1).fit(words.transform(judged), [1, 1, 0, 0])
    >>> filter = TopicFilter(
    ...     "simple", thresholds=(0.1, 0.1), metric=sila.metric_, vectorizer=words
    ... ).fit({"gold": "gold"})
    >>> [bool(filter.observe(text)) for text in ("gold", "rain")]
    [True, False]
    """

    mode: str = parameter("online", StrOptions({"online", "simple"}))
    _: KW_ONLY
    alpha: float = parameter(0.7, SHARE)
    thresholds: str | tuple[float, float] = parameter("auto", StrOptions({"auto"}), tuple)
    utility: float | str = parameter(1.0, *UTILITY)
    n_initial: int = parameter(10, COUNT)
    feedback_budget: int = parameter(50, Interval(Integral, 0, None, closed="left"))
    max_documents: int | None = parameter(None, None, COUNT)
    metric: Any = None
    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)

    @property
    def _grows(self) -> bool:
        return self.mode == "online" and not self._fits

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.thresholds
        if isinstance(given, tuple) and not (len(given) == 2 and all(map(_is_finite, given))):
            raise InvalidInputError(
                "The 'thresholds' parameter of TopicFilter must be 'auto' or a tuple of two finite "
                f"numbers, θ¹ and θ². Got {given!r} instead."
            )

    @classmethod
    def _older_parameters(cls, given: Saved) -> dict[str, Any]:
        if not given.has("theta1"):
            return {}
        return {
            "thresholds": (given.number("theta1"), given.number("theta2")),
            "utility": 1.0,
        }

    def _begin(self) -> None:
        self.n_asked_ = 0
        super()._begin()

    def _fixed_rule(self, i: int) -> tuple[float, bool, bool]:
        held = self._held[i]
        assert isinstance(self.thresholds, tuple)
        theta1, theta2 = self.thresholds
        if self.mode == "simple":
            return self.alpha * theta1 + (1 - self.alpha) * theta2, len(held) > 0, False
        if len(held) < self.n_initial:
            return theta1, False, True
        return held.least(self.alpha), True, True

    def _questions_left(self) -> int:
        early = self._fits and self.n_seen_ < PATIENCE
        return 0 if early or self.mode == "simple" else self.feedback_budget - self.n_asked_

    def _asks(self, i: int, score: float) -> bool:
        if self._questions_left() <= 0:
            return False
        if self._fits:
            limits = self._present_limits()
            return bool(limits.low[i] <= score <= limits.high[i])
        return len(self._held[i]) < self.n_initial

    def _met(self, i: int, row: Arrival) -> Decision | None:
        if not self._asks(i, row.score):
            return super()._met(i, row)
        self.n_asked_ += 1
        self._limits = None
        self._pending[row.id, i] = row.raw
        return Decision(row.id, self.topics_[i], row.score, "ask")

    @property
    def thresholds_(self) -> Any:
        """The limit that s₁ or sim must pass, for each topic."""
        self._check_fitted()
        if self._fits:
            return self._present_limits().assign.copy()
        return np.array([self._rule(i)[0] for i in range(len(self.topics_))])

    def _state(self) -> State:
        state = super()._state()
        state.values["n_asked"] = self.n_asked_
        return state

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self.n_asked_ = saved.count("n_asked")


@dataclass(eq=False, repr=False, kw_only=True)
class BatchTopicFilter(AdaptiveFilter):
    """Assign the documents of a whole collection to topics, without feedback.

    thresholds="auto": a document d is assigned to a topic t iff sim(t, d) ≥ θ_t, which follows from
    the distribution of the scores of the whole collection, as in `TopicFilter`.

    thresholds="seeds" is the thesis' filter. Each topic is seeded with the `n_initial` documents of
    the collection that are the most similar to it by s₁ (of equal ones, the earlier). Then θ_t is
    the smallest sim(t, d′) among them, and every document d, in order, is assigned iff
    sim(t, d) ≥ θ_t, after which

        θ_t ← min(θ_t, min over the documents d′ of t of sim(t, d′)).

    Here s₁ = cos(t, d), s₂ is the largest cos(d, d′) over the documents d′ of t, and
    sim = α s₁ + (1 − α) s₂, as in `TopicFilter`. `decide` does both steps; `observe` goes on with
    documents that come later, and `feedback` says what was relevant.

    Parameters
    ----------
    alpha : float, default=0.7
        α, the weight of the topic's own words.
    thresholds : {"auto", "seeds"}, default="auto"
        Whether each topic's threshold follows the scores of the collection, or its seeds.
    utility : float or {"linear", "detection"}, default=1.0
        What thresholds="auto" maximizes: β of F_β; the scaled linear utility; or, as its opposite,
        the detection cost, with the weights of `samewise.scores`.
    n_initial : int, default=10
        Documents to seed a topic with, for thresholds="seeds". Documents without any similarity to
        a topic (s₁ ≤ 0) are not taken; a topic without any seed gets no documents.
    max_documents : int or None, default=None
        The largest number of documents that a topic holds. With one more, the oldest is forgotten:
        it is no neighbor any more to documents that come. What it meant to the threshold of the
        topic and to the documents before it stays, so that a topic does not become lenient by
        forgetting. By default there is no limit.
    metric : Form, online learner or None, default=None
        Used in place of the cosine, for unit vectors: a similarity, with the topic or the held
        document as query and d as item; of a distance, 1 − D/2 with its square D, which for the
        Euclidean distance is the cosine. A learner of pairs (POLA, PassiveAggressive, GCosLA) or of
        triplets (OASIS, AROMA) starts as the cosine if it was not fitted before, and learns from
        each feedback; it is changed in place. A learner that learns from labels as a whole (SiLA,
        LMNN) is fitted to judged documents before, and its `metric_` given: see the examples of
        `TopicFilter`.
    vectorizer : TextVectors, fitted vectorizer of scikit-learn, or None, default=None
        Makes vectors of texts. By default `TextVectors()`. Of TextVectors a copy is used.
    recent : int, default=10000
        How many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
        The ids of the topics.
    thresholds_ : array of shape (n_topics,)
        θ_t of each topic.
    n_seen_ : int
        Documents decided.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, §3.2.2.

    Examples
    --------
    >>> from samewise import BatchTopicFilter
    >>> batch = BatchTopicFilter().fit({"cocoa": "cocoa beans", "gold": "gold"})
    >>> texts = ["Cocoa beans.", "Rain.", "Cocoa beans and rain.", "Cocoa beans again."]
    >>> [[d.topic for d in decisions] for decisions in batch.decide(texts)]
    [['cocoa'], [], ['cocoa'], ['cocoa']]
    """

    alpha: float = parameter(0.7, SHARE)
    thresholds: str = parameter("auto", StrOptions({"auto", "seeds"}))
    utility: float | str = parameter(1.0, *UTILITY)
    n_initial: int = parameter(10, COUNT)
    max_documents: int | None = parameter(None, None, COUNT)
    metric: Any = None
    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)

    def decide(self, documents: Any, ids: Sequence[str] | None = None) -> list[list[Decision]]:
        """Seed the topics from a collection, and go through it.

        Parameters
        ----------
        documents : sequence of str or of Document, or matrix of shape (n_documents, n_features)
            Before anything is compared, the terms of all of them are counted for the weights.
        ids : sequence of str or None, default=None
            The ids of the documents, which must differ. By default those of the Documents, or their
            numbers.

        Returns
        -------
        list of lists of Decision
            One list for each document.
        """
        self._check_fitted()
        if self.n_seen_:
            raise InvalidInputError(
                "decide takes a whole collection, after fit. This stream has begun: use "
                "observe_many for more documents, or fit again."
            )
        documents, ids = unpacked_documents(documents, ids)
        return self._decide_rows(self._vectors.rows(documents), ids)

    def _decide_rows(self, raw: Rows, ids: Sequence[str] | None) -> list[list[Decision]]:
        """Seed the topics from documents whose terms are counted, and go through them."""
        names = self._window.checked(ids, len(raw))
        self._vectors.count(raw)
        self._reweigh()
        seeds: dict[tuple[str, int], Decision] = {}
        if not self._fits:
            seeds = self._seed(names, raw)
        else:
            self._measure(range(len(self.topics_)), names, raw)
        decisions: list[list[Decision]] = []
        for start in range(0, len(raw), BLOCK):
            part, some = raw[start : start + BLOCK], names[start : start + BLOCK]
            made = self._go_through(some, part, *self._compared(part), None, seeds)
            for id, of_one in zip(some, made, strict=True):
                of_one += [seeds[id, i] for i in range(len(self.topics_)) if (id, i) in seeds]
                of_one.sort(key=lambda decision: self._number[decision.topic])
            self._window.add(some, part)
            decisions += made
        self._sample_last()
        return decisions

    def _seed(self, ids: Sequence[str], raw: Rows) -> dict[tuple[str, int], Decision]:
        """Give each topic the documents nearest by s₁; their decisions."""
        n_topics, k = len(self.topics_), self.n_initial
        best = np.empty((0, n_topics)), np.empty((0, n_topics), dtype=np.int64)
        for start in range(0, len(raw), BLOCK):
            _, S1 = self._compared(raw[start : start + BLOCK])
            rows = np.arange(start, start + len(S1))[:, None].repeat(n_topics, axis=1)
            S1, rows = np.concatenate([best[0], S1]), np.concatenate([best[1], rows])
            order = np.argsort(-S1, axis=0, kind="stable")[:k]
            best = np.take_along_axis(S1, order, axis=0), np.take_along_axis(rows, order, axis=0)
        seeds = {}
        for i in range(n_topics):
            for row in np.sort(best[1][best[0][:, i] > 0, i]).tolist():
                super()._assign(i, self._arrival(ids[row], raw.row(row), i))
            self._changed(i)
            held = self._held[i]
            for id, score in zip(held.ids, held.similarities(self.alpha).tolist(), strict=True):
                seeds[id, i] = Decision(id, self.topics_[i], score)
        return seeds

    def _begin(self) -> None:
        self._thetas = np.full(len(self.topics_), np.inf)
        super()._begin()

    @property
    def _grows(self) -> bool:
        return not self._fits

    @classmethod
    def _older_parameters(cls, given: Saved) -> dict[str, Any]:
        return {} if given.has("thresholds") else {"thresholds": "seeds", "utility": 1.0}

    def _fixed_rule(self, i: int) -> tuple[float, bool, bool]:
        if not len(self._held[i]):
            return np.inf, False, True
        return float(self._thetas[i]), True, False

    def _changed(self, i: int) -> None:
        super()._changed(i)
        if len(self._held[i]):
            self._thetas[i] = min(self._thetas[i], self._held[i].least(self.alpha))

    def _assign(self, i: int, row: Arrival) -> None:
        super()._assign(i, row)
        self._changed(i)

    @property
    def thresholds_(self) -> Any:
        """θ_t of each topic."""
        self._check_fitted()
        if self._fits:
            return self._present_limits().assign.copy()
        return self._thetas.copy()

    def _state(self) -> State:
        state = super()._state()
        # JSON and files know no infinity; a topic without documents has it anyway.
        state.arrays["thetas"] = np.where(np.isfinite(self._thetas), self._thetas, 0.0)
        state.arrays["decides"] = np.isfinite(self._thetas)
        return state

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        n = len(self.topics_)
        self._thetas = saved.array("thetas", n, dtypes=["float64"])
        self._thetas[~saved.array("decides", n, dtypes=["bool"])] = np.inf


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
