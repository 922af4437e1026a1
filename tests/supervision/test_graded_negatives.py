"""Negatives of graded items: those that were judged, and semi-hard ones without labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Bilinear, Mahalanobis, Triplets
from samewise.exceptions import InvalidInputError
from samewise.supervision.negatives import POOL


def thumbs(n_queries=20, n_items=2000, seed=0):
    """One thumb up and one down for each query."""
    rng = np.random.default_rng(seed)
    columns = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n_queries)])
    rows = np.repeat(np.arange(n_queries), 2)
    values = np.tile([1.0, -1.0], n_queries)
    return sp.coo_array((values, (rows, columns.ravel())), shape=(n_queries, n_items))


@pytest.mark.parametrize("kind", [sp.csr_array, lambda grades: grades.toarray()])
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_thumbs_down_count(kind, part):
    # Before, as with judged=0: one negative in 2 000 was a thumb down.
    grades = thumbs()
    Q, P = np.ones((20, 1)), np.ones((2000, 1))
    t = Triplets.from_grades(Q, P, kind(grades), 4000, judged=part, random_state=0)
    down = np.mean(grades.toarray()[t.anchor, t.negative] < 0)
    assert down == pytest.approx(part, abs=0.03)
    assert np.all(grades.toarray()[t.anchor, t.positive] == 1)


def test_judged_negatives_have_a_lower_grade_and_are_uniform():
    # Query 0 judged grades 2, 1, a stored 0 and −1; query 1 nothing below its only positive.
    columns, values = [0, 1, 2, 3, 4], [2.0, 1.0, 0.0, -1.0, 1.0]
    grades = sp.coo_array((values, ([0, 0, 0, 0, 1], columns)), shape=(2, 9))
    t = Triplets.from_grades(
        np.ones((2, 1)), np.ones((9, 1)), grades, 9000, judged=1, random_state=1
    )
    below = {
        (0, 0): [1, 2, 3],
        (0, 1): [2, 3],
        (1, 4): [0, 1, 2, 3, 5, 6, 7, 8],
    }
    for (query, positive), expected in below.items():
        mine = (t.anchor == query) & (t.positive == positive)
        items, counts = np.unique(t.negative[mine], return_counts=True)
        assert items.tolist() == expected
        assert counts.min() > 0.8 * mine.sum() / len(expected)


FORMS = {
    "none": (None, lambda a, b: a @ b),
    "bilinear": (Bilinear(np.diag([3.0, 1.0, 0.2])), lambda a, b: a @ np.diag([3.0, 1.0, 0.2]) @ b),
    "mahalanobis": (Mahalanobis(np.eye(3)), lambda a, b: -((a - b) @ (a - b))),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_semi_hard_without_labels(form, kind, seed):
    rng = np.random.default_rng(seed)
    Q, P = rng.normal(size=(15, 3)), rng.normal(size=(80, 3))
    assert len(P) <= POOL
    grades = (rng.random((15, 80)) < 0.05).astype(float)
    form, near = FORMS[form]
    given = (kind(Q), kind(P), sp.csr_array(grades), 300)
    drawn = Triplets.from_grades(*given, random_state=0)
    t = Triplets.from_grades(*given, negatives="semi-hard", form=form, random_state=0)
    np.testing.assert_array_equal(t.positive, drawn.positive)
    found = 0
    for a, p, n, before in zip(t.anchor, t.positive, t.negative, drawn.negative, strict=True):
        reached = near(Q[a], P[p])
        allowed = [
            j
            for j in range(80)
            if grades[a, j] == 0 and near(Q[a], P[j]) < reached and near(P[p], P[j]) < reached
        ]
        assert n == (max(allowed, key=lambda j: near(Q[a], P[j])) if allowed else before)
        found += bool(allowed)
    assert found > 30


def test_judged_negatives_stay_and_a_part_may_be_semi_hard():
    rng = np.random.default_rng(0)
    Q, P = rng.normal(size=(20, 3)), rng.normal(size=(2000, 3))
    grades = thumbs()
    given = (Q, P, grades, 1000)
    drawn = Triplets.from_grades(*given, random_state=0)
    hard = Triplets.from_grades(*given, negatives=0.5, random_state=0)
    down = grades.toarray()[drawn.anchor, drawn.negative] < 0
    changed = drawn.negative != hard.negative
    assert not changed[down].any() and 0.2 < changed[~down].mean() < 0.55


def test_a_query_among_its_items_is_not_its_own_negative():
    X = np.random.default_rng(0).normal(size=(40, 3))
    grades = sp.csr_array(np.eye(40, k=1))
    t = Triplets.from_grades(X, X, grades, 500, negatives=1.0, random_state=0)
    random = Triplets.from_grades(X, X, grades, 500, random_state=0)
    assert np.all((t.negative != t.anchor) | (t.negative == random.negative))
    assert np.mean(t.negative != random.negative) > 0.2


def test_bad_options_of_grades_are_refused():
    X, items, grades = np.ones((2, 2)), np.ones((3, 4)), np.eye(2, 3)

    def refused(said, **given):
        with pytest.raises(InvalidInputError, match=said):
            Triplets.from_grades(X, items, grades, **given)

    refused(r"judged must be a number from 0 to 1.* Got 2\.", judged=2)
    refused(r"judged must be a number from 0 to 1.* Got True\.", judged=True)
    refused(r"negatives must be 'random', 'semi-hard'", negatives="hard")
    refused("Queries have 2 features and items 4", negatives="semi-hard")
    refused("compare queries of 2 features with items of 4", negatives=1, form=Bilinear(np.eye(2)))
    refused("compare queries of 2 features with items of 4", negatives=1, form="dot")
    with pytest.raises(InvalidInputError, match="form must be a form"):
        Triplets.from_grades(X, X, np.eye(2), negatives=1, form="dot")
    usable = Triplets.from_grades(X, items, grades, 5, negatives=1, form=Bilinear(np.ones((2, 4))))
    assert len(usable) == 5
