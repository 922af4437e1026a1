"""Every learner of pairs judges pairs: its threshold, and scikit-learn's tools over pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score

import samewise
from samewise import ITML, LMNN, MMC, SNN, Pairs
from samewise.catalog import LEARNERS
from samewise.exceptions import InvalidInputError
from samewise.supervision.purposes import sampled_pairs

SMALL = {
    "ITML": {"tol": 0.1},
    "MMC": {"tol": 0.1},
    "SNN": {"n_hidden": 2, "max_iter": 30, "tol": 1e-2, "random_state": 0},
}
JUDGES = {
    entry.name: getattr(samewise, entry.name)(**SMALL.get(entry.name, {}))
    for entry in LEARNERS
    if "pairs" in entry.learns_from
}
GRIDS = {
    "ITML": {"gamma": [0.1, 10.0]},
    "MMC": {"structure": ["diagonal", "full"]},
    "SNN": {"alpha": [1e-4, 1.0]},
    "SDML": {"sparsity": [0.01, 0.5]},
    "LEGO": {"eta": [0.01, 1.0]},
    "GCosLA": {"margin": [0.1, 0.5]},
}
"""Where there is no `n_passes`, or it is not what matters."""


@pytest.fixture(params=JUDGES)
def learner(request):
    return clone(JUDGES[request.param])


def stacked(pairs):
    return np.stack([pairs.X[pairs.left], pairs.X[pairs.right]], axis=1)


def test_these_are_the_learners_of_pairs(pairs):
    assert set(JUDGES) >= {"ITML", "MMC", "SNN", "LEGO", "GCosLA", "PassiveAggressive", "POLA"}
    with pytest.raises(InvalidInputError, match="LMNN learns no threshold for pairs"):
        LMNN(tol=0.1).fit(pairs.X, np.arange(60) % 3).score(pairs)


def test_decisions_are_closeness_against_the_threshold(learner, pairs):
    learner.fit(pairs[:200])
    decided, closeness = learner.decision_function(pairs), learner.pair_score(pairs)
    np.testing.assert_array_equal(np.argsort(decided), np.argsort(closeness))
    np.testing.assert_array_equal(learner.predict(pairs), np.where(decided >= 0, 1, -1))
    clear = np.abs(decided) > 1e-9 * np.abs(decided).max()
    np.testing.assert_array_equal(
        (decided >= 0)[clear], (closeness >= learner.closeness_threshold_)[clear]
    )
    assert set(learner.predict(pairs)) == {1, -1}
    if learner.metric_.is_distance:
        np.testing.assert_allclose(
            decided, learner.threshold_ - closeness**2, rtol=1e-6, atol=1e-8 * decided.max()
        )
        np.testing.assert_array_equal(learner.pair_distance(pairs), -closeness)
    else:
        np.testing.assert_array_equal(decided, closeness - learner.threshold_)


def test_the_score_is_the_accuracy_by_weight(learner, pairs):
    learner.fit(pairs)
    right = learner.predict(pairs) == pairs.y
    assert learner.score(pairs) == learner.score(stacked(pairs), pairs.y) == right.mean()
    weight = np.random.default_rng(0).uniform(0, 3, len(pairs))
    weighted = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, weight)
    assert learner.score(weighted) == pytest.approx(right @ weight / weight.sum(), rel=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grid_search_over_pairs_and_arrays(learner, pairs):
    grid = GRIDS.get(type(learner).__name__, {"n_passes": [1, 3]})
    few = pairs[:150]
    for given in ((few,), (stacked(few), few.y)):
        search = GridSearchCV(learner, grid, cv=KFold(3), error_score="raise").fit(*given)
        for i, chosen in enumerate(search.cv_results_["params"]):
            scores = []
            for learn, test in KFold(3).split(few.y):
                fitted = clone(learner).set_params(**chosen).fit(*(part[learn] for part in given))
                scores.append(np.mean(fitted.predict(given[0][test]) == few.y[test]))
            assert search.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(scores))
        assert search.predict(given[0]).shape == (150,)


def test_stratified_folds_and_other_scores_take_the_labels_of_the_pairs(learner, pairs):
    order = np.argsort(pairs.y, kind="stable")
    few = pairs[np.concatenate([order[:60], order[-60:]])]
    cv = StratifiedKFold(2)
    scores = cross_val_score(learner, few, few.y, cv=cv, scoring="roc_auc", error_score="raise")
    by_hand = [
        roc_auc_score(few.y[test], clone(learner).fit(few[learn]).pair_score(few[test]))
        for learn, test in cv.split(few.y, few.y)
    ]
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)


CALIBRATED = ["ITML", "MMC", "SNN"]


def best_accuracy(closeness, pairs):
    return max(
        np.average((closeness >= t) == (pairs.y > 0), weights=pairs.sample_weight)
        for t in [*closeness, np.inf]
    )


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_threshold_decides_more_of_the_pairs_rightly(name, weighted, pairs):
    weight = np.random.default_rng(1).integers(0, 4, len(pairs)).astype(float)
    if weighted:
        pairs = Pairs(pairs.X, pairs.left, pairs.right, pairs.y, weight)
    learner = clone(JUDGES[name]).fit(pairs)
    best = best_accuracy(learner.pair_score(pairs), pairs)
    assert learner.score(pairs) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("name", CALIBRATED)
def test_from_labels_the_threshold_is_that_of_random_pairs_held_out(name, labeled):
    given = {"purpose": "verification", "n_pairs": 80, "random_state": 0}
    learner = clone(JUDGES[name]).set_params(**given)
    if name == "SNN":
        learner.set_params(n_pairs=None, tol=1e-3)
    learner.fit(*labeled)
    given["random_state"] = np.random.RandomState(0)
    drawn, held_out = sampled_pairs(*labeled, n_neighbors=1, merge_duplicates=False, **given)
    if name != "SNN":  # Its start takes random numbers too.
        from_pairs = clone(learner).fit(drawn)
        np.testing.assert_array_equal(from_pairs.metric_.matrix, learner.metric_.matrix)
        assert from_pairs._calibrated(held_out) == learner.threshold_
    assert learner.score(drawn) > 0.6


def test_accepting_none_can_be_best():
    """Two similar pairs, farther apart than all others: b < 0 decides all but them rightly."""
    X = np.array([[0.0], [10.0], [20.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    few = Pairs(X, [0, 1, 0, 3, 4, 5, 6], [2, 2, 3, 4, 5, 6, 7], [1, 1, -1, -1, -1, -1, -1])
    learner = ITML(tol=0.1).fit(few)
    assert learner.threshold_ < learner.pair_distance(few).min() ** 2
    assert learner.score(few) == 5 / 7
    same = Pairs(X, [0, 1, 0], [0, 1, 3], [-1, -1, 1])
    learner = ITML(tol=0.1).fit(same)
    assert learner.predict(same).tolist() == [-1, -1, -1]
    assert learner.threshold_ < 0 < learner.closeness_threshold_


def test_pairs_of_one_kind_give_no_threshold(pairs):
    learner = ITML(tol=0.1).fit(pairs)
    assert learner.threshold_ > 0
    weight = (pairs.y > 0).astype(float)
    for few in (
        pairs[pairs.y > 0],
        Pairs(pairs.X, pairs.left, pairs.right, pairs.y, weight),
    ):
        learner.fit(few)
        assert not hasattr(learner, "threshold_") and not hasattr(learner, "closeness_threshold_")
        for judge in (learner.predict, learner.decision_function, learner.score):
            with pytest.raises(InvalidInputError, match=r"has no threshold_: .* pairs of one kind"):
                judge(pairs)
        assert np.all(learner.pair_score(pairs) <= 0)


@pytest.mark.parametrize("name", CALIBRATED)
def test_files_without_a_threshold_still_load(name):
    path = Path(__file__).parents[1] / "files" / "format_1" / f"{name}.samewise"
    learner = samewise.load(path)
    few = Pairs(np.eye(2, learner.n_features_in_), [0], [1], [1])
    assert learner.pair_score(few).shape == (1,)
    with pytest.raises(InvalidInputError, match="loaded from a file that has none"):
        learner.predict(few)


def test_floats_of_either_size(pairs):
    small = Pairs(pairs.X.astype(np.float32), pairs.left, pairs.right, pairs.y)
    for make in (ITML, MMC, SNN):
        learner = clone(JUDGES[make.__name__]).fit(small)
        assert learner.decision_function(small).dtype == np.float32
        # A pair at the threshold may fall on either side.
        assert learner.score(small) >= best_accuracy(learner.pair_score(small), small) - 1 / 400
