"""Two forms compared by what users said."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from samewise import Bilinear, Euclidean, Judgements, LiveAdapter, Mahalanobis, evaluate_feedback
from samewise.adapt import Click, Judged, RankedList, Thumb
from samewise.exceptions import InvalidInputError
from samewise.scores import sequential_test
from tests.reference import feedback as reference


class Plain:
    """A map of one's own."""

    def __init__(self, W):
        self.W = W

    def embed_query(self, Q):
        return Q @ self.W


@pytest.fixture
def other():
    return np.eye(12, dtype=np.float32) + 0.3 * np.random.RandomState(5).randn(12, 12).astype("f4")


def lists(world, n=60, by_ids=False):
    """Judged lists of different lengths, some with a candidate, and ranked ones."""
    events = []
    for t in range(n):
        q, shown, y = world.judged()
        y[world.random.rand(10) < 0.2] = 0
        k = 10 - t % 3
        items = shown[:k] if by_ids else world.items[shown[:k]]
        if t % 5 == 4:
            events.append(RankedList(world.items[q], items))
        else:
            candidate = t % k if t % 2 else None
            events.append(Judged(world.items[q], items, y[:k], candidate))
    return events


def naive(events, maps):
    """Measures of each list that compares, under each map (Q → Q' for the rest, and first)."""
    found = []
    for event in events:
        ranked = isinstance(event, RankedList)
        S = np.asarray(event.ranking if ranked else event.shown, dtype=float)
        y = list(range(len(S), 0, -1)) if ranked else [int(g) for g in event.y]
        if len({g for g in y if g}) < 2:
            continue
        candidate = -1 if ranked or event.candidate is None else event.candidate
        q = event.query[None]
        found.append(
            [
                reference.measures(S @ rest(q)[0], S @ first(q)[0], y, candidate)
                for rest, first in maps
            ]
        )
    return found


def test_the_measures_are_those_of_the_plain_loop(world, other):
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    for _ in range(60):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y)
    course = adapter._fitted
    course.serve(("rest",), course.freeze(), "promote")
    events = lists(world)
    served = (adapter.embed_query, lambda Q: adapter.embed_query(Q, "first"))
    plain = Plain(other).embed_query
    expected = naive(events, [served, (plain, plain)])
    found = evaluate_feedback(adapter, Plain(other), events, level=0.1)
    assert found.n_events == 60 and found.n_compared == len(expected)
    for i, name in enumerate(("auc", "precision@1", "ndcg")):
        a, b = np.array(
            [[under[i] for under in each] for each in expected if each[0][i] is not None]
        ).T
        measure = found.measures[name]
        np.testing.assert_allclose([measure.a, measure.b], [a.mean(), b.mean()], atol=1e-9)
        test = sequential_test(np.clip(b - a, -1, 1), 0.1)
        np.testing.assert_allclose(measure.interval, (test.low, test.high), atol=1e-9)
        np.testing.assert_allclose(measure.difference, b.mean() - a.mean(), atol=1e-9)
        assert measure.verdict == test.verdict
    assert found.verdict == found.measures["auc"].verdict
    assert str(found).startswith(f"{len(expected)} of 60 events compare the two forms.\nauc: ")


def test_blocks_are_as_one_by_one(world, other, monkeypatch):
    events = lists(world, 30)
    whole = evaluate_feedback(Plain(np.eye(12)), Plain(other), iter(events))
    monkeypatch.setattr("samewise.adapt.feedback_comparison.BLOCK", 1)
    single = evaluate_feedback(Plain(np.eye(12)), Plain(other), events)
    assert single.n_compared == whole.n_compared
    for name, measure in whole.measures.items():
        found = single.measures[name]
        np.testing.assert_allclose([found.a, found.b], [measure.a, measure.b], atol=1e-12)
        np.testing.assert_allclose(found.interval, measure.interval, atol=1e-9)


def test_every_kind_of_form(world, other):
    """The same order by a dot product, a form, a learner's metric and a distance of unit rows."""
    events = lists(world, 40)
    expected = evaluate_feedback(Plain(np.eye(12)), Plain(other), events).measures
    adapter = LiveAdapter().fit(world.items)
    same = [Bilinear(np.eye(12)), adapter, adapter.live, Mahalanobis.identity(12)]
    same.append(Euclidean().fit(world.items))
    for form in same:
        found = evaluate_feedback(form, Bilinear(other), events).measures
        for name, measure in expected.items():
            np.testing.assert_allclose(found[name].a, measure.a, atol=1e-9)
            np.testing.assert_allclose(found[name].b, measure.b, atol=1e-9)


def test_ids_vectors_logs_and_judgements_are_the_same(make_world, other):
    world = make_world()
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    told = [world.judged() for _ in range(40)]
    query, shown, y = (np.array(part) for part in zip(*told, strict=True))
    vectors = [Judged(world.items[q], world.items[s], g) for q, s, g in told]
    ids = [Judged(world.items[q], s, g) for q, s, g in told]
    for event in ids:
        adapter.feedback(event)
    forms = (Bilinear(np.eye(12)), Bilinear(other))
    expected = evaluate_feedback(*forms, vectors)
    for events in (ids, adapter.log_, Judgements(world.items, query, shown, y)):
        found = evaluate_feedback(*forms, events, items=world.items)
        assert found.measures == expected.measures and found.n_compared == 40
    assert evaluate_feedback(adapter.start, forms[1], ids).measures == expected.measures
    weights = np.r_[np.zeros(10), np.full(30, 2.0)]
    weighted = Judgements(world.items, query, shown, y, sample_weight=weights)
    found = evaluate_feedback(*forms, weighted)
    assert (found.n_events, found.n_compared) == (40, 30)
    assert found.measures == evaluate_feedback(*forms, vectors[10:]).measures


def test_clicks_compare_where_teams_are_known(world):
    q, shown = world.items[0], [1, 2, 3, 4]
    clicks = [Click(q, shown, [0], teams=[1, 0, 0, 1])] * 9
    clicks += [Click(q, shown, [1], teams=[1, 0, 0, 1])] * 3
    silent = [
        Click(q, shown, [0]),
        Click(q, shown, [], teams=[1, 0, 0, 1]),
        Click(q, shown, [0, 1], teams=[1, 0, 0, 1]),
        Thumb(q, 5),
        Judged(q, shown, [1, 1, 0, 0]),
    ]
    forms = (Plain(np.eye(12)), Plain(np.eye(12)))
    found = evaluate_feedback(*forms, clicks + silent, items=world.items)
    assert (found.n_events, found.n_compared) == (17, 12)
    assert list(found.measures) == ["clicks"]
    assert (found.measures["clicks"].a, found.measures["clicks"].b) == (0.25, 0.75)
    assert found.measures["clicks"].test == sequential_test([1.0] * 9 + [-1.0] * 3)
    with pytest.raises(InvalidInputError, match="None of the 5 events can compare"):
        evaluate_feedback(*forms, silent, items=world.items)


def test_prequential_is_test_then_train(make_world, tmp_path):
    world = make_world()
    adapter = LiveAdapter(items=world.items, guard=0.5, random_state=0).fit(world.items)
    told = [world.judged() for _ in range(300)]
    events = [Judged(world.items[q], shown, y) for q, shown, y in told]
    adapter.save(tmp_path / "before")
    found = evaluate_feedback(adapter.start, adapter.served, events, prequential=True)
    adapter.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    twin = LiveAdapter(items=world.items, guard=0.5, random_state=0).fit(world.items)
    served = []
    for event in events:
        vectors = world.items[event.shown]
        rest, first = (vectors @ twin.embed_query(event.query, p) for p in ("rest", "first"))
        served.append(reference.measures(rest, first, event.y.tolist()))
        twin.feedback(event)
    assert twin.versions_
    values = [found.measures[name].b for name in ("auc", "precision@1", "ndcg")]
    np.testing.assert_allclose(values, np.mean(served, axis=0), atol=1e-9)
    # The log of who has heard them says the same.
    again = evaluate_feedback(adapter, adapter.start, twin.log_, prequential=True)
    assert again.measures["auc"].difference == -found.measures["auc"].difference


def test_what_is_better_is_found_and_chance_is_not(make_world):
    world = make_world()
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    good = [Judged(world.items[q], s, y) for q, s, y in (world.judged() for _ in range(900))]
    found = evaluate_feedback(adapter.start, adapter.live, good[:400], prequential=True)
    assert found.verdict.startswith("better")
    for event in good[:400]:
        adapter.feedback(event)
    held = evaluate_feedback(adapter.live, adapter.start, good[400:])
    assert held.verdict.startswith("worse")
    adapter.reset()
    coins = [Judged(e.query, e.shown, world.random.choice([-1, 1], 10)) for e in good[:200]]
    found = evaluate_feedback(adapter.start, adapter.live, coins, prequential=True)
    assert found.verdict.startswith("no difference shown")


BAD = {
    "no form": (lambda w: (3, Bilinear(np.eye(12)), []), "form_a must be a form"),
    "another width": (
        lambda w: (Plain(np.ones((12, 3))), Plain(np.eye(12)), lists(w, 2)),
        "embed_query of form_a must return a finite vector of 12",
    ),
    "not finite": (
        lambda w: (Plain(np.eye(12)), Plain(np.full((12, 12), np.nan)), lists(w, 2)),
        "embed_query of form_b",
    ),
    "no events": (lambda w: (Plain(np.eye(12)),) * 2 + ([],), "None of the 0 events"),
    "a number": (lambda w: (Plain(np.eye(12)),) * 2 + (7,), "events must be Judgements"),
    "an array": (lambda w: (Plain(np.eye(12)),) * 2 + (w.items,), "events must be Judgements"),
    "a string within": (
        lambda w: (Plain(np.eye(12)),) * 2 + ([*lists(w, 1), "like"],),
        "Event 1 is 'like'",
    ),
    "ids without a store": (
        lambda w: (Plain(np.eye(12)),) * 2 + (lists(w, 1, by_ids=True),),
        "Event 0: Items were named by ids",
    ),
    "another dimension": (
        lambda w: (Bilinear(np.eye(5)),) * 2 + (lists(w, 1),),
        "Event 0: A query must be one vector of 5",
    ),
    "judgements of another dimension": (
        lambda w: (Bilinear(np.eye(5)),) * 2 + (Judgements(w.items, [0], [[1, 2]], [[1, -1]]),),
        "Event 0: queries and items must have 5 features",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_input(world, case):
    make, message = BAD[case]
    with pytest.raises(InvalidInputError, match=message):
        evaluate_feedback(*make(world))


def test_prequential_needs_an_adapter(world):
    forms = (Bilinear(np.eye(12)), Bilinear(np.eye(12)))
    with pytest.raises(InvalidInputError, match="forms of a LiveAdapter"):
        evaluate_feedback(*forms, lists(world, 2), prequential=True)
    with pytest.raises(InvalidInputError, match="True or False"):
        evaluate_feedback(*forms, lists(world, 2), prequential="yes")
    with pytest.raises(NotFittedError, match="call fit"):
        evaluate_feedback(LiveAdapter(), forms[0], lists(world, 2))
