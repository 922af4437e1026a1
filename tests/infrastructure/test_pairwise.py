"""The thinned products of the tests have every pair of values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.pairwise import pairwise, thinned


def met(cases):
    return {pair for case in cases for pair in itertools.combinations(enumerate(case), 2)}


@pytest.mark.parametrize(
    "sizes", [(3,), (4, 2), (3, 3, 3), (4, 3, 4, 2), (7, 1, 5, 3, 2), (9, 9, 9)]
)
def test_every_pair_of_values_is_in_a_case(sizes):
    values = [range(size) for size in sizes]
    cases = thinned(values)
    assert len(set(cases)) == len(cases)
    assert met(cases) == met(itertools.product(*values))
    assert {value for case in cases for value in enumerate(case)} == {
        (i, value) for i, column in enumerate(values) for value in column
    }
    assert cases == thinned(values)
    # No fewer cases than the two largest columns ask for, and not many more.
    least = math.prod(sorted(sizes)[-2:])
    assert least <= len(cases) <= 1.5 * least


def test_impossible_cases_are_left_out_and_the_others_keep_their_pairs():
    values = [range(4), range(3), range(3)]

    def possible(case):
        return case[0] != case[1] and case[2] != 2

    cases = thinned(values, possible)
    assert all(map(possible, cases))
    assert met(cases) == met(filter(possible, itertools.product(*values)))


def test_cases_are_named_by_their_values():
    mark = pairwise(
        average=["last", ("suffix", 3)],
        kind=[np.asarray],
        sparse={"dense": False, "sparse": True},
        unless=lambda average, kind, sparse: sparse and average == "last",
    ).mark
    names, cases = mark.args
    assert names == ["average", "kind", "sparse"]
    assert {case.id: case.values for case in cases} == {
        "last-asarray-dense": ("last", np.asarray, False),
        "suffix 3-asarray-dense": (("suffix", 3), np.asarray, False),
        "suffix 3-asarray-sparse": (("suffix", 3), np.asarray, True),
    }
