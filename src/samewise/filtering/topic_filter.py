"""The online filter: topics that learn from what was assigned to them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise.files.state import Saved, State
from samewise.filtering.adaptive_filter import AdaptiveFilter, Arrival
from samewise.filtering.document_filter import Decision
from samewise.filtering.filter_parameters import COUNT, FINITE, SHARE, parameter


@dataclass(eq=False, repr=False)
class TopicFilter(AdaptiveFilter):
    """Assign documents to topics by their nearest assigned document, with little or no feedback.

    For a document d and a topic t, with unit vectors,

        s₁ = cos(t, d),   s₂ = max over the documents d′ of t of cos(d, d′),
        sim = α s₁ + (1 − α) s₂   (s₁ alone while t has no documents).

    mode="online": while t holds fewer than `n_initial` documents, one with s₁ > θ¹ is asked about
    if the budget for questions allows, and assigned only on a yes; without budget it is assigned.
    Afterwards d is assigned iff sim > θ²_t, the smallest sim(t, d′) among the documents of t, each
    compared with the others. mode="simple": d is assigned iff sim ≥ α θ¹ + (1 − α) θ², without
    questions.

    Parameters
    ----------
    mode : {"online", "simple"}, default="online"
        Whether questions are asked and each topic has its own threshold, or neither.
    alpha : float, default=0.7
        α, the weight of the topic's own words.
    theta1 : float, default=0.42
        θ¹, the threshold on s₁.
    theta2 : float, default=0.7
        θ², for mode="simple" only.
    n_initial : int, default=10
        Documents that a topic must have before its own threshold decides; for mode="online".
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
    Feedback that comes unasked costs no budget: a document that is relevant is assigned, and one
    that is not is taken out of the topic. A document without any known term has the similarity 0
    to everything.

    The filter keeps the documents that are held, the open questions, and the recent documents; the
    cost of a document does not depend on how many were not assigned.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, §3.2.1.

    Examples
    --------
    >>> from samewise import TopicFilter
    >>> cocoa = TopicFilter(theta1=0.3, n_initial=1).fit({"cocoa": "cocoa beans", "gold": "gold"})
    >>> cocoa.observe("Cocoa beans were dear.", "d1")
    [Decision(document='d1', topic='cocoa', score=0.81..., action='ask', answer=None)]
    >>> cocoa.feedback("d1", "cocoa", True)
    >>> cocoa.observe("Dear cocoa beans again.", "d2")[0].action
    'assign'

    A learner that improves with the filter, from the same answers:

    >>> from samewise import GCosLA, TextVectors
    >>> words, learner = TextVectors(256), GCosLA()
    >>> filter = TopicFilter(theta1=0.3, metric=learner, vectorizer=words).fit({"gold": "gold ore"})
    >>> filter.observe("gold and rain", "d1", judge=lambda document, topic: False)[0].answer
    False
    >>> learner.n_seen_
    1

    One that was fitted to judged documents. θ¹ is on the scale of its similarity, which for SiLA is
    not that of the cosine:

    >>> from samewise import SiLA
    >>> judged = ["gold ore", "an ounce of gold", "rain and snow", "snow and ice"]
    >>> words.fit(judged)
    TextVectors(n_features=256)
    >>> sila = SiLA(1).fit(words.transform(judged), [1, 1, 0, 0])
    >>> filter = TopicFilter(
    ...     "simple", theta1=0.1, theta2=0.1, metric=sila.metric_, vectorizer=words
    ... ).fit({"gold": "gold"})
    >>> [bool(filter.observe(text)) for text in ("gold", "rain")]
    [True, False]
    """

    mode: str = parameter("online", StrOptions({"online", "simple"}))
    _: KW_ONLY
    alpha: float = parameter(0.7, SHARE)
    theta1: float = parameter(0.42, FINITE)
    theta2: float = parameter(0.7, FINITE)
    n_initial: int = parameter(10, COUNT)
    feedback_budget: int = parameter(50, Interval(Integral, 0, None, closed="left"))
    max_documents: int | None = parameter(None, None, COUNT)
    metric: Any = None
    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)

    @property
    def _grows(self) -> bool:
        return self.mode == "online"

    def _begin(self) -> None:
        self.n_asked_ = 0
        super()._begin()

    def _rule(self, i: int) -> tuple[float, bool, bool]:
        held = self._held[i]
        if self.mode == "simple":
            theta = self.alpha * self.theta1 + (1 - self.alpha) * self.theta2
            return theta, len(held) > 0, False
        if len(held) < self.n_initial:
            return self.theta1, False, True
        return held.least(self.alpha), True, True

    def _met(self, i: int, row: Arrival) -> Decision:
        initial = self.mode == "online" and len(self._held[i]) < self.n_initial
        if not initial or self.n_asked_ >= self.feedback_budget:
            return super()._met(i, row)
        self.n_asked_ += 1
        self._pending[row.id, i] = row.raw
        return Decision(row.id, self.topics_[i], row.score, "ask")

    @property
    def thresholds_(self) -> Any:
        """The limit that s₁ or sim must pass, for each topic."""
        self._check_fitted()
        return np.array([self._rule(i)[0] for i in range(len(self.topics_))])

    def _state(self) -> State:
        state = super()._state()
        state.values["n_asked"] = self.n_asked_
        return state

    def _restore(self, saved: Saved) -> None:
        n_asked = saved.count("n_asked")
        super()._restore(saved)
        self.n_asked_ = n_asked
