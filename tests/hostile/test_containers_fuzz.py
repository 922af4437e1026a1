"""Pairs, triplets and indexes: what they accept can be used, the rest is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import samewise
from samewise import Index, Pairs, Triplets
from samewise.catalog import WHERE
from samewise.compat import metric_learn
from samewise.search import ClassIndex
from tests.hostile.outcomes import Refusal, attempt, bits, check_finite
from tests.hostile.strategies import labels, malformed, n_rows, rows, supervision, weights

SUPERVISION = [name for name, place in WHERE.items() if place == "samewise.supervision"]
# Judgements are not sampled; what they refuse is tested beside them.
CONTAINERS = [name for name in SUPERVISION if name != "Judgements"]
any_rows = rows() | malformed()
counts = st.none() | st.integers(0, 40)


def check_numbers(container):
    """Every row number is one of the matrix, and a part of a container is a container."""
    for name in container._members:
        at = getattr(container, name)
        matrix = getattr(container, "items", container.X) if name != "anchor" else container.X
        assert len(at) == len(container)
        assert np.all((at >= 0) & (at < matrix.shape[0]))
    part = container[::2]
    assert len(part) == (len(container) + 1) // 2 and type(part) is type(container)
    if isinstance(container, Pairs):
        check_finite(attempt(container.differences))


@pytest.mark.parametrize("name", CONTAINERS)
@given(data=st.data())
def test_row_numbers_into_any_matrix(name, data):
    given = data.draw(supervision([name.lower()], X=any_rows))
    before = bits(given.arrays)
    made = attempt(
        lambda: given.to(
            getattr(samewise, name).from_arrays if given.kind == "array" else lambda c: c
        ),
        given,
    )
    assert bits(given.arrays) == before
    if not isinstance(made, Refusal):
        check_numbers(made)


@pytest.mark.parametrize("name", CONTAINERS)
@given(data=st.data())
def test_drawn_from_any_labels(name, data):
    X = data.draw(any_rows)
    y, weight = data.draw(labels(n_rows(X))), data.draw(weights(n_rows(X)))
    options = {"sample_weight": weight, "merge_duplicates": data.draw(st.booleans())}
    if name == "Quadruplets":
        options.clear()
    if name in ("Pairs", "Quadruplets"):
        options["strategy"] = data.draw(st.sampled_from(["balanced", "random", "nearest", "what"]))
        options["n_neighbors"] = data.draw(st.integers(0, 6))
    else:
        options["negatives"] = data.draw(
            st.sampled_from(["random", "semi-hard", 0.5, -1.0, np.nan])
        )
    n = data.draw(counts)
    draw = getattr(samewise, name).from_labels
    made = [
        attempt(lambda: draw(X, y, n, random_state=0, **options), X, y, n, options) for _ in "ab"
    ]
    if not isinstance(made[0], Refusal):
        check_numbers(made[0])
        for member in made[0]._members:
            np.testing.assert_array_equal(getattr(made[0], member), getattr(made[1], member))


@pytest.mark.parametrize("name", ["Pairs", "Triplets"])
@given(data=st.data())
def test_drawn_from_any_grades(name, data):
    X = data.draw(any_rows)
    n = st.just(n_rows(X))
    grades = data.draw(rows(n, n, layouts=("CSR", "C", "CSC")) | malformed(n, n) | malformed())
    given = (X, grades) if name == "Pairs" else (X, X, grades)
    made = attempt(lambda: getattr(samewise, name).from_grades(*given), *given)
    if not isinstance(made, Refusal):
        check_numbers(made)


@given(data=st.data())
def test_parts_of_containers(data):
    X = np.eye(3)
    container = data.draw(
        st.sampled_from([Pairs(X, [0, 1], [1, 2], [1, -1]), Triplets(X, [0, 1], [1, 2], [2, 0])])
    )
    part = data.draw(
        st.slices(5)
        | st.lists(st.integers(-3, 3), max_size=3)
        | st.lists(st.booleans(), max_size=3)
        | st.sampled_from([0, -1, None, "x", 1.5, np.nan, [0.5], [[0]], np.array([])])
    )
    try:
        made = attempt(lambda: container[part], container, part)
    except IndexError as error:
        # What a sequence says about a place that it does not have.
        assert "out of bounds" in str(error) or "boolean index" in str(error)
    else:
        if not isinstance(made, Refusal):
            check_numbers(made)


DOORS = {
    "classes": lambda X, y: ClassIndex(None, X, y),
    "lists": lambda X, y: samewise.Judgements(X, [0], [[0, 1]], [[1, -1]]),
    "maps": lambda X, y: samewise.MultiMetric(X),
    "chunks": lambda X, y: metric_learn.RCA().fit(X, y),
    "points": lambda X, y: metric_learn.Covariance(preprocessor=X).fit(np.arange(len(y))),
    "pairs": lambda X, y: metric_learn.ITML(preprocessor=X).fit([[0, 1], [1, 0]], [1, -1]),
    "constraints": lambda X, y: metric_learn.Constraints(y).generate_knntriplets(X, 1, 1),
}


@pytest.mark.parametrize("door", DOORS)
@given(X=any_rows)
def test_any_rows_through_other_doors(door, X):
    before = bits(X)
    attempt(lambda: DOORS[door](X, np.arange(n_rows(X)) % 2), X)
    assert bits(X) == before


@given(data=st.data())
def test_an_index_finds_the_nearest(data):
    d = data.draw(st.integers(1, 3))
    X = data.draw(rows(d=st.just(d)) | malformed(d=st.just(d)))
    Q = data.draw(rows(d=st.just(d)) | malformed(d=st.just(d)))
    k = data.draw(st.integers(0, 13))
    route = data.draw(st.sampled_from(["auto", "tree", "blocked", "products"]))
    form = data.draw(
        st.sampled_from([None, samewise.Bilinear(np.eye(d)), samewise.Mahalanobis(2 * np.eye(d))])
    )
    found = attempt(lambda: Index(form, X, route=route).query(Q, k), form, X, Q, k, route)
    if isinstance(found, Refusal):
        return
    closeness, at = found
    assert closeness.shape == at.shape == (n_rows(Q), k)
    check_finite(closeness)
    assert np.all((at >= 0) & (at < n_rows(X)))
    assert np.all(np.diff(closeness, axis=1) <= 0)
    assert all(len(set(row)) == k for row in at.tolist())
