"""The one gate: what each kind of input becomes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Pairs, Triplets
from samewise.exceptions import InvalidInputError
from samewise.supervision.gate import as_pairs, is_labeled
from samewise.supervision.row_numbers import passes

X = np.arange(8.0).reshape(4, 2)


def never(*args):
    raise AssertionError("nothing is to be drawn here")


def through(given, y=None, sample_weight=None, draw=never):
    return as_pairs(given, y, sample_weight, learner="Learner", draw=draw)


class Duck:
    """Converts to an array, and offers nothing else."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError("only conversion is supported")


@pytest.mark.parametrize("kind", [np.asarray, list, sp.csr_array, sp.coo_array, Duck])
def test_a_matrix_is_labeled_examples(kind):
    assert is_labeled(kind(X))


@pytest.mark.parametrize("kind", [np.asarray, list, Duck])
def test_three_dimensions_are_pairs(kind):
    assert not is_labeled(kind(X.reshape(2, 2, 2)))
    pairs = through(kind(X.reshape(2, 2, 2)), [1, -1], [1, 2])
    np.testing.assert_array_equal(pairs.differences(), [[-2, -2], [-2, -2]])
    np.testing.assert_array_equal(pairs.y, [1, -1])
    np.testing.assert_array_equal(pairs.sample_weight, [1, 2])


def test_pairs_pass_as_they_are():
    pairs = Pairs(X, [0], [1], [1])
    assert not is_labeled(pairs)
    assert through(pairs) is pairs
    assert through(pairs, [1]) is pairs


def test_labels_are_handed_to_the_draw():
    drawn = object()
    y, weight = [0, 1, 0, 1], [1, 1, 1, 2]
    seen = []
    assert through(X, y, weight, lambda *args: seen.append(args) or drawn) is drawn
    assert seen == [(X, y, weight)]


@pytest.mark.parametrize(
    "given, y, weight, said",
    [
        (X, None, None, "^Learner requires y to be passed, but the target y is None: give class"),
        (X.reshape(2, 2, 2), None, None, "^Learner requires y to be passed with an array of pairs"),
        (
            Pairs(X, [0], [1], [1]),
            [-1],
            None,
            r"^Pairs carry their own labels and weights: call fit",
        ),
        (
            Pairs(X, [0], [1], [1]),
            None,
            [1],
            r"without y and sample_weight, and give those to Pairs",
        ),
        (Triplets(X, [0], [1], [2]), None, None, "^Learner learns from pairs. Got Triplets, which"),
        (Pairs(X, [], [], []), None, None, "^Learner needs at least one pair. Got none."),
        (np.empty((0, 2, 2)), [], None, "^Learner needs at least one pair. Got none."),
        (X.reshape(1, 4, 2), [1], None, r"must have shape \(n_pairs, 2, n_features\). Got shape"),
    ],
)
def test_what_is_refused(given, y, weight, said):
    with pytest.raises(InvalidInputError, match=said):
        through(given, y, weight)


def test_passes_repeat_and_shuffle():
    pairs = Pairs(np.arange(40.0).reshape(40, 1), np.arange(40), np.zeros(40, int), np.ones(40))
    rng = np.random.RandomState(0)
    before = rng.get_state()[1].copy()
    assert [p is pairs for p in passes(pairs, 3, False, rng)] == [True] * 3
    np.testing.assert_array_equal(rng.get_state()[1], before)
    orders = [p.left.tolist() for p in passes(pairs, 3, True, rng)]
    assert all(sorted(order) == list(range(40)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    again = [p.left.tolist() for p in passes(pairs, 3, True, np.random.RandomState(0))]
    assert again == orders
