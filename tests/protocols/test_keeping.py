"""Whether a learner helped: the gain, what is kept, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import samewise
import samewise.learners
from samewise import LDA, LMNN, OASIS, GCosLA, Guarded, KNNClassifier, PassiveAggressive, SiLA
from samewise.exceptions import InvalidInputError, NothingGainedWarning
from samewise.protocols import fit_model, hold_out, knn_correct, make_learner
from samewise.scores import Gain, s_test


@pytest.fixture(scope="module")
def noise():
    """Two classes told apart by the first feature; the others are small noise."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = 0.01 * rng.normal(size=(120, 6))
    X[:, 0] += y + 0.2 * rng.normal(size=120)
    return X, y


class Misled(LDA):
    """A learner that sees only the last feature, which says nothing."""

    def fit(self, X, y):
        super().fit(X, y)
        self.metric_ = samewise.Mahalanobis.from_components(np.eye(X.shape[1])[-1:])
        return self


# The gain


def test_a_gain_has_the_uncertainty_of_paired_decisions():
    rng = np.random.default_rng(1)
    before, after = rng.random(500) < 0.8, rng.random(500) < 0.9
    gain = Gain.of("plain", before, "learned", after)
    test = s_test(after, before)
    assert (gain.p_value, gain.mark) == (test.p_value, test.mark)
    assert gain.errors == (np.mean(~before), np.mean(~after)) and gain.n_judged == 500
    # The standard error of the mean of the differences −1, 0 and 1.
    change = after.astype(float) - before
    assert gain.difference == pytest.approx(change.mean())
    assert gain.standard_error == pytest.approx(change.std() / np.sqrt(500))
    assert gain.gained and not Gain.of("a", after, "b", before).gained
    assert "500 validation rows learned errs on" in gain.sentence


# A guarded learner


@pytest.mark.parametrize(
    ("learner", "plain"),
    [
        (LDA(), "euclidean"),
        (LMNN(max_iter=20, tol=0.1), "euclidean"),
        (PassiveAggressive(random_state=0), "euclidean"),
        (GCosLA(random_state=0), "cosine"),
        (SiLA(random_state=0), "cosine"),
        (OASIS(random_state=0), "cosine"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
@pytest.mark.filterwarnings("ignore::samewise.exceptions.NothingGainedWarning")
def test_every_kind_of_learner_knows_what_it_gained(learner, plain):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    guarded = Guarded(learner, 0.3, random_state=2).fit(X, y)
    held = hold_out(y, 0.3, 2)
    parts = X[~held], y[~held], X[held], y[held]
    form = clone(learner).fit(*parts[:2]).metric_
    gain = guarded.gain_
    assert gain.errors[1] == np.mean(~knn_correct(form, *parts))
    assert gain.before == plain and gain.after == type(learner).__name__
    assert gain.n_judged == held.sum()
    assert (guarded.kept_ == "plain") == (gain.n_worse > gain.n_better)
    if guarded.kept_ == "learned":
        assert guarded.metric_ == clone(learner).fit(X, y).metric_
        once = Guarded(learner, 0.3, refit=False, random_state=2).fit(X, y)
        assert once.metric_ == form
    assert not hasattr(learner, "metric_")


def test_the_plain_metric_is_kept_where_learning_harms(noise):
    X, y = noise
    with pytest.warns(NothingGainedWarning, match="The euclidean metric is kept; keep='learned'"):
        guarded = Guarded(Misled(), random_state=0).fit(X, y)
    assert guarded.kept_ == "plain" and guarded.gain_.verdict.startswith("worse")
    np.testing.assert_array_equal(guarded.transform(X), X)
    with pytest.warns(NothingGainedWarning, match="Nothing was gained") as said:
        asked = Guarded(Misled(), keep="learned", random_state=0).fit(X, y)
    assert asked.kept_ == "learned" and asked.transform(X).shape == (120, 1)
    assert "is kept" not in str(said[0].message)
    assert asked.gain_ == guarded.gain_


def test_equal_errors_keep_what_was_asked_for(noise):
    with pytest.warns(NothingGainedWarning):
        guarded = Guarded(samewise.Euclidean(), random_state=0).fit(*noise)
    assert guarded.kept_ == "learned" and guarded.gain_.difference == 0


def test_a_guarded_learner_is_a_metric_for_others():
    X, y = load_wine(return_X_y=True)
    found = cross_val_score(KNNClassifier(Guarded(LDA(), random_state=0)), X, y, cv=3)
    assert found.mean() > 0.9
    assert Guarded(LDA()).set_params(learner__shrinkage=0.2).learner.shrinkage == 0.2


def test_what_a_guard_refuses():
    X, y = load_wine(return_X_y=True)
    guarded = Guarded(LDA(), random_state=0).fit(X, y)
    before = dict(vars(guarded))
    with pytest.raises(InvalidInputError, match="leaves nothing to learn from or nothing to"):
        guarded.fit(X[:3], [0, 1, 2])
    with pytest.raises(ValueError, match="validation_fraction"):
        Guarded(LDA(), 1.5).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        guarded.fit(np.where(X == X[3, 3], np.nan, X), y)
    with pytest.raises(InvalidInputError, match="learns no metric"):
        guarded.set_params(learner=StandardScaler()).fit(X, y)
    guarded.set_params(learner=before["learner"])
    assert vars(guarded) == before


# The workflow


def test_fit_model_keeps_what_validation_rows_say(monkeypatch, noise, tmp_path):
    monkeypatch.setattr(samewise.learners, "LDA", Misled, raising=False)
    X, y = noise
    with pytest.warns(NothingGainedWarning, match=r"euclidean is kept: on 24 validation rows lda"):
        model = fit_model(X, y, "lda", scale="none")
    assert model.learner == "euclidean" and model.training["asked"] == "lda" and not model.params
    assert model.form == samewise.Euclidean().fit(X).metric_
    assert list(model.measured["errors"]) == ["euclidean", "cosine", "lda"]
    assert model.measured["against"]["lda"]["mark"] == "≫"
    model.save(tmp_path / "model.sw")
    assert samewise.load(tmp_path / "model.sw").kept == model.kept
    assert model.kept.startswith("euclidean is kept: on 24 validation rows lda errs on")
    asked = fit_model(X, y, "lda", scale="none", keep="learned")
    assert asked.learner == "lda" and asked.kept == "" and len(asked.form.components) == 1


def test_validation_rows_are_not_those_that_are_measured_on():
    X, y = load_wine(return_X_y=True)
    seen = []
    fit = LDA.fit

    def watched(self, X, y):
        seen.append(len(y))
        return fit(self, X, y)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LDA, "fit", watched)
        model = fit_model(X, y, "lda", scale="none")
    rows = model.training["rows"]
    assert rows == len(y) - model.training["held_out"]
    # Once from all rows, and once from those among them that are not for validation.
    assert len(seen) == 2 and seen[0] == rows and 0.73 < seen[1] / rows < 0.77
    assert f"on {rows - seen[1]} validation rows" in model.kept
    expected = make_learner("lda", random_state=0)
    held = ~model.has_seen(X)
    assert model.form == expected.fit(X[~held], y[~held]).metric_


def test_tuning_has_tried_already_what_is_judged(monkeypatch):
    X, y = load_wine(return_X_y=True)
    calls = []
    fit = LDA.fit
    monkeypatch.setattr(LDA, "fit", lambda self, X, y: calls.append(1) or fit(self, X, y))
    model = fit_model(X, y, "lda", tune=True, scale="none")
    # Three settings, and the best of them from all rows.
    assert len(calls) == 4 and "lda is kept: on" in model.kept


def test_few_rows_and_refusals_leave_what_was_learned():
    X, y = load_iris(return_X_y=True)
    few = [0, 1, 50, 51]
    model = fit_model(X[few], y[few], "lda", held_out=0)
    assert model.learner == "lda"
    assert fit_model(X, y, "euclidean").kept == ""
