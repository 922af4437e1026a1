"""What is no array of numbers, given where one is wanted: a sentence, never NumPy's own error."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import (
    LDA,
    LSML,
    MLKR,
    OASIS,
    RCA,
    Index,
    Judgements,
    Mahalanobis,
    Pairs,
    PassiveAggressive,
    Quadruplets,
    Triplets,
)
from samewise.exceptions import InvalidInputError
from samewise.search import ClassIndex
from tests.hostile.outcomes import check_sentence

X, I5, Y = np.random.default_rng(0).normal(size=(5, 3)), np.arange(5), [0, 1, 0, 1, 0]
SIGNS = np.array([1, -1, 1, -1, 1])
RAGGED = [[1], [1, 2], 1, 1, 1]
HUGE = 10**400

PLACES = {
    "left": lambda odd: Pairs(X, odd, I5, SIGNS),
    "signs": lambda odd: Pairs(X, I5, I5[::-1], odd),
    "weights": lambda odd: Pairs(X, I5, I5[::-1], SIGNS, odd),
    "anchor": lambda odd: Triplets(X, odd, I5, I5),
    "quadruplets": lambda odd: Quadruplets(X, odd, I5, I5, I5),
    "shown": lambda odd: Judgements(X, I5, odd, [[1]] * 5),
    "answers": lambda odd: Judgements(X, I5, I5[:, None], odd),
    "labels": lambda odd: Pairs.from_labels(X, odd),
    "grades": lambda odd: Pairs.from_grades(X, odd),
    "chunklets": lambda odd: RCA().fit(X, chunklets=odd),
    "comparisons": lambda odd: LSML().fit(odd),
    "rows": lambda odd: PassiveAggressive().fit(odd, Y),
    "classes": lambda odd: ClassIndex(None, X, odd),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "odd",
    [RAGGED, np.ma.masked_greater(I5, 2), sp.coo_array(I5[None]), [b"a"] * 5, None, "abc"],
    ids=["ragged", "masked", "sparse", "bytes", "None", "text"],
)
def test_no_array(place, odd):
    if place == "weights" and odd is None:
        return
    with pytest.raises((ValueError, TypeError)) as found:
        PLACES[place](odd)
    check_sentence(found.value)


@pytest.mark.parametrize("make", [list, lambda rows: np.array(rows, dtype=object)])
def test_whole_numbers_that_float64_cannot_hold(make):
    rows = make([[HUGE] * 3] * 5)
    said = "X holds a whole number beyond the largest of float64"
    for learn in (LDA().fit, PassiveAggressive().fit):
        with pytest.raises(InvalidInputError, match=said):
            learn(rows, Y)
    with pytest.raises(InvalidInputError, match=said):
        Pairs(rows, I5, I5[::-1], SIGNS)
    with pytest.raises(InvalidInputError, match="must be a rectangular array of real numbers"):
        Mahalanobis.identity(3).embed(rows)
    with pytest.raises(InvalidInputError, match="MLKR predicts numbers"):
        MLKR().fit(X, [HUGE] * 5)


@pytest.mark.parametrize("weights", [["a"] * 5, 1j * I5, I5.astype("datetime64[s]")])
def test_weights_that_are_no_numbers(weights):
    with pytest.raises(InvalidInputError, match="sample_weight must be real numbers"):
        Pairs(X, I5, I5[::-1], SIGNS, weights)


@pytest.mark.parametrize("count", ["a", 0, 1.5, [3]])
def test_counts_that_are_none(count):
    said = "must be an integer of at least 1. Got"
    for how in ({"n_neighbors": count}, {"n_impostors": count}, {"n_triplets": count}):
        with pytest.raises(InvalidInputError, match=said):
            Triplets.from_neighbors(X, Y, **how)
    with pytest.raises(InvalidInputError, match=said):
        Triplets.from_neighbors(X, Y, n_neighbors=None)
    with pytest.raises(InvalidInputError, match="The strategy must be 'balanced'"):
        Pairs.from_labels(X, Y, strategy=np.array(["nearest", "random"]))


@pytest.mark.parametrize("labels", [[0, 0, 2, 2, 2], [-1, 0, 1, 1, 0], [2**62] * 5, [0, 1], Y * 2])
def test_class_numbers_of_an_index(labels):
    with pytest.raises(InvalidInputError, match="labels must be class numbers 0, 1, …, one for"):
        ClassIndex(None, X, labels)


def test_judgements_where_triplets_or_pairs_are_learned_from():
    judged = Judgements(X, [0], [[1, 2]], [[1, -1]])
    with pytest.raises(InvalidInputError, match=r"from triplets\. Got Judgements; give"):
        OASIS().fit(judged)
    with pytest.raises(InvalidInputError, match=r"learns from pairs\. Got Judgements, which say"):
        PassiveAggressive().fit(judged, SIGNS)
    OASIS().fit(judged.triplets())


def test_an_index_of_what_is_no_form():
    with pytest.raises(InvalidInputError, match="form must be a Form, such as the metric_ of a"):
        Index("euclidean", X)
