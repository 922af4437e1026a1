"""Filtering of documents with topics sharded: each worker decides about some of the topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import chain, pairwise
from numbers import Integral
from typing import Any, NamedTuple

from samewise.exceptions import InvalidInputError
from samewise.filtering import (
    BatchTopicFilter,
    Decision,
    Document,
    Filter,
    Judge,
    NearestFilter,
    TopicFilter,
)
from samewise.filtering.document_filter import named_topics
from samewise.filtering.filter_run import repeated
from samewise.filtering.sparse_store import Rows
from samewise.learners.online.online_learner import OnlineLearner
from samewise.scale.cluster import connected, finished, quiet

AHEAD = 4
"""Blocks that workers are given before the first of them is decided."""

EVERY = 32
"""Blocks after which filters come to the client, so that a dead worker costs no more than these."""


class TopicShards:
    """A stream of documents against topics, of which each worker has some.

    Words are counted once, by one of the workers, and every shard of the topics decides about every
    document. The decisions are those of one filter with all topics, to the bit; scores of a
    `PerceptronFilter` and a `PAUMFilter` may be rounded otherwise. A worker that dies changes
    nothing.

    Parameters
    ----------
    filter : Filter
        Its kind and parameters count; it is not changed.
    topics : sequence of Topic, or mapping of names to texts
        As in `fit` of the filter.
    n_shards : int or None, default=None
        In how many shards of about the same size. By default one for each worker.
    judge : callable (document id, topic id) → bool or None, default=None
        Judges documents after they were decided, for filters that learn from all of them
        (`PerceptronFilter`, `PAUMFilter`, `NearestFilter`, `PolaFilter`). Workers call it.
    block : int, default=2048
        Documents that are given to workers at once.
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.

    Attributes
    ----------
    n_seen_ : int
        Documents whose decisions were given.

    Notes
    -----
    What topics share cannot be sharded, and is refused: a learner as `metric`, which learns from
    all topics; questions (`feedback_budget` of a `TopicFilter`), which are one budget, and whose
    answers say something of all topics; `max_documents` of a `NearestFilter`.

    Examples
    --------
    >>> from distributed import Client
    >>> from samewise.filtering import Document, TopicFilter
    >>> from samewise.scale import TopicShards
    >>> topics = {"cocoa": "cocoa beans", "gold": "gold ore"}
    >>> documents = [Document("a", "cocoa beans"), Document("b", "rain"), Document("c", "gold")]
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     shards = TopicShards(TopicFilter("simple"), topics, 2, client=client)
    ...     [(d.id, [each.topic for each in made]) for d, made in shards.process(documents)]
    [('a', ['cocoa']), ('b', []), ('c', ['gold'])]
    """

    def __init__(
        self,
        filter: Filter,
        topics: Any,
        n_shards: int | None = None,
        *,
        judge: Judge | None = None,
        block: int = 2048,
        client: Any = None,
    ) -> None:
        _check_shardable(filter, judge)
        self._client = connected(client)
        if n_shards is None:
            n_shards = max(len(self._client.scheduler_info(n_workers=-1)["workers"]), 1)
        for name, value in (("n_shards", n_shards), ("block", block)):
            if not isinstance(value, Integral) or value < 1:
                raise InvalidInputError(f"{name} must be an integer of at least 1. Got {value!r}.")
        # What is wrong with topics is said here.
        _new(filter).fit(topics)
        names, content = named_topics(topics)
        if not all(isinstance(each, str) for each in content):
            raise InvalidInputError(
                "TopicShards takes topics and documents as texts, whose words workers count. Got "
                "vectors; use the filter itself."
            )
        n = min(int(n_shards), len(names))
        cuts = [len(names) * at // n for at in range(n + 1)]
        shards = [dict(zip(names[a:b], content[a:b], strict=True)) for a, b in pairwise(cuts)]
        self._block = int(block)
        self._batch = isinstance(filter, BatchTopicFilter)
        self._recent: deque[str] = deque(maxlen=filter.recent)
        self.n_seen_ = 0
        submit, new = self._client.submit, _new(filter)
        self._judge = None if judge is None else submit(_itself, judge, pure=False)
        self._ends = [submit(_fitted, new, shard, pure=False) for shard in shards]
        self._vectors = submit(_vectors_of, self._ends[0], pure=False)

    def process(self, documents: Iterable[Document]) -> Iterator[tuple[Document, list[Decision]]]:
        """Decide about documents, in order.

        Parameters
        ----------
        documents : iterable of Document
            The documents, whose ids must differ from those of the last `recent` ones. If it has a
            method `skip`, as `Documents` has, that is called with a sentence for others. A
            `BatchTopicFilter` reads all of them before it decides.

        Yields
        ------
        document : Document
            The document.
        decisions : list of Decision
            What was decided about it, in the order of the topics.
        """
        ends, ahead = self._ends, deque[Any]()
        blocks = enumerate(self._blocks(self._unseen(documents)), start=1)
        try:
            for number, block in blocks:
                ends = self._next(ends, block)
                ahead.append((block, ends))
                if number % EVERY == 0:
                    while ahead:
                        yield from self._decided(*ahead.popleft())
                    ends = self._ends = self._fresh()
                elif len(ahead) > AHEAD:
                    yield from self._decided(*ahead.popleft())
        except Exception:
            # The source is damaged from here on; what came before is not.
            while ahead:
                yield from self._decided(*ahead.popleft())
            raise
        while ahead:
            yield from self._decided(*ahead.popleft())

    def filters(self) -> list[Filter]:
        """What the shards have come to.

        Returns
        -------
        list of Filter
            One for each shard, with its topics; it can be saved, and used by itself.
        """
        return [end.filter for end in finished(self._client, self._ends)]

    def _blocks(self, documents: Iterator[Document]) -> Iterator[list[Document]]:
        """The documents to decide together, also those before an error of their source."""
        block: list[Document] = []
        try:
            for document in documents:
                block.append(document)
                if len(block) == self._block and not self._batch:
                    yield block
                    block = []
        except Exception:
            if block:
                yield block
            raise
        if block:
            yield block

    def _unseen(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents whose ids are new."""
        skip, seen = getattr(documents, "skip", None), set(self._recent)
        for document in documents:
            if not isinstance(document, Document):
                raise InvalidInputError(
                    f"Give documents as Document(id, text). Got a {type(document).__name__}."
                )
            if document.id in seen:
                if skip is None:
                    raise InvalidInputError(repeated(document))
                skip(repeated(document))
                continue
            if len(self._recent) == self._recent.maxlen:
                seen.discard(self._recent[0])
            self._recent.append(document.id)
            seen.add(document.id)
            yield document

    def _next(self, ends: list[Any], block: list[Document]) -> list[Any]:
        """What shards come to after a block, on the workers."""
        submit = self._client.submit
        texts = [document.text for document in block]
        counted = submit(_counted, self._vectors, texts, pure=False)
        ids = [document.id for document in block]
        return [submit(_after, end, ids, counted, self._judge, pure=False) for end in ends]

    def _decided(
        self, block: list[Document], ends: list[Any]
    ) -> Iterator[tuple[Document, list[Decision]]]:
        """The decisions about a block, of all shards."""
        submit = self._client.submit
        parts = finished(self._client, [submit(_decisions, end, pure=False) for end in ends])
        self._ends = ends
        self.n_seen_ += len(block)
        for document, *made in zip(block, *parts, strict=True):
            yield document, list(chain.from_iterable(made))

    def _fresh(self) -> list[Any]:
        """The shards, without the blocks that they came from."""
        submit = self._client.submit
        with quiet():
            return [submit(_begun, filter, pure=False) for filter in self.filters()]


class ShardEnd(NamedTuple):
    """A shard after a block, and what it decided."""

    filter: Filter
    decisions: list[list[Decision]]


def _check_shardable(filter: Filter, judge: Judge | None) -> None:
    """Refuse what topics share."""
    name = type(filter).__name__
    if not isinstance(filter, Filter):
        raise InvalidInputError(f"filter must be one of samewise.filtering. Got a {name}.")
    if isinstance(getattr(filter, "metric", None), OnlineLearner):
        raise InvalidInputError(
            f"TopicShards takes a {name} with a metric that stays as it is: a learner learns from "
            "all topics. Give its metric_, or use the filter itself."
        )
    if isinstance(filter, TopicFilter) and filter.mode == "online" and filter.feedback_budget:
        raise InvalidInputError(
            "TopicShards takes a TopicFilter that asks nothing: its questions are one budget for "
            f"all topics. Give feedback_budget=0 or mode='simple'. Got {filter.feedback_budget}."
        )
    if isinstance(filter, NearestFilter) and filter.max_documents is not None:
        raise InvalidInputError(
            "TopicShards takes a NearestFilter with max_documents=None: it counts documents of all "
            f"topics together. Got {filter.max_documents}."
        )
    if judge is not None and isinstance(filter, TopicFilter | BatchTopicFilter):
        raise InvalidInputError(
            f"A {name} that asks nothing needs no judge. Give judge=None; other filters take one."
        )


def _new(filter: Filter) -> Filter:
    """One with the same parameters, which has seen nothing."""
    return type(filter)(**filter.parameters)


def _itself(judge: Judge) -> Judge:
    return judge


def _fitted(filter: Filter, topics: dict[str, str]) -> ShardEnd:
    return ShardEnd(_new(filter).fit(topics), [])


def _vectors_of(end: ShardEnd) -> Any:
    return deepcopy(end.filter._vectors)


def _begun(filter: Filter) -> ShardEnd:
    return ShardEnd(filter, [])


def _counted(vectors: Any, texts: list[str]) -> Rows:
    """How often each term is in each text; this does not depend on what was seen before."""
    rows: Rows = vectors.rows(texts)
    return rows


def _after(end: ShardEnd, ids: list[str], raw: Rows, judge: Judge | None) -> ShardEnd:
    """A shard after some documents; the one before stays as it was."""
    own = deepcopy(end.filter)
    if isinstance(own, BatchTopicFilter) and not own.n_seen_:
        return ShardEnd(own, own._decide_rows(raw, ids))
    return ShardEnd(own, own._observe_rows(raw, ids, judge))


def _decisions(end: ShardEnd) -> list[list[Decision]]:
    return end.decisions
