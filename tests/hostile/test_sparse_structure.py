"""Sparse matrices whose arrays do not fit together are refused wherever they come in.

Before they were checked, a compiled loop followed their indices out of the memory of the matrix.
"""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import linear_kernel

import samewise
from samewise import (
    OASIS,
    DiagonalAROMA,
    Euclidean,
    Index,
    KernelMahalanobis,
    KNNClassifier,
    Mahalanobis,
    Pairs,
    PassiveAggressive,
    PerClassClassifier,
    TopicFilter,
    Triplets,
    Verifier,
)
from samewise.catalog import LEARNERS
from samewise.compat import metric_learn
from samewise.exceptions import InvalidInputError
from samewise.kernels.sparse_structure import sound_rows
from samewise.scores import retrieval_scores

REFUSED = "is a sparse matrix whose arrays do not fit together"
N, D = 40, 6
DENSE = np.round(np.abs(np.random.default_rng(0).normal(size=(N, D))), 3)
DENSE[np.random.default_rng(1).random((N, D)) < 0.4] = 0.0
DENSE[:, 0] += 1.0
Y = np.arange(N) % 3
LEFT, RIGHT = np.arange(N), (np.arange(N) * 7 + 1) % N
SIGNS = np.where(Y[LEFT] == Y[RIGHT], 1, -1)


def far(X):
    X.indices[3::7] = 10**6


def one_too_far(X):
    X.indices[5] = X.shape[0 if X.format == "csc" else 1]


def negative(X):
    X.indices[5] = -7


def far_pointer(X):
    X.indptr[4] = 10**7


def falling_pointer(X):
    X.indptr[3], X.indptr[4] = X.indptr[4], X.indptr[3]


def late_start(X):
    X.indptr[0] = 2


def late_end(X):
    X.indptr[-1] += 5


def no_end(X):
    # SciPy's own check takes such a matrix for empty.
    X.indptr[-1] = 0


def negative_end(X):
    X.indptr[-1] = -(2**31)


def lost_values(X):
    X.data = X.data[:-3]


def lost_pointer(X):
    X.indptr = X.indptr[:-1]


DAMAGES = [
    far,
    one_too_far,
    negative,
    far_pointer,
    falling_pointer,
    late_start,
    late_end,
    no_end,
    negative_end,
    lost_values,
    lost_pointer,
]


def damaged(how=far, make=sp.csr_array):
    X = make(DENSE)
    # SciPy remembers the answer, which is not true any longer afterwards.
    assert X.format == "coo" or X.has_sorted_indices
    how(X)
    return X


@pytest.mark.parametrize("how", DAMAGES, ids=lambda how: how.__name__)
@pytest.mark.parametrize(
    "make", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.bsr_array, sp.bsr_matrix]
)
def test_every_damage_in_every_format_is_found(make, how):
    with pytest.raises(InvalidInputError, match=f"^rows {REFUSED}.*make the matrix anew.$"):
        sound_rows(damaged(how, make), "rows")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("value", [-1, N, 10**6])
def test_coordinates_out_of_the_shape(axis, value):
    X = sp.coo_array(DENSE)
    X.coords[axis][3] = value
    with pytest.raises(InvalidInputError, match=REFUSED):
        sound_rows(X)


def test_lists_dictionaries_and_diagonals_out_of_the_shape():
    lists, longer, keys = sp.lil_array(DENSE), sp.lil_array(DENSE), sp.dok_array(DENSE)
    lists.rows[3][1] = 10**6
    longer.data[3].extend([1.0] * 5)
    keys._dict[0, 10**6] = 1.0
    diagonals = sp.dia_array(DENSE)
    diagonals.data = diagonals.data[:2]
    for X in (lists, longer, keys, diagonals):
        with pytest.raises(InvalidInputError, match=REFUSED):
            sound_rows(X)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_sound_matrices_pass(kind):
    found = sound_rows(sp.csr_array(DENSE).asformat(kind))
    assert found.format == "csr" and found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), DENSE)


def test_values_are_shared_and_indices_are_not():
    X = sp.csr_array(DENSE)
    found = sound_rows(X)
    assert np.shares_memory(found.data, X.data)
    assert not np.shares_memory(found.indices, X.indices)
    assert not np.shares_memory(found.indptr, X.indptr)


def test_the_flags_that_scipy_keeps_are_not_believed():
    unsorted, twice = sp.csr_array(DENSE), sp.csr_array(DENSE)
    for X in (unsorted, twice):
        assert X.has_canonical_format
    first = slice(unsorted.indptr[0], unsorted.indptr[1])
    unsorted.indices[first] = unsorted.indices[first][::-1].copy()
    unsorted.data[first] = unsorted.data[first][::-1].copy()
    twice.indices[1] = twice.indices[0]
    expected = np.array(DENSE[:1])
    np.testing.assert_array_equal(sound_rows(unsorted).toarray()[:1], expected)
    for X in (unsorted, twice):
        assert X.has_canonical_format  # Not true.
        for start, stop in itertools.pairwise(sound_rows(X).indptr):
            assert np.all(np.diff(sound_rows(X).indices[start:stop]) > 0)
    assert sound_rows(twice)[0, twice.indices[0]] == twice.data[:2].sum()


# Where they come in

CONTAINERS = {
    "Pairs": lambda X: Pairs(X, LEFT, RIGHT, SIGNS),
    "Pairs.from_labels": lambda X: Pairs.from_labels(X, Y, 20, random_state=0),
    "Pairs.from_grades": lambda X: Pairs.from_grades(X, sp.eye_array(N)),
    "grades of Pairs": lambda X: Pairs.from_grades(np.ones((N, 2)), X),
    "Triplets": lambda X: Triplets(X, LEFT, RIGHT, LEFT),
    "items": lambda X: Triplets(DENSE, LEFT, RIGHT, LEFT, items=X),
    "Triplets.from_labels": lambda X: Triplets.from_labels(X, Y, 20, random_state=0),
    "Triplets.from_grades": lambda X: Triplets.from_grades(X, DENSE, np.ones((N, N))),
    "grades of Triplets": lambda X: Triplets.from_grades(DENSE, DENSE[:D], X, 5, random_state=0),
}
FORM = Mahalanobis.identity(D)
KERNEL = KernelMahalanobis(np.ones((2, 3)), DENSE[:3], "linear")
USES = {
    "pairs": lambda X: FORM.pairs(X, DENSE),
    "cross": lambda X: FORM.cross(DENSE, X),
    "embed": lambda X: FORM.embed(X),
    "kernel": lambda X: KERNEL.cross(DENSE, X),
    "support": lambda X: KernelMahalanobis(np.ones((2, N)), X, "linear"),
    "matrix": lambda X: Mahalanobis(X[:D]),
    "Index": lambda X: Index(FORM, X),
    "query": lambda X: Index(FORM, DENSE).query(X, 1),
    "query sparse": lambda X: Index(FORM, sp.csr_array(DENSE)).query(X, 1),
    "margins": lambda X: samewise.margins(FORM, X, Y, 1),
    "KNNClassifier": lambda X: KNNClassifier().fit(X, Y),
    "energy": lambda X: KNNClassifier(rule="energy").fit(X, Y),
    "predict": lambda X: KNNClassifier().fit(DENSE, Y).predict(X),
    "predict sparse": lambda X: KNNClassifier().fit(sp.csr_array(DENSE), Y).predict(X),
    "PerClassClassifier": lambda X: PerClassClassifier(Euclidean()).fit(X, Y),
    "Verifier": lambda X: Verifier(FORM).fit(Pairs(X, LEFT, RIGHT, SIGNS)),
    "retrieval_scores": lambda X: retrieval_scores(FORM.blocks(X, X), Y, Y),
    "filter topics": lambda X: TopicFilter().fit({"a": X[:1], "b": DENSE[1]}),
    "filter": lambda X: TopicFilter().fit({"a": DENSE[0], "b": DENSE[1]}).observe_many(X),
}


@pytest.mark.parametrize("entrance", CONTAINERS)
def test_supervision(entrance):
    X = sp.csr_array(linear_kernel(DENSE)) if entrance == "grades of Pairs" else None
    X = sp.csr_array(DENSE) if X is None else X
    X.indices[3::7] = 10**6
    with pytest.raises(InvalidInputError, match=REFUSED):
        CONTAINERS[entrance](X)


@pytest.mark.parametrize("entrance", USES)
def test_forms_search_decisions_and_filters(entrance):
    # Not X[:n] of the damaged matrix, which SciPy refuses or makes another matrix of.
    class Whole(sp.csr_array):
        def __getitem__(self, rows):
            part = sp.csr_array(DENSE[rows])
            part.indices[0] = 10**6
            return part

    X = Whole(DENSE)
    X.indices[3::7] = 10**6
    with pytest.raises(InvalidInputError, match=REFUSED):
        USES[entrance](X)


@pytest.mark.parametrize("how", [far, negative], ids=["far", "negative"])
@pytest.mark.parametrize("name", [entry.name for entry in LEARNERS if entry.name != "Relief"])
def test_every_learner(name, how):
    kind = getattr(importlib.import_module("samewise"), name)
    for make in (sp.csr_array, sp.csc_array):
        learner = kind()
        with pytest.raises(InvalidInputError, match=f"^X {REFUSED}"):
            learner.fit(damaged(how, make), Y)
        assert not hasattr(learner, "n_features_in_")


@pytest.mark.parametrize("name", ["PassiveAggressive", "OASIS", "Covariance", "LDA", "RCA"])
def test_rows_to_map(name):
    learner = getattr(samewise, name)().fit(DENSE, Y)
    for use in (learner.transform, lambda X: learner.score(X, Y)):
        with pytest.raises(InvalidInputError, match=f"^X {REFUSED}"):
            use(damaged(one_too_far))


def test_a_model():
    model = samewise.fit_model(DENSE, Y, "pca", keep="learned", random_state=0)
    for use in (model.prepare, model.has_seen):
        with pytest.raises(InvalidInputError, match=f"^X {REFUSED}"):
            use(damaged())


# What is done later to arrays that were checked


@pytest.mark.parametrize("learner", [PassiveAggressive(), PassiveAggressive(psd="end")])
def test_indices_changed_after_pairs_were_made(learner):
    X = sp.csr_array(DENSE)
    pairs = Pairs(X, LEFT, RIGHT, SIGNS)
    expected = learner.fit(pairs).metric_.matrix
    X.indices[3::7] = 10**6
    X.indptr[2:] = 10**7
    np.testing.assert_array_equal(learner.fit(pairs).metric_.matrix, expected)
    np.testing.assert_array_equal(pairs.differences().toarray(), DENSE[LEFT] - DENSE[RIGHT])


@pytest.mark.parametrize("learner", [OASIS(), DiagonalAROMA()])
def test_indices_changed_after_triplets_were_made(learner):
    X, items = sp.csr_array(DENSE), sp.csr_array(DENSE)
    triplets = Triplets(X, LEFT, RIGHT, LEFT[::-1], items=items)
    expected = learner.fit(triplets).metric_.matrix
    for changed in (X, items):
        changed.indices[3::7] = 10**6
        changed.indptr[2:] = 10**7
    np.testing.assert_array_equal(learner.fit(triplets).metric_.matrix, expected)


def test_the_indices_of_supervision_cannot_be_written():
    pairs = Pairs(sp.csr_array(DENSE), LEFT, RIGHT, SIGNS)
    for part in (pairs.X.indices, pairs.X.indptr):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 7


def test_indices_changed_after_an_index_and_a_classifier_were_made():
    X = sp.csr_array(DENSE)
    index, classifier = Index(FORM, X), KNNClassifier().fit(X, Y)
    expected = index.query(DENSE, 2)[1], classifier.predict(DENSE)
    X.indices[3::7] = 10**6
    np.testing.assert_array_equal(index.query(DENSE, 2)[1], expected[0])
    np.testing.assert_array_equal(classifier.predict(DENSE), expected[1])


@pytest.mark.parametrize("value", [-1, N, 10**9])
@pytest.mark.parametrize("rows", [DENSE, sp.csr_array(DENSE)], ids=["dense", "sparse"])
def test_row_numbers_changed_after_they_were_checked(rows, value):
    for member in ("left", "right"):
        numbers = {"left": LEFT.copy(), "right": RIGHT.copy()}
        pairs = Pairs(rows, **numbers, y=SIGNS)
        learner = PassiveAggressive().fit(pairs)
        numbers[member][3] = value
        for use in (learner.fit, learner.partial_fit, learner.predict):
            with pytest.raises(InvalidInputError, match=f"{member} must hold row numbers"):
                use(pairs)
        assert learner.n_seen_ == N
    for member in ("anchor", "positive", "negative"):
        numbers = {"anchor": LEFT.copy(), "positive": RIGHT.copy(), "negative": LEFT[::-1].copy()}
        triplets = Triplets(rows, **numbers)
        learner = OASIS().fit(triplets)
        numbers[member][3] = value
        for use in (learner.fit, learner.partial_fit, learner.triplet_margin):
            with pytest.raises(InvalidInputError, match=f"{member} must hold row numbers"):
                use(triplets)
        assert learner.n_seen_ == N


# The same through other doors


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    "enter",
    [
        lambda X: samewise.choose_learner(X, Y),
        lambda X: samewise.protocols.tune_learner("lda", X, Y),
        lambda X: metric_learn.LFDA(preprocessor=X).fit(np.arange(N), Y),
        lambda X: metric_learn.ITML(preprocessor=X).fit(np.c_[LEFT, RIGHT], SIGNS),
        lambda X: metric_learn.Constraints(Y).generate_knntriplets(X, 1, 1),
        lambda X: samewise.search.ClassIndex(None, X, Y),
        lambda X: samewise.Judgements(X, LEFT[:2], [[1, 2], [3, 4]], [[1, -1], [1, 0]]),
        lambda X: samewise.Quadruplets(X, LEFT, RIGHT, RIGHT, LEFT),
    ],
    ids=["choose", "tune", "points", "pairs", "triplets", "classes", "lists", "quadruplets"],
)
def test_newer_entrances(enter, make):
    with pytest.raises(InvalidInputError, match=REFUSED):
        enter(damaged(far_pointer, make))


def test_one_sparse_matrix_is_not_a_sequence_of_maps():
    # SciPy's iteration over its rows followed the indices.
    for components in (damaged(far, sp.csc_array), 5):
        with pytest.raises(InvalidInputError, match="must be a sequence of maps, one for each"):
            samewise.MultiMetric(components)


@pytest.mark.parametrize("make", [sp.coo_array, sp.csr_array])
def test_sparse_arrays_of_one_dimension(make):
    # Their indices are not those of rows, and were followed unchecked.
    vector = make(DENSE[0])
    (vector.coords[0] if make is sp.coo_array else vector.indices)[1] = 10**9
    learned = KNNClassifier().fit(DENSE, Y)
    for enter in (Mahalanobis, FORM.embed, learned.predict, lambda X: Pairs(X, [0], [1], [1])):
        with pytest.raises(InvalidInputError, match="must have two dimensions"):
            enter(vector)


def test_points_of_a_preprocessor():
    dense = metric_learn.LFDA(preprocessor=DENSE).fit(np.arange(N), Y)
    learner = metric_learn.ITML(preprocessor=sp.csc_array(DENSE), random_state=0)
    learned = learner.fit(np.c_[LEFT, RIGHT], SIGNS).components_
    learner.set_params(preprocessor=DENSE).fit(np.c_[LEFT, RIGHT], SIGNS)
    np.testing.assert_allclose(learned, learner.components_, rtol=1e-9)
    with pytest.raises(InvalidInputError, match="X must hold row numbers from 0 to 39"):
        dense.fit([0, N], Y[:2])
    with pytest.raises(InvalidInputError, match=r"must be a dense vector. Got csr_array\.$"):
        dense.get_metric()(sp.csr_array(DENSE[:1]), DENSE[1])
