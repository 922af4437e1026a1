"""The documents and topics of `reuters_filtering` and `infile_shape`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from experiments._news_data import information_gain
from samewise._typing import Array
from samewise.datasets import load
from samewise.filtering import Document, Topic


class Stream(NamedTuple):
    """Vectors of documents in the order of the stream, and what they are relevant to."""

    X: Any
    topics: list[str]
    relevant: Array


def reuters(n_topics: int, n_terms: int, most: int | None) -> Stream:
    """Reuters-21578: documents with a topic, in the order of their numbers.

    The topics are the largest with between 1 and 10 relevant documents for 100 irrelevant ones;
    the terms those of the highest information gain about them, averaged over the topics.
    """
    bunch = load("reuters21578")
    rows = [i for i, record in enumerate(bunch.records) if record["topics"] and bunch.data[i]]
    rows = rows[:most]
    sets = [set(bunch.records[i]["topics"]) for i in rows]
    names = [str(name) for name in bunch.target_names]
    relevant = np.array([[name in topics for name in names] for topics in sets])
    ratio = relevant.sum(axis=0) / (~relevant).sum(axis=0)
    fitting = np.flatnonzero((ratio >= 0.01) & (ratio <= 0.1))
    chosen = fitting[np.argsort(-ratio[fitting], kind="stable")[:n_topics]]
    relevant = relevant[:, chosen]
    counts = CountVectorizer(stop_words="english", min_df=2).fit_transform(
        [bunch.data[i] for i in rows]
    )
    gain = np.mean([information_gain(counts, y) for y in relevant.T], axis=0)
    terms = np.sort(np.argsort(-gain, kind="stable")[:n_terms])
    X = TfidfTransformer().fit_transform(counts[:, terms])
    return Stream(X, [names[i] for i in chosen], relevant)


class Collection(NamedTuple):
    """Texts in the order of the stream, topics in words, and what is relevant."""

    documents: list[Document]
    topics: list[Topic]
    relevant: Array


def collection(n_topics: int, every: int) -> Collection:
    """The shape of INFILE out of Reuters-21578 and 20 Newsgroups.

    Topics are those of Reuters with 12 to 250 documents, the larger ones first. Four documents of
    each describe it in a few sentences, as in INFILE by text that is not in the collection, and
    are left out of the stream: the title is the topic's name, the description three headlines,
    the narrative the first 60 words of one document and the sample the first 120 of another. The
    stream is all the rest, shuffled; of 20 Newsgroups nothing is relevant.
    """
    reuters, news = load("reuters21578"), load("news20_18828")
    members: dict[str, list[int]] = {}
    for i, record in enumerate(reuters.records):
        for topic in record["topics"]:
            if record["body"]:
                members.setdefault(topic, []).append(i)
    fitting = [name for name in members if 12 <= len(members[name]) <= 250]
    names = sorted(fitting, key=lambda name: (-len(members[name]), name))[:n_topics]
    used: set[int] = set()
    topics = []
    for name in names:
        some = [i for i in members[name] if i not in used][:4]
        used.update(some)
        records = [reuters.records[i] for i in some]
        topics.append(
            Topic(
                name,
                title=name,
                description=". ".join(record["title"] for record in records[1:]),
                narrative=" ".join(records[0]["body"].split()[:60]),
                sample=" ".join(records[1]["body"].split()[:120]),
            )
        )
    texts = [
        (f"reuters{i}", text, set(reuters.records[i]["topics"]))
        for i, text in enumerate(reuters.data)
        if i not in used and text
    ]
    texts += [(f"news{i}", text, set()) for i, text in enumerate(news.data)]
    order = np.random.RandomState(0).permutation(len(texts))[::every]
    chosen = [texts[i] for i in order]
    return Collection(
        [Document(id, text) for id, text, _ in chosen],
        topics,
        np.array([[name in about for name in names] for _, _, about in chosen]),
    )
