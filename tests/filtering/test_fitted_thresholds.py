"""Thresholds that follow scores and judgments: as the plain loops find them, block by block."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.filtering import BatchTopicFilter, PolaFilter, TopicFilter, load
from samewise.filtering.balanced_threshold import least_balanced_error
from samewise.filtering.recent_documents import is_mark, until_mark
from samewise.filtering.relevance_model import RelevanceModel, best_x, posterior
from samewise.learners import OASIS, PassiveAggressive
from tests.filtering.test_against_reference import by_name, named, plain_run, shown, stream, told
from tests.reference import fitted_thresholds as plain


def test_marks():
    marks = [n for n in range(1, 5000) if is_mark(n)]
    assert marks == [n for n in range(1, 5000) if plain.is_mark(n)]
    assert not is_mark(0)
    for n in range(3000):
        assert until_mark(n) == next(mark for mark in marks if mark > n) - n


@pytest.mark.parametrize("n_judged", [0, 1, 40, 400])
def test_posterior(n_judged, seed):
    rng = np.random.default_rng(seed)
    topics, x = rng.integers(0, 5, n_judged), rng.normal(5, 8, n_judged)
    relevant = rng.random(n_judged) < 0.4
    found = posterior(6, topics, 0.7 * x, relevant.astype(float))
    expected = plain.posterior(6, list(zip(topics, x, relevant, strict=True)))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-8)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


@pytest.mark.parametrize("utility", [0.5, 1.0, 2.0, "linear", "detection"])
def test_best_threshold(utility):
    cases = [(-9.0, 0.1), (-4.9, 4.25), (-2.0, 1.0), (3.0, 0.5)]
    found = [best_x(a, v, utility) for a, v in cases]
    assert found == pytest.approx([plain.best_x(a, v, utility) for a, v in cases])
    # Whatever was judged, however often: a number.
    assert np.isfinite([best_x(a, 1.0, utility) for a in (-1e6, 1e6)]).all()


def test_recall_costs_a_lower_threshold():
    thresholds = [best_x(-4.9, 4.25, beta) for beta in (0.5, 1.0, 2.0)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert len(set(thresholds)) == 3


def test_judgments_move_their_topic_most_and_the_others_a_little():
    model = RelevanceModel(3, 1.0, most=100)
    before = model.thresholds()
    for k in range(6):
        model.judge(str(k), 0, 0.15, True)
    after = model.thresholds()
    assert after[0] < after[1] == after[2] <= before[1]
    low, high = model.questions(1.0)
    # More is known of the first topic, so that fewer scores are worth a question.
    assert high[0] - low[0] < high[1] - low[1]
    low, high = model.questions(-0.999)
    assert np.all(high < low)


def test_old_judgments_are_forgotten_and_replaced():
    model = RelevanceModel(1, 1.0, most=3)
    for k in range(5):
        model.judge(str(k), 0, 0.3, True)
    model.judge("3", 0, 0.3, False)
    assert [(id, yes) for (id, _), (_, yes) in model.judged.items()] == [
        ("2", True),
        ("4", True),
        ("3", False),
    ]


SETTINGS = {
    "auto": {"feedback_budget": 12},
    "many questions": {"feedback_budget": 400, "alpha": 0.4},
    "recall": {"feedback_budget": 6, "utility": 3.0},
    "linear": {"feedback_budget": 6, "utility": "linear"},
    "detection": {"feedback_budget": 6, "utility": "detection"},
    "no questions": {"mode": "simple"},
}


def slow_twin(topics, settings):
    settings = {k: v for k, v in settings.items() if k != "mode"}
    budget = settings.pop("feedback_budget", 0)
    return plain.FittedFilter([list(t) for t in topics], **settings, budget=budget, patience=16)


@pytest.fixture(autouse=True)
def early_questions(monkeypatch):
    monkeypatch.setattr("samewise.filtering.topic_filters.PATIENCE", 16)


def close(found, expected):
    """The same decisions, and the same scores up to rounding."""
    strip = [[(d[0], *d[2:]) for d in made] for made in found]
    assert strip == [[(d[0], *d[2:]) for d in made] for made in expected]
    scores = [[d[1] for made in each for d in made] for each in (found, expected)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize("setting", SETTINGS)
def test_filter(setting, seed):
    topics, documents, relevant = stream(seed, 50)
    judge, settings = told(relevant), SETTINGS[setting]
    slow = slow_twin(topics, settings)
    expected = plain_run(slow, documents, judge)
    ids = [f"d{k}" for k in range(len(documents))]
    fast = TopicFilter(**settings).fit(named(topics))
    close(shown(fast.observe_many(documents, ids, by_name(judge))), expected)
    np.testing.assert_allclose(fast.thresholds_, slow.thresholds(), rtol=1e-6)
    single = TopicFilter(**settings).fit(named(topics))
    one_by_one = [single.observe(x, i, by_name(judge)) for x, i in zip(documents, ids, strict=True)]
    assert one_by_one == TopicFilter(**settings).fit(named(topics)).observe_many(
        documents, ids, by_name(judge)
    )
    assert sum(map(len, expected)) > 10
    asked = sum(d[2] == "ask" for made in expected for d in made)
    assert asked == fast.n_asked_ and (asked > 3) == (setting != "no questions")


def test_feedback_that_comes_later_and_unasked(seed):
    topics, documents, relevant = stream(seed, 50)
    fast, slow = (
        TopicFilter(feedback_budget=5).fit(named(topics)),
        slow_twin(topics, SETTINGS["auto"]),
    )
    slow.left = 5
    rng = np.random.default_rng(seed)
    for k, x in enumerate(documents):
        expected = slow.observe(f"d{k}", list(x))
        close([[d[:3] for d in shown([fast.observe(x, f"d{k}")])[0]]], [expected])
        for _ in range(rng.integers(0, 3)):
            j, i = int(rng.integers(0, k + 1)), int(rng.integers(len(topics)))
            # Now and then a judge changes their mind.
            answer = bool(relevant[j, i]) ^ bool(rng.random() < 0.2)
            fast.feedback(f"d{j}", f"t{i}", answer)
            slow.feedback(f"d{j}", i, answer)
        held = [[id for id, _ in topic.documents] for topic in slow.topics]
        assert [each.ids for each in fast._held] == held


@pytest.mark.parametrize("metric", [None, "pairs", "triplets"])
def test_a_saved_filter_goes_on_alike(metric, seed, tmp_path):
    learners = {
        "pairs": lambda: PassiveAggressive("pa1", C=0.3, psd="each", init="identity"),
        "triplets": lambda: OASIS(0.2, init="identity", margin=1.0),
    }
    topics, documents, relevant = stream(seed, 80)
    judge, ids = by_name(told(relevant)), [f"d{k}" for k in range(80)]

    def filter():
        own = None if metric is None else learners[metric]()
        settings = {"feedback_budget": 30, "metric": own, "max_documents": 3, "recent": 40}
        return TopicFilter(**settings).fit(named(topics))

    whole = filter()
    expected = whole.observe_many(documents, ids, judge)
    whole.save(tmp_path / "whole")
    part = filter()
    found = []
    for k in range(0, 80, 9):
        found += part.observe_many(documents[k : k + 9], ids[k : k + 9], judge)
        part.save(tmp_path / "part")
        part = load(tmp_path / "part")
    assert found == expected
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()
    assert part.n_asked_ > 3


def test_batch_measures_the_whole_collection(seed):
    topics, documents, relevant = stream(seed)
    slow = slow_twin(topics, SETTINGS["no questions"])
    slow.vectors = {k: plain.unit(list(x)) for k, x in enumerate(documents)}
    slow.sample = list(slow.vectors)
    for i in range(len(topics)):
        slow.look(i)
    thresholds = slow.thresholds()
    batch = BatchTopicFilter().fit(named(topics))
    found = [[int(d.topic[1:]) for d in made] for made in batch.decide(documents)]
    np.testing.assert_allclose(batch.thresholds_, thresholds)
    assert found == [
        [i for i, theta in enumerate(thresholds) if slow.score(i, k) >= theta]
        for k in range(len(documents))
    ]
    batch.feedback("3", "t0", bool(relevant[3, 0]))
    assert len(batch._model.judged) == 1


@pytest.mark.parametrize("n", [4, 6, 30, 200])
def test_least_balanced_error(n, seed):
    rng = np.random.default_rng(seed)
    margins = rng.normal(size=n).round(1)
    relevant = margins + rng.normal(size=n) > 0.3
    found = least_balanced_error(margins, relevant)
    expected = plain.least_balanced_error(margins.tolist(), relevant.tolist())
    assert found == pytest.approx(expected)


def test_pola_with_few_relevant_documents_becomes_less_strict(seed, tmp_path):
    rng = np.random.default_rng(seed)
    X = rng.random((400, 6)) + 0.1
    relevant = X[:, 0] > 0.95
    judge = lambda id, topic: bool(relevant[int(id)])  # noqa: E731

    def errors(thresholds):
        filter = PolaFilter(thresholds=thresholds, use_topic=False).fit({"t": X[0]})
        found = np.array([bool(made) for made in filter.observe_many(X, judge=judge)])
        return np.mean(~found[relevant]) + np.mean(found[~relevant])

    assert errors("auto") < errors("learned")
    whole = PolaFilter(use_topic=False, recent=50).fit({"t": X[0]})
    expected = whole.observe_many(X, judge=judge)
    part = PolaFilter(use_topic=False, recent=50).fit({"t": X[0]})
    found = part.observe_many(X[:70], judge=judge)
    part.save(tmp_path / "part")
    part = load(tmp_path / "part")
    assert found + part.observe_many(X[70:], judge=judge) == expected
    for filter, name in ((whole, "a"), (part, "b")):
        filter.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
