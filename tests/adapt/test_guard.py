"""The guard's promise: whatever is said, what is no better is promoted with small probability."""

from __future__ import annotations

import numpy as np

from samewise import LiveAdapter
from samewise.adapt.guard import Guard
from samewise.kernels.adapter_event import CREDIBLE
from samewise.kernels.adapter_loops import bet, bet_on_wins


def test_wealth_rarely_reaches_its_level_when_nothing_is_better():
    """Ville: P(sup W ≥ 1/ε) ≤ ε, for coins and for values that are worse in the mean."""
    random = np.random.RandomState(0)
    signs, others = [[-1.0, 1.0], [-1.0, 0.0, 1.0]], [[-0.5, 0.0, 0.5], [-1.0, 0.0, 0.0, 0.9]]
    for how, values in [(f, v) for f in (bet_on_wins, bet) for v in signs] + [
        (bet, v) for v in others
    ]:
        reached = 0
        for _ in range(300):
            test, highest = np.zeros(4), 0.0
            for x in random.choice(values, 400):
                how(test, x)
                highest = max(highest, test[0])
            reached += highest >= np.log(20)
        # ε = 0.05 of 300 streams; more than 27 would happen once in a thousand times.
        assert reached <= 27


def test_random_answers_promote_nothing(make_world):
    """Not more than 5 % of streams reach the level, and fewer are credible."""
    world = make_world(n=300)
    adapter = LiveAdapter(items=world.items, log=False, random_state=0).fit(world.items)
    guard = adapter._fitted.guard
    lists = [world.judged()[:2] for _ in range(500)]
    promoted = reached = 0
    for _ in range(300):
        adapter.reset()
        guard, high = adapter._fitted.guard, False
        for at in world.random.randint(len(lists), size=60):
            q, shown = lists[at]
            adapter.feedback(world.items[q], shown, world.random.choice([-1, 1], 10))
            high |= bool((guard.bets[:2, 0] >= guard.limits()[:2]).any())
        promoted += bool(adapter.versions_)
        reached += high or bool(adapter.versions_)
    # More than 27 of 300 would happen once in a thousand times if it were one in twenty.
    assert promoted <= reached <= 27


def test_streams_of_every_kind_end_no_worse_than_the_start(make_world):
    """Good ones gain; inverted ones promote nothing; after a change to either, no harm is done."""
    world = make_world(n=300)
    adapter = LiveAdapter(items=world.items, log=False, random_state=0).fit(world.items)
    tests = [world.judged() for _ in range(200)]

    def auc(form):
        scores = [world.items[shown] @ form.embed_query(world.items[q]) for q, shown, _ in tests]
        pairs = zip(scores, (y for _, _, y in tests), strict=True)
        return np.mean([(s[y > 0][:, None] > s[y < 0]).mean() for s, y in pairs])

    start = auc(adapter.start)
    promoted, gains = {}, {}
    for kind in ("good", "inverted", "random later"):
        promoted[kind], gains[kind] = 0, []
        for _ in range(10):
            adapter.reset()
            for t in range(360):
                q, shown, y = world.judged()
                if kind == "inverted":
                    y = -y
                elif kind == "random later" and t >= 260:
                    y = world.random.choice([-1, 1], 10)
                adapter.feedback(world.items[q], shown, y)
            promoted[kind] += bool(adapter.versions_)
            gains[kind].append(auc(adapter.served) - start)
    assert promoted["good"] >= 7 and promoted["inverted"] == 0
    assert min(map(min, gains.values())) >= -0.005
    assert np.mean(gains["good"]) > 0.02


def test_inverted_answers_are_not_credible(world):
    adapter = LiveAdapter(guard=0.5, items=world.items, random_state=0).fit(world.items)
    for _ in range(300):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, -y)
    report = adapter.guard_
    assert report.wealth["rest"] > report.needed["rest"]
    assert not report.credible and report.agreement < 0 and not report.history


def test_good_answers_are_promoted_and_reported(world):
    adapter = LiveAdapter(items=world.items, random_state=0).fit(world.items)
    first = adapter.guard_
    assert first.wealth == {"rest": 1.0, "first": 1.0}
    np.testing.assert_allclose(first.needed["rest"], np.pi**2 / (6 * 0.04))
    for _ in range(400):
        q, shown, y = world.judged()
        adapter.feedback(world.items[q], shown, y)
    report = adapter.guard_
    assert report.served["rest"] == report.history[-1]["version"] > 0
    np.testing.assert_allclose(report.needed["rest"], 4 * np.pi**2 / (6 * 0.04))
    assert 0 <= report.expected_events["rest"]


def test_what_is_expected_is_what_the_bets_gain():
    guard = Guard(0.05)
    for _ in range(50):
        for x in (1, -1, 0, 1, 0, -1, 1):
            bet_on_wins(guard.bets[0], x)
    expected = guard.report().expected_events
    left = 0
    while guard.bets[0, 0] < guard.needed("rest", True):
        bet_on_wins(guard.bets[0], (1, -1, 0, 1, 0, -1, 1)[left % 7])
        left += 1
    assert 0.9 * left <= expected["rest"] <= 1.1 * left
    assert expected["first"] == np.inf


def test_a_wealth_beyond_all_numbers_is_reported():
    guard = Guard(0.05)
    guard.bets[0, 0] = 5000.0
    assert guard.report().wealth["rest"] == np.inf


def test_answers_are_credible_by_the_wealth_of_their_agreement():
    guard = Guard(0.05)
    guard.recent[:3] = 0.2
    guard.bets[CREDIBLE] = [np.log(20.0) - 0.01, 500.0, 400.0, 300.0]
    assert not guard.credible
    guard.bets[CREDIBLE, 0] = np.log(20.0) + 0.01
    assert guard.credible
    guard.recent[:] = 0.0
    assert not guard.credible
