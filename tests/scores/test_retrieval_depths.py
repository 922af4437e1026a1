"""MAP@R, R-precision and hit rate, rank by rank; ties by all orders of equal items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from samewise.exceptions import InvalidInputError
from samewise.scores import (
    average_precision,
    average_precision_at_r,
    hit_rate_at_k,
    r_precision,
    ranking,
)


def naive(order, relevant, k):
    """(R-precision, AP@R, hit@k) of one order of the items."""
    R = sum(relevant)
    found, precisions = 0, 0.0
    for rank, item in enumerate(order[:R], start=1):
        found += relevant[item]
        precisions += relevant[item] * found / rank
    return found / R, precisions / R, float(any(relevant[item] for item in order[:k]))


def orders(scores, ties):
    """The orders of items by falling score: one, or all orders of equal items."""
    by_index = sorted(range(len(scores)), key=lambda item: -scores[item])
    if ties == "index":
        return [by_index]
    groups = [list(g) for _, g in itertools.groupby(by_index, key=lambda item: scores[item])]
    choices = itertools.product(*map(itertools.permutations, groups))
    return [[item for group in chosen for item in group] for chosen in choices]


@pytest.mark.parametrize("ties", ["expected", "index"])
@pytest.mark.parametrize("levels", [1, 2, 3, 100])
def test_they_are_the_mean_over_all_orders(levels, ties, seed, monkeypatch):
    monkeypatch.setattr(ranking, "_CHUNK", 18)
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (25, 6)) / 7.0
    relevant = rng.random((25, 6)) < rng.random((25, 1))
    relevant[0], relevant[1] = False, True
    for k in (1, 3, 6):
        found = (
            r_precision(scores, relevant, ties=ties),
            average_precision_at_r(scores, relevant, ties=ties),
            hit_rate_at_k(scores, relevant, k, ties=ties),
        )
        for row, flags in enumerate(relevant.tolist()):
            if not any(flags):
                assert all(np.isnan(values[row]) for values in found)
                continue
            every = [naive(order, flags, k) for order in orders(scores[row].tolist(), ties)]
            np.testing.assert_allclose([v[row] for v in found], np.mean(every, axis=0), atol=1e-12)


def test_what_they_are_to_each_other(seed):
    rng = np.random.default_rng(seed)
    scores, relevant = rng.normal(size=(20, 30)), rng.random((20, 30)) < 0.3
    at_r = average_precision_at_r(scores, relevant)
    assert np.all(at_r <= r_precision(scores, relevant))
    assert np.all(at_r <= average_precision(scores, relevant))
    np.testing.assert_array_equal(average_precision_at_r(relevant.astype(float), relevant), 1.0)
    hits = [hit_rate_at_k(scores, relevant, k).mean() for k in range(1, 31)]
    assert np.all(np.diff(hits) >= 0) and hits[-1] == 1


@pytest.mark.parametrize("call", [r_precision, average_precision_at_r])
def test_bad_input(call):
    with pytest.raises(InvalidInputError, match="same shape"):
        call([[1.0, 2.0]], [[1]])
    with pytest.raises(InvalidInputError, match="ties must be"):
        call([[1.0, 2.0]], [[1, 0]], ties="no")
    for k in (0, 3, 1.5):
        with pytest.raises(InvalidInputError, match="k must be an integer from 1 to 2"):
            hit_rate_at_k([[1.0, 2.0]], [[1, 0]], k)
    with pytest.raises(InvalidInputError, match="dense array of real numbers"):
        hit_rate_at_k([1.0, 2.0], [1, 0], 1)
    with pytest.raises(InvalidInputError, match="dense array of real numbers"):
        hit_rate_at_k(3.0, 1, 1)
