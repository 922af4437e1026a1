"""Several metrics in one form: whose map measures what, and who belongs where."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from samewise import load
from samewise.exceptions import FileFormatError
from samewise.files import container
from samewise.forms import Mahalanobis, MultiMetric

RNG = np.random.default_rng(0)
L = RNG.normal(size=(3, 2, 4))
X, Y = RNG.normal(size=(2, 9, 4))
LABELS = np.array(["b", "c", "a"] * 3)
BY_CLASS = MultiMetric(L, classes=["a", "b", "c"])


def naive(groups):
    return np.array(
        [[np.linalg.norm(L[g] @ (x - y)) for y, g in zip(Y, groups, strict=True)] for x in X]
    )


def test_the_map_is_that_of_the_item():
    groups = BY_CLASS.groups_of(Y, LABELS)
    assert groups.tolist() == [1, 2, 0] * 3
    wanted = naive(groups)
    bound = BY_CLASS.bind(Y, LABELS)
    np.testing.assert_array_equal(bound.groups_of(Y), groups)
    np.testing.assert_allclose(bound.cross(X, Y), wanted)
    np.testing.assert_allclose(bound.cross(X, Y, squared=True), wanted**2)
    np.testing.assert_allclose(bound.pairs(X, Y), np.diag(wanted))
    np.testing.assert_allclose(bound.pairs(X, Y, squared=True), np.diag(wanted) ** 2)
    np.testing.assert_allclose(bound.closeness(X, Y), -wanted)
    np.testing.assert_allclose(bound.pair_closeness(X, Y), -np.diag(wanted))
    for rows, block in bound.blocks(X, Y, block_bytes=200):
        np.testing.assert_allclose(block, -wanted[rows])
    for space, part in zip(BY_CLASS.spaces, L, strict=True):
        assert isinstance(space, Mahalanobis)
        np.testing.assert_array_equal(space.components, part)
    D = bound.cross(X)
    assert (np.diag(D) == 0).all() and not np.allclose(D, D.T)


def test_items_belong_to_the_nearest_center():
    centers = RNG.normal(size=(3, 4))
    form = MultiMetric(L, centers=centers)
    groups = [int(((centers - y) ** 2).sum(axis=1).argmin()) for y in Y]
    assert len(set(groups)) > 1
    np.testing.assert_array_equal(form.groups_of(Y), groups)
    np.testing.assert_array_equal(form.groups_of(sp.csr_array(Y), LABELS), groups)
    np.testing.assert_allclose(form.cross(X, Y), naive(groups))
    assert form.bind(Y, LABELS) is form and not form.needs_labels
    tied = MultiMetric(L[:, :, :1], centers=[[0.0], [2.0], [2.0]])
    assert tied.groups_of([[1.0], [3.0]]).tolist() == [0, 1]


def test_maps_of_different_ranks():
    form = MultiMetric([L[0], L[1][:1]], classes=[7, 3])
    assert form.components.shape == (2, 2, 4)
    pairs = form.bind(Y, [3] * 9).pairs(X, Y)
    np.testing.assert_allclose(pairs, np.abs((X - Y) @ L[1, 0]), rtol=1e-12)
    assert form.groups_of(Y[:3], [3, 7, 3]).tolist() == [1, 0, 1]
    assert repr(form) == "MultiMetric(n_features_in=4, n_groups=2, rank=2, groups='by class')"


@pytest.mark.parametrize(
    "classes",
    [["a", "bc", "δ"], [3, 1, 2], np.array([3, 1, 2], dtype=np.int16), [0.5, 1.5, -1.0],
     np.array(["x", "y", "z"], dtype=object)],
)  # fmt: skip
def test_labels_come_back_from_a_file(classes, tmp_path):
    form = MultiMetric(L.astype(np.float32), classes=classes)
    form.save(tmp_path / "form")
    again = load(tmp_path / "form")
    assert again == form and again.classes.dtype == form.classes.dtype
    assert again != MultiMetric(L.astype(np.float32), classes=[5, 6, 7])
    labels = np.array(classes)[[2, 0, 0]]
    assert again.groups_of(Y[:3], labels).tolist() == [2, 0, 0]
    bound, bound_again = (one.bind(Y, np.array(classes)[[1] * 9]) for one in (form, again))
    np.testing.assert_array_equal(bound_again.cross(X, Y), bound.cross(X, Y))
    with pytest.raises(ValueError, match="read-only"):
        again.classes[0] = again.classes[1]


def test_a_forged_file_is_refused(tmp_path):
    flat = L.reshape(6, 4)
    for arrays, params in [
        ({"components": flat}, {"classes": ["a", "b", "c"]}),
        ({"components": flat}, {"classes": ["a", "b", "c"], "n_groups": 4}),
        ({"components": flat}, {"classes": ["a", "b", "c"], "n_groups": "3"}),
        ({"components": flat}, {"classes": ["a", "b", "c"], "n_groups": 0}),
        ({"components": flat}, {"classes": ["a", "b", "c"], "n_groups": 3, "more": 1}),
        ({"components": flat[0]}, {"classes": ["a", "b", "c"], "n_groups": 3}),
        ({"components": flat}, {"classes": ["a", "b"], "n_groups": 3}),
        ({"components": flat}, {"classes": ["a", "a", "b"], "n_groups": 3}),
        ({"components": flat}, {"classes": [["a"], ["b"], ["c"]], "n_groups": 3}),
        ({"components": flat}, {"n_groups": 3}),
        ({"components": flat, "centers": L[:, 0, :2]}, {"n_groups": 3}),
    ]:
        container.write(tmp_path / "form", "MultiMetric", arrays, params, owner="it")
        with pytest.raises(FileFormatError, match="do not make a MultiMetric"):
            load(tmp_path / "form")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: MultiMetric(L), "give classes, a label for each, or centers"),
        (lambda: MultiMetric(L, classes=[1, 2, 3], centers=L[:, 0]), "and not both"),
        (lambda: MultiMetric([], classes=[]), "one or more maps with the same number of columns"),
        (lambda: MultiMetric([L[0], L[1][:, :3]], classes=[0, 1]), "[(2, 4), (2, 3)]"),
        (lambda: MultiMetric(L[0], classes=[0, 1]), "must have two dimensions"),
        (lambda: MultiMetric(L * np.nan, classes=[0, 1, 2]), "NaN or infinity"),
        (lambda: MultiMetric(L, classes=[0, 1]), "must be 3 numbers or strings, one for each map"),
        (lambda: MultiMetric(L, classes=[0, 1, None]), "got object of shape (3,)"),
        (lambda: MultiMetric(L, classes=[0, 1, np.nan]), "NaN"),
        (lambda: MultiMetric(L, classes=[0, 1, 0]), "must all be different"),
        (lambda: MultiMetric(L, centers=np.eye(4)), "must have the shape (3, 4)"),
        (lambda: BY_CLASS.cross(X, Y), "must be known; use form.bind(Y, labels)."),
        (lambda: BY_CLASS.bind(Y), "must be known; use form.bind(Y, labels)."),
        (lambda: BY_CLASS.groups_of(Y), "the classes of the items must be known"),
        (lambda: BY_CLASS.groups_of(Y, ["a"]), "must have the shape (9,), one for each item"),
        (lambda: BY_CLASS.groups_of(Y[:2], ["a", "d"]), "The class 'd' is not one of the 3 class"),
        (lambda: BY_CLASS.groups_of(Y[:2], [1, 2]), "is not one of the 3 classes"),
        (lambda: BY_CLASS.bind(Y, ["a"]), "must have the shape (9,), one for each item"),
        (lambda: BY_CLASS.bind(Y, [0] * 9), "is not one of the 3 classes"),
        (
            lambda: BY_CLASS.bind(Y, LABELS).pairs(X[:2], Y[:2]),
            "to 9 items, but 2 were given",
        ),
        (lambda: list(BY_CLASS.bind(Y, LABELS).blocks(X, Y[:2])), "bound to 9 items"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()
