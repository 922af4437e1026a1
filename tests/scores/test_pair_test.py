"""The bootstrap test of decisions on pairs."""

from __future__ import annotations

import numpy as np
import pytest

from samewise.exceptions import InvalidInputError
from samewise.scores import balanced_error, pair_test, s_test


def all_pairs(n):
    return np.stack(np.tril_indices(n, -1), axis=1)


def test_it_is_the_plain_loop_over_resamples():
    rng = np.random.RandomState(3)
    pairs = all_pairs(12)[rng.permutation(66)[:50]]
    same, a, b = (rng.random_sample(50) < part for part in (0.5, 0.9, 0.7))
    found = pair_test(pairs, same, a, b, n_resamples=200, random_state=5)

    def error(correct, weights):
        closeness = np.where(correct == same, 1.0, -1.0)
        return balanced_error(closeness, np.where(same, 1, -1), 0.0, weights)

    examples = np.unique(pairs).tolist()
    drawn, random = [], np.random.RandomState(5)
    for _ in range(200):
        counts = random.multinomial(len(examples), np.full(len(examples), 1 / len(examples)))
        times = dict(zip(examples, counts, strict=True))
        weights = np.array([times[i] * times[j] for i, j in pairs.tolist()], dtype=float)
        if weights[same].any() and weights[~same].any():
            drawn.append(error(a, weights) - error(b, weights))
    assert found.difference == pytest.approx(error(a, None) - error(b, None))
    assert found.interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]))
    tail = min(np.sum(np.array(drawn) <= 0), np.sum(np.array(drawn) >= 0))
    assert found.p_value == pytest.approx(min(1, 2 * (tail + 1) / (len(drawn) + 1)))


def decided(rng, n, pairs, part):
    """Decisions of a metric that is wrong about all pairs of some examples."""
    odd = rng.random_sample(n) < part
    return ~odd[pairs].any(axis=1)


def test_chance_is_not_taken_for_a_difference_where_examples_share_their_errors():
    rng = np.random.RandomState(0)
    pairs = all_pairs(40)
    same = pairs.sum(axis=1) % 2 == 0
    found, naive = 0, 0
    for _ in range(100):
        a, b = decided(rng, 40, pairs, 0.1), decided(rng, 40, pairs, 0.1)
        found += pair_test(pairs, same, a, b, n_resamples=200, random_state=rng).mark != "="
        naive += s_test(a, b).mark != "="
    # 5 of 100 are expected; a test that takes pairs for independent finds a difference in most.
    assert found <= 12 and naive > 60


def test_a_real_difference_is_found_and_has_a_direction():
    rng = np.random.RandomState(0)
    pairs = all_pairs(80)
    same = pairs.sum(axis=1) % 2 == 0
    a, b = decided(rng, 80, pairs, 0.02), decided(rng, 80, pairs, 0.4)
    better, worse = pair_test(pairs, same, a, b), pair_test(pairs, same, b, a)
    assert (better.mark, worse.mark) == ("≫", "≪")
    assert better.verdict == "better, p < 0.001" and worse.verdict == "worse, p < 0.001"
    assert better.difference == -worse.difference < 0
    assert better.interval[0] < better.difference < better.interval[1] < 0
    # Numbers of examples name them; which numbers these are means nothing.
    assert pair_test(pairs + 1000, same, a, b) == better


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"pairs": [[0.5, 1.0]] * 3}, "whole numbers of shape"),
        ({"same": [1, 1, 1]}, "pairs of both kinds"),
        ({"correct_a": [0, 2, 1]}, "correct_a must hold booleans"),
        ({"correct_b": [0, 1]}, "one for each of 3 pairs"),
        ({"n_resamples": 5}, "at least 100"),
    ],
)
def test_bad_input_is_refused(change, text):
    good = {
        "pairs": [[0, 1], [1, 2], [0, 2]],
        "same": [1, 0, 0],
        "correct_a": [1, 1, 0],
        "correct_b": [1, 0, 0],
    }
    with pytest.raises(InvalidInputError, match=text):
        pair_test(**(good | change))
