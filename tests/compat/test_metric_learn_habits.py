"""What programs written for metric-learn rely on beside learning: names, errors, unknown labels."""

from __future__ import annotations

import re
from importlib import import_module

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score, cross_validate

from samewise import Pairs
from samewise.compat import metric_learn
from samewise.compat.metric_learn.constraints import Constraints, known_codes, wrap_pairs
from samewise.compat.metric_learn.exceptions import NonPSDError, PreprocessorError
from samewise.exceptions import InvalidInputError, SamewiseWarning

X, y = load_iris(return_X_y=True)
SAMPLED = Pairs.from_labels(X, y, 100, random_state=0)
ROWS, SIGNS = np.stack([SAMPLED.left, SAMPLED.right], axis=1), SAMPLED.y.astype(int)


def itml(**options):
    return metric_learn.ITML(preprocessor=X, **options)


@pytest.mark.parametrize(
    "module, names",
    [
        *((name.lower(), [name, f"{name}_Supervised"]) for name in "ITML LSML MMC RCA".split()),
        *((name.lower(), [name, f"{name}_Supervised"]) for name in ("SCML", "SDML")),
        *((name.lower(), [name]) for name in "Covariance LFDA LMNN MLKR NCA".split()),
        ("constraints", ["Constraints", "wrap_pairs"]),
        ("exceptions", ["PreprocessorError", "NonPSDError"]),
    ],
)
def test_modules_have_their_names(module, names):
    found = import_module(f"samewise.compat.metric_learn.{module}")
    assert getattr(metric_learn, module) is found
    for name in names:
        assert getattr(found, name).__name__ == name
    assert metric_learn.__version__.startswith("0.7")


@pytest.mark.parametrize(
    "make, name, value",
    [
        (lambda: metric_learn.LMNN(k=5), "n_neighbors", 5),
        (lambda: metric_learn.RCA_Supervised(num_chunks=7), "n_chunks", 7),
        (lambda: metric_learn.ITML(convergence_threshold=0.1), "tol", 0.1),
        (lambda: metric_learn.MMC(convergence_threshold=0.1), "tol", 0.1),
        *(
            (lambda cls=cls: cls(num_constraints=9), "n_constraints", 9)
            for cls in (
                metric_learn.ITML_Supervised,
                metric_learn.LSML_Supervised,
                metric_learn.MMC_Supervised,
                metric_learn.SDML_Supervised,
            )
        ),
    ],
)
def test_former_names_of_parameters(make, name, value):
    with pytest.warns(FutureWarning, match=f"is now called {name}; give it by that name"):
        learner = make()
    assert clone(learner).get_params()[name] == value
    assert list(clone(learner).get_params()) == list(type(learner)().get_params())
    with pytest.raises(TypeError, match="Give only n_neighbors"):
        metric_learn.LMNN(k=5, n_neighbors=5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:SDML. with balance")
@pytest.mark.parametrize("name", "ITML LSML MMC SDML SCML RCA".split())
def test_negative_labels_are_unknown(name):
    cls = getattr(metric_learn, f"{name}_Supervised")
    options = {"n_chunks": 20} if name == "RCA" else {}
    partly = np.where(np.arange(150) % 3 == 0, -1, y)
    known = partly >= 0
    found = cls(random_state=0, **options).fit(X, partly).get_mahalanobis_matrix()
    expected = cls(random_state=0, **options).fit(X[known], y[known]).get_mahalanobis_matrix()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-10)
    if name == "RCA":
        return
    with pytest.raises(ValueError, match="at least two"):
        cls().fit(X, np.where(y == 1, 1, -1))


def test_labels_of_any_kind_have_codes():
    np.testing.assert_array_equal(known_codes(["b", "a", "b"]), [1, 0, 1])
    np.testing.assert_array_equal(known_codes([3, -1, 5, -2]), [0, -1, 1, -1])
    np.testing.assert_array_equal(known_codes([-1.0, 2.5]), [-1, 0])
    np.testing.assert_array_equal(known_codes([-1, -1]), [-1, -1])


def test_pairs_are_classified_for_scikit_learn():
    assert is_classifier(itml()) and is_classifier(metric_learn.SCML())
    assert not is_classifier(metric_learn.ITML_Supervised())
    found = cross_validate(
        itml(), ROWS, SIGNS, scoring=["roc_auc", "accuracy", "average_precision"], cv=4
    )
    np.testing.assert_allclose(found["test_roc_auc"], cross_val_score(itml(), ROWS, SIGNS, cv=4))
    assert found["test_accuracy"].min() > 0.5
    # What learns from labels has a map, and no opinion of triplets.
    for name in ("SCML", "LSML", "ITML"):
        learner = getattr(metric_learn, f"{name}_Supervised")
        assert not hasattr(learner, "predict") and hasattr(learner, "fit_transform")
        assert not hasattr(getattr(metric_learn, name), "fit_transform")


def test_a_map_that_is_set_by_hand_counts():
    learner = itml(max_iter=5, tol=1.0).fit(ROWS, SIGNS)
    learner.components_ = 2 * np.eye(4)
    D = np.linalg.norm(X[ROWS[:, 0]] - X[ROWS[:, 1]], axis=1)
    np.testing.assert_allclose(learner.pair_distance(ROWS), 2 * D)
    np.testing.assert_allclose(learner.metric_.matrix, 4 * np.eye(4))
    learner.set_threshold(2 * np.median(D))
    np.testing.assert_array_equal(learner.predict(ROWS), np.where(np.median(D) >= D, 1, -1))
    learner.components_ = np.array([3.0])
    assert learner.get_metric()(5, 6.5) == 4.5 == learner.get_metric()([5], [[6.5]])


def test_preprocessors_that_fail_are_named():
    def breaks(rows):
        raise KeyError("no such face")

    for preprocessor, said in (
        (breaks, "The preprocessor failed: KeyError('no such face')"),
        (lambda rows: X[:3], "must give an array of shape"),
        (lambda rows: rows, "must give an array of shape"),
        (lambda rows: [X[0], [1.0]], "The preprocessor failed"),
    ):
        with pytest.raises(PreprocessorError, match=re.escape(said)):
            metric_learn.ITML(preprocessor=preprocessor).fit(ROWS, SIGNS)
        with pytest.raises(PreprocessorError, match=re.escape(said)):
            metric_learn.LFDA(preprocessor=preprocessor).fit(np.arange(150), y)


@pytest.mark.parametrize("cls", [metric_learn.ITML, metric_learn.SDML])
def test_priors_are_checked(cls):
    for prior, error, said in (
        (np.diag([1.0, -1, 1, 1]), NonPSDError, "positive definite. Its least eigenvalue is -1"),
        (np.diag([1.0, 0, 1, 1]), LinAlgError, "positive definite. Its least eigenvalue is 0"),
        (np.eye(3), InvalidInputError, "symmetric array of shape (4, 4)"),
        (np.tri(4), InvalidInputError, "symmetric array of shape (4, 4)"),
        ("unit", InvalidInputError, "prior must be one of 'identity', 'covariance', 'random'"),
    ):
        with pytest.raises(error, match=re.escape(said)):
            cls(prior=prior, preprocessor=X).fit(ROWS, SIGNS)


def test_starts_are_checked():
    with pytest.raises(InvalidInputError, match=re.escape("init must be a finite symmetric")):
        metric_learn.MMC(init=np.eye(5), preprocessor=X).fit(ROWS, SIGNS)
    with pytest.raises(NonPSDError, match="init must be positive semi-definite"):
        metric_learn.MMC(init=-np.eye(4), preprocessor=X).fit(ROWS, SIGNS)
    half = metric_learn.MMC(init=np.diag([1.0, 1, 1, 0]), preprocessor=X).fit(ROWS, SIGNS)
    V = (X[ROWS[:, 0]] - X[ROWS[:, 1]])[SIGNS > 0]
    M = half.get_mahalanobis_matrix()
    assert np.einsum("ij,jk,ik->", V, M, V) == pytest.approx(np.sum(V[:, :3] ** 2) / 100)
    for cls in (metric_learn.MLKR, metric_learn.NCA):
        with pytest.raises(InvalidInputError, match="init must be one of 'auto', 'pca'"):
            cls(init="best").fit(X, y)
    with pytest.raises(InvalidInputError, match="init must be one of 'auto', 'pca', 'identity'"):
        metric_learn.MLKR(init="lda").fit(X, y)


def test_a_rate_is_met_up_to_rounding():
    learner = itml().fit(ROWS, SIGNS)
    learner.components_ = np.eye(4)
    # Ten dissimilar pairs, one of which is nearest: 90 % of them may be told, and all similar ones.
    pairs = np.zeros((20, 2, 4))
    pairs[:, 1, 0] = np.arange(1, 21)
    signs = np.repeat([-1, 1, -1], [1, 10, 9])
    learner.calibrate_threshold(pairs, signs, strategy="max_tpr", min_rate=0.9)
    assert 11 < learner.threshold_ < 12
    assert learner.score(pairs, signs) == pytest.approx(0.9)


def test_precision_alone_counts_where_beta_is_zero():
    learner = itml().fit(ROWS, SIGNS)
    learner.calibrate_threshold(ROWS, SIGNS, strategy="f_beta", beta=0)
    D = learner.pair_distance(ROWS)
    accepted = learner.predict(ROWS) == 1
    # All that are nearer than the nearest dissimilar pair.
    np.testing.assert_array_equal(accepted, D[SIGNS < 0].min() > D)
    learner.calibrate_threshold(ROWS, SIGNS, strategy="f_beta", beta=np.float32(2))
    assert np.sum(learner.predict(ROWS) == 1) > accepted.sum()


def test_triplets_of_equal_distances_are_wrong():
    scml = metric_learn.SCML(preprocessor=X, random_state=0)
    scml.fit(Constraints(y).generate_knntriplets(X, 2, 4))
    np.testing.assert_array_equal(scml.predict([[0, 1, 1], [5, 5, 5]]), [-1, -1])
    lsml = metric_learn.LSML(preprocessor=X).fit([[0, 1, 2, 99], [3, 4, 60, 120]])
    assert lsml.predict([[0, 1, 1, 0]]) == [0]


def test_neighbors_that_are_missing_are_named():
    points, labels = np.arange(5.0)[:, None], [0, 0, 0, 1, 1]
    with pytest.warns(SamewiseWarning) as warned:
        triplets = Constraints(labels).generate_knntriplets(points, 2, 3)
    few = "An example of class {} has only {} others {}: all are taken."
    assert [str(each.message) for each in warned] == [
        few.format(0, 2, "of other classes, fewer than k_impostor=3"),
        few.format(1, 1, "of its own, fewer than k_genuine=2"),
    ]
    assert triplets.shape == (3 * 2 * 2 + 2 * 1 * 3, 3)
    learner = metric_learn.SCML_Supervised(k_genuine=3, k_impostor=2, random_state=0)
    names = np.where(np.arange(12) < 3, 4, 7)
    with pytest.warns(SamewiseWarning, match="class 4 has only 2 others of its own, fewer than"):
        learner.fit(np.random.RandomState(0).randn(12, 2), names)


def test_pairs_of_constraints_as_rows():
    sides = Constraints(y).positive_negative_pairs(20, random_state=0)
    pairs, signs = wrap_pairs(X, sides)
    assert pairs.shape == (40, 2, 4)
    np.testing.assert_array_equal(signs, np.repeat([1, -1], 20))
    np.testing.assert_array_equal(pairs[21], X[[sides[2][1], sides[3][1]]])
    with pytest.warns(FutureWarning, match="num_chunks is now called n_chunks"):
        assert Constraints(y).chunks(num_chunks=3).max() == 2
