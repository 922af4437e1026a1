"""A saved filter goes on exactly where it stopped."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import samewise
from samewise import OASIS, FactoredAROMA, PassiveAggressive
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container
from samewise.filtering import (
    BatchTopicFilter,
    NearestFilter,
    PAUMFilter,
    PerceptronFilter,
    PolaFilter,
    TextVectors,
    TopicFilter,
    load,
)
from samewise.forms import GeneralizedCosine, Mahalanobis
from samewise.learners import GCosLA

SMALL = TextVectors(48)
FILTERS = {
    "online": lambda: TopicFilter(thresholds=(0.3, 0.7), n_initial=3, feedback_budget=8),
    "capped": lambda: TopicFilter(
        thresholds=(0.3, 0.7), n_initial=3, feedback_budget=2, max_documents=5, recent=30
    ),
    "simple": lambda: TopicFilter("simple", thresholds=(0.3, 0.5)),
    "form": lambda: TopicFilter(
        thresholds=(0.3, 0.7), n_initial=2, metric=GeneralizedCosine(np.eye(48)), vectorizer=SMALL
    ),
    "pairs": lambda: TopicFilter(
        thresholds=(0.3, 0.7),
        n_initial=2,
        metric=PassiveAggressive(init="identity"),
        vectorizer=SMALL,
    ),
    "triplets": lambda: TopicFilter(
        thresholds=(0.3, 0.7), n_initial=2, metric=OASIS(init="identity"), vectorizer=SMALL
    ),
    "aroma": lambda: TopicFilter(
        thresholds=(0.3, 0.7), n_initial=2, metric=FactoredAROMA(init="identity"), vectorizer=SMALL
    ),
    "cosines": lambda: TopicFilter(
        thresholds=(0.3, 0.7), n_initial=2, metric=GCosLA(average=("suffix", 3)), vectorizer=SMALL
    ),
    "batch auto": lambda: BatchTopicFilter(),
    "auto": lambda: TopicFilter(feedback_budget=8),
    "batch": lambda: BatchTopicFilter(thresholds="seeds", n_initial=2),
    "pola": lambda: PolaFilter(vectorizer=SMALL),
    "pola capped": lambda: PolaFilter(max_documents=4, use_topic=False, vectorizer=SMALL),
    "perceptron": lambda: PerceptronFilter(vectorizer=TextVectors(512)),
    "paum": lambda: PAUMFilter(vectorizer=TextVectors(512)),
    "nearest": lambda: NearestFilter(max_documents=40, vectorizer=TextVectors(512, idf=None)),
}


def saved(filter, path):
    filter.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("name", FILTERS)
def test_saved_and_loaded_in_the_middle(name, topics, documents, judge, tmp_path):
    whole = FILTERS[name]().fit(topics)
    begun = FILTERS[name]().fit(topics)
    first, rest = documents[:130], documents[130:260]
    start = (
        (lambda f: f.decide(first))
        if name == "batch"
        else lambda f: f.observe_many(first, judge=judge)
    )
    assert start(whole) == start(begun)
    begun = load(_written(begun, tmp_path / "begun"))
    expected = whole.observe_many(rest, judge=judge)
    assert begun.observe_many(rest, judge=judge) == expected
    assert any(expected)
    whole.feedback(rest[-1].id, "gold", True)
    begun.feedback(rest[-1].id, "gold", True)
    assert saved(begun, tmp_path / "a") == saved(whole, tmp_path / "b")
    assert repr(begun) == repr(load(tmp_path / "b"))


def _written(filter, path):
    filter.save(path)
    return path


@pytest.mark.parametrize("name", FILTERS)
def test_one_by_one_is_the_same_state(name, topics, documents, judge, tmp_path):
    block, single = FILTERS[name]().fit(topics), FILTERS[name]().fit(topics)
    found = block.observe_many(documents[:90], judge=judge)
    assert [single.observe(d, judge=judge) for d in documents[:90]] == found
    assert saved(block, tmp_path / "a") == saved(single, tmp_path / "b")


@pytest.mark.parametrize("name", ["online", "pairs", "triplets", "cosines"])
def test_a_judge_is_feedback_after_each_document(name, topics, documents, judge):
    judged, told = FILTERS[name]().fit(topics), FILTERS[name]().fit(topics)
    for document in documents[:120]:
        found = told.observe(document)
        judged_too = judged.observe(document, judge=judge)
        assert [(d.topic, d.score) for d in found] == [(d.topic, d.score) for d in judged_too]
        for decision in found:
            if decision.action == "ask":
                told.feedback(document.id, decision.topic, judge(document.id, decision.topic))


@pytest.mark.parametrize(
    "change",
    [
        lambda a, p: _swap(a, "own.sizes", lambda v: v.__setitem__(0, 99)),
        lambda a, p: a.pop("own.engine1.mover.store.lower"),
        lambda a, p: a.update({"own.engine1.mover.store.lower": np.zeros((3, 3))}),
        lambda a, p: p["own"]["engine0"]["mover"].update(b="one"),
    ],
    ids=range(4),
)
def test_forged_files_of_pola_are_refused(change, topics, documents, judge, tmp_path):
    filter = FILTERS["pola"]().fit(topics)
    filter.observe_many(documents[:60], judge=judge)
    filter.save(tmp_path / "good")
    forged(tmp_path / "good", tmp_path / "bad", change)
    with pytest.raises(FileFormatError, match="bad"):
        load(tmp_path / "bad")


def test_a_vectorizer_of_scikit_learn_is_given_again(topics, documents, tmp_path):
    vectorizer = TfidfVectorizer().fit([d.text for d in documents])
    filter = TopicFilter(vectorizer=vectorizer).fit(topics)
    filter.observe_many(documents[:50])
    filter.save(tmp_path / "f")
    again = load(tmp_path / "f", vectorizer=vectorizer)
    assert again.observe_many(documents[50:]) == filter.observe_many(documents[50:])
    with pytest.raises(InvalidInputError, match="saved with a vectorizer"):
        load(tmp_path / "f")
    without = samewise.load(tmp_path / "f")
    with pytest.raises(InvalidInputError, match=r"samewise.filtering.load\(path, vectorizer\)"):
        without.observe_many(documents[50:])
    TopicFilter().fit(topics).save(tmp_path / "g")
    with pytest.raises(InvalidInputError, match="saved without a vectorizer"):
        load(tmp_path / "g", vectorizer)


@pytest.mark.parametrize(
    "learner",
    [
        OASIS(C=0.5, random_state=3),
        GCosLA(average=("suffix", 3)),
        PassiveAggressive(init=np.eye(48), random_state=np.random.RandomState(1)),
    ],
)
def test_a_learner_that_has_learned_nothing_yet(learner, topics, documents, judge, tmp_path):
    filter = TopicFilter(thresholds=(0.3, 0.7), metric=learner, vectorizer=SMALL).fit(topics)
    again = load(_written(filter, tmp_path / "f"))
    assert not again.metric.__sklearn_is_fitted__()
    assert type(again.metric) is type(learner)
    expected = filter.observe_many(documents[:80], judge=judge)
    assert again.observe_many(documents[:80], judge=judge) == expected
    assert saved(again, tmp_path / "a") == saved(filter, tmp_path / "b")


def test_another_process_reads_a_filter_with_a_learner(topics, documents, judge, tmp_path):
    filter = FILTERS["triplets"]().fit(topics)
    filter.observe_many(documents[:60], judge=judge)
    filter.save(tmp_path / "f")
    code = f"import samewise; print(samewise.load({str(tmp_path / 'f')!r}))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.strip() == repr(load(tmp_path / "f")), printed.stderr


def test_text_vectors_go_on(documents, tmp_path):
    texts = [d.text for d in documents]
    vectors = TextVectors(64, stop_words={"week", "year"}).fit(texts[:100])
    vectors.save(tmp_path / "v")
    again = samewise.load(tmp_path / "v")
    for each in (vectors, again):
        each.note(each.rows(texts[100:128]))
        each.refresh()
    np.testing.assert_array_equal(
        again.transform(texts).toarray(), vectors.transform(texts).toarray()
    )


def forged(source, target, change):
    content = container.read(source)
    arrays, params = dict(content.arrays), dict(content.params)
    change(arrays, params)
    container.write(target, content.kind, arrays, params, owner="a forgery")


def _swap(arrays, name, change):
    values = arrays[name].copy()
    change(values)
    arrays[name] = values


@pytest.mark.parametrize(
    "change",
    [
        lambda a, p: p["vectors"].update({"class": "Unknown"}),
        lambda a, p: p["vectors"].update({"class": "Mahalanobis"}),
        lambda a, p: p["parameters"].update(alpha=7.0),
        lambda a, p: p["own"].update(n_asked=-1),
        lambda a, p: a.pop("own.held.ids"),
        lambda a, p: a.update({"extra": np.zeros(1)}),
        lambda a, p: _swap(a, "own.held.sizes", lambda v: v.__setitem__(0, -1)),
        lambda a, p: _swap(a, "own.held.rows.indices", lambda v: v.__setitem__(0, 10**8)),
        lambda a, p: _swap(a, "own.held.rows.indices", lambda v: v.__setitem__(0, v[1])),
        lambda a, p: _swap(a, "own.held.rows.indptr", lambda v: v.__setitem__(1, 10**6)),
        lambda a, p: _swap(a, "own.held.rows.data", lambda v: v.__setitem__(0, np.nan)),
        lambda a, p: _swap(a, "window.ids", lambda v: v.__setitem__(0, 0)),
        lambda a, p: p["window"].update(n_seen=3),
        lambda a, p: p["vectors"].update(n_documents="many"),
        lambda a, p: p["vectors"].update(n_features=7),
        lambda a, p: a.update({"names": np.frombuffer(b'["a"]', np.uint8)}),
        lambda a, p: a.update({"own.pending.keys": np.frombuffer(b"[1]", np.uint8)}),
        lambda a, p: _swap(a, "own.pending.keys", lambda v: v.__setitem__(-3, ord("9"))),
    ],
    ids=range(18),
)
def test_forged_files_are_refused(change, topics, documents, tmp_path):
    filter = FILTERS["online"]().fit(topics)
    filter.observe_many(documents[:60])
    filter.feedback("d59", "gold", True)
    filter.save(tmp_path / "good")
    forged(tmp_path / "good", tmp_path / "bad", change)
    with pytest.raises(FileFormatError, match="bad"):
        load(tmp_path / "bad")


def test_other_files_are_refused(tmp_path, topics):
    Mahalanobis.identity(2).save(tmp_path / "form")
    with pytest.raises(FileFormatError, match="holds a Mahalanobis, not a filter"):
        load(tmp_path / "form")
    content = container.read(tmp_path / "form")
    container.write(tmp_path / "x", "Unknown", content.arrays, content.params, owner="a forgery")
    with pytest.raises(FileFormatError, match="the unknown class 'Unknown'"):
        load(tmp_path / "x")

    class Mine(TopicFilter):
        pass

    with pytest.raises(InvalidInputError, match="a class of your own"):
        Mine().fit(topics).save(tmp_path / "mine")


def test_ctrl_c_waits_for_the_end_of_a_block(topics, documents, tmp_path, monkeypatch):
    monkeypatch.setattr("samewise.filtering.document_filter.BLOCK", 16)
    stopped, whole = FILTERS["online"]().fit(topics), FILTERS["online"]().fit(topics)
    original, calls = stopped._decide, []

    def decide(*args):
        calls.append(args)
        if len(calls) == 6:
            signal.raise_signal(signal.SIGINT)
        return original(*args)

    stopped._decide = decide
    with pytest.raises(KeyboardInterrupt, match="is kept"):
        stopped.observe_many(documents)
    del stopped._decide
    n = stopped.n_seen_
    assert 0 < n < len(documents)
    whole.observe_many(documents)
    stopped.observe_many(documents[n:])
    assert saved(stopped, tmp_path / "a") == saved(whole, tmp_path / "b")


def test_equally_near_documents(tmp_path):
    """Of two documents that are equally near, one is forgotten and the other is held."""
    filter = TopicFilter(thresholds=(0.1, 0.7), n_initial=2, max_documents=2).fit(
        {"gold": "gold mine ore"}
    )
    texts = ["gold mine", "gold ore", "gold mine"]
    filter.observe_many(texts, ["x", "a", "y"], judge=lambda document, topic: True)
    filter.save(tmp_path / "one")
    loaded = load(tmp_path / "one")
    loaded.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    # Without the other: what was forgotten left its mark.
    for each, path in ((filter, "one"), (loaded, "two")):
        each.feedback("y", "gold", False)
        each.save(tmp_path / path)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
