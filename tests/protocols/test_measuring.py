"""What a form is good for, beside the definitions written out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import GeneralizedCosine, Mahalanobis, MultiMetric
from samewise.protocols import gain, measure


@pytest.fixture(scope="module")
def parts(labeled):
    X, y = labeled
    return X[:40], y[:40], X[40:], y[40:]


def slow(C, y, y_test):
    """k-NN (k = 3), SkNN (k = 3), precision at 5 and average precision, query by query."""
    knn, sknn, p5, ap = [], [], [], []
    for c, label in zip(C, y_test, strict=True):
        order = sorted(range(len(y)), key=lambda j: (-c[j], j))
        votes = list(y[order[:3]])
        while sum(votes.count(v) == max(map(votes.count, votes)) for v in set(votes)) > 1:
            votes.pop()
        knn.append(max(set(votes), key=votes.count) == label)
        sums = [np.sort(c[y == k])[-3:].sum() for k in np.unique(y)]
        sknn.append(np.unique(y)[np.argmax(sums)] == label)
        hits = y[order] == label
        p5.append(hits[:5].mean())
        ap.append(np.mean([hits[: r + 1].mean() for r in np.flatnonzero(hits)]))
    return np.array(knn), 1 - np.mean(sknn), np.mean(p5), np.array(ap)


@pytest.mark.parametrize("form", [None, Mahalanobis(np.diag([1, 1, 4, 9, 1.0])),
                                  GeneralizedCosine(np.eye(5))])  # fmt: skip
def test_scores_are_those_of_the_definitions(parts, form):
    X, y, X_test, y_test = parts
    C = (form or Mahalanobis.identity(5)).closeness(X_test, X)
    correct, sknn_error, p5, ap = slow(C, y, y_test)
    measured = measure(form, *parts, name="it")
    np.testing.assert_array_equal(measured.correct, correct)
    assert measured.name == "it" and measured.knn_error == pytest.approx(1 - correct.mean())
    assert measured.sknn_error == pytest.approx(sknn_error)
    assert measured.precision.keys() == {1, 5, 10}
    assert measured.precision[5] == pytest.approx(p5)
    np.testing.assert_allclose(measured.average_precision, ap)
    assert measured.mean_average_precision == pytest.approx(ap.mean())


def test_verification_uses_the_threshold_of_the_training_pairs(parts):
    X, y, X_test, y_test = parts

    def rates(X, y):
        i, j = np.triu_indices(len(y), 1)
        return np.linalg.norm(X[i] - X[j], axis=1), y[i] == y[j]

    def error(distance, same, t):
        return (np.mean(distance[same] > t) + np.mean(distance[~same] <= t)) / 2

    distance, same = rates(X, y)
    best = min((error(distance, same, t), t) for t in np.sort(distance))[1]
    # More pairs than there are: all of them, of both kinds.
    found = measure(None, *parts, n_pairs=10**6).verification_error
    assert found == pytest.approx(error(*rates(X_test, y_test), best), abs=0.02)


def test_sparse_and_dense_agree(parts):
    X, y, X_test, y_test = parts
    form = Mahalanobis(np.diag([1, 1, 4, 9, 1.0]))
    a = measure(form, *parts)
    b = measure(form, sp.csr_array(X), y, sp.csr_array(X_test), y_test)
    np.testing.assert_array_equal(a.correct, b.correct)
    assert a.verification_error == pytest.approx(b.verification_error)


def test_labels_may_be_text_and_new_ones_count_as_errors(parts):
    X, y, X_test, y_test = parts
    names = np.array(["a", "b", "c", "new"])
    y_new = np.where(np.arange(len(y_test)) < 3, 3, y_test)
    measured = measure(None, X, names[y], X_test, names[y_new])
    assert not measured.correct[:3].any() and np.isnan(measured.average_precision[:3]).all()
    assert np.isfinite(measured.mean_average_precision)
    with pytest.raises(DegenerateInputError, match="same labels"):
        measure(None, X, names[y], X_test, np.full(len(y_test), "new"))


def test_a_metric_for_each_class(parts):
    same = MultiMetric([np.eye(5)] * 3, classes=[0, 1, 2])
    a, b = measure(None, *parts), measure(same, *parts)
    np.testing.assert_array_equal(a.correct, b.correct)
    assert a.mean_average_precision == pytest.approx(b.mean_average_precision)
    assert np.isnan(b.verification_error)


def test_few_examples():
    X, y = np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([0, 0, 1, 1])
    measured = measure(None, X, y, np.array([[0.2], [5.2]]), np.array([0, 1]))
    assert measured.precision == {1: 1.0} and np.isnan(measured.verification_error)
    with pytest.raises(InvalidInputError, match="at least one"):
        measure(None, X, y, X[:0], y[:0])


def test_gain_is_the_s_test_of_the_decisions(parts):
    measured = measure(None, *parts)
    before = dataclasses.replace(measured, name="a", correct=np.arange(20) >= 8, knn_error=0.4)
    after = dataclasses.replace(measured, name="b", correct=np.arange(20) >= 0, knn_error=0.0)
    found = gain(before, after)
    assert (found.before, found.after, found.errors) == ("a", "b", (0.4, 0.0))
    assert (found.mark, found.n_better, found.n_worse) == ("≫", 8, 0)
    assert found.p_value == pytest.approx(2 * 0.5**8)
    assert gain(after, before).mark == "≪" and gain(after, after).mark == "="
    with pytest.raises(InvalidInputError, match="same test examples"):
        gain(before, dataclasses.replace(after, correct=after.correct[:3]))
