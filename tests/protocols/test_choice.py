"""Learners by name, splits, and choices made on rows set aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from samewise.catalog import BY_COMMAND
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear, Mahalanobis, MultiMetric
from samewise.protocols import (
    choose_learner,
    compare_each,
    hold_out,
    inspect_form,
    knn_correct,
    learner_comparison,
    make_learner,
    reduction_for,
    trials,
    tune_learner,
)
from samewise.protocols.choice import _best
from samewise.protocols.learner_process import ProcessLimits
from samewise.protocols.trials import Trial
from tests.learning_here import learn_here


@pytest.mark.parametrize("name", BY_COMMAND)
@pytest.mark.filterwarnings("ignore")
def test_every_learner_learns_with_its_defaults(name, labeled):
    learner = make_learner(name, random_state=0).fit(*labeled)
    assert learner.metric_.n_features_in == 5
    if "random_state" in learner.get_params():
        assert learner.random_state == 0


@pytest.mark.parametrize("name", [name for name, entry in BY_COMMAND.items() if entry.grid])
def test_grids_name_parameters_of_their_learners(name):
    for key, values in BY_COMMAND[name].grid.items():
        for value in values:
            make_learner(name, {key: value})._validate_params()


def test_unknown_names():
    with pytest.raises(InvalidInputError, match=r"mean 'lmnn'.*There are euclidean, cosine"):
        make_learner("lmn")
    with pytest.raises(InvalidInputError, match=r"no parameter 'k'; it has .*n_neighbors"):
        make_learner("lmnn", {"k": 3})
    with pytest.raises(InvalidInputError, match="it has none"):
        make_learner("euclidean", {"k": 3})


def test_each_class_is_held_out_in_proportion(seed):
    y = np.repeat(["a", "b", "c"], [50, 30, 1])
    held = hold_out(y, 0.2, seed)
    assert held[:50].sum() == 10 and held[50:80].sum() in (6, 7) and not held[80]
    np.testing.assert_array_equal(held, hold_out(y, 0.2, seed))
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        hold_out(y, 1.0)
    with pytest.raises(InvalidInputError, match="leaves nothing"):
        hold_out(["a", "b"], 0.1)


def texts(n, rng):
    """Classes are topics, documents long or short: the cosine is right."""
    topics = 0.5 * rng.dirichlet(np.full(60, 0.3), size=10) + 0.5 / 60
    y = rng.integers(10, size=n)
    lengths = (10 ** rng.uniform(1, 3, n)).astype(int)
    return rng.multinomial(lengths, topics[y]).astype(float), y


def shells(n, rng):
    """Classes are lengths, directions mean nothing: the distance is right."""
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 2))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * (1 + y)[:, None], y


def test_the_better_of_euclidean_and_cosine_says_what_is_tried():
    rng = np.random.default_rng(5)
    told = []
    choice = choose_learner(*texts(400, rng), watch=lambda *what: told.append(what))
    assert [t.name for t in choice.table] == ["euclidean", "cosine", "gcosla", "sila", "lmnn"]
    assert "learners of similarities" in choice.reason and "worse" in choice.reason
    assert told[0] == ("euclidean", 0, 5) and told[-1] == ("lmnn", 4, 5)
    choice = choose_learner(*shells(400, rng))
    assert [t.name for t in choice.table] == ["euclidean", "cosine", "lda", "lmnn", "gcosla"]
    assert choice.name == "euclidean" and "without learning" in choice.reason
    assert "learners of distances" in choice.reason


def test_the_least_error_wins_and_then_the_simplest(labeled):
    choice = choose_learner(*labeled)
    least = min(trial.error for trial in choice.table)
    order = list(BY_COMMAND)
    best = [trial.name for trial in choice.table if trial.error == least]
    assert choice.name == min(best, key=order.index)
    assert type(choice.learner) is type(make_learner(choice.name))
    assert not hasattr(choice.learner, "metric_")


def test_of_equal_errors_the_simplest_wins_whatever_was_tried_first():
    # Where the distance is better, lmnn is tried before gcosla, which stands first in the catalog.
    table = [Trial(name, {}, 0.1, 0.0) for name in ("lmnn", "gcosla")]
    assert list(BY_COMMAND).index("gcosla") < list(BY_COMMAND).index("lmnn")
    assert _best(table, "all").name == "gcosla"
    assert _best([table[0], replace(table[1], error=0.2)], "all").name == "lmnn"


def test_many_rows_are_sampled(labeled):
    X, y = labeled
    choice = choose_learner(np.tile(X, (20, 1)), np.tile(y, 20), max_rows=100)
    assert "On 25 validation rows" in choice.reason


def test_what_is_tuned_is_the_best_of_the_grid(labeled):
    choice = tune_learner("lda", *labeled, grid={"shrinkage": [0.9, 0.1]})
    assert len(choice.table) == 2 and choice.table[0].params == {"shrinkage": 0.1}
    least = min(choice.table, key=lambda t: t.error)
    assert choice.params == least.params and choice.learner.shrinkage == least.params["shrinkage"]
    assert "shrinkage = 0.9/0.1" in choice.reason
    assert tune_learner("euclidean", *labeled).reason == "There is nothing to tune in euclidean."


def test_parameters_that_are_given_are_not_varied(labeled):
    choice = tune_learner("lda", *labeled, params={"shrinkage": 0.3})
    assert choice.params == {"shrinkage": 0.3} and len(choice.table) == 1


def test_settings_that_are_refused_are_left_out(labeled):
    choice = tune_learner("lda", *labeled, grid={"shrinkage": [0.1, 2.0]})
    assert choice.params == {"shrinkage": 0.1} and "shrinkage" in choice.table[1].refused
    with pytest.raises(InvalidInputError, match=r"'lda' can use these data.*shrinkage"):
        tune_learner("lda", *labeled, grid={"shrinkage": [2.0]})


def test_compared(labeled, monkeypatch):
    X, y = labeled
    parts = X[:40], y[:40], X[40:], y[40:]
    monkeypatch.setattr(learner_comparison, "learn_alone", learn_here)
    first, second, lda, bad = compare_each(
        ["lda", "pca"], *parts, params={"pca": {"n_components": 99}}
    )
    assert [first.name, second.name, lda.name, bad.name] == ["euclidean", "cosine", "lda", "pca"]
    expected = knn_correct(make_learner("lda").fit(X[:40], y[:40]).metric_, *parts)
    np.testing.assert_array_equal(lda.correct, expected)
    assert lda.error == np.mean(~expected) and lda.marks.keys() == {"euclidean", "cosine"}
    assert first.marks == {} and second.marks.keys() == {"euclidean"} and lda.seconds > 0
    assert np.isnan(bad.error) and "n_components" in bad.refused and bad.marks == {}


def test_a_process_of_its_own_has_the_memory_of_its_learner(labeled):
    X, y = labeled
    work = "lda", {}, (X[:40], y[:40], X[40:], y[40:]), 0, 3
    ballast = np.ones(2**25)
    alone = learner_comparison.learn_alone(*work, limits=ProcessLimits(None, None))
    here = trials.try_learner(*work)
    np.testing.assert_array_equal(alone.correct, here.correct)
    # What this process holds does not count.
    assert 2**24 < alone.memory < here.memory - ballast.nbytes / 2


def test_an_unknown_learner_is_refused_before_any_learns(labeled):
    with pytest.raises(InvalidInputError, match="no learner 'xyz'"):
        next(compare_each(["lda", "xyz"], *labeled, *labeled))


def test_inspection_of_every_kind_of_form(labeled):
    from samewise.learners import KernelPOLA

    M = np.diag([3.0, 2.0, 1e-15])
    M[0, 1] = M[1, 0] = -0.5
    found = inspect_form(Mahalanobis.nearest(M), ["a", "b", "c"], top=2)
    assert found.rank == 2 and found.n_for_90 == 2
    assert [name for name, _ in found.features] == ["a", "b"]
    assert found.feature_pairs[0][:2] == ("a", "b")
    assert found.feature_pairs[0][2] == pytest.approx(-0.5)
    np.testing.assert_allclose(found.spectrum.sum(), 5.0)
    # The symmetric part is what a row's similarity with itself knows.
    found = inspect_form(Bilinear([[1.0, 4.0], [0.0, -2.0]]))
    assert found.feature_pairs == [("x0", "x1", 2.0)] and found.features[0] == ("x1", -2.0)
    found = inspect_form(Bilinear([[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]]))
    np.testing.assert_allclose(found.spectrum, [4.0, 3.0])
    assert found.features == []
    multi = inspect_form(MultiMetric([np.eye(2), 2 * np.eye(2)], classes=[0, 1]))
    np.testing.assert_allclose(multi.spectrum, [1, 1, 4, 4])
    kernel = KernelPOLA(random_state=0, n_pairs=30).fit(*labeled).metric_
    assert inspect_form(kernel).features == []


@pytest.mark.parametrize("shape", [(40, 12), (10, 12)])
def test_learning_in_principal_directions(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * np.linspace(3, 0.1, 12) + 5
    y = np.arange(len(X)) % 2
    learner = make_learner("lmnn", {"max_iter": 3, "tol": 1.0, "n_neighbors": 1})
    reduction = reduction_for(learner, X, max_directions=4)
    Z = reduction.rows(X)
    # The directions of largest variance, and distances that lose nothing within them.
    axes = np.linalg.svd(X - X.mean(axis=0))[2][:4]
    np.testing.assert_allclose(reduction.axes.T @ reduction.axes, axes.T @ axes, atol=1e-8)
    form = learner.fit(Z, y).metric_
    np.testing.assert_allclose(reduction.lift(form).cross(X), form.cross(Z), atol=1e-6)
    assert reduction.n_directions == 4
    for centers in (None, Z[:2]):
        classes = [0, 1] if centers is None else None
        multi = MultiMetric([np.eye(4), np.diag([1, 2, 3, 4.0])], classes=classes, centers=centers)
        lifted = reduction.lift(multi)
        labels = y if centers is None else None
        groups = multi.groups_of(Z, labels)
        np.testing.assert_array_equal(lifted.groups_of(X, labels), groups)
        a, b = lifted.bind(X, labels).cross(X), multi.bind(Z, labels).cross(Z)
        np.testing.assert_allclose(a, b, atol=1e-6)
    for other, rows in ((learner, X[:, :4]), (make_learner("lda"), X)):
        reduction = reduction_for(other, rows, max_directions=4)
        assert reduction.rows(rows) is rows and reduction.lift(form) is form
