"""A filter and its stream, kept so that a killed run goes on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np

from samewise.exceptions import InvalidInputError
from samewise.filtering.document_filter import Decision, Filter, Judge, load
from samewise.filtering.documents import Document, Documents
from samewise.filtering.journal import Journal, as_json
from samewise.filtering.text_vectors import TextVectors
from samewise.filtering.topic_filters import BatchTopicFilter


class FilterRun:
    """A filter and its stream, kept in a directory so that a killed run goes on.

    Parameters
    ----------
    filter : Filter
        Fitted, and not used yet. If the directory holds a run, its filter goes on instead; that
        must have the same class, parameters and topics.
    directory : str, path or None, default=None
        Made if it does not exist. Without one nothing is kept.
    judge : callable (document id, topic id) → bool or None, default=None
        Answers the filter's questions at once.
    block : int, default=512
        Documents that are written and decided together.
    save_every : int, default=10000
        Documents after which the filter itself is written, and the inputs start anew.
    fsync : bool, default=True
        Whether every append is forced to the disk.

    Attributes
    ----------
    filter : Filter
        The filter that decides: the given one, or the one of the directory.
    resumed : int
        Documents that were decided before, in the directory.

    Notes
    -----
    `process` may be given the same source as the run before: if its first document has the id of
    the first one ever decided, the documents that were decided are passed over (they are not
    yielded), and must be the same. Otherwise it is taken as the continuation of the stream.

    Examples
    --------
    >>> import tempfile
    >>> from samewise.filtering import Document, FilterRun, TopicFilter
    >>> topics = {"cocoa": "cocoa beans"}
    >>> documents = [Document("a", "cocoa beans"), Document("b", "rain")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with FilterRun(TopicFilter("simple").fit(topics), folder) as run:
    ...         first = [(d.id, len(made)) for d, made in run.process(documents)]
    ...     with FilterRun(TopicFilter("simple").fit(topics), folder) as run:
    ...         again = list(run.process(documents))
    >>> first, again
    ([('a', 1), ('b', 0)], [])
    """

    def __init__(
        self,
        filter: Filter,
        directory: str | os.PathLike[str] | None = None,
        *,
        judge: Judge | None = None,
        block: int = 512,
        save_every: int = 10_000,
        fsync: bool = True,
    ) -> None:
        filter._check_fitted()
        if isinstance(filter, BatchTopicFilter):
            raise InvalidInputError(
                "A BatchTopicFilter takes a whole collection with decide, not a stream; use "
                "TopicFilter for a run."
            )
        if filter.n_seen_:
            raise InvalidInputError(
                f"A run starts with a filter that has seen nothing. This one saw {filter.n_seen_} "
                "documents; fit it again."
            )
        self.filter, self._judge, self._block = filter, judge, block
        self._save_every = save_every
        self._journal = None if directory is None else Journal(Path(directory), fsync)
        if self._journal is not None:
            try:
                self._resume(self._journal)
            except BaseException:
                self._journal.close()
                raise
        self.resumed = self.filter.n_seen_
        self._saved = self.resumed

    def process(self, documents: Iterable[Document]) -> Iterator[tuple[Document, list[Decision]]]:
        """Decide about documents, in order; each is yielded after its decision is written down.

        Parameters
        ----------
        documents : iterable of Document
            The documents. If it has a method `skip`, as `Documents` has, that is called with a
            sentence for a document with an id that was seen already; otherwise such a document
            raises an InvalidInputError. Whatever error the source raises, documents before it are
            decided first.

        Yields
        ------
        document : Document
            A document that was not decided before.
        decisions : list of Decision
            What was decided about it.
        """
        for block in self._blocks(documents):
            yield from self._decide(block)

    def _blocks(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        """The documents to decide, together as far as they have come."""
        skip = getattr(documents, "skip", None)
        stream = documents.stream() if isinstance(documents, Documents) else iter(documents)
        block: dict[str, Document] = {}
        try:
            for document in self._beyond_decided(stream, skip):
                if document is not None:
                    if document.id in block or self.filter._window.seen(document.id, len(block)):
                        if skip is None:
                            raise InvalidInputError(repeated(document))
                        skip(repeated(document))
                        continue
                    block[document.id] = document
                # If nothing more has come, what is there need not wait.
                if document is None or len(block) == self._block:
                    ready, block = list(block.values()), {}
                    yield ready
        except Exception:
            # The source is damaged from here on; what came before is not.
            yield list(block.values())
            raise
        yield list(block.values())

    def feedback(self, document: str, topic: str, relevant: bool) -> None:
        """Write feedback down, and give it to the filter.

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
        self.filter._judgeable(document, topic, relevant)
        entry = {"feedback": [document, topic, bool(relevant)]}
        if self._journal is not None:
            self._journal.inputs([entry])
        self.filter.feedback(document, topic, relevant)
        if self._journal is not None:
            self._journal.log([as_json(entry)])

    def history(self) -> Iterator[tuple[str, list[Decision]]]:
        """Every document that was decided in the directory.

        Yields
        ------
        id : str
            The id of the document.
        decisions : list of Decision
            What was decided about it.
        """
        for entry in () if self._journal is None else self._journal.decided():
            id = entry["document"]
            yield id, [Decision(document=id, **topic) for topic in entry["topics"]]

    def close(self) -> None:
        """Write the filter, unless only feedback came since it was written, and close the files."""
        if self._journal is not None:
            self._journal.save(self.filter)
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
        elif self._journal is not None:
            # The filter may be amid a block; the directory is not.
            self._journal.close()

    def _decide(self, block: list[Document]) -> Iterator[tuple[Document, list[Decision]]]:
        if not block:
            return
        if self._journal is None:
            yield from zip(block, self.filter.observe_many(block, judge=self._judge), strict=True)
            return
        self._journal.inputs([{"document": d.id, "text": d.text} for d in block])
        decisions = self.filter.observe_many(block, judge=self._judge and self._ask)
        self._journal.log(map(_line, block, decisions))
        if self.filter.n_seen_ - self._saved >= self._save_every:
            self._journal.save(self.filter)
            self._saved = self.filter.n_seen_
        yield from zip(block, decisions, strict=True)

    def _ask(self, document: str, topic: str) -> bool | None:
        assert self._judge is not None and self._journal is not None
        answer = self._judge(document, topic)
        if answer is not None:
            self._journal.inputs([{"answer": [document, topic, bool(answer)]}])
        return answer

    def _beyond_decided(
        self, documents: Iterator[Document | None], skip: Callable[[str], None] | None
    ) -> Iterator[Document | None]:
        """What is left of a source: all of it, unless it starts over."""
        decided = (id for id, _ in self.history())
        first = next(decided, None)
        head = next((document for document in documents if document is not None), None)
        if head is None:
            return
        if head.id != first:
            yield head
            yield from documents
            return
        recent = deque([head.id], maxlen=self.filter.recent)
        for n, id in enumerate(decided, 2):
            for document in filter(None, documents):
                if document.id == id:
                    break
                if skip is None or document.id not in recent:
                    raise _others(f"has {document.id!r}", n, id)
                skip(repeated(document))
            else:
                raise _others("ends", n, id)
            recent.append(id)
        yield from documents

    # After a crash, or just later

    def _resume(self, journal: Journal) -> None:
        if journal.filter_path.exists():
            kept = load(journal.filter_path, getattr(self.filter._vectors, "vectorizer", None))
            _check_same(self.filter, kept, journal.filter_path)
            self.filter = kept
        logged, inputs = journal.open(self.filter.n_seen_)
        answers = {tuple(e["answer"][:2]): e["answer"][2] for e in inputs if "answer" in e}

        def judge(document: str, topic: str) -> bool | None:
            known = answers.get((document, topic))
            return known if known is not None or self._judge is None else self._ask(document, topic)

        again: list[str] = []
        for is_document, entries in groupby(
            (e for e in inputs if "answer" not in e), key=lambda e: "document" in e
        ):
            if is_document:
                block = [Document(e["document"], e["text"]) for e in entries]
                decisions = self.filter.observe_many(block, judge=judge)
                again += map(_line, block, decisions)
                continue
            for entry in entries:
                self.filter.feedback(*entry["feedback"])
                again.append(as_json(entry))
        journal.check_replayed(again, logged)
        journal.log(again[len(logged) :])
        if not journal.filter_path.exists():
            journal.save(self.filter)


def filter_stream(
    filter: Filter,
    documents: Iterable[Document],
    directory: str | os.PathLike[str] | None = None,
    judge: Judge | None = None,
) -> Iterator[tuple[str, list[Decision], bool]]:
    """Let a filter decide about all documents of a source.

    Parameters
    ----------
    filter : Filter
        Fitted, and not used yet. A BatchTopicFilter reads all documents before it decides.
    documents : iterable of Document
        The documents, in order. One with an id that was seen already is skipped by
        `documents.skip` if the source is `Documents`, and else an error.
    directory : str, path or None, default=None
        Keeps the run of a filter that decides at once, so that it can go on; see `FilterRun`.
    judge : callable (document id, topic id) → bool or None, default=None
        Answers the questions of a filter that decides at once.

    Yields
    ------
    id : str
        The id of a document.
    decisions : list of Decision
        What was decided about it.
    new : bool
        False for documents that were decided before, in the directory; they come first.

    Examples
    --------
    >>> from samewise.filtering import Document, TopicFilter, filter_stream
    >>> documents = [Document("a", "cocoa beans"), Document("b", "rain")]
    >>> filter = TopicFilter("simple").fit({"cocoa": "cocoa beans"})
    >>> [(id, len(decisions)) for id, decisions, new in filter_stream(filter, documents)]
    [('a', 1), ('b', 0)]
    """
    if isinstance(filter, BatchTopicFilter):
        collection = _without_repeated(documents)
        for document, decisions in zip(collection, filter.decide(collection), strict=True):
            yield document.id, decisions, True
        return
    with FilterRun(filter, directory, judge=judge) as run:
        for id, decisions in run.history():
            yield id, decisions, False
        for document, decisions in run.process(documents):
            yield document.id, decisions, True


def _without_repeated(documents: Iterable[Document]) -> list[Document]:
    kept: dict[str, Document] = {}
    for document in documents:
        if document.id not in kept:
            kept[document.id] = document
        elif isinstance(documents, Documents):
            documents.skip(repeated(document))
        else:
            raise InvalidInputError(repeated(document))
    return list(kept.values())


def _others(what: str, n: int, id: str) -> InvalidInputError:
    return InvalidInputError(
        f"The documents are not those of the run that is kept: the source {what} where {id!r} was "
        f"decided, as number {n}. Give the same documents, or another directory."
    )


def repeated(document: Document) -> str:
    """What is wrong with a document whose id was seen already."""
    where = document.where or "A document"
    return f"{where} has the id {document.id!r}, which was seen already; ids must differ."


def _line(document: Document, decisions: list[Decision]) -> str:
    """One line of the log."""
    topics = [decision_entry(decision) for decision in decisions]
    return as_json({"document": document.id, "topics": topics})


def decision_entry(decision: Decision) -> dict[str, Any]:
    """A decision as a JSON object, without the document; an answer only if there was one."""
    entry = {"topic": decision.topic, "score": decision.score, "action": decision.action}
    return entry if decision.answer is None else {**entry, "answer": decision.answer}


def _check_same(given: Filter, kept: Filter, path: Path) -> None:
    """Refuse to go on with another filter than the one that is asked for."""
    differing = [
        name
        for name, value in given.parameters.items()
        # By what it shows of itself: a learner has moved on, its parameters have not.
        if name != "vectorizer" and repr(value) != repr(kept.parameters.get(name))
    ]
    ours, theirs = given._vectors, kept._vectors
    same_vectors = type(ours) is type(theirs) and (
        not isinstance(ours, TextVectors) or ours.get_params() == theirs.get_params()
    )
    same_rows = map(np.array_equal, given._topics.parts, kept._topics.parts)
    if type(given) is not type(kept):
        differing = ["class"]
    elif given.topics_ != kept.topics_ or not all(same_rows):
        differing.append("topics")
    elif not same_vectors:
        differing.append("vectorizer")
    if differing:
        raise InvalidInputError(
            f"{path} holds a run with another {' and another '.join(differing)}. Go on with the "
            "same, or start in another directory."
        )
