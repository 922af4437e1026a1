"""What the learners and `tune_C` refuse, and what they say."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from samewise import POLA, KernelPOLA, Mahalanobis, Pairs, PassiveAggressive, Triplets, tune_C
from samewise.exceptions import InvalidInputError, NotPSDError

LEARNERS = {
    "PassiveAggressive": lambda **given: PassiveAggressive(n_pairs=50, random_state=0, **given),
    "POLA": lambda **given: POLA(n_pairs=50, random_state=0, **given),
    "KernelPOLA": lambda **given: KernelPOLA(n_pairs=50, random_state=0, **given),
}
LINEAR = ["PassiveAggressive", "POLA"]
METHODS = ["fit", "partial_fit"]


@pytest.fixture(params=LEARNERS)
def name(request):
    return request.param


@pytest.fixture
def learner(name):
    return LEARNERS[name]()


@pytest.fixture
def fitted(name, labeled):
    return LEARNERS[name]().fit(*labeled)


def refused(match, call, error=InvalidInputError):
    with pytest.raises(error, match=re.escape(match)):
        call()


def with_value(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


# Examples and their labels


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "value, said", [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity")]
)
def test_values_that_are_not_finite(learner, labeled, method, kind, value, said):
    X, y = labeled
    refused(said, lambda: getattr(learner, method)(kind(with_value(X, value)), y), ValueError)


@pytest.mark.parametrize("method", METHODS)
def test_examples_without_labels(learner, name, labeled, method):
    refused(
        f"{name} requires y to be passed, but the target y is None: give class labels with "
        "examples, ±1 with an array of pairs, or Pairs.",
        lambda: getattr(learner, method)(labeled[0]),
    )


@pytest.mark.parametrize("method", METHODS)
def test_examples_of_the_wrong_shape(learner, labeled, method):
    learn = getattr(learner, method)
    X, y = labeled
    refused("Expected 2D array, got 1D array instead", lambda: learn(X[0], y[:5]), ValueError)
    refused("Found array with dim 4", lambda: learn(np.zeros((2, 2, 2, 2)), [1, 1]), ValueError)
    refused("inconsistent numbers of samples: [60, 59]", lambda: learn(X, y[:-1]), ValueError)
    refused("minimum of 2 is required", lambda: learn(X[:1], y[:1]), ValueError)
    refused("0 feature(s)", lambda: learn(np.empty((4, 0)), [0, 0, 1, 1]), ValueError)


@pytest.mark.parametrize("method", METHODS)
def test_labels_that_say_nothing(learner, labeled, method):
    learn = getattr(learner, method)
    X, y = labeled
    refused("needs examples of at least two classes. Got one class", lambda: learn(X, y * 0))
    refused(
        "Similar pairs need a class with at least two examples. Got 6 classes of one example each",
        lambda: learn(X[:6], np.arange(6)),
    )
    refused("Input y contains NaN", lambda: learn(X, np.where(y == 1, np.nan, y)), ValueError)
    refused("Unknown label type: continuous", lambda: learn(X, X[:, 0]), ValueError)


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_examples(learner, labeled, method):
    learn = getattr(learner, method)
    X, y = labeled
    ones = np.ones(60)
    refused(
        "sample_weight must have one weight for each of the 60 examples. Got an array of shape",
        lambda: learn(X, y, ones[:5]),
    )
    said = "sample_weight must be finite and not negative"
    refused(said, lambda: learn(X, y, -ones))
    refused(said, lambda: learn(X, y, ones * np.nan))
    refused(said, lambda: learn(X, y, ones * np.inf))


@pytest.mark.parametrize("method", METHODS)
def test_weights_that_leave_nothing(learner, labeled, method):
    refused("sample_weight", lambda: getattr(learner, method)(*labeled, np.zeros(60)))


# Pairs


@pytest.mark.parametrize("method", METHODS)
def test_pairs_of_the_wrong_kind(learner, name, labeled, method):
    learn = getattr(learner, method)
    X, y = labeled
    refused(
        "Pairs carry their own labels and weights: call fit(pairs) without y and sample_weight",
        lambda: learn(Pairs(X, [0], [1], [1]), [-1]),
    )
    refused(
        "Pairs carry their own labels and weights",
        lambda: learn(Pairs(X, [0], [1], [1]), sample_weight=[1]),
    )
    refused(
        f"{name} learns from pairs. Got Triplets, which say what is closer but not what is the "
        "same; give Pairs, an array of shape (n, 2, d) with labels ±1, or labeled examples.",
        lambda: learn(Triplets.from_labels(X, y, 5, random_state=0)),
    )
    refused(f"{name} needs at least one pair. Got none.", lambda: learn(Pairs(X, [], [], [])))
    refused("needs at least one pair", lambda: learn(np.empty((0, 2, 5)), []))


@pytest.mark.parametrize("method", METHODS)
def test_arrays_of_pairs(learner, name, labeled, method):
    learn = getattr(learner, method)
    A = labeled[0].reshape(30, 2, 5)
    ones = np.ones(30)
    refused(
        "An array of pairs must have shape (n_pairs, 2, n_features). Got shape (20, 3, 5).",
        lambda: learn(labeled[0].reshape(20, 3, 5), ones[:20]),
    )
    refused(
        f"{name} requires y to be passed with an array of pairs, but the target y is None: give +1 "
        "(similar) or -1 (dissimilar) for each pair.",
        lambda: learn(A),
    )
    refused(
        "Labels of pairs must be +1 (similar) or -1 (dissimilar). Got [0, 1]; for labels 0/1 pass "
        "2*y - 1.",
        lambda: learn(A, np.arange(30) % 2),
    )
    refused("one label for each of the 30 pairs", lambda: learn(A, ones[:-1]))
    refused("one weight for each of the 30 pairs", lambda: learn(A, ones, ones[:-1]))
    refused("finite and not negative", lambda: learn(A, ones, -ones))
    refused("Input pairs contains NaN", lambda: learn(A * np.nan, ones), ValueError)


# Parameters


@pytest.mark.parametrize(
    "given, said",
    [
        ({"rule": "pa3"}, "The 'rule' parameter of PassiveAggressive must be a str among"),
        (
            {"C": 0},
            "The 'C' parameter of PassiveAggressive must be a float in the range (0.0, inf)",
        ),
        ({"C": -1.0}, "Got -1.0 instead"),
        ({"C": np.nan}, "The 'C' parameter of PassiveAggressive"),
        ({"psd": "never"}, "The 'psd' parameter of PassiveAggressive must be a str among"),
        ({"psd": 1}, "or an int in the range [2, inf). Got 1 instead"),
        ({"psd": True}, "or an int in the range [2, inf). Got True instead"),
    ],
)
def test_parameters_of_passive_aggressive(labeled, given, said):
    for method in METHODS:
        learner = LEARNERS["PassiveAggressive"](**given)
        refused(said, lambda m=method, k=learner: getattr(k, m)(*labeled), ValueError)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"relaxation": -0.1}, "The 'relaxation' parameter of POLA must be a float in the range"),
        ({"epsilon": 0.0}, "The 'epsilon' parameter of POLA must be None or a float in the range"),
        ({"max_passes": 0}, "The 'max_passes' parameter of POLA must be an int in the range"),
    ],
)
def test_parameters_of_pola(labeled, given, said):
    refused(said, lambda: LEARNERS["POLA"](**given).fit(*labeled), ValueError)


AVERAGE = (
    "The 'average' parameter must be 'last', 'uniform', 'survival', ('suffix', q), ('cutoff', k) "
    "or ('decay', h) with q, k, h integers of at least 1. Got "
)
INIT = "The 'init' parameter must be 'zero', 'identity', an array of shape (n_features, n_features)"


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(
    "given, said",
    [
        ({"average": "mean"}, AVERAGE + "'mean' instead."),
        ({"average": "suffix"}, AVERAGE + "'suffix' instead."),
        ({"average": ("suffix", 0)}, AVERAGE + "('suffix', 0) instead."),
        ({"average": ("suffix", 1.5)}, AVERAGE + "('suffix', 1.5) instead."),
        ({"average": ("last", 2)}, AVERAGE + "('last', 2) instead."),
        ({"average": ("decay", 0)}, AVERAGE + "('decay', 0) instead."),
        ({"average": ("cutoff",)}, AVERAGE + "('cutoff',) instead."),
        ({"path": "gpu"}, "The 'path' parameter of "),
        ({"init": "one"}, INIT + " or a Mahalanobis form. Got 'one' instead."),
        ({"init": np.eye(4)}, "init has 4 features, but the data have 5; give a matrix of shape"),
        ({"init": Mahalanobis.identity(6)}, "init has 6 features, but the data have 5"),
    ],
)
def test_parameters_of_linear_learners(name, labeled, given, said):
    for method in METHODS:
        learner = LEARNERS[name](**given)
        refused(said, lambda m=method, k=learner: getattr(k, m)(*labeled), ValueError)
        assert not hasattr(learner, "n_updates_")


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize(
    "init, said, error",
    [
        (-np.eye(5), "its smallest eigenvalue is -1", NotPSDError),
        (np.triu(np.ones((5, 5))), "symmetric", NotPSDError),
        (np.ones(5), "two dimensions", InvalidInputError),
        (np.ones((5, 4)), "square", InvalidInputError),
        (np.full((5, 5), np.nan), "NaN", InvalidInputError),
    ],
)
def test_init_that_is_no_metric(name, labeled, init, said, error):
    # The message names the parameter, not only the form that was made of it.
    with pytest.raises(error, match=rf"\binit\b.*{said}"):
        LEARNERS[name](init=init).fit(*labeled)


@pytest.mark.parametrize(
    "given, said",
    [
        (
            {"n_pairs": 0},
            "The 'n_pairs' parameter of {} must be an int in the range [1, inf) or None",
        ),
        ({"purpose": "hard"}, "The 'purpose' parameter of {} must be a str among"),
        ({"n_passes": 0}, "The 'n_passes' parameter of {} must be an int in the range [1, inf)"),
        (
            {"tolerance": -1},
            "The 'tolerance' parameter of {} must be a float in the range [0.0, inf)",
        ),
        ({"shuffle": "yes"}, "The 'shuffle' parameter of {} must be an instance of 'bool'"),
        ({"verbose": -1}, "The 'verbose' parameter of {} must be"),
        ({"random_state": "dice"}, "The 'random_state' parameter of {} must be"),
    ],
)
def test_parameters_that_all_have(learner, name, labeled, given, said):
    learner.set_params(**given)
    refused(said.format(name), lambda: learner.fit(*labeled), ValueError)


def test_parameters_of_the_kernel(labeled):
    refused(
        "The 'kernel' parameter of KernelPOLA must be a str among",
        lambda: KernelPOLA("gauss").fit(*labeled),
        ValueError,
    )
    refused(
        "The 'kernel_params' parameter of KernelPOLA",
        lambda: KernelPOLA("rbf", 0.5).fit(*labeled),
        ValueError,
    )


def test_keywords_that_the_kernel_does_not_know(labeled):
    learner = KernelPOLA("rbf", {"gama": 0.5}, n_pairs=20)
    with pytest.raises((TypeError, ValueError), match="gama"):
        learner.fit(*labeled)
    assert not hasattr(learner, "n_seen_")


# After fitting


def test_partial_fit_with_other_features(fitted, name, labeled):
    X, y = labeled
    said = f"X has 4 features, but {name} is expecting 5 features as input"
    refused(said, lambda: fitted.partial_fit(X[:, :4], y), ValueError)
    refused(said, lambda: fitted.partial_fit(Pairs(X[:, :4], [0], [1], [1])), ValueError)
    refused(said, lambda: fitted.partial_fit(X[:, :4].reshape(30, 2, 4), np.ones(30)), ValueError)


def test_use_with_other_features(fitted, name, labeled):
    X, y = labeled
    X = X[:, :4]
    refused(f"X has 4 features, but {name} is expecting 5", lambda: fitted.transform(X), ValueError)
    refused(f"X has 4 features, but {name} is expecting 5", lambda: fitted.score(X, y), ValueError)
    for method in ("predict", "decision_function", "pair_distance", "pair_score"):
        use = getattr(fitted, method)
        refused("has 4 features, but", lambda u=use: u(Pairs(X, [0], [1], [1])), ValueError)
        refused("has 4 features, but", lambda u=use: u(X.reshape(30, 2, 4)), ValueError)
        if name in LINEAR:
            refused("has 4 features, but", lambda u=use: u(X), ValueError)


PAIR_METHODS = ["predict", "decision_function", "pair_distance", "pair_score"]


@pytest.mark.parametrize("method", PAIR_METHODS)
def test_pairs_to_judge(fitted, labeled, method):
    X = labeled[0]
    use = getattr(fitted, method)
    refused(
        "must have shape (n_pairs, 2, n_features)", lambda: use(X.reshape(20, 3, 5)), ValueError
    )
    refused("contains NaN", lambda: use(X.reshape(30, 2, 5) * np.nan), ValueError)


@pytest.mark.parametrize("method", PAIR_METHODS)
def test_triplets_are_no_pairs_to_judge(fitted, labeled, method):
    triplets = Triplets.from_labels(*labeled, 5, random_state=0)
    refused("Got Triplets", lambda: getattr(fitted, method)(triplets))


@pytest.mark.parametrize("method", PAIR_METHODS)
def test_a_kernel_matrix_lacks_the_zero_vector(labeled, method):
    X, y = labeled
    learner = LEARNERS["KernelPOLA"](kernel="precomputed").fit(X @ X.T, y)
    refused(
        "A kernel matrix does not have the kernel values of the zero vector, with which rows are "
        "compared. Got a matrix; give Pairs or an array of shape (n, 2, d).",
        lambda: getattr(learner, method)(X @ X.T),
    )


def test_score_needs_its_labels(fitted, name, labeled):
    X, y = labeled
    refused("requires y to be passed", lambda: fitted.score(X), ValueError)
    refused("requires y to be passed", lambda: fitted.score(X.reshape(30, 2, 5)), ValueError)
    refused("needs at least one pair", lambda: fitted.score(Pairs(X, [], [], [])))
    refused("Got Triplets", lambda: fitted.score(Triplets.from_labels(X, y, 5, random_state=0)))


def test_a_precomputed_kernel_must_be_square(labeled):
    X, y = labeled
    said = (
        "With kernel='precomputed', X must be the square kernel matrix between the training points"
    )
    learner = KernelPOLA("precomputed", n_pairs=50)
    refused(f"{said}. Got shape (60, 5).", lambda: learner.fit(X, y))
    refused(f"{said}. Got shape (60, 5).", lambda: learner.partial_fit(Pairs(X, [0], [1], [1])))
    assert not hasattr(learner, "n_seen_")


# Before fitting

ATTRIBUTES = [
    "metric_",
    "threshold_",
    "closeness_threshold_",
    "n_updates_",
    "n_seen_",
    "n_mistakes_",
    "loss_",
    "history_",
]


@pytest.mark.parametrize(
    "method", ["transform", "predict", "decision_function", "pair_distance", "pair_score"]
)
def test_methods_before_fitting(learner, name, labeled, method):
    for given in (labeled[0], Pairs(labeled[0], [0], [1], [1])):
        if method == "transform" and isinstance(given, Pairs):
            continue
        refused(
            f"This {name} instance is not fitted yet",
            lambda g=given: getattr(learner, method)(g),
            NotFittedError,
        )


def test_other_methods_before_fitting(learner, name, labeled):
    said = f"This {name} instance is not fitted yet"
    refused(said, lambda: learner.score(*labeled), NotFittedError)
    refused(said, lambda: learner.score(Pairs(labeled[0], [0], [1], [1])), NotFittedError)
    refused(said, lambda: learner.get_feature_names_out(), NotFittedError)
    if name in LINEAR:
        refused(said, lambda: learner.get_mahalanobis_matrix(), NotFittedError)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_attributes_before_fitting(learner, name, attribute):
    with pytest.raises(
        (NotFittedError, AttributeError), match=f"This {name} instance is not fitted"
    ):
        getattr(learner, attribute)
    assert not hasattr(learner, attribute)


@pytest.mark.parametrize("name", LINEAR)
def test_components_before_fitting(name):
    refused(
        f"This {name} instance is not fitted yet",
        lambda: LEARNERS[name]().components_,
        NotFittedError,
    )


# tune_C


def test_tuning(labeled, pairs):
    learner = LEARNERS["PassiveAggressive"]()
    refused(
        "criterion must be 'loss' or 'accuracy'. Got 'speed'.",
        lambda: tune_C(learner, *labeled, criterion="speed"),
    )
    refused("Cs must be a one-dimensional array of values", lambda: tune_C(learner, pairs, Cs=[]))
    refused("Cs must be a one-dimensional array", lambda: tune_C(learner, pairs, Cs=[[1.0]]))
    refused("The 'C' parameter", lambda: tune_C(learner, pairs, Cs=[1.0, -1.0]), ValueError)
    refused(
        "criterion='accuracy' needs labeled examples to find neighbors among. Got pairs only; pass "
        "labeled=(X, y).",
        lambda: tune_C(learner, pairs, criterion="accuracy"),
    )
    refused("Invalid parameter 'C' for estimator POLA", lambda: tune_C(POLA(), pairs), ValueError)
    assert not hasattr(learner, "n_seen_")


def test_tuning_on_examples_without_labels(labeled):
    learner = LEARNERS["PassiveAggressive"]()
    refused("requires y to be passed", lambda: tune_C(learner, labeled[0]), ValueError)


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e71), (np.float32, 1e16)])
def test_values_whose_products_overflow(dtype, size):
    X = np.array([[1.0], [-size], [2.0], [3.0]], dtype=dtype)
    text = rf"X holds values up to {size:.3g}.*overflow {np.dtype(dtype)}.*scale the features below"
    for call in (
        lambda: Pairs(X, [0], [1], [1]),
        lambda: PassiveAggressive().fit(X, [0, 0, 1, 1]),
    ):
        with pytest.raises(InvalidInputError, match=text.replace("+", r"\+")):
            call()
    ok = Pairs(X * dtype(0.09), [0, 2], [1, 3], [-1, 1])
    assert np.isfinite(PassiveAggressive().fit(ok).metric_.matrix).all()
