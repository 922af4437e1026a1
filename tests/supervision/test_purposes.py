"""Pairs sampled from labels for a purpose, and those held out."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import GeneralizedCosine, Pairs
from samewise.exceptions import InvalidInputError
from samewise.supervision.purposes import sampled_pairs


@pytest.fixture
def labeled():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return rng.normal(size=(60, 4)) + y[:, None], y


def names(pairs):
    return {frozenset(pair) for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)}


@pytest.mark.parametrize("purpose", ["neighbors", "verification"])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_held_out_are_random_balanced_and_not_learned_from(labeled, purpose, seed):
    X, y = labeled
    how = {"purpose": purpose, "n_neighbors": 4, "n_pairs": None}
    learned, held_out = sampled_pairs(X, y, **how, random_state=seed)
    for pairs in (learned, held_out):
        np.testing.assert_array_equal(pairs.y > 0, y[pairs.left] == y[pairs.right])
    assert names(learned).isdisjoint(names(held_out))
    # A fifth of the 570 similar pairs, and as many dissimilar ones.
    assert len(names(held_out)) == len(held_out) == 2 * 114
    assert np.count_nonzero(held_out.y > 0) == 114


def test_near_pairs_are_the_nearest_in_random_order(labeled):
    X, y = labeled
    form = GeneralizedCosine(np.eye(4))
    nearest = Pairs.from_labels(X, y, strategy="nearest", n_neighbors=4, form=form)
    how = {"purpose": "neighbors", "n_neighbors": 4, "form": form, "random_state": 0}
    learned, held_out = sampled_pairs(X, y, n_pairs=None, **how)
    assert names(learned) == names(nearest) - names(held_out)
    assert np.any(np.diff(learned.left) < 0)
    few, _ = sampled_pairs(X, y, n_pairs=50, **how)
    assert 30 <= len(few) <= 50 and names(few) <= names(nearest)


def test_where_there_are_hardly_any_pairs_all_are_learned_from():
    X = np.array([[0.0], [1.0], [5.0]])
    how = {"purpose": "neighbors", "n_neighbors": 3, "n_pairs": None, "random_state": 0}
    learned, held_out = sampled_pairs(X, [0, 0, 1], **how)
    assert names(learned) == {frozenset(pair) for pair in ((0, 1), (0, 2), (1, 2))}
    assert sorted(held_out.y.tolist()) == [-1, 1]
    with pytest.raises(InvalidInputError, match="need a class with at least two examples"):
        sampled_pairs(X, [0, 1, 2], **how)
