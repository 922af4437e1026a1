"""What cannot be used is refused with a remedy, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.filtering import (
    BatchTopicFilter,
    NearestFilter,
    PAUMFilter,
    PerceptronFilter,
    PolaFilter,
    TextVectors,
    Topic,
    TopicFilter,
)
from samewise.forms import Bilinear, NormalizedBilinear
from samewise.learners import LMNN, OASIS, POLA, GCosLA, SiLA

FILTERS = {
    "online": lambda: TopicFilter(),
    "simple": lambda: TopicFilter("simple"),
    "batch": lambda: BatchTopicFilter(),
    "pola": lambda: PolaFilter(vectorizer=TextVectors(64)),
    "perceptron": lambda: PerceptronFilter(),
    "paum": lambda: PAUMFilter(),
    "nearest": lambda: NearestFilter(),
}


@pytest.fixture(params=FILTERS)
def filter(request, topics):
    return FILTERS[request.param]().fit(topics)


def saved(filter, path):
    filter.save(path)
    return path.read_bytes()


def refused(filter, tmp_path, match, call):
    before = saved(filter, tmp_path / "before")
    with pytest.raises(InvalidInputError, match=match):
        call()
    assert saved(filter, tmp_path / "after") == before


def test_empty_documents_and_unknown_terms(filter):
    found = filter.observe_many(["", "   ", "of the and", "x"])
    # POLA starts with M = 0, under which everything lies within the threshold.
    assert found == [[], [], [], []] or isinstance(filter, PolaFilter)
    assert filter.n_seen_ == 4
    filter.feedback("0", "cocoa", True)
    filter.feedback("1", "cocoa", False)
    assert filter.observe_many([]) == []


def test_empty_vectors(filter):
    by_vector = type(filter)().fit({"a": [1.0, 0.0], "b": [1.0, 1.0]})
    assert by_vector.observe(np.zeros(2)) == [] or isinstance(filter, PolaFilter)
    with pytest.raises(InvalidInputError, match="have 3 features, but the topics have 2"):
        by_vector.observe(np.ones(3))
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        by_vector.observe(np.array([np.nan, 1.0]))
    with pytest.raises(InvalidInputError, match="texts or a matrix"):
        by_vector.observe_many(["a text"])


def test_documents_are_not_changed(filter):
    X = sparse.csr_matrix(([1.0, 0.0, 2.0, 3.0], [1, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    before = X.copy()
    by_vector = type(filter)().fit({"a": X[[0]], "b": [1.0, 1.0]})
    by_vector.observe_many(X)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, part), getattr(before, part))


def test_ids_that_repeat(filter, tmp_path):
    filter.observe("rain", "a")
    refused(filter, tmp_path, "'a' was seen already", lambda: filter.observe("more", "a"))
    refused(filter, tmp_path, "'c' was", lambda: filter.observe_many(["x"] * 3, ["b", "c", "c"]))
    refused(filter, tmp_path, "one id for each", lambda: filter.observe_many(["x"], ["b", "c"]))
    refused(filter, tmp_path, "Ids must be texts", lambda: filter.observe("x", 3))
    refused(filter, tmp_path, "must be a text here", lambda: filter.observe_many(["x", 3]))


def test_an_id_may_come_again_when_it_is_forgotten(topics):
    filter = TopicFilter(thresholds=(0.42, 0.7), recent=2).fit(topics)
    filter.observe_many(["x", "y", "z", "x"], ["a", "b", "c", "a"])
    with pytest.raises(InvalidInputError, match="1 documents before"):
        filter.observe("again", "a")
    filter.observe("later", "b")


def test_feedback_that_cannot_be_used(filter, tmp_path):
    filter.observe("rain", "a")
    for match, call in {
        "no topic 'silver'; there are 'cocoa', 'gold', 'ships'": ("a", "silver", True),
        "'b' cannot be used: it was never seen": ("b", "gold", True),
        "relevant must be True or False": ("a", "gold", 1),
    }.items():
        refused(filter, tmp_path, match, lambda call=call: filter.feedback(*call))


def test_feedback_that_comes_too_late(topics):
    filter = TopicFilter("simple", thresholds=(0.42, 0.7), recent=2).fit(topics)
    assert filter.observe("cocoa beans harvest", "kept")
    filter.observe_many(["rain", "snow", "wind"])
    with pytest.raises(InvalidInputError, match="neither one of the last 2 documents nor held"):
        filter.feedback("1", "cocoa", True)
    filter.feedback("kept", "cocoa", False)
    assert not len(filter._held[0])


def test_a_budget_of_zero_asks_nothing(topics, documents, judge):
    filter = TopicFilter(thresholds=(0.42, 0.7), feedback_budget=0).fit(topics)
    found = filter.observe_many(documents, judge=judge)
    assert {d.action for of_one in found for d in of_one} == {"assign"}
    assert filter.n_asked_ == 0


def test_questions_end_with_the_budget(topics, documents):
    filter = TopicFilter(thresholds=(0.42, 0.7), feedback_budget=3).fit(topics)
    found = [d.action for of_one in filter.observe_many(documents) for d in of_one]
    assert found.count("ask") == filter.n_asked_ == 3
    assert "assign" in found


@pytest.mark.parametrize(
    ("topics", "match"),
    [
        ({}, "at least one topic"),
        ([], "at least one topic"),
        ("cocoa", "sequence of Topic"),
        (["cocoa"], "sequence of Topic"),
        (3, "sequence of Topic"),
        ({"a": ""}, "'a' has no text"),
        ({"a": " \n"}, "'a' has no text"),
        ({"a": "the of"}, "'a' has no term that the vectorizer knows"),
        ([Topic("a", "x1"), Topic("a", "x2")], "'a' is there twice"),
        ({"a": [1.0], "b": "text"}, "mixed"),
        ({"a": [0.0, 0.0]}, "one vector that is not zero"),
        ({"a": [[1.0], [2.0]]}, "one vector"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "the same features"),
    ],
)
def test_topics_that_cannot_be_used(topics, match):
    with pytest.raises(InvalidInputError, match=match):
        TopicFilter().fit(topics)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "offline"},
        {"alpha": 1.1},
        {"thresholds": (np.nan, 0.7)},
        {"thresholds": (0.4,)},
        {"thresholds": (0.4, True)},
        {"thresholds": [0.4, 0.7]},
        {"thresholds": "seeds"},
        {"utility": 0.0},
        {"utility": "f1"},
        {"n_initial": 0},
        {"feedback_budget": -1},
        {"max_documents": 0},
        {"recent": 0},
    ],
)
def test_parameters_out_of_range(topics, wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of TopicFilter"):
        TopicFilter(**wrong).fit(topics)


def test_things_that_do_not_go_together(topics):
    with pytest.raises(InvalidInputError, match="max_documents=3 is below n_initial=10"):
        TopicFilter(thresholds=(0.42, 0.7), max_documents=3).fit(topics)
    with pytest.raises(InvalidInputError, match="max_documents=3 is below"):
        BatchTopicFilter(thresholds="seeds", max_documents=3).fit(topics)
    with pytest.raises(InvalidInputError, match="compares vectors of 2 features, but"):
        TopicFilter(metric=Bilinear(np.eye(2))).fit(topics)
    with pytest.raises(InvalidInputError, match="normalizer 'cosine'"):
        TopicFilter(metric=NormalizedBilinear(np.eye(2), "dice")).fit({"a": [1.0, 0.0]})
    with pytest.raises(TooLargeError, match="262144 × 262144"):
        TopicFilter(metric=POLA()).fit(topics)
    with pytest.raises(TooLargeError, match="262144 × 262144"):
        PolaFilter().fit(topics)
    with pytest.raises(
        InvalidInputError, match=r"'metric' parameter must be .* Got str instead\.$"
    ):
        TopicFilter(metric="cosine").fit(topics)
    with pytest.raises(InvalidInputError, match="'vectorizer' parameter"):
        TopicFilter(vectorizer="tfidf").fit(topics)


@pytest.mark.parametrize("learner", [SiLA(), LMNN()])
def test_learners_from_labels_are_fitted_before(learner, topics):
    match = f"Got {type(learner).__name__} instead.*fit it to judged documents first"
    for filter in (TopicFilter, BatchTopicFilter):
        with pytest.raises(InvalidInputError, match=match):
            filter(metric=learner).fit(topics)


def test_a_form_of_a_learner_from_labels(topics, documents, judge):
    vectors = TextVectors(48).fit([d.text for d in documents])
    told = [(d, t) for d in documents[:100] for t in topics if judge(d.id, t)]
    X, y = vectors.transform([d.text for d, _ in told]), [t for _, t in told]
    sila = SiLA(3, n_passes=3).fit(X, y)
    limit = float(np.quantile(sila.metric_.cross(vectors.transform(topics.values()), X), 0.75))
    settings = {"thresholds": (limit, limit), "vectorizer": vectors}
    filter = TopicFilter("simple", metric=sila.metric_, **settings).fit(topics)
    found = filter.observe_many(documents[100:])
    right = [judge(d.document, d.topic) for of_one in found for d in of_one]
    assert len(right) > 50 and np.mean(right) > 0.6


@pytest.mark.parametrize("learner", [GCosLA(), POLA(init="identity"), OASIS(init="identity")])
def test_documents_without_terms_teach_nothing(learner, topics):
    learner = clone(learner)
    filter = TopicFilter(metric=learner, vectorizer=TextVectors(48)).fit(topics)
    filter.observe_many(["", "the of", "cocoa beans", "rain"], ["a", "b", "c", "d"])
    filter.feedback("a", "cocoa", True)
    filter.feedback("b", "cocoa", False)
    assert not learner.__sklearn_is_fitted__()
    filter.feedback("c", "cocoa", True)
    filter.feedback("d", "cocoa", False)
    assert learner.n_seen_ > 0


def test_filters_are_no_estimators(filter):
    assert not isinstance(filter, BaseEstimator)
    assert not hasattr(filter, "get_params")
    again = type(filter)(**filter.parameters)
    assert again.parameters == filter.parameters
    assert repr(again) == repr(filter)


def test_what_differs_from_the_default_is_shown():
    assert repr(TopicFilter()) == "TopicFilter()"
    shown = "TopicFilter(mode='simple', alpha=0.5, metric=GCosLA())"
    assert repr(TopicFilter("simple", alpha=0.5, metric=GCosLA())) == shown


def test_before_fit(topics):
    for call in (
        lambda f: f.observe("x"),
        lambda f: f.feedback("a", "b", True),
        lambda f: f.save("nowhere"),
        lambda f: f.n_seen_,
        lambda f: f.thresholds_,
    ):
        with pytest.raises(NotFittedError, match="has no topics yet"):
            call(TopicFilter())


def test_a_batch_is_decided_once(topics, documents):
    filter = BatchTopicFilter(thresholds="seeds", n_initial=2).fit(topics)
    filter.decide(documents[:20])
    with pytest.raises(InvalidInputError, match="This stream has begun"):
        filter.decide(documents[20:])
    filter.observe_many(documents[20:])


def test_a_batch_counts_all_documents_at_first(topics, documents):
    filter = BatchTopicFilter(thresholds="seeds", n_initial=2).fit(topics)
    found = filter.decide(documents)
    assert filter._vectors.n_documents_ == len(documents) == filter.n_seen_
    assert {d.topic for of_one in found for d in of_one} == set(topics)


def test_an_answered_question_is_closed():
    filter = TopicFilter(thresholds=(0.1, 0.7), recent=1).fit({"gold": "gold mine ore"})
    assert filter.observe("gold mine", "a")[0].action == "ask"
    filter.observe("rain", "b")
    # An open question is remembered beyond the recent documents, an answered one is not.
    filter.feedback("a", "gold", False)
    with pytest.raises(InvalidInputError, match="Feedback for 'a' cannot be used"):
        filter.feedback("a", "gold", True)
