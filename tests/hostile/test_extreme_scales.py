"""Rows of any scale: whoever takes them has a finite result or refuses them with a sentence."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import samewise
from samewise import (
    ITML,
    KIGML,
    KRCA,
    LDA,
    LMNN,
    MCML,
    MMC,
    NCA,
    PCA,
    RBS,
    RCA,
    SNN,
    SRBS,
    Cosine,
    Covariance,
    Euclidean,
    GeneralizedCosine,
    KernelLMNN,
    KernelPOLA,
    KNNClassifier,
    Mahalanobis,
    MultiMetricLMNN,
    NormalizedBilinear,
    Pairs,
    PerClassClassifier,
    Relief,
    SiLA,
    Verifier,
)
from samewise.catalog import LEARNERS
from samewise.exceptions import SamewiseError
from samewise.search import margins
from tests.hostile.outcomes import Refusal, attempt, check_finite

RNG = np.random.default_rng(0)
Y = np.arange(30) % 3
X = RNG.normal(size=(30, 4))
X[:, 1] += Y
WIDE = RNG.normal(size=(6, 20))


def changed(where, how):
    Z = X.copy()
    Z[where] = how(Z[where])
    return Z


def times(factor, where=slice(None)):
    return changed(where, lambda Z: Z * factor)


ONE, COLUMN, HALF = (3, 1), (slice(None), 1), slice(15)
INPUTS = (
    {f"all {scale:g}": times(scale) for scale in (1e-300, 1e-160, 1e-100, 1e-20)}
    | {f"all {scale:g}": times(scale) for scale in (1e50, 1e69, 1e100, 1e155, 1e300, 1e307)}
    | {f"one {size:g}": changed(ONE, lambda _, s=size: s) for size in (1e10, 1e50, 1e160, 1e308)}
    | {f"column {factor:g}": times(factor, COLUMN) for factor in (1e-300, 1e-160, 1e20, 1e160)}
    | {f"half {factor:g}": times(factor, HALF) for factor in (1e-160, 1e-50, 1e10, 1e69)}
    | {
        "subnormal": RNG.integers(0, 5, X.shape) * 5e-324,
        "constant column": changed(COLUMN, lambda Z: 0 * Z + 7),
        "constant column 1e300": changed(COLUMN, lambda Z: 0 * Z + 1e300),
        "equal": np.full(X.shape, 0.1),
        "equal 1e300": np.full(X.shape, 1e300),
        "zero": 0 * X,
        "zero but one": np.eye(*X.shape) * 1e-200,
        "classes are points": np.repeat(1.0 * Y[:, None], 4, axis=1),
        "offset": X + 1e16,
        "one feature": X[:, :1],
        "one constant feature": 0 * X[:, :1] + 3,
        "one feature 1e-100": X[:, :1] * 1e-100,
    }
    | {
        f"float32 {s:g}": times(s).astype(np.float32)
        for s in (1e-40, 1e-22, 1e-18, 1e10, 1e18, 1e37)
    }
    | {
        "float32 one 3e38": changed(ONE, lambda _: 3e38).astype(np.float32),
        "float32 half 1e14": times(1e14, HALF).astype(np.float32),
        "float32 offset": (X + 1e7).astype(np.float32),
    }
)
INPUTS = {name: (Z, Y) for name, Z in INPUTS.items()} | {
    "four rows": (X[:4], np.array([0, 0, 1, 1])),
    "three rows": (X[:3], np.array([0, 0, 1])),
    "five rows, a class of one": (X[:5], np.array([0, 0, 1, 1, 2])),
    "wide": (WIDE, np.array([0, 0, 0, 1, 1, 1])),
    "wide 1e-100": (WIDE * 1e-100, np.array([0, 0, 0, 1, 1, 1])),
}
FEW = [
    "all 1e-160", "all 1e+69", "all 1e+155", "one 1e+10", "one 1e+50", "column 1e-160",
    "half 1e-160", "half 1e-50", "half 1e+10", "subnormal", "equal", "float32 1e-22",
    "float32 1e+18", "four rows",
]  # fmt: skip

KNOWN = {"n_pairs": 60, "n_triplets": 60, "random_state": 0}


def learner_of(name):
    learner = getattr(samewise, name)()
    given = {key: value for key, value in KNOWN.items() if key in learner.get_params()}
    return learner.set_params(**given)


PAIRS = {"n_pairs": 60, "random_state": 0}
OPTIONS = {
    "PCA whitened": lambda: PCA(whiten=True),
    "Covariance shrunk": lambda: Covariance(0.1),
    "LDA shrunk": lambda: LDA(shrinkage="auto"),
    "RCA shrunk": lambda: RCA(shrinkage=0.1),
    "KRCA linear": lambda: KRCA("linear"),
    "KIGML poly": lambda: KIGML("poly"),
    "KernelLMNN poly": lambda: KernelLMNN("poly"),
    "KernelLMNN landmarks": lambda: KernelLMNN("linear", n_landmarks=3, random_state=0),
    "KernelPOLA linear": lambda: KernelPOLA("linear", **PAIRS),
    "KernelPOLA poly": lambda: KernelPOLA("poly", **PAIRS),
    "Relief full": lambda: Relief(structure="full"),
    "Relief similarity": lambda: Relief(form="similarity"),
    "RBS plain": lambda: RBS(normalizer=None),
    "RBS dice": lambda: RBS(normalizer="dice"),
    "SRBS plain": lambda: SRBS(normalizer=None),
    "SiLA plain": lambda: SiLA(normalizer=None),
    "SiLA plain psd": lambda: SiLA(normalizer=None, psd="each"),
    "SiLA psd": lambda: SiLA(psd="each"),
    "SiLA jaccard": lambda: SiLA(normalizer="jaccard"),
    "ITML covariance": lambda: ITML(prior="covariance", **PAIRS),
    "MMC diagonal": lambda: MMC("diagonal", **PAIRS),
    "LMNN convex": lambda: LMNN(solver="M", max_iter=30),
    "LMNN identity": lambda: LMNN(init="identity", max_iter=30),
    "LMNN held out": lambda: LMNN(validation_fraction=0.3, random_state=0),
    "MultiMetricLMNN clusters": lambda: MultiMetricLMNN(n_clusters=2, random_state=0),
    "NCA identity": lambda: NCA(init="identity"),
    "MCML identity": lambda: MCML(init="identity", max_iter=20),
    "SNN held out": lambda: SNN(validation_fraction=0.3, max_iter=20, **PAIRS),
}
CLASSIFIERS = {
    "kNN": lambda: KNNClassifier(),
    "kNN Euclidean": lambda: KNNClassifier(Euclidean()),
    "kNN Cosine": lambda: KNNClassifier(Cosine()),
    "SkNN": lambda: KNNClassifier(rule="sknn", n_neighbors=1),
    "SkNN Cosine": lambda: KNNClassifier(Cosine(), rule="sknn", n_neighbors=1),
    "energy": lambda: KNNClassifier(rule="energy"),
    "energy printed": lambda: KNNClassifier(rule="energy_printed"),
    "energy LMNN": lambda: KNNClassifier(LMNN(), rule="energy"),
    "energy MultiMetricLMNN": lambda: KNNClassifier(MultiMetricLMNN(random_state=0), rule="energy"),
    "per class": lambda: PerClassClassifier(Covariance(), n_neighbors=1),
}


def tried(call):
    """What is returned, finite; a Refusal if it was refused with a sentence."""
    result = attempt(call)
    if isinstance(result, Refusal):
        assert str(result.error).endswith("."), result.error
    else:
        check_finite(result)
    return result


def fitted(model, *given):
    """Whether fit took what is given; what is refused changes nothing."""
    before = dict(vars(model))
    result = attempt(lambda: model.fit(*given))
    if isinstance(result, Refusal):
        assert str(result.error).endswith("."), result.error
        assert vars(model) == before
        return False
    check_finite({k: v for k, v in vars(model).items() if k[-1] == "_" and k != "history_"})
    return True


def check_learner(learner, Z, y):
    if not fitted(learner, Z, y):
        return
    # Online learners make it when it is asked for.
    form = tried(lambda: learner.metric_)
    if isinstance(form, Refusal):
        return
    for name in ("matrix", "components", "coefficients", "eigenvalues"):
        if hasattr(form, name):
            check_finite(getattr(form, name))
    ordinary = (WIDE if Z.shape[1] > 4 else X[: len(Z), : Z.shape[1]]).astype(Z.dtype)
    for rows in (Z, ordinary):
        members = np.stack([rows[:-1], rows[1:]], axis=1)
        tried(lambda rows=rows: form.cross(rows, rows[::-1]))
        tried(lambda rows=rows: learner.score(rows, y))
        for method in ("pair_score", "predict", "decision_function"):
            if hasattr(learner, method):
                tried(lambda m=method, members=members: getattr(learner, m)(members))
        if hasattr(learner, "transform"):
            tried(lambda rows=rows: learner.transform(rows))


def check_classifier(model, Z, y):
    if fitted(model, Z, y):
        for rows in (Z, X[:, : Z.shape[1]].astype(Z.dtype) if Z.shape[1] <= 4 else WIDE):
            tried(lambda rows=rows: model.predict(rows))
            if hasattr(model, "predict_proba"):
                tried(lambda rows=rows: model.predict_proba(rows))


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", [entry.name for entry in LEARNERS])
def test_learners(name, given):
    check_learner(learner_of(name), *INPUTS[given])


@pytest.mark.parametrize("given", FEW)
@pytest.mark.parametrize("name", OPTIONS)
def test_learners_with_options(name, given):
    check_learner(OPTIONS[name](), *INPUTS[given])


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, given):
    check_classifier(CLASSIFIERS[name](), *INPUTS[given])


@pytest.mark.parametrize("given", INPUTS)
def test_verifiers(given):
    Z, y = INPUTS[given]
    members, signs = np.stack([Z[:-1], Z[1:]], axis=1), np.where(y[1:] == y[:-1], 1, -1)
    signs[0] = 1
    for metric in (Mahalanobis.identity(Z.shape[1]), Cosine(), ITML(**PAIRS)):
        verifier = Verifier(metric)
        if fitted(verifier, members, signs):
            tried(lambda v=verifier: v.predict(members))
            tried(lambda v=verifier: v.decision_function(members))


# Of each learner the smallest input with which it gave a raw error, NaN, or no end


def refused(text, call):
    with pytest.raises(SamewiseError, match=re.escape(text)):
        call()


LARGE, SMALL = X * 1e200, X * 1e-200
TOO_LARGE = (
    "whose squares overflow float64 when they are multiplied; scale the features below 1e+70."
)
TOO_SMALL = "scale the features so that they differ by 1e-70 or more."


@pytest.mark.parametrize(
    "name",
    ["ITML", "LDA", "LMNN", "MCML", "MMC", "MultiMetricLMNN", "NCA", "PCA", "KernelLMNN", "Relief"],
)
def test_the_sentence_names_the_limit(name):
    learner = learner_of(name)
    if name not in ("ITML", "MMC"):
        refused(TOO_LARGE, lambda: learner.fit(LARGE, Y))
    refused("The rows of X differ by", lambda: learner.fit(SMALL, Y))
    refused(TOO_SMALL, lambda: learner.fit(sp.csr_array(SMALL) if name != "Relief" else SMALL, Y))
    assert not hasattr(learner, "n_features_in_")
    # The limits themselves are fine, and so is an offset that hides the scale.
    top = np.abs(X).max()
    check_learner(learner, X / top * 9e69, Y)
    check_learner(learner, X * 1e-69, Y)


def test_euclidean_distances_that_overflow():
    form = Euclidean().fit(LARGE).metric_
    said = "On these rows the values of Mahalanobis overflow float64; scale the features."
    refused(said, lambda: form.pairs(LARGE, LARGE[::-1]))
    refused(said, lambda: form.cross(LARGE))
    refused(said, lambda: list(form.blocks(LARGE)))
    refused(said, lambda: margins(form, LARGE, Y))
    refused("overflow float32", lambda: form.cross(times(1e30).astype(np.float32)))
    assert np.array_equal(form.embed(LARGE), LARGE)


def test_cosines_of_rows_whose_squares_overflow():
    # They were 0, or NaN.
    said = "On these rows the values of {} overflow float64; scale the features."
    for form in (GeneralizedCosine(np.eye(4)), NormalizedBilinear(np.eye(4))):
        for compare in (form.pairs, form.cross):
            refused(said.format(type(form).__name__), lambda c=compare: c(LARGE, LARGE))
    refused(said.format("NormalizedBilinear"), lambda: form.embed_query(LARGE))


def test_maps_whose_metric_overflows():
    said = "The components of Mahalanobis hold values up to 1e+200, whose squares overflow float64"
    refused(said, lambda: Mahalanobis.from_components(np.full((1, 2), 1e200)))


def test_a_feature_that_hardly_varies():
    tiny = times(1e-300, COLUMN)
    rest = LDA().fit(np.where(np.arange(4) == 1, 0.0, X), Y).metric_.matrix
    np.testing.assert_array_equal(LDA().fit(tiny, Y).metric_.matrix, rest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", samewise.exceptions.SamewiseWarning)
        weights = MMC("diagonal", shrinkage=0.0, **PAIRS).fit(tiny, Y).metric_.matrix.diagonal()
    assert weights[1] == 0 < weights[0]
    single = times(1e-25, COLUMN).astype(np.float32)
    refused("whose squares overflow float32", lambda: Covariance().fit(single))
    refused("overflow float64; scale the features up", lambda: Relief().fit(tiny, Y))


def test_kernel_pola_under_a_kernel_that_is_constant():
    learner = KernelPOLA(**PAIRS).fit(X * 1e-20, Y)
    assert not learner.metric_.cross(X * 1e-20).any()
    assert learner.partial_fit(X, Y).metric_.cross(X).any()
    said = "The kernel has values up to"
    refused(said, lambda: KernelPOLA("poly", **PAIRS).fit(X * 1e60, Y))


def test_itml_with_rows_that_hardly_differ():
    # A pair whose squared distance vanishes says nothing.
    Z = np.array([[0.0], [1e-170], [1.0], [2.0]])
    pairs = Pairs(Z, [0, 0, 2], [1, 2, 3], [-1, -1, 1])
    expected = ITML(bounds=(0.5, 2.0)).fit(pairs[1:]).metric_.matrix
    np.testing.assert_array_equal(ITML(bounds=(0.5, 2.0)).fit(pairs).metric_.matrix, expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_itml_whose_matrix_becomes_singular():
    said = []
    for scale, gamma in itertools.product((1e8, 1e9, 1e10, 1e12, 1e14, 1e16), (1.0, 1e6)):
        learner = ITML(gamma, prior="covariance")
        pairs = Pairs.from_labels(times(scale, HALF), Y, 60, random_state=0)
        try:
            learner.fit(pairs)
        except SamewiseError as error:
            said.append(str(error))
            assert not hasattr(learner, "bounds_")
        else:
            assert np.isfinite(learner.metric_.matrix).all()
    # At which of them rounding does it depends on the processor.
    assert said
    assert all("ITML's matrix has become singular by rounding" in one for one in said)


def test_lda_whose_shrunk_covariance_is_singular():
    said = "The covariance within classes is singular, also with shrinkage='auto'."
    refused(said, lambda: LDA(shrinkage="auto").fit(*INPUTS["four rows"]))


def test_lmnn_ends_where_a_step_cannot_be_halved():
    with pytest.warns(ConvergenceWarning):
        learner = LMNN(init="identity", max_iter=8).fit(changed(ONE, lambda _: 1e10), Y)
    assert learner.n_iter_ == 8


def test_lmnn_with_a_start_that_is_too_large():
    said = "LMNN starts with a map that takes points to values up to"
    refused(said, lambda: LMNN(init="identity").fit(X * 1e16, Y))


@pytest.mark.parametrize("size", [1e20, 1e69])
def test_a_point_held_out_that_lies_far_outside(size):
    far = changed(ONE, lambda _: size)
    for seed in range(6):
        learner = MultiMetricLMNN(n_neighbors=1, max_iter=20, random_state=seed)
        check_learner(learner, far, Y)
        assert hasattr(learner, "metric_")


@pytest.mark.parametrize("structure", ["full", "diagonal", "symmetric"])
@pytest.mark.parametrize("factor", [2.0**-60, 2.0**60, 2.0**120])
def test_sila_without_a_normalizer_depends_on_the_scale_in_powers_of_it(structure, factor):
    # Impostors are screened in float32, where such numbers are 0 or infinite.
    plain, scaled = (
        SiLA(normalizer=None, structure=structure, init="zero").fit(Z, Y).metric_.matrix
        for Z in (X, X * factor)
    )
    np.testing.assert_array_equal(scaled, plain * factor**2)


@pytest.mark.parametrize(
    ("make", "layout", "dtype"),
    [
        (RBS, sp.csr_array, np.float64),
        (RBS, np.asarray, np.float32),
        (SRBS, np.asarray, np.float64),
        (SiLA, np.asarray, np.float64),
    ],
)
def test_cosines_of_small_rows_are_those_of_large_ones(make, layout, dtype):
    rows = layout(X.astype(dtype))
    large, small = (make().fit(Z, Y).metric_.matrix for Z in (rows, rows * dtype(2.0**-60)))
    np.testing.assert_array_equal(small, large)


def test_lda_without_any_direction_says_so():
    X = np.array([[1.3e-32, -1.3e-32], [6e-42, 1e-42], [-5e-40, 4e-40], [13.0, 9.5]])
    with pytest.raises(
        samewise.exceptions.InvalidInputError, match="the covariance within classes is zero"
    ):
        LDA().fit(X, [1, 1, 1, 0])


@pytest.mark.parametrize("name", ["KNNRegressor", "MLKR"])
def test_targets_whose_squares_overflow_are_refused(name):
    X, y = np.arange(10.0)[:, None], np.append(np.zeros(9), 1e300)
    with pytest.raises(
        samewise.exceptions.InvalidInputError, match="Targets must be finite numbers below"
    ):
        getattr(samewise, name)().fit(X, y)
