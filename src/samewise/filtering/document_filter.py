"""What every filter promises: decide at once, learn from feedback, remember little."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import validate_parameter_constraints

from samewise.engine.progress import Progress
from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.files.state import Saved, State
from samewise.files.storable import Storable, made, restored, stored
from samewise.filtering.documents import Document
from samewise.filtering.recent_documents import RecentDocuments, is_mark, until_mark
from samewise.filtering.sparse_store import Rows, as_rows, packed, stacked, unpacked_names
from samewise.filtering.text_vectors import GivenVectors, TextVectors
from samewise.filtering.topics import Topic
from samewise.forms import Form
from samewise.learners.online.online_learner import OnlineLearner

BLOCK = 512
"""Documents that are looked at together; the decisions do not depend on it."""

Judge: TypeAlias = Callable[[str, str], bool | None]
"""Says whether a document, named first, is relevant to a topic; None if that is not known."""


@dataclass(frozen=True)
class Decision:
    """What a filter decided about one document and one topic.

    Attributes
    ----------
    document : str
        The id of the document.
    topic : str
        The id of the topic.
    score : float
        The similarity, or the margin, that was decisive.
    action : {"assign", "ask"}, default="assign"
        "ask": feedback is wanted, and the document is assigned only if the answer is yes.
    answer : bool or None, default=None
        The answer of the judge, if one was asked at once.

    Examples
    --------
    >>> Decision("d1", "politics", 0.5, "ask", True).retrieved
    True
    """

    document: str
    topic: str
    score: float
    action: Literal["assign", "ask"] = "assign"
    answer: bool | None = None

    @property
    def retrieved(self) -> bool:
        """Whether the document went to the topic."""
        return self.action == "assign" or self.answer is True


class Filter(Storable, storable=False):
    """A stream of documents against topics.

    `fit` takes the topics, `observe` decides about a document, and `feedback` says whether a
    document that was seen is relevant to a topic. A kind of filter is a dataclass whose fields are
    its parameters.
    """

    vectorizer: Any
    recent: int
    topics_: tuple[str, ...]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        changed = [
            f"{each.name}={value!r}"
            for each, value in zip(fields(self), self.parameters.values(), strict=True)
            if repr(value) != repr(each.default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check_parameters(self) -> None:
        allowed = {each.name: each.metadata["allowed"] for each in fields(self) if each.metadata}
        validate_parameter_constraints(allowed, self.parameters, caller_name=type(self).__name__)

    # What a kind of filter gives

    @abstractmethod
    def _begin(self) -> None:
        """The state before the first document; `_topics` has the topics' rows."""

    @abstractmethod
    def _decide(self, ids: Sequence[str], raw: Rows, judge: Judge | None) -> list[list[Decision]]:
        """Decide about some documents, the first ones at least; their decisions."""

    @abstractmethod
    def _take_feedback(self, document: str, topic: int, relevant: bool, raw: Rows) -> None:
        """Take feedback about a document that is known."""

    @abstractmethod
    def _reweigh(self) -> None:
        """Compute again what depends on the weights of terms."""

    @abstractmethod
    def _state(self) -> State:
        """What was kept from the stream, beyond what every filter keeps."""

    @abstractmethod
    def _restore(self, saved: Saved) -> None:
        """Take over what `_state` gave."""

    # What all share

    def fit(self, topics: Any) -> Self:
        """Start a new stream with these topics.

        Parameters
        ----------
        topics : sequence of Topic, or mapping of names to texts or to vectors
            With texts, documents are texts too, and the vectorizer makes vectors of both. With
            vectors (dense or sparse rows), documents are vectors.

        Returns
        -------
        Filter
            The filter itself.
        """
        self._check_parameters()
        names, content = named_topics(topics)
        vectors: Any
        if all(isinstance(each, str) for each in content):
            vectors = _vectors_of(self.vectorizer)
            raw = vectors.rows(content)
            for name, text, n_terms in zip(names, content, np.diff(raw.indptr), strict=True):
                if not n_terms:
                    what = "term that the vectorizer knows" if text.strip() else "text"
                    raise InvalidInputError(
                        f"The topic {name!r} has no {what}; describe it in more words."
                    )
        else:
            raw = _stacked_vectors(names, content)
            vectors = GivenVectors(n_features=raw.n_features)
        self._check_fit(raw)
        self._set_topics(names, vectors, raw)
        self._window = RecentDocuments(self.recent, raw.n_features)
        self._begin()
        return self

    def _set_topics(self, names: tuple[str, ...], vectors: Any, raw: Rows) -> None:
        self.topics_, self._vectors, self._topics = names, vectors, raw
        self._number = {name: i for i, name in enumerate(names)}

    def observe(
        self, document: Any, id: str | None = None, judge: Judge | None = None
    ) -> list[Decision]:
        """Decide about one document.

        Parameters
        ----------
        document : str, Document or array of shape (n_features,)
            The text or the vector of the document.
        id : str or None, default=None
            The id of the document, which must differ from those of the last `recent` documents. By
            default that of the Document, or its number in the stream.
        judge : callable (document id, topic id) → bool or None, default=None
            Answers the filter's questions at once, as `feedback` would after this call.

        Returns
        -------
        list of Decision
            For the topics the document is assigned to, or asked about; empty if there are none.
        """
        one = isinstance(document, str | Document)
        documents = [document] if one else _as_matrix(document)
        return self.observe_many(documents, None if id is None else [id], judge)[0]

    def observe_many(
        self, documents: Any, ids: Sequence[str] | None = None, judge: Judge | None = None
    ) -> list[list[Decision]]:
        """Decide about many documents, in their order, exactly as one by one but faster.

        Parameters
        ----------
        documents : sequence of str or of Document, or matrix of shape (n_documents, n_features)
            The texts or the vectors of the documents.
        ids : sequence of str or None, default=None
            The ids of the documents, which must differ from each other and from those of the last
            `recent` documents. By default those of the Documents, or their numbers in the stream.
        judge : callable (document id, topic id) → bool or None, default=None
            Answers the filter's questions at once, as `feedback` would after each document. If it
            raises an error, documents of its block are lost to the filter: go on with a saved one,
            or use `FilterRun`, which does.

        Returns
        -------
        list of lists of Decision
            One list for each document.
        """
        self._check_fitted()
        documents, ids = unpacked_documents(documents, ids)
        return self._observe_rows(self._vectors.rows(documents), ids, judge)

    def _observe_rows(
        self, raw: Rows, ids: Sequence[str] | None, judge: Judge | None
    ) -> list[list[Decision]]:
        """Decide about documents whose terms are counted."""
        names = self._window.checked(ids, len(raw))
        decisions: list[list[Decision]] = []
        # Ctrl-C waits for the end of a block, unless a person may be asked within it.
        interruptible = Progress(type(self).__name__, len(raw), False) if judge is None else None
        with interruptible or nullcontext():
            while (start := len(decisions)) < len(raw):
                decisions += self._next_block(names[start:], raw[start:], judge)
                if interruptible is not None and interruptible.interrupted:
                    break
        return decisions

    def _next_block(
        self, names: Sequence[str], raw: Rows, judge: Judge | None
    ) -> list[list[Decision]]:
        """Decide about the first documents, under weights that hold for all of them."""
        if self._vectors.refresh():
            self._reweigh()
        if is_mark(self.n_seen_):
            self._look()
        stop = min(BLOCK, self._vectors.until_refresh(), until_mark(self.n_seen_), len(raw))
        done = self._decide(names[:stop], raw[:stop], judge)
        part = raw[: len(done)]
        self._window.add(names[: len(done)], part)
        self._vectors.note(part)
        return done

    def feedback(self, document: str, topic: str, relevant: bool) -> None:
        """Say whether a document is relevant to a topic, asked or not.

        Parameters
        ----------
        document : str
            The id of the document. It must be one of the last `recent` ones, or one that the
            filter still holds for that topic.
        topic : str
            The id of the topic.
        relevant : bool
            Whether the document is relevant to the topic.
        """
        number, raw = self._judgeable(document, topic, relevant)
        self._take_feedback(document, number, bool(relevant), raw)

    def _judgeable(self, document: str, topic: str, relevant: bool) -> tuple[int, Rows]:
        """The topic's number and the document's counts, if feedback about them can be used."""
        self._check_fitted()
        if topic not in self._number:
            raise InvalidInputError(
                f"There is no topic {topic!r}; there are {_some(self.topics_)}. Nothing changed."
            )
        if not isinstance(relevant, bool | np.bool_):
            raise InvalidInputError(f"relevant must be True or False. Got {relevant!r} instead.")
        raw = self._find(document, self._number[topic])
        if raw is None:
            raise InvalidInputError(
                f"Feedback for {document!r} cannot be used: it was never seen, or is neither one of"
                f" the last {self.recent} documents nor held for the topic {topic!r}. Check the id,"
                " give feedback sooner, or raise recent."
            )
        return self._number[topic], raw

    def _find(self, document: str, topic: int) -> Rows | None:
        """The counts of a document, if they are still known."""
        return self._window.get(document)

    @property
    def n_seen_(self) -> int:
        """Documents decided so far."""
        self._check_fitted()
        return self._window.n_seen

    def _look(self) -> None:
        """Look at the documents so far; called in ever longer intervals, see `is_mark`."""

    def _check_fit(self, raw: Rows) -> None:
        """Refuse topics or parameters that do not belong together."""

    def _check_fitted(self) -> None:
        if not hasattr(self, "_window"):
            raise NotFittedError(
                f"This {type(self).__name__} has no topics yet; call fit with some first."
            )

    # How it is stored

    def state(self) -> State:
        """Parameters, weights of terms, and what was kept from the stream."""
        self._check_fitted()
        self._check_parameters()
        parameters = State()
        for name, value in self.parameters.items():
            if isinstance(value, Form | OnlineLearner):
                parameters.add(name, stored(value))
            elif name != "vectorizer":
                parameters.values[name] = value
        state = State({"names": packed(self.topics_)}).add("parameters", parameters)
        state.add("vectors", stored(self._vectors)).add("topics", self._topics.state())
        return state.add("window", self._window.state()).add("own", self._state())

    @classmethod
    def _older_parameters(cls, given: Saved) -> dict[str, Any]:
        """The values of parameters that a file of an earlier version does not have."""
        return {}

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The filter of a saved state, without a vectorizer of scikit-learn."""
        given = saved.part("parameters")
        parameters = cls._older_parameters(given)
        for name in {each.name for each in fields(cls)} - {"vectorizer", *parameters}:
            if given.is_a(dict, name):
                parameters[name] = restored(given.part(name), Form, OnlineLearner)
            else:
                value = given.value(name)
                parameters[name] = tuple(value) if isinstance(value, list) else value
        filter = cls(**parameters)
        filter._check_parameters()
        names = tuple(unpacked_names(saved, "names"))
        saved.check(0 < len(set(names)) == len(names), "topics must have names")
        topics = Rows.restore(saved.part("topics"), len(names))
        vectors = restored(saved.part("vectors"), TextVectors, GivenVectors)
        right = vectors.n_features == topics.n_features
        saved.check(right, "topics must have the features of the vectorizer")
        filter._check_fit(topics)
        filter._set_topics(names, vectors, topics)
        window = saved.part("window")
        filter._window = RecentDocuments.restore(window, filter.recent, topics.n_features)
        filter._restore(saved.part("own"))
        return filter


def load(path: str | os.PathLike[str], vectorizer: Any = None) -> Any:
    """Read a filter that `save` wrote; it goes on exactly where the saved one stopped.

    Parameters
    ----------
    path : str or path
        The file.
    vectorizer : fitted vectorizer of scikit-learn or None, default=None
        The one the filter was used with, if it was; it is not in the file.

    Returns
    -------
    Filter
        The filter.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from samewise.filtering import TopicFilter, load
    >>> topics = TopicFilter().fit({"cocoa": "cocoa beans"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     topics.save(pathlib.Path(folder) / "filter")
    ...     load(pathlib.Path(folder) / "filter").topics_
    ('cocoa',)
    """
    filter: Filter = made(container.read(path), Filter, wanted="filter")
    vectors = filter._vectors
    needed = isinstance(vectors, GivenVectors) and vectors.of_texts
    if needed != (vectorizer is not None):
        raise InvalidInputError(
            f"{path} was saved {'with' if needed else 'without'} a vectorizer of scikit-learn; "
            f"call load {'with that one' if needed else 'without one'} as vectorizer."
        )
    if needed:
        filter.vectorizer = vectors.vectorizer = vectorizer
    return filter


def named_topics(topics: Any) -> tuple[tuple[str, ...], list[Any]]:
    """The names of topics, and their texts or vectors."""
    if not isinstance(topics, Mapping):
        listed = list(topics) if isinstance(topics, Iterable) else [topics]
        if not all(isinstance(topic, Topic) for topic in listed):
            raise InvalidInputError(
                "topics must be a sequence of Topic, or a mapping of names to texts or vectors. "
                f"Got {type(topics).__name__}."
            )
        names, content = [topic.id for topic in listed], [topic.text for topic in listed]
    else:
        names, content = list(map(str, topics)), list(topics.values())
    if not names:
        raise InvalidInputError("A filter needs at least one topic. Got none.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"The topic {twice!r} is there twice; ids of topics must differ.")
    return tuple(names), content


def _as_matrix(vector: Any) -> Any:
    """A vector as a matrix of one row; a matrix as it is."""
    return vector if getattr(vector, "ndim", 1) == 2 else np.atleast_2d(vector)


def _stacked_vectors(names: Sequence[str], content: Sequence[Any]) -> Rows:
    rows = []
    for name, vector in zip(names, content, strict=True):
        if isinstance(vector, str):
            raise InvalidInputError("Topics must be all texts or all vectors; they are mixed.")
        rows.append(as_rows(_as_matrix(vector), name=f"topic {name!r}"))
        if len(rows[-1]) != 1 or not len(rows[-1].indices):
            raise InvalidInputError(f"The topic {name!r} must be one vector that is not zero.")
    widths = sorted({row.n_features for row in rows})
    if len(widths) > 1:
        raise InvalidInputError(f"Topics must have the same features. Got {widths}.")
    return stacked(rows, widths[0])


def _vectors_of(vectorizer: Any) -> Any:
    if vectorizer is None:
        return TextVectors().fit([])
    if isinstance(vectorizer, TextVectors):
        # A copy, so that a filter's stream does not move the weights of another one.
        return deepcopy(vectorizer)
    if not hasattr(vectorizer, "transform"):
        raise InvalidInputError(
            "The 'vectorizer' parameter must be None, TextVectors, or a fitted vectorizer of "
            f"scikit-learn. Got {type(vectorizer).__name__} instead."
        )
    return GivenVectors(vectorizer)


def unpacked_documents(
    documents: Any, ids: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None]:
    """The texts of documents, and their ids unless others were given."""
    if isinstance(documents, list | tuple | Iterator):
        documents = list(documents)
        if documents and all(isinstance(each, Document) for each in documents):
            ids = [each.id for each in documents] if ids is None else ids
            documents = [each.text for each in documents]
    return documents, ids


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
