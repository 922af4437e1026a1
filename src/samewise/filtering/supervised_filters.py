"""Filters that learn from every judgment: Perceptron, PAUM, and the nearest judged document."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from samewise.files.state import Saved, State
from samewise.filtering.document_filter import Decision, Filter, Judge
from samewise.filtering.filter_parameters import COUNT, FINITE, parameter
from samewise.filtering.sparse_store import Rows, packed, stacked, unpacked_names

_CHUNK = 256


class SupervisedFilter(Filter, storable=False):
    """A filter that takes feedback for every document and topic, and learns from all of it.

    A judge given to `observe` is asked about every topic after the document is decided.
    """

    @abstractmethod
    def _margins(self, raw: Rows, unit: Rows) -> Sequence[float]:
        """How far above its threshold a document is, for each topic; relevant if positive."""

    @abstractmethod
    def _learn(self, i: int, id: str, raw: Rows, unit: Rows, relevant: bool) -> None:
        """Learn from a judgment about topic i."""

    def _decide(self, ids: Sequence[str], raw: Rows, judge: Judge | None) -> list[list[Decision]]:
        decisions = []
        units = self._vectors.weigh(raw)
        for k, id in enumerate(ids):
            document, unit = raw.row(k), units.row(k)
            margins = self._margins(document, unit)
            decisions.append(
                [
                    Decision(id, topic, float(margin))
                    for topic, margin in zip(self.topics_, margins, strict=True)
                    if margin > 0
                ]
            )
            if judge is None:
                continue
            answers = [judge(id, topic) for topic in self.topics_]
            for i, answer in enumerate(answers):
                if answer is not None:
                    self._learn(i, id, document, unit, bool(answer))
        return decisions

    def _take_feedback(self, document: str, topic: int, relevant: bool, raw: Rows) -> None:
        self._learn(topic, document, raw, self._vectors.weigh(raw), relevant)


class LinearFilter(SupervisedFilter, storable=False):
    """One hyperplane (w, b) for each topic: relevant iff w·x + b > 0."""

    # y(w·x + b) up to which a relevant, and an irrelevant, document makes an update.
    tau_positive: float = 0.0
    tau_negative: float = 0.0

    def _begin(self) -> None:
        self._W = np.zeros((len(self.topics_), self._topics.n_features))
        self._b = np.zeros(len(self.topics_))

    def _reweigh(self) -> None:
        """Weights of terms go on from where they are: nothing is kept that depends on them."""

    def _margins(self, raw: Rows, unit: Rows) -> Any:
        return self._W[:, unit.indices] @ unit.data + self._b

    def _learn(self, i: int, id: str, raw: Rows, unit: Rows, relevant: bool) -> None:
        y = 1.0 if relevant else -1.0
        margin = y * (self._W[i, unit.indices] @ unit.data + self._b[i])
        if margin <= (self.tau_positive if relevant else self.tau_negative):
            self._W[i, unit.indices] += y * unit.data
            self._b[i] += y

    def _state(self) -> State:
        # As sparse as the documents that moved it.
        flat = np.flatnonzero(self._W)
        return State({"places": flat, "W": self._W.ravel()[flat], "b": self._b})

    def _restore(self, saved: Saved) -> None:
        self._begin()
        places = saved.array("places", None, dtypes=["int64"], empty=True)
        right = not len(places) or 0 <= places.min() <= places.max() < self._W.size
        saved.check(right, "places must lie in the matrix of weights")
        values = saved.array("W", len(places), dtypes=["float64"], empty=True)
        self._W.ravel()[places] = values
        self._b = saved.array("b", len(self.topics_), dtypes=["float64"])


@dataclass(eq=False, repr=False, kw_only=True)
class PerceptronFilter(LinearFilter):
    """Rosenblatt's Perceptron for each topic.

    A document x is relevant iff w·x + b > 0. Feedback y = ±1 with y(w·x + b) ≤ 0 moves

        w ← w + y x,   b ← b + y,

    both from 0. w has an entry for every feature and topic.

    Parameters
    ----------
    vectorizer : TextVectors, fitted vectorizer of scikit-learn, or None, default=None
        Makes vectors of texts. By default `TextVectors()`. Of TextVectors a copy is used.
    recent : int, default=10000
        How many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
        The ids of the topics.
    n_seen_ : int
        Documents decided.

    References
    ----------
    F. Rosenblatt: The perceptron. Psychological Review 65 (1958).

    Examples
    --------
    >>> from samewise import PerceptronFilter
    >>> filter = PerceptronFilter().fit({"cocoa": "cocoa"})
    >>> filter.observe("cocoa beans", "d1")
    []
    >>> filter.feedback("d1", "cocoa", True)
    >>> [decision.topic for decision in filter.observe("cocoa again", "d2")]
    ['cocoa']
    """

    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)


@dataclass(eq=False, repr=False)
class PAUMFilter(LinearFilter):
    """The perceptron algorithm with uneven margins, for topics with few relevant documents.

    Like `PerceptronFilter`, but feedback moves (w, b) whenever y(w·x + b) ≤ τ_y: with τ₊ above τ₋
    the few relevant documents are held farther from the border than the many others.

    Parameters
    ----------
    tau_positive : float, default=1.0
        τ₊, the margin of relevant documents, for unit vectors.
    tau_negative : float, default=0.0
        τ₋, the margin of the others. With both margins 0 this is the Perceptron.
    vectorizer : TextVectors, fitted vectorizer of scikit-learn, or None, default=None
        Makes vectors of texts. By default `TextVectors()`. Of TextVectors a copy is used.
    recent : int, default=10000
        How many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
        The ids of the topics.
    n_seen_ : int
        Documents decided.

    References
    ----------
    Y. Li, H. Zaragoza, R. Herbrich, J. Shawe-Taylor, J. Kandola: The perceptron algorithm with
    uneven margins. ICML 2002.

    Examples
    --------
    >>> from samewise import PAUMFilter
    >>> filter = PAUMFilter(tau_positive=2.0).fit({"cocoa": "cocoa"})
    >>> _ = filter.observe("cocoa beans", "d1")
    >>> filter.feedback("d1", "cocoa", True)
    >>> round(filter.observe("cocoa beans", "d2")[0].score, 6)
    2.0
    """

    tau_positive: float = parameter(1.0, FINITE)
    tau_negative: float = parameter(0.0, FINITE)
    _: KW_ONLY
    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)


@dataclass(eq=False, repr=False, kw_only=True)
class NearestFilter(SupervisedFilter):
    """The nearest judged document decides: relevant iff it is relevant.

    Nearest by the cosine, of equal ones the first that was judged. A topic for which nothing was
    judged yet gets nothing.

    Parameters
    ----------
    max_documents : int or None, default=None
        The largest number of judged documents to keep, for all topics together; with one more, the
        oldest is forgotten. By default there is no limit, and memory grows with every judged
        document.
    vectorizer : TextVectors, fitted vectorizer of scikit-learn, or None, default=None
        Makes vectors of texts. By default `TextVectors()`. Of TextVectors a copy is used.
    recent : int, default=10000
        How many of the last documents are remembered, for feedback that comes unasked.

    Attributes
    ----------
    topics_ : tuple of str
        The ids of the topics.
    n_seen_ : int
        Documents decided.

    Examples
    --------
    >>> from samewise import NearestFilter
    >>> filter = NearestFilter().fit({"cocoa": "cocoa"})
    >>> _ = filter.observe("cocoa beans", "d1")
    >>> filter.feedback("d1", "cocoa", True)
    >>> [decision.topic for decision in filter.observe("more beans", "d2")]
    ['cocoa']
    """

    max_documents: int | None = parameter(None, None, COUNT)
    vectorizer: Any = None
    recent: int = parameter(10_000, COUNT)

    def _begin(self) -> None:
        # In chunks, so that one more document does not copy all the others.
        self._chunks: list[_Chunk] = []
        self._places: dict[str, tuple[_Chunk, int]] = {}
        self._work = np.zeros(self._topics.n_features)

    def _reweigh(self) -> None:
        for chunk in self._chunks:
            chunk.unit = self._vectors.weigh(chunk.raw)

    def _margins(self, raw: Rows, unit: Rows) -> Any:
        if not self._chunks:
            return np.zeros(len(self.topics_))
        near = np.concatenate([chunk.unit.dots(unit, self._work) for chunk in self._chunks])
        labels = np.concatenate([chunk.labels for chunk in self._chunks])
        judged = np.where(labels != 0, near[:, None], -np.inf)
        return np.take_along_axis(labels, judged.argmax(axis=0)[None, :], axis=0)[0]

    def _learn(self, i: int, id: str, raw: Rows, unit: Rows, relevant: bool) -> None:
        if id not in self._places:
            self._add(id, raw, unit)
        chunk, row = self._places[id]
        chunk.labels[row, i] = 1 if relevant else -1

    def _add(self, id: str, raw: Rows, unit: Rows) -> None:
        if not self._chunks or len(self._chunks[-1].ids) == _CHUNK:
            d = self._topics.n_features
            labels = np.empty((0, len(self.topics_)), dtype=np.int64)
            self._chunks.append(_Chunk([], Rows.empty(d), Rows.empty(d), labels))
        chunk = self._chunks[-1]
        self._places[id] = chunk, len(chunk.ids)
        chunk.ids.append(id)
        chunk.raw, chunk.unit = chunk.raw.joined(raw), chunk.unit.joined(unit)
        chunk.labels = np.vstack([chunk.labels, np.zeros((1, len(self.topics_)), dtype=np.int64)])
        if self.max_documents is not None and len(self._places) > self.max_documents:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Labels of 0 say that nothing was judged, until the chunk is empty and goes."""
        first = self._chunks[0]
        row = first.gone
        del self._places[first.ids[row]]
        first.labels[row] = 0
        first.gone += 1
        if first.gone == _CHUNK:
            del self._chunks[0]

    def _state(self) -> State:
        ids = [id for chunk in self._chunks for id in chunk.ids[chunk.gone :]]
        labels = [chunk.labels[chunk.gone :] for chunk in self._chunks]
        none = np.empty((0, len(self.topics_)), dtype=np.int64)
        state = State({"ids": packed(ids), "labels": np.concatenate([none, *labels])})
        rows = [chunk.raw[chunk.gone :] for chunk in self._chunks]
        return state.add("raw", stacked(rows, self._topics.n_features).state())

    def _restore(self, saved: Saved) -> None:
        self._begin()
        ids = unpacked_names(saved, "ids")
        n = len(self.topics_)
        labels = saved.array("labels", len(ids), n, dtypes=["int64"], empty=True)
        right = len(set(ids)) == len(ids) and bool(np.isin(labels, (-1, 0, 1)).all())
        saved.check(right, "judged documents must have ids of their own, and labels ±1 or 0")
        raw = Rows.restore(saved.part("raw"), len(ids))
        unit = self._vectors.weigh(raw)
        for k, id in enumerate(ids):
            self._add(id, raw.row(k), unit.row(k))
            chunk, row = self._places[id]
            chunk.labels[row] = labels[k]


@dataclass(eq=False)
class _Chunk:
    """Some judged documents; the first `gone` of them are forgotten."""

    ids: list[str]
    raw: Rows
    unit: Rows
    labels: Any
    gone: int = 0
