"""HIER: against the plain sums, and hierarchies that are none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier
from samewise.exceptions import InvalidInputError
from samewise.forms import PosteriorSimilarity
from samewise.learners.batch.hier import HIER, class_similarity
from tests.reference import snn as reference

PARENTS = {
    "cat": "pet",
    "dog": "pet",
    "pet": "animal",
    "wolf": "animal",
    "animal": "thing",
    "car": "vehicle",
    "bus": "vehicle",
    "vehicle": "thing",
    "stone": "thing",
}
LABELS = np.array(["bus", "car", "cat", "dog", "stone", "wolf"])


@parametrize_with_checks([HIER()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_classes_are_as_near_as_their_lowest_common_ancestor():
    S = class_similarity(PARENTS, LABELS)
    np.testing.assert_allclose(S, reference.class_similarity(PARENTS, LABELS.tolist()))
    at = {name: i for i, name in enumerate(LABELS)}
    assert S[at["cat"], at["dog"]] == pytest.approx(2 / 3)
    assert S[at["cat"], at["wolf"]] == pytest.approx(1 / 3)
    assert S[at["cat"], at["car"]] == 0
    # A leaf that no example has still counts for heights.
    np.testing.assert_allclose(class_similarity(PARENTS, LABELS[2:4]), S[2:4, 2:4])


def test_random_hierarchies(seed):
    rng = np.random.default_rng(seed)
    parents = {i: int(rng.integers(0, i)) for i in range(1, 30)}
    leaves = np.array(sorted(set(parents) - set(parents.values())))
    S = class_similarity(parents, leaves)
    np.testing.assert_allclose(S, reference.class_similarity(parents, leaves.tolist()))
    np.testing.assert_array_equal(S, S.T)
    # Ultrametric: of three classes, the two least similarities are equal.
    assert (S[:, :, None] >= np.minimum(S[:, None, :], S.T[None, :, :]) - 1e-12).all()


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def told(request, labeled):
    X, y = labeled
    kept = y < request.param
    return X[kept], np.array(["a", "b", "c"])[y[kept]]


PAIR = {"a": "one", "b": "one", "one": "all", "c": "all"}


def test_it_is_the_expected_similarity_of_classes(told):
    X, y = told
    hier = HIER(PAIR, C=0.5).fit(X, y)
    model = LogisticRegression(C=0.5, max_iter=1000).fit(X, y)
    form, P = hier.metric_, model.predict_proba(X)
    np.testing.assert_allclose(form.embed_item(X), P, rtol=1e-9)
    S = class_similarity(PAIR, hier.classes_)
    np.testing.assert_allclose(form.cross(X), P @ S @ P.T, rtol=1e-9)
    np.testing.assert_allclose(form.embed_query(X), P @ S, rtol=1e-9)
    one = reference.posterior_similarity(X[0], X[1], form.weights, form.intercept, S)
    assert form.pairs(X[:1], X[1:2])[0] == pytest.approx(one, rel=1e-9)
    assert hier.n_iter_ == int(model.n_iter_.max())


def test_without_a_hierarchy_only_the_same_class_counts(told):
    X, y = told
    hier = HIER().fit(X, y)
    np.testing.assert_array_equal(hier.metric_.similarity, np.eye(len(hier.classes_)))
    assert HIER(np.eye(len(hier.classes_))).fit(X, y).metric_ == hier.metric_
    assert KNNClassifier(hier.metric_, n_neighbors=3).fit(X, y).score(X, y) > 0.5


def test_float32_and_sparse_rows(told):
    X, y = told
    exact = HIER(PAIR, tol=1e-8).fit(X, y).metric_
    single = HIER(PAIR).fit(X.astype(np.float32), y).metric_
    assert {single.weights.dtype, single.intercept.dtype, single.similarity.dtype} == {
        np.dtype(np.float32)
    }
    np.testing.assert_allclose(single.cross(X), exact.cross(X), atol=2e-2)
    sparse = HIER(PAIR, tol=1e-8).fit(sp.csr_array(X), y).metric_
    np.testing.assert_allclose(sparse.cross(X), exact.cross(X), atol=1e-4)


@pytest.mark.parametrize(
    ("hierarchy", "said"),
    [
        ({"a": "x", "b": "x"}, r"The label 'c' is not in the hierarchy. Give its parent"),
        ({**PAIR, "one": "a"}, "has a cycle: 'a' is above itself|has a cycle"),
        ({**PAIR, "all": "one"}, "The hierarchy has a cycle"),
        ({**PAIR, "y": "z", "z": "y"}, "The hierarchy has a cycle"),
        ({"a": "one", "b": "one", "c": "all"}, "one root, but 'one', 'all' have no parent"),
        ({**PAIR, "d": "e"}, "must have one root, but 'all', 'e' have no parent"),
        ({**PAIR, "all": None}, "The parent of 'all' is None. The root is the node without"),
        ({**PAIR, "c": "a"}, "Every label must be a leaf of the hierarchy, but 'a' is a parent"),
        (np.eye(2), r"must be finite, of shape \(3, 3\).*Got shape \(2, 2\)"),
        (np.full((3, 3), np.nan), "must be finite"),
        ("tree", "The 'hierarchy' parameter of HIER"),
    ],
)
def test_hierarchies_that_are_none_are_refused_and_change_nothing(labeled, hierarchy, said):
    X, y = labeled
    y = np.array(["a", "b", "c"])[y]
    hier = HIER(PAIR).fit(X, y)
    before = vars(hier.set_params(hierarchy=hierarchy)).copy()
    with pytest.raises(ValueError, match=said):
        hier.fit(X, y)
    assert vars(hier).keys() == before.keys()
    assert all(vars(hier)[name] is value for name, value in before.items())


def test_bad_input_is_refused(labeled, pairs):
    X, y = labeled
    with pytest.raises(InvalidInputError, match="at least two classes"):
        HIER().fit(X, np.zeros(60))
    with pytest.raises(InvalidInputError, match="HIER learns from class labels"):
        HIER().fit(pairs, None)
    with pytest.raises(ValueError, match="'C' parameter of HIER"):
        HIER(C=0.0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="has not converged in 1 iterations") as said:
        HIER(max_iter=1).fit(X, y)
    assert said[0].filename == __file__


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"similarity": np.eye(3)}, r"but their shapes are \(2, 1\), \(2,\) and \(3, 3\)"),
        ({"similarity": np.ones((2, 3))}, "must be square"),
        ({"intercept": [[0.0, 0.0]]}, r"\(2, 1\), \(1, 2\) and \(2, 2\)"),
        ({"weights": [[np.inf], [0.0]]}, "The weights of PosteriorSimilarity contains NaN or inf"),
    ],
)
def test_no_other_arrays_make_a_form(given, text):
    made = {"weights": [[1.0], [2.0]], "intercept": [0.0, 0.0], "similarity": np.eye(2)}
    with pytest.raises(InvalidInputError, match=text):
        PosteriorSimilarity(**{**made, **given})
