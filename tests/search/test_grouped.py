"""Neighbors under several metrics: one search for each group gives what all distances give."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise.decide import KNNClassifier
from samewise.exceptions import InvalidInputError
from samewise.forms import MultiMetric
from samewise.search import ClassIndex, Index


def sorted_neighbors(D, k):
    """By distance, then by the smaller row."""
    return np.array([sorted(range(len(row)), key=lambda j: (row[j], j))[:k] for row in D])


def exact(form, Q, X, groups):
    v = Q[:, None].astype(float) - X[None]
    return np.array(
        [((v[:, j] @ form.components[g].T.astype(float)) ** 2).sum(axis=1)
         for j, g in enumerate(groups)]
    ).T  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("route", ["auto", "tree", "blocked"])
@pytest.mark.parametrize("by", ["class", "center"])
def test_neighbors_equal_all_distances(by, route, dtype, seed):
    # Integers: many ties, within groups and between them, and duplicates.
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(4, size=(2, 60, 2)).astype(dtype)
    L = rng.integers(-1, 3, size=(3, 2, 2)).astype(dtype)
    y = rng.integers(3, size=60)
    form = (
        MultiMetric(L, classes=range(3))
        if by == "class"
        else MultiMetric(L, centers=[[0.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    )
    groups = form.groups_of(X, y)
    index = Index(form.bind(X, y), X, route=route)
    assert route == "auto" or index.route == route
    for k in (1, 4, 60):
        closeness, found = index.query(Q, k)
        D = exact(form, Q, X, groups)
        wanted = sorted_neighbors(D, k)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_allclose(closeness, -np.sqrt(np.take_along_axis(D, wanted, axis=1)))
        assert closeness.dtype == dtype
    D = exact(form, X, X, groups)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_array_equal(index.query(X, 59, exclude_self=True)[1], sorted_neighbors(D, 59))


def test_the_route_is_the_tree_only_if_every_group_takes_it():
    X, L = np.random.default_rng(0).normal(size=(300, 1)), np.ones((2, 1, 1))
    for n_first, route in ((150, "tree"), (290, "blocked")):
        y = (np.arange(300) >= n_first).astype(int)
        assert Index(MultiMetric(L, classes=range(2)).bind(X, y), X).route == route


@pytest.mark.parametrize("by", ["class", "center"])
def test_closest_of_each_class(by, seed):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(2, 50, 3))
    y = np.arange(50) % 3
    L = rng.normal(size=(3, 2, 3))
    form = (
        MultiMetric(L, classes=range(3))
        if by == "class"
        else MultiMetric(L, centers=rng.normal(size=(3, 3)))
    )
    groups = form.groups_of(X, y)
    found = ClassIndex(form.bind(X, y), X, y).query(Q, 4)
    D = np.sqrt(exact(form, Q, X, groups))
    wanted = np.stack([-np.sort(D[:, y == c], axis=1)[:, :4] for c in range(3)], axis=1)
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("rule", ["knn", "sknn", "energy", "energy_printed"])
def test_a_classifier_matches_classes_by_label(rule, labeled):
    X, y = labeled
    L = np.random.default_rng(1).normal(size=(4, 3, 5))
    names = np.array(["z", "a", "m"])
    # The form knows a class more than the training data, and has them in its own order.
    form = MultiMetric(L, classes=["m", "b", "z", "a"])
    model = KNNClassifier(form, 3, rule).fit(X[::2], names[y[::2]])
    again = KNNClassifier(MultiMetric(L[[2, 3, 0]], classes=[0, 1, 2]), 3, rule).fit(X[::2], y[::2])
    np.testing.assert_array_equal(model.predict(X), names[again.predict(X)])
    np.testing.assert_array_equal(
        KNNClassifier(form, 3, rule).fit(sp.csr_array(X[::2]), names[y[::2]]).predict(X),
        model.predict(X),
    )
    if rule == "knn":
        D = form.bind(X[::2], names[y[::2]]).cross(X, X[::2])
        distances, found = model.kneighbors(X)
        np.testing.assert_array_equal(found, sorted_neighbors(D, 3))
        np.testing.assert_allclose(distances, np.take_along_axis(D, found, axis=1), atol=1e-7)


def test_classes_that_the_form_does_not_know(labeled):
    X, y = labeled
    form = MultiMetric(np.ones((2, 1, 5)), classes=[0, 1])
    with pytest.raises(InvalidInputError, match="The class 2 is not one of the 2 classes"):
        KNNClassifier(form).fit(X, y)
    with pytest.raises(InvalidInputError, match="the classes of the items must be known"):
        Index(form, X)
