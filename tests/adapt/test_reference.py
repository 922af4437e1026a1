"""The compiled adapter takes the steps of the plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import adapt as benchmark
from samewise import LiveAdapter
from samewise.adapt import RankedList
from samewise.adapt.item_units import ItemUnits
from samewise.kernels.event_cells import _keep_nearest
from tests.reference.adapter import Adapter

ROWS = ("rest", "first", "agree", "fall rest", "fall first")


def twin(adapter, **parameters):
    units = adapter._fitted.units
    arrays = (a.astype(np.float64) for a in (units.mu, units.L, units.axes, units.pivots))
    return Adapter((units.mean_similarity, units.gap, *arrays), **parameters)


def agree(adapter, plain, Q):
    live = np.array([plain.live(q) for q in Q.astype(np.float64)])
    np.testing.assert_allclose(adapter.live.embed_query(Q), live, atol=2e-3)
    for place in ("rest", "first"):
        served = np.array([plain.serve(q, place) for q in Q.astype(np.float64)])
        np.testing.assert_allclose(adapter.embed_query(Q, place), served, atol=2e-3)
    bets = adapter._fitted.guard.bets
    np.testing.assert_allclose(bets[:5, 0], [plain.bets[n].log_wealth for n in ROWS], atol=1e-6)
    np.testing.assert_allclose(bets[5, 2], plain.gain, atol=1e-6)


@pytest.mark.parametrize(
    "parameters", [{}, {"half_life": 40.0}, {"memory": 30}, {"margin": 1.0}], ids=str
)
def test_every_round_is_that_of_the_plain_loop(world, parameters):
    adapter = LiveAdapter(random_state=0, **parameters).fit(world.items)
    plain = twin(adapter, **parameters)
    for t in range(100):
        q, shown, y = world.judged(noise=0.1)
        y[world.random.rand(10) < 0.1] = 0
        weight = float(world.random.choice([0.5, 1.0, 2.0]))
        if len(set(y[y != 0])) < 2:
            continue
        candidate = int(world.random.randint(-1, 10))
        adapter.feedback(
            world.items[q],
            world.items[shown],
            y,
            weight=weight,
            candidate=None if candidate < 0 else candidate,
        )
        Q, S = world.items[q].astype(float), world.items[shown].astype(float)
        plain.hear(Q, S, y, weight, candidate)
        if t % 8 == 0:
            agree(adapter, plain, world.items[:5])
    np.testing.assert_allclose(adapter._fitted.linear.mean(), plain.mean, atol=2e-3)


def test_promotions_and_fallbacks_are_those_of_the_plain_loop(world):
    adapter = LiveAdapter(guard=0.9, random_state=0).fit(world.items)
    plain = twin(adapter, level=0.9)
    for t in range(580):
        # First good answers, then the opposite.
        q, shown, y = world.judged()
        y = y if t < 250 else -y
        adapter.feedback(world.items[q], world.items[shown], y)
        plain.hear(world.items[q].astype(float), world.items[shown].astype(float), y)
    mine = [
        (c["event"], c["place"] if c["why"] == "promote" else f"fall {c['place']}")
        for c in adapter.guard_.history
    ]
    assert mine == plain.changes
    assert {why for _, why in mine} >= {"rest", "fall rest"}
    agree(adapter, plain, world.items[:20])


def test_many_queries_are_mapped_as_one_by_one(world):
    adapter = LiveAdapter(random_state=0).fit(world.items)
    for _ in range(50):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], world.items[shown], y)
    adapter.promote()
    q, shown, y = world.judged()
    adapter.feedback(world.items[q], world.items[shown], y)
    for form in (adapter.start, adapter.live, adapter.served):
        alone = [form.embed_query(q) for q in world.items[:60]]
        np.testing.assert_allclose(form.embed_query(world.items[:60]), alone, atol=1e-5)


def test_a_ranked_list_is_learned_as_grades(world):
    adapter = LiveAdapter(random_state=0).fit(world.items)
    plain = twin(adapter)
    for _ in range(30):
        q, shown, _ = world.judged()
        adapter.feedback(RankedList(world.items[q], world.items[shown]))
        grades = np.arange(10, 0, -1)
        plain.hear(world.items[q].astype(float), world.items[shown].astype(float), grades)
    agree(adapter, plain, world.items[:10])


@pytest.mark.parametrize("n", [3, 201])
def test_the_gap_is_the_median_similarity_to_the_nearest_less_the_mean(n):
    X = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
    nearest, others = [], []
    for i in range(n):
        similar = [float(X[i] @ X[j]) for j in range(n) if j != i]
        nearest.append(max(similar))
        others += similar
    units = ItemUnits.of(X, np.random.RandomState(0))
    assert units.mean_similarity == pytest.approx(np.mean(others), rel=1e-4, abs=1e-5)
    assert units.gap == pytest.approx(np.median(nearest) - np.mean(others), rel=1e-4)


@pytest.mark.parametrize("values", ["normal", "ties", "extremes"])
def test_the_nearest_are_kept_in_their_order_and_of_equal_ones_the_first(values):
    random = np.random.RandomState(0)
    for n, most in ((1, 3), (5, 5), (40, 1), (320, 32), (319, 318)):
        scores = random.randn(n).astype(np.float32)
        if values == "ties":
            scores = np.round(scores)
        elif values == "extremes":
            scores = random.choice(np.float32([-np.inf, -3e38, -1e-45, -0.0, 0.0, 2, np.inf]), n)
        found = random.permutation(n)
        wanted = found[np.sort(np.argsort(-scores, kind="stable")[:most])]
        kept = _keep_nearest(found, scores, n, most)
        np.testing.assert_array_equal(found[:kept], wanted)


def test_the_benchmark_counts_the_nearest_lists_that_are_found(monkeypatch):
    monkeypatch.setattr(benchmark, "_best", lambda call, **_: call(0) is None or 1)
    row = benchmark._row(16, 300)
    assert row["remembered"] == 300 and 0.1 < row["found"] <= 1
