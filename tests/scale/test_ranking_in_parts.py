"""Neighbors and rankings among parts are those among all items."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import Bilinear, Index, KNNClassifier, Mahalanobis
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.scale import classify, nearest, pair_roc, ranking_scores
from samewise.scores import retrieval_scores, roc
from tests.scale.parts import in_parts


@pytest.fixture(scope="module")
def items():
    """(Q, labels, X, y): whole numbers, so that many items are equally close; some query has none
    of its label.
    """
    random = np.random.default_rng(7)
    X = random.integers(4, size=(90, 3)).astype(np.float64)
    Q = random.integers(4, size=(15, 3)).astype(np.float64)
    labels = random.integers(5, size=15)
    labels[3] = 9
    return Q, labels, X, random.integers(5, size=90)


FORMS = [
    Mahalanobis(np.diag([1.0, 4.0, 9.0])),
    Bilinear(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [3.0, 0.0, 1.0]])),
]


@pytest.mark.parametrize("form", [None, *FORMS])
@pytest.mark.parametrize("n_parts", [1, 3, 8])
def test_neighbors_are_those_of_one_index(client, items, form, n_parts):
    Q, _, X, _ = items
    closeness, numbers = Index(form, X).query(Q, 12)
    found = nearest(form, Q, in_parts(n_parts, X)[0], 12, client=client)
    assert np.array_equal(found[1], numbers)
    np.testing.assert_allclose(found[0], closeness, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_parts", [1, 3, 8])
def test_scores_are_those_of_one_ranking(client, items, form, n_parts):
    Q, labels, X, y = items
    if form.is_distance:
        # Distances of products are equal up to rounding only, which depends on the block.
        X = X + np.random.default_rng(1).normal(size=X.shape)
    whole = retrieval_scores(form.blocks(Q, X), labels, y, ks=(1, 5, 40), ties="index")
    parts = in_parts(n_parts, X, y)
    found = ranking_scores(form, Q, labels, *parts, ks=(1, 5, 40), client=client)
    assert set(found.per_query) == {n for n in whole.per_query if not n.startswith("ndcg")}
    for name, values in found.per_query.items():
        np.testing.assert_allclose(values, whole.per_query[name], rtol=1e-12)
        assert np.isnan(values[3])


def test_ranks_of_items_that_are_often_the_same(client):
    """Half of them are relevant, and all are one of four points."""
    random = np.random.default_rng(2)
    X, Q = (random.integers(2, size=(n, 2)).astype(np.float64) for n in (120, 6))
    y, labels = (np.array(["a", "b"])[random.integers(2, size=n)] for n in (120, 6))
    form = Bilinear(np.array([[1.0, 2.0], [0.0, 1.0]]))
    whole = retrieval_scores(form.blocks(Q, X), labels, y, ks=(1, 60), ties="index")
    found = ranking_scores(form, Q, labels, *in_parts(4, X, y), ks=(1, 60), client=client)
    for name, values in found.per_query.items():
        np.testing.assert_allclose(values, whole.per_query[name], rtol=1e-12)
    with pytest.raises(InvalidInputError, match=r"k must be an integer from 1 to 120"):
        ranking_scores(form, Q, labels, *in_parts(4, X, y), ks=(121,), client=client)
    with pytest.raises(DegenerateInputError, match=r"No query has a relevant item"):
        ranking_scores(form, Q, np.arange(6), *in_parts(4, X, y), client=client)


@pytest.mark.parametrize("form", [None, *FORMS])
def test_classes_are_those_of_one_classifier(client, items, form):
    Q, _, X, y = items
    names = np.array(["a", "b", "c", "d", "e"])[y]
    whole = KNNClassifier(form, n_neighbors=6).fit(X, names).predict(Q)
    parts = in_parts(5, X, names)
    assert classify(form, Q, *parts, 6, client=client).tolist() == whole.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_the_roc_of_pairs_in_parts(client, items, form):
    X, y = items[2].reshape(45, 2, 3), np.where(items[3][:45] < 2, 1, -1)
    whole = roc(form.pair_closeness(X[:, 0], X[:, 1]), y)
    found = pair_roc(form, *in_parts(4, X, y), client=client)
    assert found.auc == pytest.approx(whole.auc)
    with pytest.raises(InvalidInputError, match=r"\+1 \(similar\) or -1"):
        pair_roc(form, *in_parts(4, X, y + 1), client=client)


def test_what_is_refused(client, items):
    Q, labels, X, y = items
    parts = in_parts(2, X, y)
    with pytest.raises(InvalidInputError, match=r"k must be an integer from 1 to 90"):
        nearest(None, Q, parts[0], 91, client=client)
    with pytest.raises(InvalidInputError, match=r"one label for each of the 15 queries"):
        ranking_scores(FORMS[0], Q, labels[:3], *parts, client=client)
    with pytest.raises(DegenerateInputError, match=r"No query has a relevant item"):
        ranking_scores(FORMS[0], Q, labels + 50, *parts, client=client)
