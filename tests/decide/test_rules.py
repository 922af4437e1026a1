from collections import Counter

import numpy as np
import pytest

from samewise.decide import sum_closeness, vote


def naive_vote(labels, n_classes):
    """Count, and drop the farthest until one class leads alone."""
    for k in range(len(labels), 0, -1):
        counts = Counter(labels[:k])
        best = max(counts.values())
        leaders = [c for c, count in counts.items() if count == best]
        if len(leaders) == 1:
            return leaders[0], [counts[c] / k for c in range(n_classes)]
    raise AssertionError("one neighbor cannot tie")


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 9])
def test_vote_counts_and_shrinks(k, n_classes):
    labels = np.random.default_rng(k).integers(n_classes, size=(300, k))
    before = labels.copy()
    winners, probabilities = vote(labels, n_classes)
    for row, winner, p in zip(labels, winners, probabilities, strict=True):
        expected, fractions = naive_vote(row.tolist(), n_classes)
        assert winner == expected
        np.testing.assert_allclose(p, fractions)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), winners)
    np.testing.assert_array_equal(labels, before)


def test_a_tie_goes_to_the_class_that_leads_without_the_farthest():
    winners, probabilities = vote(np.array([[2, 1, 1, 2], [0, 1, 2, 3]]), 4)
    np.testing.assert_array_equal(winners, [1, 0])
    np.testing.assert_allclose(probabilities, [[0, 2 / 3, 1 / 3, 0], [1, 0, 0, 0]])


def test_a_vote_over_no_rows_is_empty():
    winners, probabilities = vote(np.empty((0, 3), dtype=int), 2)
    assert winners.shape == (0,)
    assert probabilities.shape == (0, 2)


def test_sum_closeness_adds_up():
    closeness = np.random.default_rng(0).normal(size=(50, 4, 3))
    winners, sums = sum_closeness(closeness)
    for i in range(50):
        expected = [sum(closeness[i, c]) for c in range(4)]
        np.testing.assert_allclose(sums[i], expected)
        assert winners[i] == max(range(4), key=lambda c: expected[c])


def test_equal_sums_go_to_the_smaller_class():
    winners, _ = sum_closeness(np.zeros((1, 3, 2)))
    np.testing.assert_array_equal(winners, [0])


def test_small_integer_labels_can_be_counted():
    labels = np.tile(np.array([[9, 3, 3]], dtype=np.uint8), (300, 1))
    winners, probabilities = vote(labels, 10)
    assert np.all(winners == 3)
    assert probabilities.shape == (300, 10)
