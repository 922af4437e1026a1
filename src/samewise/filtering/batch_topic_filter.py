"""The batch filter: topics seeded from the whole collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.filtering.adaptive_filter import AdaptiveFilter, Arrival
from samewise.filtering.document_filter import BLOCK, Decision, unpacked_documents
from samewise.filtering.filter_parameters import COUNT, SHARE, parameter
from samewise.filtering.sparse_store import Rows


@dataclass(eq=False, repr=False, kw_only=True)
class BatchTopicFilter(AdaptiveFilter):
    """Assign the documents of a whole collection to topics, without feedback.

    Each topic is seeded with the `n_initial` documents of the collection that are the most similar
    to it by s₁ (of equal ones, the earlier). Then θ_t is the smallest sim(t, d′) among them, and
    every document d, in order, is assigned iff sim(t, d) ≥ θ_t, after which

        θ_t ← min(θ_t, min over the documents d′ of t of sim(t, d′)).

    Here s₁ = cos(t, d), s₂ is the largest cos(d, d′) over the documents d′ of t, and
    sim = α s₁ + (1 − α) s₂, as for `TopicFilter`. `decide` does both steps; `observe` goes on with
    documents that come later.

    Parameters
    ----------
    alpha : float, default=0.7
        α, the weight of the topic's own words.
    n_initial : int, default=10
        Documents to seed a topic with. Documents without any similarity to a topic (s₁ ≤ 0) are
        not taken; a topic without any seed gets no documents.
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
    >>> batch = BatchTopicFilter(n_initial=1).fit({"cocoa": "cocoa beans", "gold": "gold"})
    >>> texts = ["Cocoa beans.", "Rain.", "Cocoa beans and rain.", "Cocoa beans again."]
    >>> [[d.topic for d in decisions] for decisions in batch.decide(texts)]
    [['cocoa'], [], [], ['cocoa']]
    """

    alpha: float = parameter(0.7, SHARE)
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
        raw = self._vectors.rows(documents)
        names = self._window.checked(ids, len(raw))
        self._vectors.count(raw)
        self._reweigh()
        seeds = self._seed(names, raw)
        decisions: list[list[Decision]] = []
        for start in range(0, len(raw), BLOCK):
            part, some = raw[start : start + BLOCK], names[start : start + BLOCK]
            made = self._go_through(some, part, *self._compared(part), None, seeds)
            for id, of_one in zip(some, made, strict=True):
                of_one += [seeds[id, i] for i in range(len(self.topics_)) if (id, i) in seeds]
                of_one.sort(key=lambda decision: self._number[decision.topic])
            self._window.add(some, part)
            decisions += made
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

    def _rule(self, i: int) -> tuple[float, bool, bool]:
        if not len(self._held[i]):
            return np.inf, False, True
        return float(self._thetas[i]), True, False

    def _changed(self, i: int) -> None:
        if len(self._held[i]):
            self._thetas[i] = min(self._thetas[i], self._held[i].least(self.alpha))

    def _assign(self, i: int, row: Arrival) -> None:
        super()._assign(i, row)
        self._changed(i)

    @property
    def thresholds_(self) -> Any:
        """θ_t of each topic."""
        self._check_fitted()
        return self._thetas.copy()

    def _state(self) -> State:
        state = super()._state()
        # JSON and files know no infinity; a topic without documents has it anyway.
        state.arrays["thetas"] = np.where(np.isfinite(self._thetas), self._thetas, 0.0)
        state.arrays["decides"] = np.isfinite(self._thetas)
        return state

    def _restore(self, saved: Saved) -> None:
        n = len(self.topics_)
        thetas = saved.array("thetas", n, dtypes=["float64"])
        thetas[~saved.array("decides", n, dtypes=["bool"])] = np.inf
        super()._restore(saved)
        self._thetas = thetas
