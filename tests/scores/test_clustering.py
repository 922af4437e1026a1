"""Clusters against classes, by the formulas."""

from __future__ import annotations

import itertools
from math import comb, log

import numpy as np
import pytest

from samewise.exceptions import InvalidInputError
from samewise.scores import clustering_scores


def entropy(counts):
    n = sum(counts)
    return -sum(c / n * log(c / n) for c in counts if c)


def naive(y, clusters):
    """NMI, AMI and the adjusted Rand index from the table of counts."""
    classes, groups = sorted(set(y)), sorted(set(clusters))
    n = len(y)
    table = [
        [sum(a == c and b == g for a, b in zip(y, clusters, strict=True)) for g in groups]
        for c in classes
    ]
    rows, columns = [sum(row) for row in table], [sum(col) for col in zip(*table, strict=True)]
    information = entropy(rows) + entropy(columns) - entropy([v for row in table for v in row])
    expected = 0.0
    for a, b in itertools.product(rows, columns):
        for m in range(max(1, a + b - n), min(a, b) + 1):
            chance = comb(a, m) * comb(n - a, b - m) / comb(n, b)
            expected += m / n * log(n * m / (a * b)) * chance
    mean = (entropy(rows) + entropy(columns)) / 2
    pairs = sum(comb(v, 2) for row in table for v in row)
    by_rows, by_columns = sum(comb(a, 2) for a in rows), sum(comb(b, 2) for b in columns)
    by_chance = by_rows * by_columns / comb(n, 2)
    rand = (pairs - by_chance) / ((by_rows + by_columns) / 2 - by_chance)
    return information / mean, (information - expected) / (mean - expected), rand


@pytest.mark.parametrize("n_clusters", [None, 2, 7])
def test_the_formulas(labeled, n_clusters):
    X, y = labeled
    found = clustering_scores(X, y, n_clusters, random_state=0)
    assert len(set(found.clusters.tolist())) == (n_clusters or 3)
    expected = naive(y.tolist(), found.clusters.tolist())
    np.testing.assert_allclose((found.nmi, found.ami, found.adjusted_rand), expected, rtol=1e-9)
    again = clustering_scores(X, y, n_clusters, random_state=0)
    np.testing.assert_array_equal(again.clusters, found.clusters)


def test_clusters_that_are_the_classes():
    y = np.repeat(["a", "b", "c"], 5)
    Z = np.repeat(np.eye(3) * 10, 5, axis=0) + np.arange(15)[:, None] * 1e-3
    found = clustering_scores(Z, y, random_state=0)
    assert found.nmi == found.ami == found.adjusted_rand == pytest.approx(1.0)
    assert [len(set(found.clusters[y == name].tolist())) for name in "abc"] == [1, 1, 1]


def test_bad_input():
    for Z, y, n_clusters, said in (
        ([1.0, 2.0], [0, 1], None, "Z must be a dense array"),
        ([[np.nan], [1.0]], [0, 1], None, "Z must be a dense array"),
        ([[0.0], [1.0]], [0, 1, 2], None, "one label for each of the 2 rows"),
        ([[0.0], [1.0]], [0, 1], 3, "n_clusters must be an integer from 1 to 2"),
        ([[0.0], [1.0]], [0, 1], 1.5, "n_clusters must be an integer from 1 to 2"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            clustering_scores(Z, y, n_clusters)
