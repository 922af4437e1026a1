"""Quadruplets: what they hold, and how they and nearest triplets are sampled."""

from __future__ import annotations

import re

import numpy as np
import pytest

from samewise import Quadruplets, Triplets
from samewise.exceptions import InvalidInputError


def test_chosen_rows_and_their_shape(labeled):
    made = Quadruplets.from_labels(*labeled, 50, random_state=0)
    assert made.shape == (50, 4) and len(made[10:20]) == 10
    np.testing.assert_array_equal(made[[3, 1]].c, made.c[[3, 1]])
    assert made.X is labeled[0]


def test_near_pairs_are_similar_and_far_pairs_are_not(labeled, seed):
    X, y = labeled
    made = Quadruplets.from_labels(X, y, random_state=seed)
    assert np.all(y[made.a] == y[made.b]) and np.all(y[made.c] != y[made.d])
    assert np.all(made.a != made.b)
    # All similar pairs once: there are fewer of them than were to be sampled.
    assert len(made) == 3 * 190
    pairs = np.sort([made.a, made.b], axis=0)
    assert len(np.unique(pairs, axis=1).T) == len(made)
    again = Quadruplets.from_labels(X, y, random_state=seed)
    np.testing.assert_array_equal(made.d, again.d)


def nearest(X, y, i, same, k):
    """The nearest of a class, by a loop."""
    others = [j for j in range(len(X)) if j != i and (y[j] == y[i]) == same]
    return sorted(others, key=lambda j: np.linalg.norm(X[i] - X[j]))[:k]


def test_nearest_triplets_and_quadruplets_are_those_of_a_loop(labeled):
    X, y = labeled
    wanted = {
        (i, p, n)
        for i in range(60)
        for p in nearest(X, y, i, True, 2)
        for n in nearest(X, y, i, False, 3)
    }
    found = Triplets.from_neighbors(X, y, n_neighbors=2, n_impostors=3)
    assert set(zip(found.anchor, found.positive, found.negative, strict=True)) == wanted
    assert len(found) == len(wanted)
    beside = Quadruplets.from_labels(X, y, strategy="nearest", n_neighbors=3)
    wanted = {
        (i, p, i, n)
        for i in range(60)
        for p, n in zip(nearest(X, y, i, True, 3), nearest(X, y, i, False, 3), strict=True)
    }
    assert set(zip(beside.a, beside.b, beside.c, beside.d, strict=True)) == wanted
    assert len(beside) == 180


def test_classes_too_small_give_what_they_have():
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 0, 1, 2])
    found = Triplets.from_neighbors(X, y, n_neighbors=5, n_impostors=4)
    assert len(found) == 4 * 3 * 2 and set(found.negative) == {4, 5}
    assert len(Quadruplets.from_labels(X, y, strategy="nearest", n_neighbors=5)) == 4 * 2
    few = Triplets.from_neighbors(X, y, 7, random_state=0)
    assert len(few) == 7 and np.all(np.diff(few.anchor) >= 0)
    with pytest.raises(InvalidInputError, match="Nearest triplets need a class with at least two"):
        Triplets.from_neighbors(X, np.arange(6))


def test_copies_of_rows_make_no_difference_where_they_are_merged(labeled):
    X, y = labeled
    order = np.random.default_rng(0).permutation(90) % 60
    for strategy in ("balanced", "nearest"):
        how = {"strategy": strategy, "merge_duplicates": True, "random_state": 3}
        one = Quadruplets.from_labels(X, y, 40, **how)
        two = Quadruplets.from_labels(X[order], y[order], 40, **how)
        for name in one._members:
            np.testing.assert_array_equal(
                one.X[getattr(one, name)], two.X[getattr(two, name)], err_msg=strategy
            )


def test_what_is_refused(labeled):
    X, y = labeled
    for make, said in [
        (lambda: Quadruplets(X, [0], [1], [2], [3, 4]), "must have the same length, .* 1, 1, 1, 2"),
        (lambda: Quadruplets(X, [0], [1], [2], [60]), "d must"),
        (lambda: Quadruplets(X, [0], [1], [2], [3], [-1.0]), "sample_weight"),
        (lambda: Quadruplets.from_arrays(np.zeros((2, 3, 1))), "shape \\(n_quadruplets, 4"),
        (lambda: Quadruplets.from_labels(X, y, strategy="hard"), "'balanced' or 'nearest'"),
        (lambda: Quadruplets.from_labels(X, y, 0), "n_quadruplets must be an integer"),
        (lambda: Triplets.from_neighbors(X, y, n_impostors=0), "n_impostors must be an integer"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            make()
    assert re.fullmatch(
        r"Quadruplets\(1 .* 60 rows of 5 features\)", repr(Quadruplets(X, *[[0]] * 4))
    )
