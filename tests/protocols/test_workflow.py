"""fit_model, evaluate and compare: the whole way from rows to a judged model."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine

import samewise
from samewise import LDA, LMNN, Mahalanobis, compare, evaluate, fit_model
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.protocols import (
    hold_out,
    knn_correct,
    learner_comparison,
    make_learner,
    measure,
    rows_to_judge_by,
    standardization,
    trials,
)
from samewise.scores import s_test
from tests.learning_here import learn_here


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_fit_model_is_the_steps_one_after_the_other(load):
    X, y = load(return_X_y=True)
    model = fit_model(X, y, "lda", keep="learned", random_state=3)
    held = hold_out(y, 0.2, 3)
    np.testing.assert_array_equal(model.has_seen(X[~held]), True)
    scaling = standardization(X[~held], y[~held])
    Z = model.prepare(X)
    if scaling is None:
        assert model.mean is None and load is load_iris
    else:
        np.testing.assert_allclose(Z[~held].mean(axis=0), 0, atol=1e-9)
        spread = Z[~held].std(axis=0)
        np.testing.assert_allclose(spread[spread > 0], 1)
    expected = make_learner("lda", random_state=3).fit(Z[~held], y[~held]).metric_
    assert model.form == expected
    parts = Z[~held], y[~held], Z[held], y[held]
    right, plain = knn_correct(expected, *parts), knn_correct(None, *parts)
    assert model.measured["errors"]["lda"] == np.mean(~right)
    assert model.measured["errors"]["euclidean"] == np.mean(~plain)
    assert model.measured["against"]["euclidean"]["p_value"] == s_test(right, plain).p_value
    assert model.training["rows"] + model.training["held_out"] == len(y)
    assert model.training["classes"] == len(np.unique(y)) and not model.training["interrupted"]


def test_fit_model_chooses_tunes_and_says_why():
    X, y = load_iris(return_X_y=True)
    lines = []
    model = fit_model(X, y, tune=True, watch=lines.append)
    tried = [trial["learner"] for trial in model.training["tried"]]
    assert tried[:2] == ["euclidean", "cosine"] and model.learner in tried
    assert "validation rows, 3-NN errs on" in model.training["reason"]
    assert lines[0].startswith("choosing a learner: euclidean, 0 of")
    assert lines[-1].startswith("measuring")


def test_fit_model_with_given_rows_held_out_and_names(tmp_path):
    frame = load_wine(as_frame=True)
    held = np.arange(178) % 3 == 0
    model = fit_model(frame.data, frame.target, "lda", held_out=held, scale="none")
    assert model.feature_names == tuple(frame.data.columns) and model.mean is None
    assert model.training["held_out"] == held.sum() == model.measured["rows"]
    assert model.has_seen(frame.data.to_numpy()).tolist() == (~held).tolist()
    model.save(tmp_path / "model.sw")
    assert samewise.load(tmp_path / "model.sw").training == {}
    everything = fit_model(frame.data, frame.target, "lda", held_out=0)
    assert everything.measured == {} and everything.training["rows"] == 178


def test_fit_model_learns_in_principal_directions_where_there_are_many_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 230))
    params = {"max_iter": 2, "n_neighbors": 1, "tol": 1.0}
    model = fit_model(X, np.arange(60) % 2, "lmnn", params=params, keep="learned")
    assert model.training["principal_directions"] == 48 and model.form.n_features_in == 230
    assert model.params == params


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"params": {"shrinkage": 0.1}}, "params belong to one learner"),
        ({"learner": "ldda"}, "did you mean 'lda'"),
        ({"learner": "lda", "params": {"k": 1}}, "no parameter 'k'"),
        ({"scale": "yes"}, "scale must be 'auto', 'standard' or 'none'. Got 'yes'"),
        ({"held_out": 1.5}, "between 0 and 1"),
        ({"keep": "both"}, "keep must be 'better' or 'learned'. Got 'both'"),
        ({"held_out": [True, False]}, "a boolean for each of the 150 rows"),
        ({"y": np.zeros(150)}, "at least two classes"),
        ({"y": [0, 1]}, "one label for each of the 150 rows"),
        ({"X": sp.csr_array(np.eye(150)), "scale": "standard"}, "make sparse rows dense"),
    ],
)
def test_what_fit_model_refuses(given, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInputError, match=message):
        fit_model(**{"X": X, "y": y} | given)


def test_evaluate_finds_the_rows_a_model_has_not_seen():
    X, y = load_wine(return_X_y=True)
    model = fit_model(X, y, "lda")
    found = evaluate(model, X, y)
    held = ~model.has_seen(X)
    assert (found.n_items, found.n_queries) == ((~held).sum(), held.sum())
    Z = model.prepare(X)
    parts = Z[~held], y[~held], Z[held], y[held]
    assert found.measured[0].as_dict() == measure(None, *parts, name="euclidean").as_dict()
    assert found.measured[2].as_dict() == measure(model.form, *parts, name="lda").as_dict()
    assert [(g.before, g.after) for g in found.gains] == [("euclidean", "lda"), ("cosine", "lda")]
    # The same rows, given apart.
    given = evaluate(model, X[~held], y[~held], X[held], y[held])
    assert given.measured[2].as_dict() == found.measured[2].as_dict()
    assert given.judged_by == "the rows that were given"
    seen = evaluate(model, X, y, X, y)
    assert f"learned from {(~held).sum()} of them, which flatters it" in seen.judged_by


def test_evaluate_takes_forms_and_learners():
    X, y = load_iris(return_X_y=True)
    learner = LDA().fit(X[::2], y[::2])
    parts = X[::2], y[::2], X[1::2], y[1::2]
    names = [evaluate(one, *parts).measured[2].name for one in (learner, learner.metric_)]
    assert names == ["LDA", "Mahalanobis"]
    queries, note = rows_to_judge_by(samewise.Model(learner.metric_), X, y)
    assert queries.sum() == 45 and "none of them is known to the model" in note
    with pytest.raises(InvalidInputError, match="Got LMNN, which has no metric"):
        evaluate(LMNN(), *parts)
    with pytest.raises(InvalidInputError, match="y_test must be given with X_test"):
        evaluate(learner, X, y, X)


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr(learner_comparison, "learn_alone", learn_here)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_compare_is_each_learner_on_the_same_rows(load):
    X, y = load(return_X_y=True)
    lines = []
    found = compare(X, y, ["lda"], scale="none", random_state=1, watch=lines.append)
    held = hold_out(y, 0.3, 1)
    parts = X[~held], y[~held], X[held], y[held]
    assert [line.name for line in found.lines] == ["euclidean", "cosine", "lda"]
    expected = knn_correct(make_learner("lda", random_state=1).fit(*parts[:2]).metric_, *parts)
    assert found.lines[2].error == np.mean(~expected)
    assert found.lines[2].tests["euclidean"] == s_test(expected, knn_correct(None, *parts))
    assert (found.n_learned, found.n_judged) == ((~held).sum(), held.sum())
    assert len(lines) == 3 and lines[2].startswith(f"lda: {100 * np.mean(~expected):.2f} % in ")
    assert "lda" in found.best() and "against " in found.best()


@pytest.mark.usefixtures("in_this_process")
def test_compare_warns_of_learners_that_seldom_help():
    with pytest.warns(
        SamewiseWarning, match="rbs is worse than no learning on more than one set in ten: a"
    ):
        found = compare(*load_iris(return_X_y=True), ["rbs"])
    assert [line.name for line in found.lines] == ["euclidean", "cosine", "rbs"]


@pytest.mark.usefixtures("in_this_process")
def test_compare_says_which_is_best():
    X, y = load_wine(return_X_y=True)
    best = compare(X, y, ["lda"], scale="none").best()
    assert best.startswith("Best: lda (against ") and ": better, p = 0.021)." in best
    assert (
        compare(X, y, ["pca"])
        .best()
        .startswith("Nothing was gained: no learner errs less than cosine")
    )
    assert compare(X, y, []).best() == "There is nothing to compare yet."
    refused = compare(X, y, ["pca"], params={"pca": {"n_components": 99}})
    assert refused.best() == "There is nothing to compare yet." and refused.lines[2].refused


def test_compare_that_is_stopped_has_what_is_known(monkeypatch):
    def stop(name, *work, limits):
        if name == "cosine":
            raise KeyboardInterrupt
        return trials.try_learner(name, *work)

    monkeypatch.setattr(learner_comparison, "learn_alone", stop)
    found = compare(*load_iris(return_X_y=True), ["lda"])
    assert found.interrupted and [line.name for line in found.lines] == ["euclidean"]


def test_what_is_not_shown_to_differ_is_called_so(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("samewise.report.html_report.drawings", lambda *args: [])
    X, y = load_iris(return_X_y=True)
    parts = X[::2], y[::2], X[1::2], y[1::2]
    report = samewise.write_report(tmp_path / "r.html", Mahalanobis.identity(4), *parts)
    assert report.gains[0].verdict == "no difference shown, p = 1.000"
    text = (tmp_path / "r.html").read_text(encoding="utf-8").replace("&nbsp;", " ")
    assert "no difference shown, p = 1.000" in text
