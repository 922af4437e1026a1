"""Every filter decides as the plain loops do, document by document."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from samewise.filtering import (
    BatchTopicFilter,
    NearestFilter,
    PAUMFilter,
    PerceptronFilter,
    PolaFilter,
    TopicFilter,
)
from samewise.forms import Bilinear, GeneralizedCosine, Mahalanobis
from samewise.learners import OASIS, GCosLA, PassiveAggressive
from tests.pairwise import SEEDS, pairwise
from tests.reference import filtering as plain
from tests.reference import labels, pairs, triplets

N_TOPICS, N_TERMS, N_DOCUMENTS = 4, 12, 100


def stream(seed, n=N_DOCUMENTS):
    """Topics and documents of few terms and small counts: many ties, and some empty documents."""
    rng = np.random.default_rng(seed)
    topics = rng.poisson(0.7, (N_TOPICS, N_TERMS)).astype(float)
    topics[np.arange(N_TOPICS), np.arange(N_TOPICS)] += 1
    near = topics[rng.integers(0, N_TOPICS, n)]
    documents = near * rng.integers(0, 2, near.shape) + (rng.random(near.shape) < 0.08)
    documents[rng.random(n) < 0.05] = 0
    # Copies, so that similarities are equal and documents met before.
    again = rng.integers(0, n, n // 5)
    documents[rng.integers(0, n, n // 5)] = documents[again]
    values = documents @ topics.T
    relevant = values > np.quantile(values, 0.7, axis=0)
    return topics, documents, relevant


def named(topics):
    return {f"t{i}": topic for i, topic in enumerate(topics)}


SETTINGS = {
    "online": {"thresholds": (0.4, 0.7), "n_initial": 3, "feedback_budget": 5},
    "no budget": {"thresholds": (0.4, 0.7), "n_initial": 2, "feedback_budget": 0},
    "large budget": {"thresholds": (0.3, 0.7), "n_initial": 5, "feedback_budget": 1000},
    "first only": {"thresholds": (0.5, 0.7), "n_initial": 1, "feedback_budget": 2},
    "topic alone": {"thresholds": (0.4, 0.7), "n_initial": 2, "alpha": 1.0},
    "documents alone": {"thresholds": (0.4, 0.7), "n_initial": 2, "alpha": 0.0},
    "capped": {"thresholds": (0.3, 0.7), "n_initial": 3, "feedback_budget": 2, "max_documents": 4},
    "simple": {"mode": "simple", "thresholds": (0.45, 0.8)},
    "simple at a tie": {"mode": "simple", "alpha": 0.5, "thresholds": (0.5, 0.5)},
    "simple capped": {"mode": "simple", "thresholds": (0.4, 0.6), "max_documents": 2},
}


def reference(topics, settings, **more):
    names = {"feedback_budget": "budget", "max_documents": "cap"}
    settings = {names.get(name, name): value for name, value in settings.items()}
    settings["theta1"], settings["theta2"] = settings.pop("thresholds")
    return plain.TopicFilter([list(t) for t in topics], **settings, **more)


def plain_run(slow, documents, judge):
    """Decisions with the questions answered at once."""
    found = []
    for k, x in enumerate(documents):
        made = slow.observe(f"d{k}", list(x))
        answers = [(i, judge(k, i)) for i, _, action in made if action == "ask"]
        for i, answer in answers:
            if answer is not None:
                slow.feedback(f"d{k}", i, answer)
        answers = dict(answers)
        found.append([(i, score, action, answers.get(i)) for i, score, action in made])
    return found


def shown(decisions):
    return [
        [(int(d.topic[1:]), d.score, d.action, d.answer) for d in of_one] for of_one in decisions
    ]


def told(relevant, silent=7):
    """A judge that does not answer every question."""

    def judge(k, i):
        return None if (k + i) % silent == 0 else bool(relevant[k, i])

    return judge


def by_name(judge):
    return lambda document, topic: judge(int(document[1:]), int(topic[1:]))


@pytest.mark.parametrize("setting", SETTINGS)
def test_topic_filter(setting, seed):
    topics, documents, relevant = stream(seed)
    judge, settings = told(relevant), SETTINGS[setting]
    expected = plain_run(reference(topics, settings), documents, judge)
    ids = [f"d{k}" for k in range(len(documents))]
    fast = TopicFilter(**settings).fit(named(topics))
    assert shown(fast.observe_many(documents, ids, by_name(judge))) == expected
    single = TopicFilter(**settings).fit(named(topics))
    one_by_one = [
        single.observe(x, id, by_name(judge)) for x, id in zip(documents, ids, strict=True)
    ]
    assert shown(one_by_one) == expected
    assert sum(map(len, expected)) > 10
    if setting == "large budget":
        assert {a for of_one in expected for *_, a in of_one} == {True, False, None}


def test_blocks_do_not_matter(seed, monkeypatch):
    topics, documents, relevant = stream(seed)
    ids = [f"d{k}" for k in range(len(documents))]
    settings = SETTINGS["capped"]
    judge = by_name(told(relevant))
    whole = TopicFilter(**settings).fit(named(topics)).observe_many(documents, ids, judge)
    monkeypatch.setattr("samewise.filtering.document_filter.BLOCK", 7)
    cut = TopicFilter(**settings).fit(named(topics)).observe_many(documents, ids, judge)
    assert cut == whole


@pytest.mark.parametrize("setting", ["online", "capped", "simple"])
def test_feedback_that_comes_later_and_unasked(setting, seed):
    topics, documents, relevant = stream(seed)
    fast, slow = (
        TopicFilter(**SETTINGS[setting]).fit(named(topics)),
        reference(topics, SETTINGS[setting]),
    )
    rng = np.random.default_rng(seed)
    for k, x in enumerate(documents):
        assert [d[:3] for d in shown([fast.observe(x, f"d{k}")])[0]] == slow.observe(
            f"d{k}", list(x)
        )
        for _ in range(rng.integers(0, 3)):
            j, i = int(rng.integers(max(0, k - 30), k + 1)), int(rng.integers(N_TOPICS))
            fast.feedback(f"d{j}", f"t{i}", bool(relevant[j, i]))
            slow.feedback(f"d{j}", i, bool(relevant[j, i]))
        expected = [[id for id, _ in topic.documents] for topic in slow.topics]
        assert [held.ids for held in fast._held] == expected


@pytest.mark.parametrize("cap", [None, 6])
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_batch(alpha, cap, seed):
    topics, documents, _ = stream(seed)
    settings = {"alpha": alpha, "n_initial": 4}
    expected, thetas = plain.batch(
        [list(t) for t in topics], documents.tolist(), **settings, cap=cap
    )
    fast = BatchTopicFilter(**settings, thresholds="seeds", max_documents=cap).fit(named(topics))
    found = fast.decide(documents)
    assert [[int(d.topic[1:]) for d in of_one] for of_one in found] == expected
    np.testing.assert_array_equal(fast.thresholds_, thetas)


def test_thresholds_never_fall_online_and_never_rise_in_batch(seed):
    topics, documents, _ = stream(seed)
    online = TopicFilter(thresholds=(0.3, 0.7), n_initial=2, feedback_budget=0).fit(named(topics))
    last = np.full(N_TOPICS, -np.inf)
    for x in documents:
        online.observe(x)
        grown = np.array([len(held) >= 2 for held in online._held])
        assert np.all(online.thresholds_[grown] >= last[grown])
        last = np.where(grown, online.thresholds_, -np.inf)
    batch = BatchTopicFilter(thresholds="seeds", n_initial=3).fit(named(topics))
    batch.decide(documents[:50])
    before = batch.thresholds_
    batch.observe_many(documents[50:])
    assert np.all(batch.thresholds_ <= before)


def forms():
    rng = np.random.default_rng(3)
    L = rng.normal(size=(N_TERMS, N_TERMS)) / np.sqrt(N_TERMS)
    A = L @ L.T + 0.5 * np.eye(N_TERMS)
    W = np.eye(N_TERMS) + 0.2 * rng.normal(size=(N_TERMS, N_TERMS))
    value = lambda x, y, M: np.asarray(x) @ M @ np.asarray(y)  # noqa: E731

    def gcos(x, y):
        size = value(x, x, A) * value(y, y, A)
        return value(x, y, A) / np.sqrt(size) if size else 0.0

    def near(x, y):
        v = np.asarray(x) - np.asarray(y)
        return 1 - v @ A @ v / 2

    return {
        "bilinear": (Bilinear(W), lambda x, y: value(x, y, W)),
        "cosine of A": (GeneralizedCosine(A), gcos),
        "distance": (Mahalanobis(A), near),
    }


# Thinned from 18 cases to 9.
@pairwise(seed=SEEDS, mode=["online", "simple"], name=["bilinear", "cosine of A", "distance"])
def test_forms_in_place_of_the_cosine(name, mode, seed):
    topics, documents, relevant = stream(seed, 50)
    form, similarity = forms()[name]
    settings = {"mode": mode, "thresholds": (0.4, 0.6), "n_initial": 2, "feedback_budget": 3}
    judge = told(relevant)
    expected = plain_run(reference(topics, settings, similarity=similarity), documents, judge)
    ids = [f"d{k}" for k in range(len(documents))]
    fast = TopicFilter(**settings, metric=form).fit(named(topics))
    found = shown(fast.observe_many(sparse.csr_array(documents), ids, by_name(judge)))
    assert [[d[:1] + d[2:] for d in f] for f in found] == [
        [d[:1] + d[2:] for d in e] for e in expected
    ]
    np.testing.assert_allclose(
        [d[1] for f in found for d in f], [d[1] for e in expected for d in e], rtol=1e-9
    )


class Taught:
    """A similarity that moves with each judgment, by the plain loops."""

    def __init__(self, name):
        self.name, self.A, self.b = name, np.eye(N_TERMS), 0.0
        self.judged = {}

    def __call__(self, x, y):
        x, y = np.asarray(x), np.asarray(y)
        if self.name == "triplets":
            return x @ self.A @ y
        if self.name == "distances":
            return 1 - (x - y) @ self.A @ (x - y) / 2
        size = (x @ self.A @ x) * (y @ self.A @ y)
        return x @ self.A @ y / np.sqrt(size) if size > 0 else 0.0

    def learn(self, topic, i, d, yes):
        held = [o for _, o in topic.documents]
        rows = [d, topic.vector]
        if held:
            rows.append(max(held, key=lambda o: self(o, d)))
        y = [1 if yes else -1] * (len(rows) - 1)
        given = (np.array(rows), [0] * len(y), range(1, len(rows)), y)
        if self.name == "cosines":
            run = labels.gcosla(*given, 0.1, 0.1, A=self.A, b=self.b)
            self.A, self.b = run.hypotheses[-1]
        elif self.name == "distances":
            run = pairs.passive_aggressive(*given, "pa1", 0.3, "each", M=self.A, b=self.b)
            self.A, self.b = run.M, run.b
        elif (other := self.judged.get((i, not yes))) is not None:
            relevant, irrelevant = (d, other) if yes else (other, d)
            X = np.array([topic.vector, relevant, irrelevant])
            self.A = triplets.oasis(X, X, [0], [1], [2], 0.2, W=self.A).M
        self.judged[i, yes] = d


LEARNERS = {
    "cosines": lambda: GCosLA(average="last", step_margin=None),
    "distances": lambda: PassiveAggressive(
        "pa1", C=0.3, psd="each", init="identity", average="last"
    ),
    "triplets": lambda: OASIS(0.2, init="identity", margin=1.0),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_in_place_of_the_cosine(name, seed):
    topics, _, _ = stream(seed)
    rng = np.random.default_rng(seed)
    # No two documents are equal, so that rounding decides nothing.
    documents = topics[rng.integers(0, N_TOPICS, 60)] + rng.random((60, N_TERMS))
    values = documents @ topics.T
    judge = told(values > np.quantile(values, 0.6, axis=0))
    settings = {"thresholds": (0.5, 0.7), "n_initial": 3, "feedback_budget": 30}
    taught = Taught(name)
    slow = reference(topics, settings, similarity=taught)
    expected, moved = [], []
    for k, x in enumerate(documents):
        made = slow.observe(f"d{k}", list(x))
        answers = {i: judge(k, i) for i, _, action in made if action == "ask"}
        for i, answer in answers.items():
            if answer is not None:
                before = taught.A
                taught.learn(slow.topics[i], i, np.array(plain.unit(x)), answer)
                slow.feedback(f"d{k}", i, answer)
                moved.append(not np.array_equal(before, taught.A))
        expected.append([(i, score, action, answers.get(i)) for i, score, action in made])
    learner = LEARNERS[name]()
    fast = TopicFilter(**settings, metric=learner).fit(named(topics))
    ids = [f"d{k}" for k in range(len(documents))]
    found = shown(fast.observe_many(documents, ids, by_name(judge)))
    assert [[d[:1] + d[2:] for d in f] for f in found] == [
        [d[:1] + d[2:] for d in e] for e in expected
    ]
    np.testing.assert_allclose(
        [d[1] for f in found for d in f], [d[1] for e in expected for d in e], rtol=1e-7
    )
    assert sum(moved) > 1


def supervised(filter, seed):
    topics, documents, relevant = stream(seed)
    filter.fit(named(topics))
    found = filter.observe_many(documents, judge=lambda k, t: bool(relevant[int(k), int(t[1:])]))
    decided = np.zeros(relevant.shape, dtype=bool)
    for k, of_one in enumerate(found):
        decided[k, [int(d.topic[1:]) for d in of_one]] = True
    return topics, documents, relevant, decided


@pytest.mark.parametrize("taus", [(0.0, 0.0), (1.0, 0.0), (2.0, -0.5)])
def test_linear_filters(taus, seed):
    filter = PAUMFilter(*taus) if any(taus) else PerceptronFilter()
    _, documents, relevant, decided = supervised(filter, seed)
    for i in range(N_TOPICS):
        expected = plain.perceptron(documents.tolist(), relevant[:, i], *taus)
        assert decided[:, i].tolist() == expected


@pytest.mark.parametrize("cap", [None, 1, 20])
def test_nearest_filter(cap, seed, monkeypatch):
    monkeypatch.setattr("samewise.filtering.supervised_filters._CHUNK", 8)
    _, documents, relevant, decided = supervised(NearestFilter(max_documents=cap), seed)
    for i in range(N_TOPICS):
        expected = plain.nearest(documents.tolist(), relevant[:, i].tolist(), cap)
        assert decided[:, i].tolist() == expected


@pytest.mark.parametrize("use_topic", [True, False])
def test_pola_filter(use_topic, seed):
    filter = PolaFilter(thresholds="learned", relaxation=0.5, use_topic=use_topic)
    topics, documents, relevant, decided = supervised(filter, seed)

    def project(M):
        values, vectors = np.linalg.eigh(np.array(M))
        return ((vectors * np.maximum(values, 0)) @ vectors.T).tolist()

    for i in range(2):
        expected = plain.pola(
            list(topics[i]), documents.tolist(), relevant[:, i].tolist(), 0.5, project, use_topic
        )
        assert decided[:, i].tolist() == expected
        assert 0 < sum(expected) < 0.8 * len(expected)
