"""Hits, misses and margins against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import Bilinear, GeneralizedCosine, KNNClassifier, Mahalanobis, NormalizedBilinear
from samewise.exceptions import InvalidInputError
from samewise.search import margins
from samewise.search.hits import hits_and_misses
from tests.reference import relief as reference


def by_hand(C, y, k, i, rows):
    order = sorted((j for j in rows if j != i), key=lambda j: -C[i, j])[:k]
    return order + [-1] * (k - len(order))


def in_blocks(C, width):
    def blocks(asked, order):
        for start in range(0, len(asked), width):
            part = slice(start, min(start + width, len(asked)))
            yield part, C[np.ix_(asked[part], order)]

    return blocks


@pytest.mark.parametrize("width", [1, 7, 100])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("some", [False, True])
def test_hits_and_misses_are_the_closest(width, k, some, seed):
    rng = np.random.default_rng(seed)
    n = 40
    C = rng.normal(size=(n, n))
    y = rng.permutation(np.repeat([0, 1, 2, 3], [20, 15, 3, 2]))
    queries = np.array([5, 0, 17, 5, 33]) if some else None
    asked = np.arange(n) if queries is None else queries
    hits, misses = hits_and_misses(in_blocks(C, width), y, k, queries=queries)
    each = hits_and_misses(in_blocks(C, width), y, k, queries=queries, each_class=True)
    np.testing.assert_array_equal(each[0], hits)
    assert each[1].shape == (len(asked), 4, k)
    for at, i in enumerate(asked):
        assert hits[at].tolist() == by_hand(C, y, k, i, np.flatnonzero(y == y[i]))
        assert misses[at].tolist() == by_hand(C, y, k, i, np.flatnonzero(y != y[i]))
        for c in range(4):
            rows = np.flatnonzero(y == c) if c != y[i] else []
            assert each[1][at, c].tolist() == by_hand(C, y, k, i, rows)


def test_equals_come_by_row_number():
    y = np.array([0, 1, 0, 1, 0])
    hits, misses = hits_and_misses(in_blocks(np.zeros((5, 5)), 2), y, 2)
    assert hits.tolist() == [[2, 4], [3, -1], [0, 4], [1, -1], [0, 2]]
    assert misses.tolist() == [[1, 3], [0, 2], [1, 3], [0, 2], [1, 3]]


def test_fewer_impostors_than_targets():
    # For 0, 1, 2 and 4, two targets and the one impostor: a margin takes as many of each.
    found = margins(None, [[0.0], [1.0], [2.0], [4.0], [7.0]], [0, 0, 0, 0, 1], 2)
    np.testing.assert_allclose(found, [7 - 1, 6 - 1, 5 - 1, 3 - 2, np.nan])


def test_many_equals_come_by_row_number():
    y = np.arange(60) % 2
    hits, misses = hits_and_misses(in_blocks(np.zeros((60, 60)), 7), y, 40)
    for i in range(60):
        own = [j for j in range(60) if j != i and y[j] == y[i]]
        assert hits[i].tolist() == own + [-1] * (40 - len(own))
        others = [j for j in range(60) if y[j] != y[i]]
        assert misses[i].tolist() == others + [-1] * (40 - len(others))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_margins_of_a_similarity(labeled, k, sparse, seed):
    X, y = labeled
    A = np.random.default_rng(seed).normal(size=(5, 5))
    given = sp.csr_array(X) if sparse else X
    for normalizer in (None, "cosine"):
        form = NormalizedBilinear(A, normalizer)
        found = reference.triples(X, y, k, normalizer)
        expected = [reference.margin(A, X, i, found[i], normalizer) for i in range(len(X))]
        base = NormalizedBilinear(np.eye(5), normalizer)
        got = margins(form, given, y, k, base=base)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "form",
    [
        None,
        Mahalanobis(np.diag([1.0, 2, 3, 4, 5])),
        Bilinear(np.eye(5)),
        GeneralizedCosine(np.eye(5)),
    ],
    ids=lambda form: type(form).__name__,
)
def test_a_margin_is_positive_where_the_nearest_neighbor_is_right(labeled, form):
    X, y = labeled
    m = margins(form, X, y)
    model = KNNClassifier(form, 1).fit(X, y)
    nearest = model.kneighbors(return_distance=False)[:, 0]
    np.testing.assert_array_equal(m > 0, y[nearest] == y)
    C = (Mahalanobis.identity(5) if form is None else form).closeness(X)
    np.fill_diagonal(C, -np.inf)
    same = y[:, None] == y
    by_rows = np.where(same, C, -np.inf).max(axis=1) - np.where(same, -np.inf, C).max(axis=1)
    np.testing.assert_allclose(m, by_rows, atol=1e-7)


def test_a_small_class_has_fewer_targets(labeled):
    X, y = labeled
    y = y.copy()
    y[:2], y[2] = 7, 8
    m = margins(None, X, y, 3)
    assert np.isnan(m[2]) and np.isfinite(np.delete(m, 2)).all()
    D = np.linalg.norm(X[:, None] - X, axis=2)
    assert m[0] == pytest.approx(D[0, 2:].min() - D[0, 1])
    counts, edges = np.histogram(m[np.isfinite(m)], bins=10)
    assert counts.sum() == 59 and len(edges) == 11


def test_bad_input_is_refused(labeled):
    X, y = labeled
    for k in (0, 1.5, True):
        with pytest.raises(InvalidInputError, match="n_neighbors must be"):
            margins(None, X, y, k)
    with pytest.raises(InvalidInputError, match="two classes"):
        margins(None, X, np.ones(60))
    with pytest.raises(InvalidInputError, match="one label for each of the 60"):
        margins(None, X, y[:5])
    with pytest.raises(InvalidInputError, match="features"):
        margins(Mahalanobis.identity(3), X, y)
