"""What learners of pairs are for: neighbors or verification, from labels of real data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from samewise import POLA, Index, KernelPOLA, Pairs, PassiveAggressive
from samewise.learners.online.kernel_pola import FeatureSpace
from samewise.learners.online.lego import quartiles
from samewise.scores import choose_threshold, s_test


@pytest.fixture(scope="module")
def optdigits():
    """Rows to learn from and to judge by; the set had no part in the choice of defaults."""
    datasets = pytest.importorskip("samewise.datasets")
    try:
        bunch = datasets.load("optdigits")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    X = scale(bunch.data)
    train, test = np.flatnonzero(bunch.train)[:1000], np.flatnonzero(~bunch.train)[:1200]
    pca = PCA(20, random_state=0).fit(X[train])
    X = pca.transform(X)
    return X[train], bunch.target[train], X[test], bunch.target[test]


def correct(form, X, y, X_test, y_test):
    votes = y[Index(form, X).query(X_test, 3)[1]]
    return np.array([np.bincount(row).argmax() for row in votes]) == y_test


@pytest.mark.parametrize("make", [PassiveAggressive, POLA])
def test_by_default_neighbors_are_not_worse_than_euclidean_ones(optdigits, make):
    learner = make(random_state=0).fit(*optdigits[:2])
    test = s_test(correct(learner.metric_, *optdigits), correct(None, *optdigits))
    assert test.p_value > 0.05 or test.n_better > test.n_worse


@pytest.mark.parametrize("purpose", ["neighbors", "verification"])
def test_the_threshold_is_within_a_point_of_the_best(optdigits, purpose):
    X, y, X_test, y_test = optdigits
    learner = PassiveAggressive(purpose=purpose, random_state=0).fit(X, y)
    pairs = Pairs.from_labels(X_test, y_test, 20_000, random_state=1)
    score = learner.decision_function(pairs)
    best = np.mean((score >= choose_threshold(score, pairs.y, "accuracy")) == (pairs.y > 0))
    assert learner.score(pairs) >= best - 0.01
    # The b that is learned along is for near pairs: there it is far off.
    own = np.mean((score + learner._solution()[1] - learner.threshold_ >= 0) == (pairs.y > 0))
    assert purpose == "verification" or own < best - 0.05


def test_near_is_near_in_the_feature_space_of_the_kernel():
    X, y = load_digits(return_X_y=True)
    X, y = X[:80] / 16, y[:80]
    for kernel, params in (("poly", {"degree": 2, "coef0": 0.0}), ("linear", {})):
        named = KernelPOLA(kernel, params, n_neighbors=2, random_state=0)
        K = named._evaluate(X, X)
        D = np.diag(K)[:, None] - 2 * K + np.diag(K)
        spaces = ((FeatureSpace(named._evaluate), X), (FeatureSpace(None), K))
        for space, rows in spaces:
            for part, closeness in space.blocks(rows, rows):
                order = np.argsort(-closeness, axis=1)[:, :5]
                found = np.take_along_axis(D[part], order, axis=1)
                np.testing.assert_allclose(found, np.sort(D[part], axis=1)[:, :5], atol=1e-9)
        by_rows, by_numbers = (
            Pairs.from_labels(rows, y, strategy="nearest", n_neighbors=2, form=space)
            for space, rows in spaces
        )
        np.testing.assert_array_equal(by_rows.left, by_numbers.left)
        np.testing.assert_array_equal(by_rows.right, by_numbers.right)
        given = KernelPOLA("precomputed", n_neighbors=2, random_state=0).fit(K, y)
        assert given.score(K, y) > 0.8


def test_quartiles_of_both_kinds():
    X = np.arange(12.0)[:, None]
    pairs = Pairs(X, [0, 0, 0, 0], [1, 2, 3, 4], [1, 1, -1, -1])
    assert quartiles(pairs, np.eye(1)) == (1.75, 14.25)
    assert quartiles(pairs[pairs.y > 0], np.eye(1)) is None
    turned = Pairs(X, pairs.left, pairs.right, -pairs.y)
    assert quartiles(turned, np.eye(1)) is None
