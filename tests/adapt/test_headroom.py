"""What is to be won, before anything is learned."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import Bilinear, LiveAdapter
from samewise.adapt import headroom
from samewise.exceptions import InvalidInputError


def pairs(world, n=300):
    """The relevant item of a query is the first of its group."""
    firsts = np.array([np.flatnonzero(world.groups == g)[0] for g in range(8)])
    queries = np.setdiff1d(np.arange(len(world.items)), firsts)[:n]
    return world.items[queries], firsts[world.groups[queries]]


def naive_ranks(Q, relevant, items):
    """From 0; equal items count once."""
    return np.array(
        [
            len({p.tobytes() for p in items if p @ q > items[r] @ q + 1e-6})
            for q, r in zip(Q, relevant, strict=True)
        ]
    )


def test_the_start_is_measured_as_it_is(world):
    Q, relevant = pairs(world)
    W = np.eye(12) + 0.1 * np.random.RandomState(3).randn(12, 12)
    for initial, E in ((None, Q), (Bilinear(W), Q @ W.astype(np.float32))):
        adapter = LiveAdapter(items=world.items, initial=initial, random_state=0).fit(world.items)
        found = adapter.headroom(Q, relevant)
        ranks = naive_ranks(E, relevant, world.items)
        expected = {
            "precision@1": (ranks == 0).mean(),
            "recall@10": (ranks < 10).mean(),
            "mrr": (1 / (1 + ranks)).mean(),
            "auc": 1 - ranks.mean() / 399,
        }
        assert found.n_pairs == 300 and found.n_items == 400
        for name, value in expected.items():
            np.testing.assert_allclose(found.start[name], value, atol=2e-3)


def test_what_can_be_learned_is_found(make_world):
    world = make_world(n=900)
    Q, relevant = pairs(world)
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    before = adapter.live.embed_query(Q)
    found = adapter.headroom(Q, relevant)
    assert found.attainable["auc"] > found.start["auc"] + 0.05
    assert found.test.mark == "≫" and found.sentence.startswith(
        "An adapter is likely to help. Of 900"
    )
    assert "by 300 pairs: better, p < 0.001." in found.sentence
    # Nothing is changed, and nothing is random.
    np.testing.assert_array_equal(adapter.live.embed_query(Q), before)
    assert adapter.headroom(Q, relevant) == found


def test_pairs_of_nothing_promise_nothing(world):
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    Q = pairs(world)[0]
    for seed in range(5):
        mixed = np.random.RandomState(seed).permutation(400)[: len(Q)]
        found = adapter.headroom(Q, mixed)
        assert found.test.p_value > 0.001 or found.attainable["auc"] < found.start["auc"]
    best = (Q @ world.items.T).argmax(axis=1)
    assert adapter.headroom(Q, best).sentence.startswith("There is little left to be won. Of 400")
    assert adapter.headroom(Q, best).attainable["precision@1"] > 0.9


def test_the_map_is_ridge_regression(world):
    Q, relevant = pairs(world, 50)
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    units = adapter._fitted.units
    F = ((Q - units.mu) @ units.L).astype(float)
    told = headroom._Pairs(Q, F, relevant, world.items, world.items[relevant] - units.mu)
    which = np.arange(50) < 40
    for ridge, D in zip((0.1, 2.0), told.fit(which, [0.1, 2.0]), strict=True):
        G = F[:40].T @ F[:40]
        G += ridge * np.trace(G) / len(G) * np.eye(len(G))
        expected = np.linalg.solve(G, F[:40].T @ (world.items[relevant[:40]] - units.mu))
        np.testing.assert_allclose(D, expected, atol=1e-3)


def test_a_query_that_comes_twice_is_not_learned_from_where_it_is_judged(world):
    """Each query thrice with the same item of no meaning: by heart, it would be found."""
    random = np.random.RandomState(0)
    Q, relevant = np.repeat(world.items[:60], 3, axis=0), np.repeat(random.permutation(60) + 300, 3)
    found = LiveAdapter(items=world.items).fit(world.items).headroom(Q, relevant)
    assert found.attainable["recall@10"] < 0.2


def test_vectors_and_ids_are_the_same(world):
    Q, relevant = pairs(world, 80)
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    by_ids = adapter.headroom(Q, relevant)
    assert adapter.headroom(Q, world.items[relevant]) == by_ids
    # Without a store the relevant items are ranked among themselves.
    alone = LiveAdapter(random_state=0).fit(world.items).headroom(Q, world.items[relevant])
    assert alone.n_items == 8


def test_many_items_are_sampled(world, monkeypatch):
    monkeypatch.setattr(headroom, "MOST_ITEMS", 50)
    Q, relevant = pairs(world, 80)
    found = LiveAdapter(items=world.items, random_state=0).fit(world.items).headroom(Q, relevant)
    assert 50 <= found.n_items <= 58


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda Q, r: (Q[:10], r[:10]), "at least 20 pairs"),
        (lambda Q, r: (Q, np.zeros(len(Q), dtype=int)), "two relevant items"),
        (lambda Q, r: (Q, r[:-1]), "for each of the 300 queries"),
        (lambda Q, r: (Q, r + 1000), "from 0 to 399"),
        (lambda Q, r: (Q[:, :5], r), "12 features"),
        (lambda Q, r: (np.full_like(Q, np.nan), r), "finite"),
        (lambda Q, r: (Q, np.ones((300, 5))), "relevant must have the 12 features"),
    ],
)
def test_bad_input(world, make, message):
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    with pytest.raises(InvalidInputError, match=message):
        adapter.headroom(*make(*pairs(world)))
