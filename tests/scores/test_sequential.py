"""Tests and intervals that hold whenever one looks."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.exceptions import InvalidInputError
from samewise.kernels.adapter_loops import bet
from samewise.scores import sequential_test
from samewise.scores.sequential import log_wealth
from tests.reference import feedback as reference


@pytest.mark.parametrize("m", [-0.9, -0.1, 0.0, 0.3, 1.0])
def test_the_wealth_is_that_of_the_plain_loop(m):
    x = np.random.RandomState(0).uniform(-1, 1, 60)
    expected = [reference.log_wealth(x[: n + 1], m) for n in range(60)]
    np.testing.assert_allclose(log_wealth(x, m), expected, atol=1e-12)


def test_against_zero_it_is_the_bet_of_the_guard():
    x = np.random.RandomState(1).choice([-1.0, -0.25, 0.0, 0.5, 1.0], 80)
    test = np.zeros(4)
    for value in x:
        bet(test, value)
    np.testing.assert_allclose(log_wealth(x, 0.0)[-1], test[0], atol=1e-12)


@pytest.mark.parametrize(
    "values",
    [[-1.0, 1.0], [-0.5, 0.0, 0.0, 0.5], [-1.0, 0.0, 0.0, 0.0, 0.2], [0.0, 0.05, 1.0]],
    ids=str,
)
def test_at_no_time_the_mean_is_left_out_too_often(values):
    """The limits ever miss the mean where a bet against it reaches 2/level."""
    random = np.random.RandomState(0)
    m, missed = float(np.mean(values)), 0
    for _ in range(400):
        x = random.choice(values, 500)
        most = max(log_wealth(x, m).max(), log_wealth(-x, -m).max())
        missed += most >= np.log(2 / 0.05)
    # At most 0.05 of 400 streams; more than 34 would happen once in a thousand times.
    assert missed <= 34


def test_the_limits_are_where_bets_have_won():
    random = np.random.RandomState(2)
    for n in (3, 40, 300):
        x = np.clip(0.1 + 0.3 * random.randn(n), -1, 1)
        found = sequential_test(x, level=0.1)
        assert found.low <= found.mean <= found.high and found.n == n
        limit = np.log(2 / 0.1)
        step = 2 / 32**3
        if found.low > -1:
            assert log_wealth(x, found.low)[-1] >= limit > log_wealth(x, found.low + 2 * step)[-1]
        if found.high < 1:
            assert log_wealth(-x, -found.high)[-1] >= limit
            assert log_wealth(-x, -found.high + 2 * step)[-1] < limit
    assert sequential_test([0.5, 0.5]).low == -1.0


def test_limits_and_p_value_agree():
    random = np.random.RandomState(3)
    for shift in (-0.1, -0.03, 0.0, 0.03, 0.1):
        x = np.clip(shift + 0.4 * random.randn(300), -1, 1)
        found, mirrored = sequential_test(x), sequential_test(-x)
        assert (found.p_value <= 0.05) == (found.low > 0 or found.high < 0)
        assert mirrored.p_value == found.p_value
        assert (mirrored.low, mirrored.high) == (-found.high, -found.low)
        expected = min(1.0, 2 / np.exp(log_wealth(np.sign(found.mean) * x, 0.0)[-1]))
        np.testing.assert_allclose(found.p_value, expected)


def test_what_it_says():
    up = np.full(200, 0.2)
    assert sequential_test(up).verdict == "better, p < 0.001"
    assert sequential_test(up).mark == "≫"
    assert sequential_test(-up).verdict == "worse, p < 0.001"
    assert sequential_test([0.0]).verdict == "no difference shown, p = 1.000"
    some = sequential_test(np.full(33, 0.3))
    assert (some.mark, some.verdict[:10]) == (">", "better, p ") and 0.01 < some.p_value <= 0.05


@pytest.mark.parametrize(
    ("x", "level", "message"),
    [
        ([], 0.05, "at least one"),
        ([[0.0]], 0.05, "one-dimensional"),
        (["a"], 0.05, "numbers"),
        ([1.5], 0.05, "from -1 to 1"),
        ([np.nan], 0.05, "from -1 to 1"),
        ([0.0], 0.0, "level must be"),
    ],
)
def test_bad_input(x, level, message):
    with pytest.raises(InvalidInputError, match=message):
        sequential_test(x, level)
