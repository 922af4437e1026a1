"""Fuzzification against the formulas, value by value."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from experiments._fuzzy import Fuzzify
from samewise import KNNClassifier


@parametrize_with_checks([Fuzzify()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def memberships(x, column):
    lowest, highest = column.min(), column.max()
    q1, q2 = np.percentile(column, [33, 66])
    a1, a2, a3 = (lowest + q1) / 2, (q1 + q2) / 2, (q2 + highest) / 2
    low = 1 if x < a1 else (q2 - x) / (q2 - a1) if x < q2 else 0
    if x < q1 or x >= q2:
        med = 0
    else:
        med = (x - q1) / (a2 - q1) if x < a2 else (q2 - x) / (q2 - a2)
    high = 0 if x < q1 else (x - q1) / (a3 - q1) if x < a3 else 1
    return [low, med, high]


def test_memberships_are_those_of_the_formulas(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3)) ** 3
    new = rng.normal(size=(20, 3)) * 3
    fuzzy = Fuzzify().fit(X)
    for rows in (X, new):
        expected = [[m for j in range(3) for m in memberships(row[j], X[:, j])] for row in rows]
        np.testing.assert_allclose(fuzzy.transform(rows), expected, atol=1e-12)
    assert 0 <= fuzzy.transform(new).min() and fuzzy.transform(new).max() <= 1


def test_frequent_values_make_steps():
    zeros = Fuzzify().fit([[0.0]] * 7 + [[1.0]] * 3)
    np.testing.assert_array_equal(zeros.transform([[0.0], [1.0]]), [[1, 0, 0], [0, 0, 1]])
    ones = Fuzzify().fit([[0.0]] * 3 + [[1.0]] * 7)
    np.testing.assert_array_equal(ones.transform([[0.0], [1.0]]), [[1, 0, 0], [0, 0, 1]])
    constant = Fuzzify().fit([[5.0]] * 4).transform([[5.0], [4.0], [6.0]])
    assert np.isfinite(constant).all()


def test_names_and_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [0.0, 5, 9]})
    out = Fuzzify().set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == ["a_low", "a_med", "a_high", "b_low", "b_med", "b_high"]


def test_in_a_pipeline(labeled):
    X, y = labeled
    model = make_pipeline(Fuzzify(), KNNClassifier(n_neighbors=3)).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 1 / 3
