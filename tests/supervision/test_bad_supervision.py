"""What Pairs and Triplets refuse, and what they say."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Mahalanobis, Pairs, Triplets
from samewise.exceptions import InvalidInputError, SamewiseError

X = np.arange(12.0).reshape(6, 2)
X.flags.writeable = False
Y = [0, 0, 0, 1, 1, 1]


def refused(match, call, error=InvalidInputError):
    with pytest.raises(error, match=re.escape(match)):
        call()


def pairs(left=(0, 1), right=(2, 3), y=(1, -1), weight=None, rows=X):
    return Pairs(rows, list(left), list(right), y, weight)


def triplets(anchor=(0, 1), positive=(2, 3), negative=(4, 5), weight=None, rows=X, items=None):
    return Triplets(rows, list(anchor), list(positive), list(negative), items, weight)


def with_value(value, kind=np.asarray):
    rows = X.copy()
    rows[2, 1] = value
    return kind(rows)


# The matrix


@pytest.mark.parametrize("make", [pairs, triplets])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "value, said", [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")]
)
def test_values_that_are_not_finite(make, kind, value, said):
    refused(said, lambda: make(rows=with_value(value, kind)), ValueError)


def test_items_are_checked_by_their_own_name():
    refused(
        "Input items contains NaN",
        lambda: triplets(items=with_value(np.nan)),
        ValueError,
    )
    refused("dim 3", lambda: triplets(items=np.zeros((2, 2, 2))), ValueError)


@pytest.mark.parametrize("make", [pairs, triplets])
def test_a_matrix_of_the_wrong_dimension(make):
    refused("Expected 2D array, got 1D array instead", lambda: make(rows=np.zeros(6)), ValueError)
    refused("Found array with dim 3", lambda: make(rows=np.zeros((6, 2, 2))), ValueError)
    refused("could not convert string", lambda: make(rows=[["a", "b"]] * 6), ValueError)
    refused("Complex data not supported", lambda: make(rows=X + 1j), ValueError)


# Row numbers


@pytest.mark.parametrize("bad, shown", [([0, 6], 6), ([0, -1], -1), ([99, -1], 99)])
def test_row_numbers_out_of_range(bad, shown):
    said = f"must hold row numbers from 0 to 5 (the matrix has 6 rows). Got {shown}."
    refused(f"left {said}", lambda: pairs(left=bad))
    refused(f"right {said}", lambda: pairs(right=bad))
    refused(f"anchor {said}", lambda: triplets(anchor=bad))
    refused(f"positive {said}", lambda: triplets(positive=bad))
    refused(f"negative {said}", lambda: triplets(negative=bad))


def test_items_have_their_own_range():
    items = np.zeros((3, 2))
    refused(
        "positive must hold row numbers from 0 to 2 (the matrix has 3 rows). Got 3.",
        lambda: triplets(positive=[0, 3], negative=[0, 1], items=items),
    )


@pytest.mark.parametrize("bad", [[0.0, 1.0], [True, False], ["0", "1"], [[0, 1]], [None, 1]])
def test_row_numbers_that_are_none(bad):
    refused("left must be a one-dimensional array of integer row numbers", lambda: pairs(left=bad))
    refused(
        "negative must be a one-dimensional array of integer row numbers",
        lambda: triplets(negative=bad),
    )


def test_the_type_of_bad_row_numbers_is_named():
    refused("Got an array of shape (2,) and type float64.", lambda: pairs(right=[0.0, 1.0]))


def test_lengths_that_differ():
    refused(
        "left and right must have the same length, one row number each for every pair. Got 2 and 1",
        lambda: pairs(right=[2]),
    )
    refused(
        "anchor, positive and negative must have the same length, one row number each for every "
        "triplet. Got 2, 1 and 2.",
        lambda: triplets(positive=[2]),
    )


# Labels of pairs


def test_labels_zero_and_one_get_a_hint():
    refused(
        "Labels of pairs must be +1 (similar) or -1 (dissimilar). Got [0, 1]; for labels 0/1 pass "
        "2*y - 1.",
        lambda: pairs(y=[0, 1]),
    )


@pytest.mark.parametrize(
    "y", [[2, 1], [1.0, np.nan], [0.5, 1], ["a", "b"], [True, False], [1, None], [None, None]]
)
def test_labels_that_are_not_signs(y):
    refused("Labels of pairs must be +1 (similar) or -1 (dissimilar). Got", lambda: pairs(y=y))


@pytest.mark.parametrize("y, shape", [([1], (1,)), ([[1, 1]], (1, 2)), (1, ()), (None, ())])
def test_one_label_for_each_pair(y, shape):
    refused(
        f"y must have one label for each of the 2 pairs. Got an array of shape {shape}.",
        lambda: pairs(y=y),
    )


# Weights


@pytest.mark.parametrize("make, what", [(pairs, "pairs"), (triplets, "triplets")])
def test_weights(make, what):
    refused(
        f"sample_weight must have one weight for each of the 2 {what}. Got an array of shape (3,).",
        lambda: make(weight=[1, 1, 1]),
    )
    refused("Got an array of shape ().", lambda: make(weight=1.0))
    said = (
        "sample_weight must be finite and not negative (0 leaves an example out). Got values from"
    )
    refused(f"{said} -1.0 to 1.0", lambda: make(weight=[1, -1]))
    refused(said, lambda: make(weight=[1, np.nan]))
    refused(f"{said} 1.0 to inf", lambda: make(weight=[1, np.inf]))


@pytest.mark.parametrize("draw", [Pairs.from_labels, Triplets.from_labels])
def test_weights_of_examples(draw):
    refused(
        "sample_weight must have one weight for each of the 6 examples. Got an array of shape (5,)",
        lambda: draw(X, Y, 5, sample_weight=np.ones(5)),
    )
    refused("must be finite and not negative", lambda: draw(X, Y, 5, sample_weight=[-1] + [1] * 5))
    refused("sample_weight", lambda: draw(X, Y, 5, sample_weight=np.zeros(6)))


# Choosing


@pytest.mark.parametrize("make, what", [(pairs, "pairs"), (triplets, "triplets")])
def test_choosing_one_is_refused(make, what):
    said = f"Choose {what} by a slice, a mask or an array of whole numbers."
    refused(said, lambda: make()[0])
    refused(said, lambda: make()[[[0]]])
    refused("out of bounds", lambda: make()[[2]], IndexError)
    refused("boolean index did not match", lambda: make()[[True]], IndexError)


# Arrays


def test_arrays_of_pairs_of_the_wrong_shape():
    said = "An array of pairs must have shape (n_pairs, 2, n_features). Got shape"
    refused(f"{said} (4, 3, 2).", lambda: Pairs.from_arrays(np.zeros((4, 3, 2)), [1] * 4))
    refused(f"{said} (4, 2).", lambda: Pairs.from_arrays(np.zeros((4, 2)), [1] * 4))
    refused(
        "Input pairs contains NaN", lambda: Pairs.from_arrays([[[0.0], [np.nan]]], [1]), ValueError
    )
    refused("inhomogeneous", lambda: Pairs.from_arrays([[[0.0], [1.0, 2.0]]], [1]), ValueError)
    refused("Got [0]", lambda: Pairs.from_arrays([[[0.0], [1.0]]], [0]))
    refused(
        "one label for each of the 1 pairs", lambda: Pairs.from_arrays([[[0.0], [1.0]]], [1, 1])
    )
    refused(
        "An array of pairs must be dense with shape (n, 2, d). Got a sparse matrix; hold the rows "
        "in one matrix and name them by row numbers instead.",
        lambda: Pairs.from_arrays(sp.csr_array(X), [1] * 6),
    )


def test_arrays_of_triplets_of_the_wrong_shape():
    said = "An array of triplets must have shape (n_triplets, 3, n_features). Got shape"
    refused(f"{said} (4, 2, 2).", lambda: Triplets.from_arrays(np.zeros((4, 2, 2))))
    refused(
        "Input triplets contains NaN",
        lambda: Triplets.from_arrays(np.full((1, 3, 1), np.nan)),
        ValueError,
    )
    refused("must be dense with shape (n, 3, d)", lambda: Triplets.from_arrays(sp.csr_array(X)))


# Labels of examples


@pytest.mark.parametrize("draw", [Pairs.from_labels, Triplets.from_labels])
def test_one_class_is_not_enough(draw):
    refused(
        "Learning what is similar needs examples of at least two classes. Got one class",
        lambda: draw(X, np.zeros(6), 5),
    )
    refused(
        "needs examples of at least two classes",
        lambda: draw(X, Y, 5, sample_weight=[1, 1, 1, 0, 0, 0]),
    )


@pytest.mark.parametrize(
    "draw, what", [(Pairs.from_labels, "Similar pairs"), (Triplets.from_labels, "Triplets")]
)
def test_classes_of_one_example_are_not_enough(draw, what):
    refused(
        f"{what} need a class with at least two examples. Got 6 classes of one example each",
        lambda: draw(X, np.arange(6), 5),
    )
    # Classes that weigh nothing are not there.
    refused(
        "Got 3 classes of one example each",
        lambda: draw(X, [0, 0, 1, 2, 3, 3], 5, sample_weight=[0, 0, 1, 1, 1, 0]),
    )


@pytest.mark.parametrize("draw", [Pairs.from_labels, Triplets.from_labels])
def test_labels_of_examples(draw):
    refused(
        "y must have one label for each of the 6 rows of X. Got 5 labels.",
        lambda: draw(X, Y[:5], 5),
    )
    refused("y should be a 1d array", lambda: draw(X, np.c_[Y, Y], 5), ValueError)
    refused("y should be a 1d array", lambda: draw(X, None, 5), ValueError)
    refused("Unknown label type: continuous", lambda: draw(X, np.linspace(0, 1, 6), 5), ValueError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused("Input y contains NaN", lambda: draw(X, [np.nan, *Y[1:]], 5), ValueError)
    refused("Input X contains NaN", lambda: draw(with_value(np.nan), Y, 5), ValueError)


@pytest.mark.parametrize("count", [0, -3, 2.0, "5"])
def test_how_many(count):
    said = f"must be an integer of at least 1. Got {count!r}."
    refused(f"n_pairs {said}", lambda: Pairs.from_labels(X, Y, count))
    refused(f"n_triplets {said}", lambda: Triplets.from_labels(X, Y, count))
    refused(
        f"n_neighbors {said}",
        lambda: Pairs.from_labels(X, Y, strategy="nearest", n_neighbors=count),
    )
    refused(f"n_triplets {said}", lambda: Triplets.from_grades(X, X, np.eye(6), count))


def test_an_unknown_strategy():
    refused(
        "The strategy must be 'balanced', 'random' or 'nearest'. Got 'hard'.",
        lambda: Pairs.from_labels(X, Y, 5, strategy="hard"),
    )


def test_a_form_for_other_features():
    refused(
        "X has 2 features, but Mahalanobis expects 3",
        lambda: Pairs.from_labels(X, Y, strategy="nearest", form=Mahalanobis.identity(3)),
    )


def test_a_random_state_that_is_none():
    refused(
        "'a' cannot be used to seed",
        lambda: Pairs.from_labels(X, Y, 5, random_state="a"),
        ValueError,
    )


# Grades


def test_grades():
    refused(
        "grades must have shape (6, 6), a row for each query and a column for each item. Got "
        "(6, 5).",
        lambda: Pairs.from_grades(X, np.ones((6, 5))),
    )
    refused(
        "grades must have shape (6, 4)",
        lambda: Triplets.from_grades(X, np.zeros((4, 2)), np.ones((4, 6))),
    )
    refused(
        "grades must be finite. Got NaN or infinity.",
        lambda: Triplets.from_grades(X, X, np.full((6, 6), np.nan)),
    )
    said = (
        "grades must hold, for some query, an item of a positive grade above another item's. "
        "Got none."
    )
    refused(said, lambda: Triplets.from_grades(X, X, np.ones((6, 6))))
    refused(said, lambda: Triplets.from_grades(X, X, np.zeros((6, 6))))


def test_own_errors_are_value_errors_and_samewise_errors():
    for kind in (ValueError, SamewiseError):
        refused("Labels of pairs", lambda: pairs(y=[0, 1]), kind)


def test_no_pairs_are_pairs():
    empty = Pairs(X, [], [], [])
    assert len(empty) == 0 and empty.left.dtype == np.intp
    assert empty.differences().shape == (0, 2)
    assert len(Triplets(X, [], [], [])) == 0
    assert len(Pairs(np.empty((0, 2)), [], [], [])) == 0
    assert len(Pairs.from_grades(X, sp.coo_array((6, 6)))) == 0
