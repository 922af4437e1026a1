"""M stays in the cone: what the calm regime proves, and the inverse that follows M otherwise."""

from __future__ import annotations

import numpy as np

from samewise import KernelPOLA, Pairs
from samewise.engine.policy import REFRESH
from tests.last_hypothesis import POLA, PassiveAggressive


def random_pairs(d, n, similar, seed):
    rng = np.random.RandomState(seed)
    left, right = rng.randint(0, 300, (2, n))
    return Pairs(rng.randn(300, d), left, right, np.where(rng.rand(n) < similar, 1, -1))


def test_many_small_subtractions_use_up_the_room_that_was_proved(seed):
    pairs = random_pairs(5, 6000, 0.97, seed)
    fast, plain = (
        PassiveAggressive("pa1", 1e-3, psd="each", init=5 * np.eye(5), path=path).fit(pairs)
        for path in ("auto", "plain")
    )
    assert np.linalg.eigvalsh(fast._online.mover.store.matrix)[0] > -1e-12
    np.testing.assert_allclose(fast.metric_.matrix, plain.metric_.matrix, rtol=0, atol=1e-12)
    assert fast.n_updates_ == plain.n_updates_


def test_room_that_was_proved_is_not_there_in_new_directions():
    """KernelPOLA, calm in a span that is then widened: M is zero in what is new."""
    V = np.random.RandomState(1).randn(3, 64, 6) * [[[1.0]], [[0.1]], [[0.3]]]
    V[:2, :, 3:] = 0.0
    V[2, :, 3:] /= 3
    pairs = Pairs(
        np.vstack([*V, np.zeros((1, 6))]),
        np.arange(192),
        np.full(192, 192),
        np.repeat([-1, 1, 1], 64),
    )
    learner, pola = KernelPOLA("linear"), POLA()
    # Room is made, some of it is used, and then similar pairs differ where M is zero.
    for start in (0, 64, 128):
        learner.partial_fit(pairs[start : start + 64])
        pola.partial_fit(pairs[start : start + 64])
    store = learner._online.mover.store
    assert len(store.matrix) > 3
    assert np.linalg.eigvalsh(store.matrix)[0] > -1e-12
    assert learner.n_updates_ == pola.n_updates_
    np.testing.assert_allclose(
        learner.pair_distance(pairs), pola.pair_distance(pairs), rtol=0, atol=1e-10
    )


def test_an_error_in_the_inverse_is_gone_after_some_updates(seed):
    pairs = random_pairs(12, 1200, 0.5, seed)
    learner = PassiveAggressive("pa1", 0.1, psd="each").partial_fit(pairs[:400])
    mover = learner._online.mover
    mover.cone.P *= 1 + 1e-7
    before = learner.n_updates_

    def error():
        P = np.tril(mover.cone.P) + np.tril(mover.cone.P, -1).T
        return abs(P @ (mover.store.matrix + mover.cone.mu0 * np.eye(12)) - np.eye(12)).max()

    assert error() > 1e-8
    learner.partial_fit(pairs[400:])
    assert learner.n_updates_ - before > REFRESH
    assert error() < 1e-10
