"""What the properties of this folder found, each with its smallest input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import samewise
from samewise import (
    GeneralizedCosine,
    KNNClassifier,
    Mahalanobis,
    MultiMetric,
    Pairs,
    PerClassClassifier,
    Verifier,
)
from samewise.catalog import LEARNERS
from samewise.exceptions import InvalidInputError
from samewise.files import container
from samewise.kernels import cone

X, y = np.arange(8.0).reshape(4, 2) ** 2, np.array([0, 0, 1, 1])


def test_parts_are_chosen_by_whole_numbers():
    pairs = Pairs(X, [0, 1], [1, 2], [1, -1])
    assert len(pairs[[]]) == len(pairs[[]].differences()) == 0
    with pytest.raises(InvalidInputError, match="a mask or an array of whole numbers"):
        pairs[[0.5]]


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (KNNClassifier(n_neighbors=5), (X, y)),
        (PerClassClassifier(samewise.LDA(), n_neighbors=5), (X, y)),
        (Verifier(samewise.Mahalanobis.identity(3)), (Pairs(X, [0, 1], [1, 2], [1, -1]),)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_refused_fit_leaves_nothing_behind(model, given):
    before = list(vars(model))
    with pytest.raises(InvalidInputError):
        model.fit(*given)
    assert list(vars(model)) == before


def test_a_class_whose_label_is_a_python_object_is_named():
    labels = np.array(["y", "y", "y", "x"], dtype=object)
    with pytest.raises(InvalidInputError, match="more than the class 'x' has members"):
        KNNClassifier(n_neighbors=2, rule="sknn").fit(X, labels)
    form = MultiMetric([np.eye(2)], classes=["x"])
    with pytest.raises(InvalidInputError, match="The class 'y' is not one of the 1 classes"):
        form.bind(X, labels)


ARRAYS = [
    (entry.name, parameter)
    for entry in LEARNERS
    for parameter, allowed in getattr(samewise, entry.name)._parameter_constraints.items()
    if "array-like" in allowed
]


@pytest.mark.parametrize(("name", "parameter"), ARRAYS)
@pytest.mark.parametrize("value", [["x"], [[1.0], [1.0, 2.0]]], ids=repr)
def test_arrays_of_parameters_hold_numbers(name, parameter, value):
    learner = getattr(samewise, name)(**{parameter: value})
    if "validation_fraction" in learner.get_params():
        learner.set_params(validation_fraction=None)
    with pytest.raises(InvalidInputError, match=rf"({parameter}|rectangular array).*\.$"):
        learner.fit(X, y)


@pytest.mark.parametrize("form", [Mahalanobis, GeneralizedCosine])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_matrix_whose_eigenvalues_overflow(form, dtype):
    matrix = np.full((2, 2), 0.9 * np.finfo(dtype).max, dtype=dtype)
    with pytest.raises(InvalidInputError, match="with which its eigenvalues overflow float"):
        form(matrix)


@pytest.mark.parametrize("name", ["ITML", "MMC"])
def test_a_refused_fit_takes_no_random_numbers(name):
    random = np.random.RandomState(0)
    learner = getattr(samewise, name)(random_state=random)
    with pytest.raises(ValueError):
        # No two rows differ, which is seen after the pairs are drawn.
        learner.fit(np.zeros((8, 1)), [0, 1] * 4)
    np.testing.assert_array_equal(random.get_state()[1], np.random.RandomState(0).get_state()[1])
    assert random.get_state()[2] == np.random.RandomState(0).get_state()[2]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_a_diagonal_of_rbs_from_any_sparse_kind(kind):
    dense = samewise.RBS(structure="diagonal", n_neighbors=1).fit(X, y).metric_
    learned = samewise.RBS(structure="diagonal", n_neighbors=1).fit(kind(X), y).metric_
    np.testing.assert_allclose(learned.matrix, dense.matrix, rtol=1e-12)


@pytest.mark.parametrize("name", ["ITML", "LEGO"])
def test_pairs_that_all_weigh_nothing_have_no_bounds(name):
    with pytest.raises(InvalidInputError, match=r"need pairs\. All have weight 0; give"):
        getattr(samewise, name)().fit(Pairs(X, [0, 1], [1, 2], [1, -1], [0.0, 0.0]))


@pytest.mark.parametrize("kernel", ["chi2", "additive_chi2"])
def test_kernels_whose_loops_want_writable_arrays(kernel):
    X = np.abs(np.random.default_rng(0).normal(size=(30, 3)))
    X.flags.writeable = False
    y = np.arange(30) % 2
    for learner in (samewise.KernelPOLA(kernel, random_state=0), samewise.KernelLMNN(kernel)):
        E = learner.fit(X, y).transform(X)
        assert E.shape[0] == len(X) and np.isfinite(E).all()


MIXED = np.array(["x", 1] * 20, dtype=object)


@pytest.mark.parametrize(
    "estimator",
    [
        samewise.DiagonalAROMA(validation_fraction=0.2),
        samewise.DiagonalAROMA(),
        samewise.PassiveAggressive(),
        samewise.LMNN(),
        samewise.KernelLMNN(),
        samewise.KIGML(),
        samewise.RCA(),
        samewise.KNNClassifier(),
        samewise.PerClassClassifier(samewise.LDA()),
    ],
    ids=repr,
)
def test_labels_of_two_kinds_are_refused_with_a_sentence(estimator):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=r"Labels must be of one kind.*Got int and str"):
        estimator.fit(X, MIXED)


@pytest.mark.parametrize("learner", [samewise.LMNN, samewise.KernelLMNN, samewise.NCA])
def test_nothing_left_to_learn_from(learner):
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(ValueError, match=r"leaves no class with two points to learn from; lower"):
        learner(validation_fraction=0.999999).fit(X, [1, 1, 1, 0])


@pytest.mark.parametrize(
    "make",
    [
        lambda number: samewise.POLA(relaxation=number(0), max_passes=3),
        lambda number: samewise.KernelPOLA(relaxation=number(0)),
        lambda number: samewise.PassiveAggressive(C=number(1)),
        lambda number: samewise.PassiveAggressive("pa2", tolerance=number(0)),
        lambda number: samewise.OASIS(margin=number(1)),
        lambda number: samewise.DiagonalAROMA(margin=number(1)),
    ],
)
def test_whole_numbers_as_parameters_are_saved_like_others(make, tmp_path):
    pairs = Pairs(X, [2, 0], [1, 3], [-1, 1])
    if hasattr(make(int), "margin"):
        pairs = samewise.Triplets(X, [0, 1], [1, 2], [2, 3])
    learner = make(int).fit(pairs)
    learner.save(tmp_path / "one")
    samewise.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert make(float).fit(pairs).metric_ == learner.metric_


@pytest.mark.parametrize("learner", [samewise.SiLA, samewise.RBS, samewise.SRBS])
@pytest.mark.filterwarnings("ignore")
def test_more_neighbors_than_there_are(learner):
    many, all_ = (learner(n_neighbors=k).fit(X, y).metric_ for k in (2**63, len(X)))
    assert many == all_


@pytest.mark.parametrize("learner", [samewise.ITML, samewise.MMC, samewise.PassiveAggressive])
def test_weights_whose_sums_overflow(learner):
    with pytest.raises(InvalidInputError, match=r"up to 1.6e\+308, whose sums and products"):
        learner().fit(Pairs(X, [0, 1], [1, 2], [1, -1], sample_weight=[1.6e308, 8e307]))


@pytest.mark.parametrize("parameter", ["beta", "regularization"])
def test_parameters_whose_products_overflow(parameter):
    with pytest.raises(ValueError, match=rf"The '{parameter}' parameter of SRBS must be a float"):
        samewise.SRBS(**{parameter: 1e300}).fit(X, y)


def test_documents_whose_squares_overflow():
    filter = samewise.filtering.TopicFilter("simple", vectorizer=None).fit({"a": [1.0, 0.0]})
    with pytest.raises(InvalidInputError, match=r"values up to 1e\+100, whose squares overflow"):
        filter.observe([1e100, 0.0])


def test_a_file_with_impossible_counts_of_terms_is_refused(tmp_path):
    vectors = samewise.filtering.TextVectors(8)
    filter = samewise.filtering.TopicFilter("simple", vectorizer=vectors).fit({"a": "cocoa beans"})
    filter.observe("cocoa")
    for name, value in (("_df", -1), ("_weights", 1e308)):
        kept = getattr(filter._vectors, name)
        changed = kept.copy()
        changed[0] = value
        setattr(filter._vectors, name, changed)
        filter.save(tmp_path / "filter")
        setattr(filter._vectors, name, kept)
        with pytest.raises(samewise.exceptions.FileFormatError, match="must be"):
            samewise.load(tmp_path / "filter")


@pytest.mark.parametrize("form", [Mahalanobis, GeneralizedCosine])
def test_matrices_below_the_least_exact_number_are_loaded_again(form, tmp_path):
    M = np.array([[2.1062e-320, -1.2080e-320], [-1.2080e-320, 1.8325e-320]])
    made = form(M)
    made.save(tmp_path / "form")
    assert samewise.load(tmp_path / "form") == made


def test_a_matrix_whose_symmetric_part_overflows():
    with pytest.raises(InvalidInputError, match="The symmetric part of the matrix of Mahalanobis"):
        Mahalanobis.nearest([[1e308, 0.0], [0.0, 1.0]])


def test_a_class_of_one_example_shrinks_without_a_warning():
    labels = np.array([1, 1, 1, 0])
    learner = samewise.LDA(shrinkage=0.5).fit(X, labels)
    assert np.isfinite(learner.components_).all()


@pytest.mark.parametrize(
    ("learner", "seed", "size"),
    [(samewise.PassiveAggressive(rule="pa"), 213, 1e14), (samewise.POLA(), 117, 1e18)],
    ids=lambda each: type(each).__name__,
)
def test_lengths_so_far_apart_that_an_inverse_is_singular(learner, seed, size):
    # A step that the kept inverse cannot follow is settled by a factorization.
    rng = np.random.default_rng(seed)
    rng.integers(2, 6)
    rows = rng.normal(size=(40, 2))
    rng.choice([6, 10, 14, 18])
    rows *= rng.choice([1 / size, 1, size], size=(40, 1))
    y = 2 * rng.integers(0, 2, size=20) - 1
    learner.fit(Pairs(rows, np.arange(0, 40, 2), np.arange(1, 40, 2), y))
    assert np.isfinite(learner.metric_.matrix).all()


@pytest.mark.parametrize("mu", [0.0, 1e-300])
def test_an_inverse_that_cannot_follow_stays_as_it_was(mu):
    # I − vvᵀ is singular for a unit vector v: P stays.
    P, v, u = np.eye(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert not cone._follow(P, mu, u, -1.0, v, v.copy(), np.empty(2))
    np.testing.assert_array_equal(P, np.eye(2))
    assert cone._follow(P, mu, u, -0.5, v, v.copy(), np.empty(2))
    np.testing.assert_array_equal(P, np.diag([2.0, 1.0]))


def test_an_average_that_overflows_is_refused(tmp_path):
    # Numbers that no learning leaves, but that a file may hold.
    pairs = Pairs(X, [0, 1, 2], [1, 2, 3], [1, -1, 1])
    learner = samewise.GCosLA(average="survival").fit(pairs)
    learner._online.average.M = learner._online.mover.store.copy()
    for store in (learner._online.mover.store, learner._online.average.M):
        store.lower[0, 0] = 1.7e308
    learner.save(tmp_path / "learner")
    with pytest.raises(InvalidInputError, match="has left the range of float64"):
        samewise.load(tmp_path / "learner").metric_  # noqa: B018


@pytest.mark.parametrize("factor", [1e308, 1e10])
def test_a_kernel_form_that_overflows_is_refused(factor, tmp_path):
    learner = samewise.KernelPOLA().fit(Pairs(X, [0, 1, 2], [1, 2, 3], [1, -1, 1]))
    learner._span.basis[1, 0] = learner._span.basis[1, 1] = 1e308
    learner._online.mover.store.lower[1, 1] = factor
    learner.save(tmp_path / "learner")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInputError, match="has left the range of float64"):
            samewise.load(tmp_path / "learner").metric_  # noqa: B018


@pytest.mark.parametrize("learner", [samewise.POLA, samewise.PassiveAggressive])
def test_a_matrix_that_no_learning_leaves_does_not_learn(learner, tmp_path):
    pairs = Pairs(X, [0, 1, 2], [1, 2, 3], [1, -1, 1])
    learned = learner().fit(pairs)
    learned._online.mover.store.lower[0, 0] = 1e308
    learned.save(tmp_path / "learner")
    loaded = samewise.load(tmp_path / "learner")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInputError, match=r"float64|no longer finite"):
            loaded.partial_fit(pairs)


# With psd="each" weights fall to 0 and stay there.
@pytest.mark.parametrize(
    ("psd", "structure"), [("each", "full"), (None, "full"), (None, "diagonal")]
)
def test_steps_that_run_away_are_refused(psd, structure):
    learner = samewise.SRBS(regularization=1e70, max_iter=20, psd=psd, structure=structure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInputError, match=r"SRBS diverges: .* regularization=1e\+70"):
            learner.fit(X, y)
    assert not hasattr(learner, "metric_")


def test_a_matrix_that_fell_to_rounding_is_zero_for_the_next_portion():
    # In one dimension all cosines are ±1: whether a pair moves A was decided by rounding.
    rows = np.array([[0.12573022], [-0.13210486], [0.64042265], [0.10490012]])
    signs = np.array([-1, 1, 1, 1, -1, -1, -1, -1])
    pairs = Pairs(rows, [2, 2, 2, 3, 1, 3, 2, 0], [1, 3, 2, 0, 3, 2, 3, 0], signs)
    learners = [samewise.GCosLA(margin=0.5, average="last") for _ in range(3)]
    for learner, size in zip(learners, (8, 6, 1), strict=True):
        for start in range(0, 8, size):
            learner.partial_fit(pairs[start : start + size])
    assert len({learner.n_updates_ for learner in learners}) == 1
    assert {float(learner._online.mover.store.matrix[0, 0]) for learner in learners} == {0.0}


def test_a_tie_is_a_tie_where_a_block_has_shrunk_the_matrix():
    # cos = 1 and b at its bound: a step would be taken for the rounding of what A was.
    rows = np.random.default_rng(61).normal(size=(4, 1))
    pairs = Pairs(rows, [0, 1, 3, 1], [1, 3, 1, 1], [-1, -1, 1, -1])
    for size in (4, 2, 1):
        learner = samewise.GCosLA(margin=0.5, average="uniform")
        for start in range(0, 4, size):
            learner.partial_fit(pairs[start : start + size])
        assert learner.history_["updates"].tolist() == [1, 2, 2, 3]
        np.testing.assert_allclose(learner.metric_.matrix, 0.25379313, rtol=1e-7)


def test_neighbors_held_out_under_a_map_that_takes_all_points_to_one():
    # These differ from a line by the rounding of float32.
    points = np.array(
        [
            [0.20082523, 0.12599045],
            [0.47745717, 0.2995393],
            [0.19202296, 0.12046824],
            [-0.7572883, -0.47509515],
            [0.5261187, 0.33006775],
            [0.25939634, 0.16273585],
            [-0.31203324, -0.19575833],
        ],
        dtype=np.float32,
    )
    labels = [0, 1, 1, 1, 0, 0, 1]
    learner = samewise.MultiMetricLMNN(max_iter=20, random_state=0)
    learner.fit(points, labels)
    assert np.isfinite(learner.metric_.bind(points, labels).closeness(points)).all()


@pytest.mark.parametrize("learner", [samewise.Relief, samewise.LMNN])
@pytest.mark.filterwarnings("ignore")
def test_more_neighbors_than_an_array_can_hold(learner):
    many, all_ = (learner(n_neighbors=k).fit(X, y).metric_ for k in (2**63, len(X)))
    assert many == all_


def test_words_of_a_forged_file_are_words(tmp_path):
    vectors = samewise.TextVectors(8, stop_words=["the", "a"])
    vectors.fit(["cocoa beans"])
    vectors.stop_words = ["the"]
    vectors.save(tmp_path / "words")
    state = vectors.state()
    state.values["stop_words"] = ["the", 2]
    container.write(tmp_path / "forged", "TextVectors", state.arrays, state.values, owner="x")
    with pytest.raises(samewise.exceptions.FileFormatError, match="stop_words must be words"):
        samewise.load(tmp_path / "forged")


# Kinds of arrays

LEARNS = [samewise.LDA, samewise.LMNN, samewise.PassiveAggressive, samewise.OASIS, KNNClassifier]


@pytest.mark.parametrize("learner", LEARNS)
def test_masked_values_are_not_learned_from(learner):
    masked = np.ma.masked_greater(X, 40)
    with pytest.raises(InvalidInputError, match="X is a masked array with 1 masked values"):
        learner().fit(masked, y)


@pytest.mark.parametrize("learner", LEARNS)
@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[D]"])
def test_dates_are_no_numbers(learner, kind):
    with pytest.raises(InvalidInputError, match="X has dates or spans of time"):
        learner().fit(X.astype(int).astype(kind), y)


@pytest.mark.parametrize("learner", LEARNS)
def test_dates_of_a_table_are_no_numbers(learner):
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2020", periods=4)
    for table in (
        pandas.DataFrame({"t": days, "u": days}),
        pandas.DataFrame({"t": days.tz_localize("UTC")}),
        pandas.DataFrame({"t": days, "u": 1.0}),
    ):
        with pytest.raises(InvalidInputError, match="X has dates or spans of time"):
            learner().fit(table, y)


@pytest.mark.parametrize("learner", LEARNS)
def test_labels_that_are_missing_or_several(learner):
    days = np.array(["2020", "2021", "NaT", "2020"], dtype="datetime64[Y]")
    with pytest.raises(InvalidInputError, match=r"must not be missing\. Got NaT for 1 of 4"):
        learner().fit(X, days)
    several = np.zeros(4, dtype=[("a", int), ("b", int)])
    several["a"] = y
    with pytest.raises(InvalidInputError, match=r"one value for each example\. Got .* fields a, b"):
        learner().fit(X, several)


@pytest.mark.parametrize("name", ["TopicFilter", "BatchTopicFilter"])
def test_a_utility_whose_square_overflows(name):
    filter = getattr(samewise, name)(utility=1e300)
    with pytest.raises(ValueError, match="The 'utility' parameter of"):
        filter.fit({"a": "cocoa"})
