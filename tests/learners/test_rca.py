"""RCA and KRCA: the loops, chunklets of all kinds, feature space, awkward data."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, Pairs, Triplets, load
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.closed.classical import LDA, Covariance
from samewise.learners.closed.rca import KRCA, RCA
from samewise.supervision.chunklets import draw_chunklets, linked_chunklets
from tests.reference import closed as reference

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
RBF = {"kernel": "rbf", "kernel_params": {"gamma": 0.1}}


@parametrize_with_checks([RCA(), KRCA(), RCA(shrinkage=0.5, n_chunklets=3)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def chunklets(seed):
    """−1, chunklets of several points, and one point alone in its own."""
    numbers = np.random.default_rng(seed).integers(-1, 12, size=60)
    numbers[7] = 40
    return numbers


# The closed form


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_the_covariance_within_chunklets_is_inverted(labeled, chunklets, shrinkage):
    X, _ = labeled
    learner = RCA(shrinkage=shrinkage).fit(X, chunklets=chunklets)
    expected = reference.rca(X, chunklets.tolist(), shrinkage)
    np.testing.assert_allclose(learner.metric_.matrix, expected, **CLOSE)
    assert not hasattr(learner, "classes_")
    np.testing.assert_array_equal(learner.chunklets_, chunklets)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_reduction_is_fishers(labeled, chunklets, k):
    X, _ = labeled
    learner = RCA(k).fit(X, chunklets=chunklets)
    assert learner.components_.shape == (k, 5)
    expected = reference.fisher_directions(X, chunklets.tolist(), k)
    np.testing.assert_allclose(learner.metric_.matrix, expected, **CLOSE)


def test_labels_make_whole_classes_chunklets(labeled):
    X, y = labeled
    names = np.array(["one", "two", "three"])[y]
    learner = RCA().fit(X, names)
    assert learner.classes_.tolist() == ["one", "three", "two"]
    np.testing.assert_allclose(learner.metric_.matrix, reference.rca(X, y.tolist()), **CLOSE)
    # And with them the reduction to one dimension less than classes is LDA's.
    np.testing.assert_allclose(
        RCA(2).fit(X, y).metric_.matrix, LDA().fit(X, y).metric_.matrix, **CLOSE
    )


def test_no_other_metric_of_its_size_has_a_larger_determinant(labeled, chunklets, seed):
    X, _ = labeled
    M = RCA().fit(X, chunklets=chunklets).metric_.matrix
    Cw = reference.within(X, chunklets.tolist())
    assert np.trace(M @ Cw) == pytest.approx(5)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        L = np.linalg.cholesky(M) @ (np.eye(5) + 0.1 * rng.normal(size=(5, 5)))
        other = L @ L.T
        other *= 5 / np.trace(other @ Cw)
        assert np.linalg.slogdet(other)[1] <= np.linalg.slogdet(M)[1] + 1e-12


# Where chunklets come from


def test_pairs_are_linked(labeled, seed):
    X, y = labeled
    pairs = Pairs.from_labels(X, y, n_pairs=40, random_state=seed)
    expected = reference.chunklets_of(60, pairs.left, pairs.right, pairs.y)
    learner = RCA(shrinkage=0.1).fit(pairs)
    M = reference.rca(X, expected, 0.1)
    np.testing.assert_allclose(learner.metric_.matrix, M, **CLOSE)
    assert learner.n_features_in_ == 5
    # An array of pairs has rows of its own for each: chunklets of two.
    rows = np.stack([X[pairs.left], X[pairs.right]], axis=1)
    given = RCA(shrinkage=0.1).fit(rows, pairs.y)
    twos = np.repeat(np.where(pairs.y == 1, np.arange(40), -1), 2)
    M = reference.rca(rows.reshape(-1, 5), twos.tolist(), 0.1)
    np.testing.assert_allclose(given.metric_.matrix, M, **CLOSE)


def test_pairs_of_weight_zero_link_nothing():
    pairs = Pairs(np.eye(4), [0, 1, 2], [1, 2, 3], [1, 1, 1], sample_weight=[1.0, 0.0, 2.0])
    assert linked_chunklets(pairs).tolist() == [0, 0, 1, 1]


def test_drawn_chunklets(labeled, seed):
    X, y = labeled
    learner = RCA(n_chunklets=8, chunk_size=3, random_state=seed).fit(X, y)
    drawn = learner.chunklets_
    assert np.bincount(drawn + 1).tolist() == [36] + [3] * 8
    for number in range(8):
        assert len(set(y[drawn == number])) == 1
    np.testing.assert_allclose(
        learner.metric_.matrix, reference.rca(X, drawn.tolist()), rtol=1e-7, atol=1e-8
    )
    again = clone(learner).fit(X, y)
    np.testing.assert_array_equal(again.components_, learner.components_)
    others = RCA(n_chunklets=8, chunk_size=3, random_state=seed + 1).fit(X, y).chunklets_
    assert (others != drawn).any()


def test_fewer_chunklets_than_asked_for(labeled):
    X, y = labeled
    with pytest.warns(SamewiseWarning, match="have 18 chunklets of 3 points only") as warned:
        learner = RCA(n_chunklets=50, chunk_size=3, random_state=0).fit(X, y)
    assert warned[0].filename == __file__
    assert learner.chunklets_.max() == 17
    with pytest.raises(InvalidInputError, match="Lower chunk_size"):
        draw_chunklets(np.array([0, 0, 1]), 1, 3, np.random.RandomState(0))


# Awkward data


def test_a_singular_matrix_is_regularized(labeled):
    X, _ = labeled
    numbers = np.full(60, -1)
    numbers[:4] = [0, 0, 1, 1]
    with pytest.warns(SamewiseWarning, match=r"rank is 2 in the 5 .*shrinkage=0.001") as warned:
        learner = RCA().fit(X, chunklets=numbers)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    M = reference.rca(X, numbers.tolist(), 1e-3)
    np.testing.assert_allclose(learner.metric_.matrix, M, rtol=1e-6, atol=1e-6 * M.max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_features_and_more_features_than_points(labeled, dtype):
    X, y = labeled
    still = np.insert(X, 1, 0.3, axis=1).astype(dtype)
    with pytest.warns(SamewiseWarning, match="of 6 dimensions, the points differ in 5 only"):
        L = RCA().fit(still, y).components_
    assert L.dtype == dtype and np.abs(L[:, 1]).max() < 1e-9
    np.testing.assert_allclose(
        RCA().fit(X, y).metric_.cross(X),
        np.linalg.norm((still @ L.T)[:, None] - still @ L.T, axis=2),
        atol=1e-4,
    )
    wide = np.random.default_rng(0).normal(size=(12, 40)).astype(dtype)
    with pytest.warns(SamewiseWarning, match="rank is 9 in the 11 dimensions"):
        learner = RCA().fit(wide, np.arange(12) % 3)
    assert learner.components_.shape == (11, 40)
    assert np.isfinite(learner.components_).all() and np.abs(learner.components_).max() < 100


def test_a_feature_that_tells_chunklets_apart_exactly(labeled):
    X, y = labeled
    told = np.column_stack([X, 0.1 + 0.6 * y])
    with pytest.warns(SamewiseWarning, match="rank is 5 in the 6 dimensions"):
        learner = RCA().fit(told, y)
    weight = learner.metric_.matrix[5, 5]
    assert 100 < weight < 1e5
    assert KNNClassifier(learner).fit(told, y).score(told, y) == 1


# Feature space


@pytest.mark.parametrize("k", [None, 2])
def test_linear_kernel_is_rca(labeled, chunklets, k):
    X, _ = labeled
    plain = RCA(k).fit(X, chunklets=chunklets)
    kernel = KRCA("linear", n_components=k, shrinkage=0.0).fit(X, chunklets=chunklets)
    np.testing.assert_allclose(kernel.metric_.cross(X), plain.metric_.cross(X), atol=1e-6)
    plain, kernel = RCA(shrinkage=0.2), KRCA("linear", shrinkage=0.2)
    for learner in (plain, kernel):
        learner.fit(X, chunklets=chunklets)
    np.testing.assert_allclose(kernel.metric_.cross(X), plain.metric_.cross(X), atol=1e-6)


def test_feature_space_by_its_definition(labeled, chunklets):
    X, _ = labeled
    learner = KRCA(**RBF, shrinkage=0.1).fit(X, chunklets=chunklets)
    # Coordinates that have the centered kernel as their Gram matrix are as good as any.
    K = rbf_kernel(X, gamma=0.1)
    J = np.eye(60) - 1 / 60
    values, U = np.linalg.eigh(J @ K @ J)
    kept = values > 1e-8 * values[-1]
    Z = U[:, kept] * np.sqrt(values[kept])
    M = reference.rca(Z, chunklets.tolist(), 0.1)
    D = np.sqrt([[(a - b) @ M @ (a - b) for a in Z] for b in Z[:5]])
    np.testing.assert_allclose(learner.metric_.cross(X[:5], X), D, atol=1e-5)


def test_landmarks_precomputed_pairs_sparse_and_saving(labeled, tmp_path):
    X, y = labeled
    K = rbf_kernel(X, gamma=0.1)
    common = {"n_directions": 10, "n_landmarks": 30, "random_state": 0}
    named = KRCA(**RBF, **common).fit(X[:50], y[:50])
    assert len(named.landmarks_) == 30
    given = KRCA("precomputed", **common).fit(K[:50, :50], y[:50])
    np.testing.assert_allclose(
        given.metric_.cross(K[50:, :50]), named.metric_.cross(X[50:]), atol=1e-6
    )
    pairs = Pairs.from_labels(X, y, n_pairs=80, random_state=0)
    linked = KRCA(**RBF).fit(pairs)
    given = KRCA("precomputed").fit(Pairs(K, pairs.left, pairs.right, pairs.y))
    np.testing.assert_allclose(given.metric_.cross(K), linked.metric_.cross(X), atol=1e-6)
    sparse = KRCA(**RBF, **common).fit(sp.csr_array(X[:50]), y[:50])
    np.testing.assert_allclose(
        sparse.transform(sp.csr_array(X)), named.transform(X), rtol=1e-5, atol=1e-5
    )
    for learner in (named, RCA().fit(X, y)):
        learner.metric_.save(tmp_path / "form")
        np.testing.assert_array_equal(load(tmp_path / "form").cross(X), learner.metric_.cross(X))
        again = pickle.loads(pickle.dumps(learner))
        np.testing.assert_array_equal(again.transform(X), learner.transform(X))
        assert KNNClassifier(learner).fit(X, y).score(X, y) > 0.6


# Bad input

X = np.random.default_rng(0).normal(size=(10, 4))
Y = np.repeat([0, 1], 5)
APART = Pairs(X, [0, 1], [5, 6], [-1, -1])


@pytest.mark.parametrize("learner", [RCA(), KRCA()], ids=["RCA", "KRCA"])
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"X": X, "y": None}, "requires y to be passed"),
        ({"X": X, "y": Y, "chunklets": Y}, "Got both; give one of the two"),
        ({"X": APART, "chunklets": Y}, "Got chunklets beside pairs"),
        ({"X": X, "chunklets": Y[:5]}, "one integer for each of the 10 points"),
        ({"X": X, "chunklets": Y + 0.5}, "Got float64 of shape (10,)"),
        ({"X": X, "chunklets": Y - 5}, "numbered from 0, with −1 for none. Got -5"),
        ({"X": X, "chunklets": np.full(10, -1)}, "needs a chunklet of at least two points"),
        ({"X": X, "chunklets": np.arange(10)}, "needs a chunklet of at least two points"),
        ({"X": APART}, "needs a chunklet of at least two points"),
        ({"X": X, "y": np.zeros(10)}, "needs labels of at least two classes"),
        ({"X": X, "y": np.arange(10)}, "a class with at least two examples"),
        ({"X": np.ones((10, 4)), "y": Y}, "is zero: the points do not differ"),
        ({"X": X[Y], "y": Y}, "is zero: the points do not differ"),
        ({"X": Triplets(X, [0], [1], [2])}, "learns from pairs. Got Triplets"),
        ({"X": X * np.nan, "y": Y}, "contains NaN"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(labeled, learner, given, text):
    learner = clone(learner).fit(*labeled)
    before = vars(learner).copy()
    with pytest.raises(ValueError, match=re.escape(text)):
        learner.fit(**given)
    assert vars(learner) == before


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        (RCA(5), "n_components must be at most the number of features, 4. Got 5"),
        (KRCA("linear", n_components=5), "at most the number of directions, 4. Got 5"),
        (KRCA("linear", n_directions=5), "n_directions must be at most"),
        (RCA(chunk_size=1), "The 'chunk_size' parameter of RCA must be"),
        (RCA(shrinkage=-1), "The 'shrinkage' parameter of RCA must be"),
        (KRCA("precomputed"), "must be the square kernel matrix"),
        (KRCA("rbf", {"degree": 2}), "cannot be evaluated on the support"),
    ],
)
def test_bad_parameters_are_named(learner, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        learner.fit(X, Y)


def test_refused_input_takes_no_random_numbers():
    random = np.random.RandomState(0)
    with pytest.raises(ValueError, match="n_components must be at most"):
        RCA(5, n_chunklets=2, random_state=random).fit(X, Y)
    assert random.randint(1 << 30) == np.random.RandomState(0).randint(1 << 30)


def test_labels_are_forgotten_with_the_next_chunklets(labeled):
    learner = RCA().fit(*labeled)
    learner.fit(labeled[0], chunklets=labeled[1])
    assert not hasattr(learner, "classes_")
    np.testing.assert_allclose(
        Covariance().fit(labeled[0]).metric_.matrix,
        RCA().fit(labeled[0], chunklets=np.zeros(60, dtype=int)).metric_.matrix,
        **CLOSE,
    )


# Unlabeled points


@pytest.mark.parametrize("learner", [RCA(), RCA(shrinkage=0.2), KRCA(**RBF)])
@pytest.mark.parametrize("classes", [[0, 1, 2, -1], [0.0, 1.0, 2.0, -1.0], ["a", "b", "c", -1]])
def test_the_label_minus_one_is_none(labeled, learner, classes):
    X, y = labeled
    numbers = np.where(np.arange(60) % 4 == 0, -1, y)
    kind = object if "a" in classes else None
    y = np.array(classes, dtype=kind)[numbers]
    one = clone(learner).fit(X, y)
    other = clone(learner).fit(X, chunklets=numbers)
    assert one.metric_ == other.metric_
    np.testing.assert_array_equal(one.chunklets_, numbers)
    assert one.classes_.tolist() == classes[:3]
    # Others' labels tell nothing about unlabeled points: they are left out of the score.
    known = numbers >= 0
    assert one.score(X, y) == one.score(X[known], y[known])


def test_chunklets_are_sampled_among_labeled_points(labeled):
    X, y = labeled
    y = np.where(np.arange(60) % 3 == 0, -1, y)
    learner = RCA(n_chunklets=8, chunk_size=3, random_state=0).fit(X, y)
    sizes = np.bincount(learner.chunklets_[learner.chunklets_ >= 0])
    assert sizes.tolist() == [3] * 8
    for chunklet in range(8):
        labels = y[learner.chunklets_ == chunklet]
        assert labels[0] >= 0 and np.all(labels == labels[0])


@pytest.mark.parametrize("known", [[1], []])
def test_minus_one_as_a_class_is_refused(labeled, known):
    X, _ = labeled
    y = np.where(np.arange(60) < 30, -1, known[0] if known else -1)
    with pytest.raises(
        InvalidInputError, match=re.escape(f"for unlabeled. Got -1 and {known}; if")
    ):
        RCA().fit(X, y)


def test_texts_are_classes_whatever_they_say(labeled):
    X, _ = labeled
    texts = np.repeat(["-1", "1"], 30)
    assert RCA().fit(X, texts).classes_.tolist() == ["-1", "1"]
