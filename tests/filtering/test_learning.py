"""A filter and a learner improve together, from the same answers."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.filtering import TextVectors, TopicFilter
from samewise.learners import OASIS, POLA, FactoredAROMA, GCosLA, PassiveAggressive
from samewise.scores import filtering_scores
from tests.filtering.conftest import COMMON, WORDS

LEARNERS = {
    "gcosla": lambda: GCosLA(step_margin=None),
    "pa": lambda: PassiveAggressive("pa1", C=0.1, init="identity"),
    "pola": lambda: POLA(init="identity"),
    "oasis": lambda: OASIS(0.1, init="identity"),
    "aroma": lambda: FactoredAROMA(init="identity"),
}
NOISE = [f"noise{i}" for i in range(6)]
STREAMS = (0, 1)


def noisy_stream(number):
    """Topics described half in words that every document has: the cosine is misled by them."""
    rng = np.random.default_rng(number)
    names = list(WORDS)
    topics = {name: " ".join(WORDS[name][:3] + NOISE[:3]) for name in names}
    texts, relevant = [], np.zeros((600, 3), dtype=bool)
    for k in range(600):
        words = [*rng.choice(NOISE, rng.integers(2, 7)), *rng.choice(COMMON, 2)]
        if rng.random() < 0.4:
            i = rng.integers(3)
            relevant[k, i] = True
            words += list(rng.choice(WORDS[names[i]][:5], rng.integers(2, 4)))
        texts.append(" ".join(words))
    return topics, texts, relevant


def f_of_the_second_half(metric, number):
    topics, texts, relevant = noisy_stream(number)
    names = list(topics)
    filter = TopicFilter(
        thresholds=(0.4, 0.7),
        feedback_budget=60,
        metric=metric,
        vectorizer=TextVectors(64, idf=None),
    ).fit(topics)
    made = filter.observe_many(
        texts, judge=lambda id, topic: bool(relevant[int(id), names.index(topic)])
    )
    got = np.array([[any(d.topic == t and d.retrieved for d in m) for t in names] for m in made])
    assert filter.n_asked_ <= 60
    return filtering_scores(got[300:], relevant[300:]).micro["f"]


@pytest.fixture(scope="module")
def plain():
    return [f_of_the_second_half(None, number) for number in STREAMS]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_improves_with_the_filter(name, plain):
    learners = [LEARNERS[name]() for _ in STREAMS]
    learned = [f_of_the_second_half(*both) for both in zip(learners, STREAMS, strict=True)]
    assert np.mean(learned) > np.mean(plain) + 0.05
    assert all(learner.n_updates_ > 10 for learner in learners)


def test_a_judged_document_without_terms_is_not_learned_from():
    learner = OASIS(init="identity")
    filter = TopicFilter(metric=learner, vectorizer=TextVectors(48)).fit({"gold": "gold mine ore"})
    for id, text in {"a": "gold mine", "b": "", "c": "silver mine"}.items():
        filter.observe(text, id)
    filter.feedback("a", "gold", True)
    filter.feedback("b", "gold", True)
    assert not hasattr(learner, "n_seen_")
    # The last relevant document with terms is still a.
    filter.feedback("c", "gold", False)
    assert learner.n_seen_ == 1
