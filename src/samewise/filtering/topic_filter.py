"""The online filter: topics that learn from what was assigned to them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise.files.state import Saved, State
from samewise.filtering.adaptive_filter import AdaptiveFilter, Arrival, check_cap
from samewise.filtering.document_filter import Decision
from samewise.filtering.sparse_store import Rows

__all__ = ["TopicFilter"]


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
    mode : {"online", "simple"}
    alpha : float
        α, the weight of the topic's own words.
    theta1 : float
        θ¹, the threshold on s₁.
    theta2 : float
        θ², for mode="simple" only.
    n_initial : int
        Documents that a topic must have before its own threshold decides; for mode="online".
    feedback_budget : int
        Questions that may be asked in the whole stream; for mode="online".
    max_documents : int, optional
        Most documents a topic holds. One more, and the oldest is forgotten: it is no neighbor any
        more to documents that come. What it meant to θ²_t and to the documents before it stays, so
        that a topic does not become lenient by forgetting.
    metric : Form or online learner, optional
        What stands in place of the cosine, for unit vectors: a similarity, with the topic or the
        held document as query and d as item; of a distance, 1 − D/2 with its square D, which for
        the Euclidean distance is the cosine. A learner of pairs (POLA, PassiveAggressive, GCosLA)
        or of triplets (OASIS, AROMA) starts as the cosine, unless it was fitted before, and learns
        from each feedback; it is changed in place. One that learns from labels as a whole (SiLA,
        LMNN) is fitted to judged documents before, and its `metric_` given: see the examples.
    vectorizer : TextVectors or fitted vectorizer of scikit-learn, optional
        For texts; TextVectors() by default, of which a copy is used.
    recent : int
        So many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
    thresholds_ : array of shape (n_topics,)
        The present limit of each topic.
    n_asked_ : int
        Questions asked.
    n_seen_ : int

    Notes
    -----
    Feedback that comes unasked costs no budget: a document told to be relevant is assigned, and
    one told to be irrelevant is taken out of the topic. A document without any known term has
    the similarity 0 to everything.

    What is kept is the documents that are held, the open questions, and the recent documents;
    the cost of a document does not depend on how many were not assigned.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, §3.2.1.

    Examples
    --------
    >>> from samewise.filtering import TopicFilter
    >>> cocoa = TopicFilter(theta1=0.3, n_initial=1).fit({"cocoa": "cocoa beans", "gold": "gold"})
    >>> cocoa.observe("Cocoa beans were dear.", "d1")
    [Decision(document='d1', topic='cocoa', score=0.81..., action='ask', answer=None)]
    >>> cocoa.feedback("d1", "cocoa", True)
    >>> cocoa.observe("Dear cocoa beans again.", "d2")[0].action
    'assign'

    A learner that improves with the filter, from the same answers:

    >>> from samewise.learners import GCosLA
    >>> from samewise.filtering import TextVectors
    >>> words, learner = TextVectors(256), GCosLA()
    >>> filter = TopicFilter(theta1=0.3, metric=learner, vectorizer=words).fit({"gold": "gold ore"})
    >>> filter.observe("gold and rain", "d1", judge=lambda document, topic: False)[0].answer
    False
    >>> learner.n_seen_
    1

    One that was fitted to judged documents. θ¹ is on the scale of its similarity, which for SiLA is
    not that of the cosine:

    >>> from samewise.learners import SiLA
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AdaptiveFilter._parameter_constraints,
        "mode": [StrOptions({"online", "simple"})],
        "theta1": [Interval(Real, None, None, closed="neither")],
        "theta2": [Interval(Real, None, None, closed="neither")],
        "n_initial": [Interval(Integral, 1, None, closed="left")],
        "feedback_budget": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        mode: str = "online",
        *,
        alpha: float = 0.7,
        theta1: float = 0.42,
        theta2: float = 0.7,
        n_initial: int = 10,
        feedback_budget: int = 50,
        max_documents: int | None = None,
        metric: Any = None,
        vectorizer: Any = None,
        recent: int = 10_000,
    ) -> None:
        self.mode = mode
        self.alpha = alpha
        self.theta1 = theta1
        self.theta2 = theta2
        self.n_initial = n_initial
        self.feedback_budget = feedback_budget
        self.max_documents = max_documents
        self.metric = metric
        self.vectorizer = vectorizer
        self.recent = recent

    def _check_fit(self, raw: Rows) -> None:
        super()._check_fit(raw)
        if self.mode == "online":
            check_cap(self.max_documents, self.n_initial)

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
