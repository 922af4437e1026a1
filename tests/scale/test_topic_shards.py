"""Topics on several workers: the decisions of one filter with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import POLA
from samewise.exceptions import InvalidInputError
from samewise.filtering import (
    BatchTopicFilter,
    Document,
    NearestFilter,
    PAUMFilter,
    PerceptronFilter,
    PolaFilter,
    TextVectors,
    TopicFilter,
)
from samewise.scale import TopicShards, topic_shards
from tests.scale.parts import kill_a_worker

FIXED = {"thresholds": (0.3, 0.5)}
SMALL = {"vectorizer": TextVectors(128)}


@pytest.fixture(scope="module")
def stream():
    """(topics, documents, judge): 400 documents of seven themes."""
    random = np.random.default_rng(0)
    words = np.array([f"w{chr(97 + i)}{chr(97 + j)}" for i in range(12) for j in range(10)])
    themes = [random.choice(words, 12, replace=False) for _ in range(7)]
    kinds = random.integers(7, size=400)
    documents = [
        Document(f"d{at}", " ".join([*random.choice(themes[kind], 10), *random.choice(words, 10)]))
        for at, kind in enumerate(kinds)
    ]
    relevant = {(f"d{at}", f"t{kind}") for at, kind in enumerate(kinds)}

    def judge(document, topic):
        return (document, topic) in relevant if int(document[1:]) % 3 else None

    topics = {f"t{kind}": " ".join(themes[kind][:6]) for kind in range(7)}
    return topics, documents, judge


@pytest.mark.parametrize(
    ("filter", "judged"),
    [
        (TopicFilter("simple"), False),
        (TopicFilter("simple", **FIXED, **SMALL), False),
        (TopicFilter(**FIXED, **SMALL, feedback_budget=0, max_documents=20), False),
        (PerceptronFilter(**SMALL), True),
        (PAUMFilter(**SMALL), True),
        (NearestFilter(**SMALL), True),
        (PolaFilter(**SMALL), True),
    ],
)
def test_a_stream_is_decided_as_by_one_filter(client, stream, filter, judged):
    topics, documents, judge = stream
    judge = judge if judged else None
    one = type(filter)(**filter.parameters).fit(topics)
    expected = one.observe_many(documents, judge=judge)
    shards = TopicShards(filter, topics, 3, judge=judge, block=90, client=client)
    # It goes on where it was.
    found = [*shards.process(documents[:200]), *shards.process(documents[200:])]
    assert [document for document, _ in found] == documents
    made = [decisions for _, decisions in found]
    if isinstance(filter, PerceptronFilter | PAUMFilter):
        # Products of fewer rows are rounded otherwise.
        for one_made, many in zip(expected, made, strict=True):
            assert [each.topic for each in many] == [each.topic for each in one_made]
            scores = [[each.score for each in some] for some in (many, one_made)]
            np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-12)
    else:
        assert made == expected
    assert sum(map(len, made)) > 20
    assert shards.n_seen_ == 400
    assert [name for part in shards.filters() for name in part.topics_] == list(topics)
    assert all(part.n_seen_ == 400 for part in shards.filters())


@pytest.mark.parametrize("thresholds", ["auto", "seeds"])
def test_a_whole_collection(client, stream, thresholds):
    topics, documents, _ = stream
    filter = BatchTopicFilter(thresholds=thresholds, **SMALL)
    expected = BatchTopicFilter(thresholds=thresholds, **SMALL).fit(topics).decide(documents)
    found = TopicShards(filter, topics, 3, client=client).process(documents)
    assert [decisions for _, decisions in found] == expected


def test_a_killed_worker_changes_no_decision(client, stream, monkeypatch):
    topics, documents, judge = stream
    monkeypatch.setattr(topic_shards, "EVERY", 3)
    filter = PolaFilter(**SMALL)
    one = PolaFilter(**SMALL).fit(topics)
    expected = one.observe_many(documents, judge=judge)
    client.wait_for_workers(2)
    found = []
    shards = TopicShards(filter, topics, 2, judge=judge, block=40, client=client)
    for _, decisions in shards.process(documents):
        found.append(decisions)
        # Before filters come to the client, and after.
        if len(found) in (60, 250):
            kill_a_worker(client)
    assert found == expected


def test_ids_that_were_seen(client, stream):
    topics, documents, _ = stream
    filter = TopicFilter("simple", **SMALL, recent=5)
    again = [*documents[:4], documents[0]]
    shards = TopicShards(filter, topics, 2, block=3, client=client)
    found = []
    with pytest.raises(InvalidInputError, match=r"A document has the id 'd0', which was seen"):
        found.extend(shards.process(again))
    # What came before is decided.
    assert len(found) == shards.n_seen_ == 4
    # Forgotten by now.
    assert len(list(shards.process([*documents[4:10], documents[0]]))) == 7

    class Source(list):
        skipped = 0

        def skip(self, what):
            self.skipped += 1

    source = Source(again)
    shards = TopicShards(filter, topics, 2, block=3, client=client)
    assert len(list(shards.process(source))) == 4 and source.skipped == 1


def test_what_is_refused(client, stream):
    topics, _, judge = stream
    cases = [
        (TopicFilter(), {}, r"one budget for all topics\. .* Got 50"),
        (TopicFilter("simple", metric=POLA()), {}, r"a learner learns from all topics"),
        (NearestFilter(max_documents=9), {}, r"documents of all topics together\. Got 9"),
        (TopicFilter("simple"), {"judge": judge}, r"needs no judge"),
        (TopicFilter("simple"), {"n_shards": 0}, r"n_shards must be .* Got 0"),
        (TopicFilter("simple"), {"block": 1.5}, r"block must be .* Got 1.5"),
        ("simple", {}, r"one of samewise\.filtering\. Got a str"),
    ]
    for filter, settings, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            TopicShards(filter, topics, client=client, **settings)
    with pytest.raises(InvalidInputError, match=r"topics and documents as texts"):
        TopicShards(TopicFilter("simple"), {"a": np.ones(3)}, client=client)
    with pytest.raises(InvalidInputError, match=r"The topic 't' has no text"):
        TopicShards(TopicFilter("simple"), {"t": " "}, client=client)
    with pytest.raises(InvalidInputError, match=r"as Document\(id, text\)\. Got a str"):
        list(TopicShards(TopicFilter("simple"), topics, client=client).process(["rain"]))
