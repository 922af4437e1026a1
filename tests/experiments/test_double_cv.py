"""Double cross-validation by hand, resumed, in parallel, and with odd input."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments._double_cv import _split, double_cross_validation, in_order
from samewise import KNNClassifier, Mahalanobis, PassiveAggressive
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.srbs import SRBS
from samewise.scores import s_test

GRID = {"n_neighbors": [1, 3], "misses": ["each", "any"]}


def same(a, b):
    np.testing.assert_array_equal(a.accuracies, b.accuracies)
    np.testing.assert_array_equal(a.predictions, b.predictions)
    np.testing.assert_array_equal(a.validation_accuracies, b.validation_accuracies)
    assert a.params == b.params


# What it does


@pytest.mark.parametrize("rule", ["knn", "sknn"])
@pytest.mark.parametrize("refit", [False, True])
def test_by_hand(labeled, rule, refit):
    X, y = labeled
    names = np.array(["a", "b", "c"])[y]
    result = double_cross_validation(
        Relief(), X, names, grid=GRID, rule=rule, refit=refit, random_state=4
    )
    folds, parts = _split(y, 5, 0.2, True, np.random.RandomState(4))
    np.testing.assert_array_equal(result.folds, folds)
    candidates = [(m, k) for m in ("each", "any") for k in (1, 3)]
    for fold, (learn, held, test) in enumerate(parts):
        models, scores = [], []
        for m, k in candidates:
            model = KNNClassifier(Relief(k, misses=m), k, rule).fit(X[learn], names[learn])
            models.append(model)
            scores.append(model.score(X[held], names[held]))
        np.testing.assert_allclose(result.validation_accuracies[fold], scores)
        best = int(np.argmax(scores))
        assert result.params[fold] == dict(
            zip(("misses", "n_neighbors"), candidates[best], strict=True)
        )
        model = models[best]
        if refit:
            both = np.sort(np.concatenate([learn, held]))
            model = clone(model).fit(X[both], names[both])
        np.testing.assert_array_equal(result.predictions[test], model.predict(X[test]))
        assert result.accuracies[fold] == pytest.approx(model.score(X[test], names[test]))
    np.testing.assert_array_equal(result.correct, result.predictions == names)
    assert result.mean == pytest.approx(np.mean(result.accuracies))
    assert result.std == pytest.approx(np.std(result.accuracies, ddof=1))


@pytest.mark.parametrize("stratify", [True, False])
@pytest.mark.parametrize("sizes", [(20, 20, 20), (40, 7, 3)])
def test_the_splits_of_the_thesis(stratify, sizes, seed):
    y = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2], sizes))
    folds, parts = _split(y, 5, 0.2, stratify, np.random.RandomState(seed))
    assert np.ptp(np.bincount(folds)) <= 1
    for fold, (learn, held, test) in enumerate(parts):
        everyone = np.concatenate([learn, held, test])
        np.testing.assert_array_equal(np.sort(everyone), np.arange(len(y)))
        np.testing.assert_array_equal(test, np.flatnonzero(folds == fold))
        assert len(held) == round(0.2 * (len(y) - len(test)))
        if stratify:
            for rows, part in ((test, 0.2), (held, 0.16)):
                shares = np.bincount(y[rows], minlength=3)
                assert np.abs(shares - part * np.array(sizes)).max() <= 1


def test_sizes_of_wine():
    # 178 examples: 35 for test, 114 to learn from and 29 to validate on.
    _, parts = _split(np.repeat([0, 1, 2], [59, 71, 48]), 5, 0.2, True, np.random.RandomState(0))
    assert [len(part) for part in parts[-1]] == [114, 29, 35]


def test_one_against_the_rest(labeled):
    X, y = labeled
    result = double_cross_validation(Relief(), X, y, mode="binary", random_state=1)
    assert result.correct.shape == result.predictions.shape == (60, 3)
    np.testing.assert_array_equal(result.correct, result.predictions == (y[:, None] == [0, 1, 2]))
    _, parts = _split(y, 5, 0.2, True, np.random.RandomState(1))
    for fold, (learn, held, test) in enumerate(parts):
        assert len(result.params[fold]) == 3
        assert result.accuracies[fold] == pytest.approx(result.correct[test].mean())
        for c in range(3):
            models = [KNNClassifier(Relief(k), k).fit(X[learn], y[learn] == c) for k in (1, 3)]
            best = int(np.argmax([m.score(X[held], y[held] == c) for m in models]))
            assert result.params[fold][c] == {"n_neighbors": (1, 3)[best]}
            np.testing.assert_array_equal(
                result.predictions[test, c], models[best].predict(X[test])
            )


def test_forms_and_the_euclidean_distance(labeled):
    X, y = labeled
    plain = double_cross_validation(None, X, y, random_state=0)
    same(plain, double_cross_validation(Mahalanobis.identity(5), X, y, random_state=0))
    same(plain, double_cross_validation(None, sp.csr_array(X), y, random_state=0))
    assert s_test(plain.correct, plain.correct).mark == "="
    assert {p["n_neighbors"] for p in plain.params} <= {1, 3}


def test_names_for_the_rule_alone(labeled):
    X, y = labeled
    grid = {"n_neighbors": [3], "rule__n_neighbors": [1], "rule": ["sknn"]}
    result = double_cross_validation(Relief(), X, y, grid=grid, random_state=0)
    learn, _, test = _split(y, 5, 0.2, True, np.random.RandomState(0))[1][0]
    model = KNNClassifier(Relief(3), 1, "sknn").fit(X[learn], y[learn])
    np.testing.assert_array_equal(result.predictions[test], model.predict(X[test]))


def test_a_classifier_decides_itself(labeled):
    X, y = labeled
    model = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 1.0]}
    result = double_cross_validation(model, X, y, grid=grid, random_state=0)
    assert result.mean > 0.5 and not hasattr(model, "classes_")
    assert double_cross_validation(model, X, y, random_state=0).params == [{}] * 5


def test_what_is_learned_alike_is_learned_once(labeled, monkeypatch):
    X, y = labeled
    fits = []
    monkeypatch.setattr(
        Relief, "fit", lambda self, *a, _fit=Relief.fit: fits.append(1) or _fit(self, *a)
    )
    grid = {"rule__n_neighbors": [1, 3, 5], "misses": ["each", "any"]}
    double_cross_validation(Relief(), X, y, grid=grid, random_state=0)
    assert len(fits) == 5 * 2


def test_random_learners_are_seeded_by_the_run(labeled):
    X, y = labeled
    learner = PassiveAggressive(n_pairs=50)
    grid = {"C": [0.1, 1.0]}
    one = double_cross_validation(learner, X, y, grid=grid, random_state=0)
    same(one, double_cross_validation(learner, X, y, grid=grid, random_state=0))
    assert learner.random_state is None


def test_candidates_that_do_not_fit_a_fold_are_left_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [36, 4])
    result = double_cross_validation(
        None, X, y, rule="sknn", grid={"n_neighbors": [1, 9]}, random_state=0
    )
    assert np.isnan(result.validation_accuracies[:, 1]).all()
    assert result.params == [{"n_neighbors": 1}] * 5
    with pytest.raises(InvalidInputError, match="more than the class 1 has members"):
        double_cross_validation(None, X, y, rule="sknn", grid={"n_neighbors": [9]}, random_state=0)


@pytest.mark.filterwarnings("ignore:SRBS has not converged")
def test_processes_give_the_same(labeled):
    X, y = labeled
    options = {"grid": {"beta": [0.1, 5.0], "n_neighbors": [1, 3]}, "random_state": 2}
    one = double_cross_validation(SRBS(max_iter=20), X, y, **options)
    same(one, double_cross_validation(SRBS(max_iter=20), X, y, n_jobs=2, **options))


# Runs that are broken off


class BrokenError(Exception):
    pass


def broken_off(monkeypatch, after, *args, **options):
    """Run until `after` learners were fitted."""
    left = [after]

    def fit(self, X, y, _fit=Relief.fit):
        left[0] -= 1
        if left[0] < 0:
            raise BrokenError
        return _fit(self, X, y)

    with monkeypatch.context() as patch, pytest.raises(BrokenError):
        patch.setattr(Relief, "fit", fit)
        double_cross_validation(*args, **options)


@pytest.mark.parametrize("mode", ["multiclass", "binary"])
def test_a_resumed_run_equals_an_uninterrupted_one(labeled, tmp_path, monkeypatch, mode):
    X, y = labeled
    path = tmp_path / "run"
    options = {"grid": GRID, "mode": mode, "random_state": 7}
    whole = double_cross_validation(Relief(n_draws=30), X, y, **options)
    broken_off(monkeypatch, 10, Relief(n_draws=30), X, y, checkpoint=path, **options)
    assert path.exists()
    fits = []
    with monkeypatch.context() as patch:
        patch.setattr(
            Relief, "fit", lambda self, X, y, _fit=Relief.fit: fits.append(1) or _fit(self, X, y)
        )
        same(whole, double_cross_validation(Relief(n_draws=30), X, y, checkpoint=path, **options))
    units = 5 if mode == "multiclass" else 15
    assert len(fits) == 4 * (units - 2)
    # A finished run is only read.
    broken = Relief(n_draws=30)
    with monkeypatch.context() as patch:
        patch.setattr(Relief, "fit", None)
        same(whole, double_cross_validation(broken, X, y, checkpoint=path, **options))


def test_another_run_is_not_resumed(labeled, tmp_path):
    X, y = labeled
    path = tmp_path / "run"
    double_cross_validation(Relief(), X, y, random_state=0, checkpoint=path)
    bytes_before = path.read_bytes()
    others = [
        (Relief(), X + 1, y, {"random_state": 0}),
        (Relief(), X, 2 - y, {"random_state": 0}),
        (Relief(misses="any"), X, y, {"random_state": 0}),
        (SRBS(), X, y, {"random_state": 0}),
        (Relief(), X, y, {"random_state": 1}),
        (Relief(), X, y, {"random_state": 0, "rule": "sknn"}),
        (Relief(), X, y, {"random_state": 0, "grid": {"n_neighbors": [1, 5]}}),
        (Relief(), X, y, {"random_state": 0, "refit": True}),
    ]
    for learner, X2, y2, options in others:
        with pytest.raises(InvalidInputError, match="belongs to a run with other data"):
            double_cross_validation(learner, X2, y2, checkpoint=path, **options)
    assert path.read_bytes() == bytes_before


def test_damaged_files_are_refused(labeled, tmp_path):
    X, y = labeled
    path = tmp_path / "run"
    double_cross_validation(None, X, y, random_state=0, checkpoint=path)
    whole = path.read_bytes()
    for damaged in (
        whole[:-3],
        whole[:60] + b"?" + whole[61:],
        whole[:-9] + b"x" * 9,
        b"",
        b"{}\n",
    ):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="run"):
            double_cross_validation(None, X, y, random_state=0, checkpoint=path)
    Mahalanobis.identity(5).save(path)
    with pytest.raises(FileFormatError, match="not a double cross-validation"):
        double_cross_validation(None, X, y, random_state=0, checkpoint=path)
    path.write_text(json.dumps([1]))
    with pytest.raises(FileFormatError, match="not a samewise file"):
        double_cross_validation(None, X, y, random_state=0, checkpoint=path)


def test_what_a_checkpoint_needs(labeled, tmp_path):
    X, y = labeled
    for seed in (None, np.random.RandomState(0)):
        with pytest.raises(InvalidInputError, match="integer random_state"):
            double_cross_validation(None, X, y, random_state=seed, checkpoint=tmp_path / "run")
    learner = SRBS(callback=lambda info: False)
    with pytest.raises(InvalidInputError, match="must be recognized again"):
        double_cross_validation(learner, X, y, random_state=0, checkpoint=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_it_says_how_far_it_is(labeled, capsys):
    double_cross_validation(None, *labeled, random_state=0, verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5 and "Fold 5 of 5" in lines[-1] and "5 of 5 done" in lines[-1]


# Odd input


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rule": "energy"}, "rule must be 'knn' or 'sknn'"),
        ({"mode": "both"}, "mode must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"n_folds": 61}, "n_folds must be"),
        ({"validation": 0.0}, "validation must be"),
        ({"validation": 1e-3}, "leaves nothing"),
        ({"grid": {"C": [1]}}, "names C, which neither"),
    ],
)
def test_bad_options(labeled, options, message):
    with pytest.raises(InvalidInputError, match=message):
        double_cross_validation(None, *labeled, **options)


def test_one_class(labeled):
    with pytest.raises(InvalidInputError, match="at least two classes"):
        double_cross_validation(None, labeled[0], np.zeros(60))


def test_settings_are_in_the_order_of_scikit_learn_but_for_renamed_parameters():
    grid = {"n_neighbors": [1, 3], "average": ["a", "b"], "structure": ["x"]}
    assert in_order(grid) == list(ParameterGrid(grid))
    assert in_order([grid, {"z": [1]}]) == list(ParameterGrid([grid, {"z": [1]}]))
    renamed = in_order({"n_passes": [5, 50], "n_neighbors": [1, 3]})
    assert renamed[1] == {"n_passes": 5, "n_neighbors": 3}
