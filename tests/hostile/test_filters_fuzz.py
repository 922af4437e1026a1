"""Every filter and every reader of texts: odd Unicode, odd ids, odd vectors, odd files."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import samewise
from samewise.catalog import WHERE
from samewise.filtering import Documents, TextVectors, load, read_topics
from samewise.filtering.document_filter import Filter
from tests.hostile.outcomes import Refusal, attempt, bits, check_finite, saved
from tests.hostile.strategies import field_values, malformed, rows, texts

PUBLIC = [getattr(samewise, name) for name, at in WHERE.items() if at == "samewise.filtering"]
FILTERS = [cls.__name__ for cls in PUBLIC if isinstance(cls, type) and issubclass(cls, Filter)]
TOPICS = {"cocoa": "cocoa beans", "gold": "gold mine"}

every_filter = pytest.mark.parametrize("name", FILTERS)
ids = st.none() | texts | st.sampled_from(["a", "b", 3])


METRICS = {
    "none": lambda: None,
    "form": lambda: samewise.Bilinear(np.diag(np.arange(1.0, 33.0))),
    "cosine": lambda: samewise.GeneralizedCosine(np.eye(32)),
    "distance": lambda: samewise.Mahalanobis.identity(32),
    "wrong": lambda: samewise.Bilinear(np.eye(3)),
    "learner": lambda: samewise.OASIS(init="identity"),
}


def made(name, topics=None, metric="none", **options):
    cls = getattr(samewise, name)
    if metric != "none" and hasattr(cls, "metric"):
        options["metric"] = METRICS[metric]()
    return cls(vectorizer=TextVectors(32), **options).fit(topics or TOPICS)


def lived(name, n, **options):
    """One that has seen some documents, and learned from judgments about them."""
    filter, rng = made(name, **options), np.random.default_rng(n)
    words = rng.choice(["cocoa", "gold", "beans", "mine", "x"], (n, 3))
    filter.observe_many(list(map(" ".join, words)), [f"d{i}" for i in range(n)])
    for i in range(max(n - 20, 0), n, 3):
        filter.feedback(f"d{i}", ("cocoa", "gold")[i % 2], bool(rng.integers(2)))
    return filter


@every_filter
@given(data=st.data())
def test_any_topics(name, data):
    topics = data.draw(
        st.dictionaries(texts, texts | st.sampled_from([None, 3, b"x", [1.0, 0.0], np.zeros(2)]))
        | st.sampled_from([None, 3, "x", [], ["x"], [None]])
    )
    outcome = attempt(lambda: made(name, topics), name, topics)
    if not isinstance(outcome, Refusal):
        attempt(lambda: outcome.observe("cocoa"), name, topics)


steps = st.one_of(
    st.tuples(st.just("observe"), texts, ids),
    st.tuples(st.just("observe_many"), st.lists(texts | st.none(), max_size=4)),
    st.tuples(st.just("feedback"), ids, st.sampled_from(["cocoa", "gold", "", "x"]), st.booleans()),
)


@every_filter
@given(data=st.data())
def test_a_stream(name, data, tmp_path):
    options = data.draw(field_values(getattr(samewise, name)))
    options["metric"] = data.draw(st.sampled_from(["none", "none", *METRICS]))
    n, course = data.draw(st.sampled_from([0, 0, 12, 270])), data.draw(st.lists(steps, max_size=8))
    filter = attempt(lambda: lived(name, n, **options), name, n, options)
    if isinstance(filter, Refusal):
        return
    for call, *arguments in course:
        before = saved(filter, tmp_path)
        outcome = attempt(partial(getattr(filter, call), *arguments), name, course)
        if isinstance(outcome, Refusal):
            assert saved(filter, tmp_path) == before, "a refused call changed something"
            continue
        # One that is loaded before each step decides and learns the same.
        (tmp_path / "file").write_bytes(before)
        restored = load(tmp_path / "file")
        assert getattr(restored, call)(*arguments) == outcome
        assert saved(restored, tmp_path) == saved(filter, tmp_path)


@every_filter
@given(documents=st.lists(texts, max_size=8), cut=st.integers(0, 8))
def test_one_by_one_or_together(name, documents, cut, tmp_path):
    one, other = made(name), made(name)
    found = attempt(lambda: one.observe_many(documents), name, documents)
    if isinstance(found, Refusal):
        return
    assert [d for text in documents for d in [other.observe(text)]] == found
    assert saved(one, tmp_path) == saved(other, tmp_path)
    check_finite([d.score for each in found for d in each])


@every_filter
@given(data=st.data())
def test_any_vectors(name, data, tmp_path):
    filter = getattr(samewise, name)().fit({"a": [1.0, 0.0], "b": [1.0, 1.0]})
    X = data.draw(rows(d=st.just(2) | st.integers(1, 3)) | malformed(d=st.just(2)))
    before = saved(filter, tmp_path), bits(X)
    found = attempt(lambda: filter.observe_many(X), name, X)
    assert bits(X) == before[1]
    if isinstance(found, Refusal):
        assert saved(filter, tmp_path) == before[0], "a refused call changed something"
        return
    check_finite([d.score for each in found for d in each])
    saved(load(tmp_path / "file"), tmp_path)


@given(given=st.lists(texts, max_size=6), n_features=st.integers(1, 9))
def test_texts_become_finite_rows(given, n_features):
    vectors = attempt(lambda: TextVectors(n_features).fit_transform(given), given)
    if not isinstance(vectors, Refusal):
        assert vectors.shape == (len(given), n_features)
        check_finite(vectors)


# Files

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
fields = st.sampled_from(["id", "num", "text", "title", "body", "keywords", "topics", "x"])
entries = st.dictionaries(fields, texts | values, max_size=4) | values
lines = st.lists(
    entries.map(json.dumps) | texts | st.sampled_from(["{", "[" * 999, "{}"]), max_size=5
)
tags = st.sampled_from(
    "<top> </top> <num> </num> <title> </title> <!DOCTYPE x> <x/> & &lt; <![CDATA[ 1".split()
)
content = lines.map("\n".join) | st.lists(tags | texts, max_size=9).map("".join)


@pytest.mark.parametrize("suffix", [".xml", ".json", ".jsonl", ".txt"])
@given(content=content | st.binary(max_size=20))
def test_topics_of_any_file(suffix, content, tmp_path):
    path = tmp_path / f"topics{suffix}"
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    )
    topics = attempt(lambda: read_topics(path), content)
    if not isinstance(topics, Refusal):
        assert all(topic.id and topic.text.strip() for topic in topics)
        attempt(lambda: made("TopicFilter", topics), content)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
@given(content=content | st.binary(max_size=20))
def test_documents_of_any_file(suffix, content, tmp_path):
    path = tmp_path / f"documents{suffix}"
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
    )
    said = []
    read = attempt(lambda: list(Documents(path, report=said.append)), content)
    if isinstance(read, Refusal):
        return
    assert all(sentence.endswith(".") for sentence in said)
    filter = made("TopicFilter")
    for document in read:
        attempt(lambda document=document: filter.observe(document), content)
