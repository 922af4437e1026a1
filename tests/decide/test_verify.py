import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from samewise import ITML, MMC, PassiveAggressive
from samewise.decide import Verifier
from samewise.exceptions import InvalidInputError
from samewise.forms import GeneralizedCosine, Mahalanobis
from samewise.scores import roc
from samewise.supervision import Pairs

RNG = np.random.default_rng(0)
LABELS = np.arange(40) % 4
X = RNG.normal(size=(4, 3))[LABELS] * 1.5 + RNG.normal(size=(40, 3))
LEFT, RIGHT = RNG.integers(40, size=(2, 300))
LEFT, RIGHT = LEFT[LEFT != RIGHT], RIGHT[LEFT != RIGHT]
Y = np.where(LABELS[LEFT] == LABELS[RIGHT], 1, -1)
PAIRS = Pairs(X, LEFT, RIGHT, Y)
FORM = Mahalanobis(np.diag([1.0, 2.0, 0.5]))
DISTANCES = np.sqrt(((X[LEFT] - X[RIGHT]) ** 2 * [1.0, 2.0, 0.5]).sum(axis=1))


class Learner(BaseEstimator):
    @classmethod
    def fitted(cls, **attributes):
        learner = cls()
        learner.__dict__.update(attributes)
        return learner

    def fit(self, X, y=None):
        return self


@pytest.mark.parametrize("criterion", ["accuracy", "balanced_accuracy", "f_beta"])
def test_no_other_threshold_decides_better(criterion):
    def value(threshold):
        accepted = -DISTANCES >= threshold
        tp, fp = np.sum(accepted & (Y > 0)), np.sum(accepted & (Y < 0))
        fn, tn = np.sum(~accepted & (Y > 0)), np.sum(~accepted & (Y < 0))
        return {
            "accuracy": (tp + tn) / len(Y),
            "balanced_accuracy": (tp / (tp + fn) + tn / (tn + fp)) / 2,
            "f_beta": 5 * tp / (5 * tp + 4 * fn + fp),
        }[criterion]

    verifier = Verifier(FORM, criterion=criterion, beta=2.0).fit(PAIRS)
    best = max(value(t) for t in np.r_[-DISTANCES - 1e-9, 1.0])
    np.testing.assert_allclose(value(verifier.threshold_), best)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.1, 0.5])
def test_promised_rates_hold_and_are_used(rate):
    positive, negative = -DISTANCES[Y > 0], -DISTANCES[Y < 0]
    far = Verifier(FORM, criterion="far", rate=rate).fit(PAIRS)
    assert np.mean(far.predict(PAIRS)[Y < 0] == 1) <= rate
    reachable = [np.mean(positive >= t) for t in -DISTANCES if np.mean(negative >= t) <= rate]
    np.testing.assert_allclose(np.mean(far.predict(PAIRS)[Y > 0] == 1), max(reachable, default=0))
    frr = Verifier(FORM, criterion="frr", rate=rate).fit(PAIRS)
    assert np.mean(frr.predict(PAIRS)[Y > 0] == -1) <= rate
    reachable = [np.mean(negative >= t) for t in -DISTANCES if np.mean(positive < t) <= rate]
    np.testing.assert_allclose(np.mean(frr.predict(PAIRS)[Y < 0] == 1), min(reachable))


def test_decisions_are_closeness_against_the_threshold():
    verifier = Verifier(FORM, criterion="accuracy").fit(PAIRS)
    decisions = verifier.decision_function(PAIRS)
    np.testing.assert_allclose(decisions, -DISTANCES - verifier.threshold_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(verifier.predict(PAIRS), np.where(decisions >= 0, 1, -1))
    np.testing.assert_allclose(verifier.score(PAIRS), np.mean(verifier.predict(PAIRS) == Y))


def test_a_closeness_at_the_threshold_is_accepted():
    verifier = Verifier(Learner.fitted(metric_=FORM, closeness_threshold_=-2.0)).fit()
    assert verifier.predict([[[0.0, 0, 0], [2.0, 0, 0]]]) == [1]


def test_arrays_sparse_and_many_blocks_give_the_same_answers(monkeypatch):
    monkeypatch.setattr("samewise.decide.verify._BLOCK_BYTES", 200)
    verifier = Verifier(FORM, criterion="accuracy").fit(PAIRS)
    stacked = np.stack([X[LEFT], X[RIGHT]], axis=1)
    from_array = Verifier(FORM, criterion="accuracy").fit(stacked, Y)
    np.testing.assert_allclose(from_array.threshold_, verifier.threshold_, rtol=1e-12)
    np.testing.assert_array_equal(from_array.predict(stacked), verifier.predict(PAIRS))
    assert from_array.score(stacked, Y) == verifier.score(PAIRS)
    sparse = Pairs(sp.csr_array(X), LEFT, RIGHT, Y)
    np.testing.assert_array_equal(verifier.predict(sparse), verifier.predict(PAIRS))


def test_weights_of_pairs_count():
    weights = np.random.default_rng(1).integers(1, 5, size=len(Y)).astype(float)
    weighted = Pairs(X, LEFT, RIGHT, Y, sample_weight=weights)
    at = np.repeat(np.arange(len(Y)), weights.astype(int))
    repeated = Pairs(X, LEFT[at], RIGHT[at], Y[at])
    for criterion in ("accuracy", "f_beta", "far"):
        one = Verifier(FORM, criterion=criterion).fit(weighted)
        other = Verifier(FORM, criterion=criterion).fit(repeated)
        assert one.threshold_ != pytest.approx(0)
        np.testing.assert_allclose(one.score(weighted), other.score(repeated))
        np.testing.assert_allclose(one.roc_.auc, other.roc_.auc)


def test_the_curve_is_kept():
    verifier = Verifier(GeneralizedCosine(np.eye(3)), criterion="accuracy").fit(PAIRS)
    cosine = (X[LEFT] * X[RIGHT]).sum(1) / np.linalg.norm(X[LEFT], axis=1)
    cosine /= np.linalg.norm(X[RIGHT], axis=1)
    np.testing.assert_allclose(verifier.roc_.auc, roc(cosine, Y).auc, rtol=1e-9)


def test_without_a_criterion_the_learner_decides():
    model = Learner.fitted(metric_=FORM, closeness_threshold_=-1.25)
    assert Verifier(model).fit().threshold_ == -1.25
    assert not hasattr(Verifier(model).fit(), "roc_")
    fitted = Verifier(model).fit(PAIRS)
    assert fitted.threshold_ == -1.25
    assert fitted.roc_.auc > 0.5
    assert Verifier(model, criterion="accuracy").fit(PAIRS).threshold_ != -1.25


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Verifier(FORM).fit(PAIRS), "Mahalanobis has no threshold.*pass a criterion"),
        (lambda: Verifier(Learner.fitted(metric_=FORM)).fit(PAIRS), "Learner has no threshold"),
        (lambda: Verifier(Learner()).fit(PAIRS), "Got Learner, which learns no metric"),
        (lambda: Verifier(Learner()).fit(), "This Learner has no metric_ yet; pass pairs to fit"),
        (lambda: Verifier(FORM, "accuracy").fit(), "calibrated on pairs; pass some"),
        (lambda: Verifier(FORM, "accuracy").fit(PAIRS[Y > 0]), "no dissimilar"),
        (lambda: Verifier(FORM, "accuracy").fit(PAIRS[Y < 0]), "no similar"),
        (lambda: Verifier(FORM, "accuracy").fit(PAIRS, -Y), "Pairs carry their own labels"),
        (lambda: Verifier(FORM, "accuracy").fit(np.ones((4, 2, 3))), "needs y"),
        (lambda: Verifier(FORM, "accuracy").fit(np.ones((4, 3)), Y[:4]), r"Got shape \(4, 3\)"),
        (lambda: Verifier(FORM, "accuracy").fit(np.ones((4, 3, 3)), Y[:4]), "n_pairs, 2, n_feat"),
        (
            lambda: Verifier(FORM, "accuracy").fit(np.full((4, 2, 3), np.nan), Y[:4]),
            "pairs contains NaN",
        ),
        (
            lambda: Verifier(FORM, "accuracy").fit(np.ones((2, 2, 5)), [1, -1]),
            "5 features, but Mahalanobis expects 3",
        ),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(InvalidInputError, match=text):
        call()


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"criterion": "best"}, "'criterion' parameter of Verifier must be"),
        ({"criterion": "far", "rate": 2.0}, "'rate' parameter of Verifier must be a float in"),
        ({"criterion": "f_beta", "beta": 0.0}, "'beta' parameter of Verifier must be a float in"),
        ({"metric": "cosine"}, "'metric' parameter of Verifier must be"),
    ],
)
def test_bad_parameters_are_named(keywords, text):
    with pytest.raises(ValueError, match=text):
        Verifier(**({"metric": FORM} | keywords)).fit(PAIRS)


def test_an_unfitted_verifier_says_so():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        Verifier(FORM, "accuracy").predict(PAIRS)


def test_its_tags_say_that_it_takes_pairs():
    tags = get_tags(Verifier(FORM, "accuracy")).input_tags
    assert tags.three_d_array and not tags.two_d_array
    with pytest.warns(SkipTestWarning, match="requires input"):
        check_estimator(Verifier(FORM, "accuracy"))


def test_an_unfitted_learner_is_fitted_on_the_pairs():
    stacked = np.stack([X[LEFT], X[RIGHT]], axis=1)
    learner = PassiveAggressive(random_state=0)
    fitted = clone(learner).fit(PAIRS)
    for given in ((PAIRS,), (stacked, Y)):
        verifier = Verifier(learner, criterion="accuracy").fit(*given)
        assert verifier.metric_ == fitted.metric_ and not hasattr(learner, "metric_")
        assert verifier.threshold_ == Verifier(fitted, criterion="accuracy").fit(PAIRS).threshold_
    assert Verifier(learner).fit(PAIRS).threshold_ == fitted.closeness_threshold_
    assert clone(verifier).get_params()["criterion"] == "accuracy"
    assert verifier.n_features_in_ == 3


def test_a_frozen_learner_stays_fitted_when_it_is_cloned():
    learner = ITML(tol=0.1).fit(PAIRS[:150])
    verifier = clone(Verifier(FrozenEstimator(learner))).fit(PAIRS[150:])
    assert verifier.metric_ is learner.metric_
    assert verifier.threshold_ == learner.closeness_threshold_


def test_cross_validation():
    stacked = np.stack([X[LEFT], X[RIGHT]], axis=1)
    for metric in (FORM, PassiveAggressive(random_state=0)):
        verifier = Verifier(metric, criterion="accuracy")
        assert np.mean(cross_val_score(verifier, stacked, Y, cv=3)) > 0.5
        assert np.mean(cross_val_score(verifier, PAIRS, cv=3)) > 0.5
    for learner in (ITML(tol=0.1), MMC(tol=0.1)):
        for criterion in (None, "balanced_accuracy"):
            verifier = Verifier(learner, criterion)
            by_hand = []
            for learn, test in KFold(3).split(Y):
                fitted = clone(learner).fit(PAIRS[learn])
                by_hand.append(Verifier(fitted, criterion).fit(PAIRS[learn]).score(PAIRS[test]))
                if criterion is None:
                    assert by_hand[-1] == pytest.approx(fitted.score(PAIRS[test]))
            scores = cross_val_score(verifier, PAIRS, cv=3, error_score="raise")
            np.testing.assert_array_equal(scores, by_hand)
            stratified = StratifiedKFold(3)
            aucs = cross_val_score(
                verifier, PAIRS, Y, cv=stratified, scoring="roc_auc", error_score="raise"
            )
            assert np.all(aucs > 0.5)
            assert not hasattr(learner, "metric_")
    search = GridSearchCV(Verifier(ITML(tol=0.1)), {"metric__gamma": [0.01, 1.0]}, cv=3)
    assert search.fit(PAIRS).best_estimator_.learner_.gamma in (0.01, 1.0)
    gammas = search.cv_results_["mean_test_score"]
    by_hand = [cross_val_score(ITML(gamma, tol=0.1), PAIRS, cv=3).mean() for gamma in (0.01, 1.0)]
    np.testing.assert_allclose(gammas, by_hand)
    search = GridSearchCV(Verifier(FORM), {"criterion": ["accuracy", "far"]}, cv=3)
    assert search.fit(stacked, Y).predict(stacked).shape == Y.shape
