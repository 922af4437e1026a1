"""What the papers prove about POLA and passive–aggressive steps, on data that meet the premises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from samewise import Pairs
from samewise.datasets import make_separable_pairs
from tests.last_hypothesis import POLA, PassiveAggressive

SEEDS = range(12)


def separable(seed: int, n: int = 300, d: int = 6, rank: int = 3):
    arrays, y, M, b = make_separable_pairs(n, d, rank=rank, b=2.0 + seed % 3, random_state=seed)
    pairs = Pairs.from_arrays(arrays, y)
    V = pairs.differences()
    assert np.all(y * (b - np.einsum("ij,jk,ik->i", V, M, V)) >= 1 - 1e-9)
    R = 1 + np.max(np.sum(V**2, axis=1) ** 2)
    return pairs, R, np.sum(M**2) + (b - 1.0) ** 2


@pytest.mark.parametrize("seed", SEEDS)
def test_loss_mistake_and_norm_bounds(seed):
    """Theorem 1: Σ ℓ² ≤ R (‖M*‖² + (b* − b₁)²), mistakes too; Lemma 3: the norm stays bounded."""
    pairs, R, size = separable(seed)
    learner, squares = POLA(), 0.0
    for i in range(len(pairs)):
        before = learner.loss_ if i else 0.0
        learner.partial_fit(pairs[i : i + 1])
        squares += (learner.loss_ - before) ** 2
        norm = np.sum(learner.metric_.matrix**2) + (learner.threshold_ - 1.0) ** 2
        assert norm <= 4 * size * (1 + 1e-9)
    assert squares <= R * size
    assert learner.n_mistakes_ <= R * size
    assert learner.n_updates_ > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("epsilon", [0.5, 0.1])
def test_batch_passes_reach_epsilon_within_the_bound(seed, epsilon):
    pairs, R, size = separable(seed, n=80)
    learner = POLA(epsilon=epsilon, max_passes=100_000).fit(pairs)
    assert learner.n_passes_ <= math.ceil(R * size / epsilon**2)
    losses = 1 - pairs.y * learner.decision_function(pairs)
    assert losses.max() <= epsilon + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_batch_equals_the_reference_passes(seed):
    from tests.reference.pairs import pola_batch

    pairs, _, _ = separable(seed, n=60)
    M, b, n_passes = pola_batch(pairs.X, pairs.left, pairs.right, pairs.y, 0.2, 10_000)
    learner = POLA(epsilon=0.2, max_passes=10_000).fit(pairs)
    assert learner.n_passes_ == n_passes
    np.testing.assert_allclose(learner.metric_.matrix, M, atol=1e-9 * np.abs(M).max())
    assert learner.threshold_ == pytest.approx(b)


def test_batch_mode_stops_by_the_largest_loss_of_all_pairs():
    """More pairs than are looked at together, and the ones with a loss are the first."""
    rng = np.random.RandomState(0)
    X = rng.randn(300, 2)
    left, right = rng.randint(0, 300, (2, 10_000))
    right[500:] = left[500:]
    y = np.where((np.arange(10_000) < 500) & (rng.rand(10_000) < 0.5), -1, 1)
    pairs = Pairs(X, left, right, y)
    learner = POLA(epsilon=0.1, max_passes=1)
    with pytest.warns(ConvergenceWarning) as said:
        learner.fit(pairs)
    losses = 1 - y * learner.decision_function(pairs)
    assert losses[8192:].max() <= 0.1 < losses.max()
    assert f"a pair still has loss {losses.max():.3g}, above epsilon=0.1" in str(said[0].message)


@pytest.mark.parametrize("rule", ["pa", "pa1", "pa2", "pals"])
@pytest.mark.parametrize("path", ["compiled", "blocked", "plain"])
def test_after_an_unprojected_step_the_constraint_holds_with_equality(rule, path):
    """PA and PA-I below its cap: p = 0; PA-II and PALS: p = τ/(2C), their slack."""
    rng = np.random.RandomState(0)
    X, y = rng.randn(80, 5), rng.choice([-1, 1], 40)
    pairs = Pairs(X, np.arange(40), np.arange(40, 80), y)
    C = 0.5
    learner = PassiveAggressive(rule, C, psd="end", path=path)
    checked = 0
    for i in range(40):
        one, before = pairs[i : i + 1], learner.n_updates_ if i else 0
        b_before = learner._online.mover.b if i else 0.0
        learner.partial_fit(one)
        if learner.n_updates_ == before:
            continue
        v = one.differences()[0]
        tau = (learner._online.mover.b - b_before) * y[i]
        p = 1 - y[i] * (learner._online.mover.b - v @ learner._online.mover.store.matrix @ v)
        slack = {"pa": 0.0, "pa1": 0.0}.get(rule, tau / (2 * C))
        if rule == "pa1" and math.isclose(tau, C):
            assert p >= -1e-10
            continue
        assert p == pytest.approx(slack, abs=1e-9)
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("seed", SEEDS)
def test_one_subtraction_leaves_at_most_one_negative_eigenvalue(seed):
    """Interlacing, and with it: the rank-one correction is the whole projection."""
    pairs, _, _ = separable(seed, n=120)
    learner = PassiveAggressive("pals", 1.0, psd="each")
    subtracted, size = 0, 0.0
    for i in range(len(pairs)):
        M = learner._online.mover.store.matrix if i else np.zeros((6, 6))
        b = learner._online.mover.b if i else 0.0
        one = pairs[i : i + 1]
        v, y = one.differences()[0], int(one.y[0])
        tau = (1 - y * (b - v @ M @ v)) / (1 + 0.5 + (v @ v) ** 2)
        moved = M - tau * y * np.outer(v, v)
        values = np.linalg.eigvalsh(moved)
        # Steps may cancel: what is tiny is measured by the largest matrix there has been.
        size = max(size, np.abs(M).max(), abs(tau) * (v @ v))
        tiny = 1e-12 * size
        assert np.count_nonzero(values < -tiny) <= (tau * y > 0)
        subtracted += values[0] < -tiny
        learner.partial_fit(one)
        assert np.linalg.eigvalsh(learner._online.mover.store.matrix)[0] >= -tiny
        assert learner._online.mover.b >= 1.0
    assert subtracted > 5
