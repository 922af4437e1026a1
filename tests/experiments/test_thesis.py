import csv
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

from experiments import (
    _thesis_claims,
    _thesis_learners,
    _thesis_local,
    _thesis_looks,
    _thesis_runs,
    _thesis_tables,
    thesis,
)
from experiments._common import threads
from experiments._double_cv import double_cross_validation
from experiments._thesis_data import SETS, n_classes
from experiments._thesis_learners import FewGCosLA, Once, OnceRBS
from experiments._thesis_paper import ACCURACIES, ERRORS, MARKS, MULTICLASS
from experiments._thesis_runs import Key, Outcome, Records
from experiments._thesis_tables import Results
from samewise.exceptions import DatasetNotFoundError

RESULTS = Path(thesis.__file__).parent / "results" / "thesis"


def toy(name):
    """Three classes of 12 that differ in direction."""
    random = np.random.RandomState(0)
    y = np.arange(36) % 3
    return 1 + random.uniform(size=(36, 3)) + 2 * np.eye(3)[y], y


@pytest.fixture
def small(monkeypatch):
    """In the place of Wine a toy with two folds, short lists, and little to look at."""
    for module in (_thesis_runs, _thesis_tables, _thesis_looks, _thesis_local):
        monkeypatch.setattr(module, "examples", toy)
        monkeypatch.setattr(module, "n_classes", lambda name: 3, raising=False)
    monkeypatch.setitem(SETS, "Wine", replace(SETS["Wine"], n_folds=2, large=True))
    monkeypatch.setattr(thesis, "QUICK", thesis.Plan(("Wine",), ("Wine",), ("Wine",)))
    monkeypatch.setattr(thesis, "FAMILY", ("RELIEF", "RBS", "sRBS"))
    monkeypatch.setattr(thesis, "KNN_ONLY", ("Wine",))
    monkeypatch.setattr(_thesis_looks, "EPOCHS", (1, 2))
    monkeypatch.setattr(_thesis_looks, "MOST_PASSES", 1)


def files(folder):
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths if p.parent.name != "times"}


def test_a_small_run_is_kept_reproduced_and_not_repeated(small, tmp_path, monkeypatch):
    monkeypatch.setattr(_thesis_learners, "K", {"n_neighbors": [1]})
    monkeypatch.setattr(_thesis_learners, "RULE_K", {"rule__n_neighbors": [1]})
    monkeypatch.setattr(_thesis_learners, "LANDMARKS", None)
    first, second = tmp_path / "a", tmp_path / "b"
    for out in (first, second):
        out.mkdir()
        thesis.run(out, quick=True, jobs=1)
    assert files(first) == files(second)
    summary = (first / "summary.md").read_text(encoding="utf-8")
    for title in ("5.4", "5.5", "5.13", "5.21", "5.25"):
        assert f"Table {title}:" in summary
    for title in (
        "Tables 5.8, 5.9 and 5.10",
        "Tables 5.15 and 5.20",
        "Table 5.22 and part of 5.23",
        "Table 5.23, the rest",
        "Figure 5.7",
        "one matrix for each region",
    ):
        assert title in summary
    assert not list((first / "unfinished").iterdir())

    def refuse(*_):
        raise AssertionError("done already")

    monkeypatch.setattr(thesis, "measure_all", refuse)
    thesis.run(first, quick=True, jobs=1)
    assert files(first) == files(second)
    with pytest.raises(AssertionError, match="done already"):
        thesis.run(first, quick=True, jobs=1, only=("Wine",))


def test_a_run_that_was_broken_off_goes_on(small, tmp_path, monkeypatch):
    wanted = _thesis_runs.key("Wine", "RBS")
    whole = _thesis_runs.measure(tmp_path, wanted)[1]
    fits = []
    fit = _thesis_learners.RBS.fit
    Once.learned.clear()

    def counted(self, X, y):
        fits.append(len(y))
        if len(fits) == 4:
            raise KeyboardInterrupt
        return fit(self, X, y)

    monkeypatch.setattr(_thesis_learners.RBS, "fit", counted)
    with pytest.raises(KeyboardInterrupt):
        _thesis_runs.measure(tmp_path, wanted)
    assert len(list((tmp_path / "unfinished").iterdir())) == 1
    Once.learned.clear()
    again = _thesis_runs.measure(tmp_path, wanted)[1]
    # Two fits, k = 1 and 3, for each of two folds and three classes; one pair was kept.
    assert len(fits) == 4 + 12 - 2
    np.testing.assert_array_equal(whole.correct, again.correct)
    assert whole.chosen == again.chosen


def test_records_hold_what_was_measured(tmp_path):
    random = np.random.RandomState(0)
    records = Records(tmp_path)
    done = {
        Key("Iris", "RBS", rule, "binary"): Outcome(
            np.array([0.5, 0.625]), [[0, 1, 1], [1, 0, 0]], random.uniform(size=n) < 0.7
        )
        for rule, n in (("sknn", 13), ("knn", 450))
    }
    for at, outcome in done.items():
        records.keep(at, outcome, 1.5)
    records.sort("Iris")
    found = records.all(["Iris", "Wine"])
    assert list(found) == sorted(done)
    for at, outcome in done.items():
        np.testing.assert_array_equal(found[at].correct, outcome.correct)
        np.testing.assert_array_equal(found[at].accuracies, outcome.accuracies)
        assert found[at].chosen == outcome.chosen
    records.forget("Iris")
    assert not records.all(["Iris"])


def test_what_is_recorded_is_the_protocols(small, tmp_path):
    _, outcome, _ = _thesis_runs.measure(tmp_path, _thesis_runs.key("Wine", "Euclidean"))
    X, y = toy("Wine")
    direct = double_cross_validation(None, X, y, mode="binary", n_folds=2, random_state=0)
    np.testing.assert_array_equal(outcome.accuracies, direct.accuracies)
    assert outcome.correct.mean() == pytest.approx(direct.correct.mean())
    assert [[1 + 2 * i for i in fold] for fold in outcome.chosen] == [
        [params["n_neighbors"] for params in fold] for fold in direct.params
    ]


def test_every_method_has_a_learner_whose_lists_it_knows():
    methods = (*thesis.MULTICLASS, *thesis.FAMILY, *thesis.VARIANTS, *thesis.ONLY_5_21)
    X = toy("")[0]
    for name in ("Iris", "Yeast", "Letter", "News"):
        for method in (*methods, *thesis.ONLY_5_22):
            model, grid = _thesis_learners.learner(method, name, X)
            for candidate in grid if isinstance(grid, list) else [grid]:
                names = {name for name in candidate if not name.startswith("rule__")}
                if hasattr(model, "get_params"):
                    assert names <= set(model.get_params())


def test_both_rules_share_what_is_learned(small, tmp_path, monkeypatch):
    rules = [_thesis_runs.key("Wine", "RBS", rule) for rule in ("knn", "sknn")]
    Once.learned.clear()
    alone = [_thesis_runs.measure_all(tmp_path, [one])[0][1] for one in rules]
    fits, fit = [], _thesis_learners.RBS.fit
    monkeypatch.setattr(
        _thesis_learners.RBS, "fit", lambda self, X, y: fits.append(1) or fit(self, X, y)
    )
    together = [outcome for _, outcome, _ in _thesis_runs.measure_all(tmp_path, rules)]
    assert len(fits) == 12
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.correct, other.correct)


def test_what_was_learned_is_not_taken_for_other_data_or_parameters():
    X, y = toy("")
    Once.learned.clear()
    first = OnceRBS(1).fit(X, y).metric_.matrix
    np.testing.assert_array_equal(OnceRBS(1).fit(X, y).metric_.matrix, first)
    assert np.any(OnceRBS(3).fit(X, y).metric_.matrix != first)
    assert np.any(OnceRBS(1).fit(X[::-1] ** 2, y).metric_.matrix != first)
    assert len(Once.learned) == 3


def test_few_pairs_are_those_of_all_when_all_are_drawn(monkeypatch):
    X, y = toy("")
    seen = []
    monkeypatch.setattr(
        _thesis_learners.GCosLA, "fit", lambda self, pairs: seen.append(pairs) or self
    )
    FewGCosLA(n_neighbors=5, random_state=0).fit(X, y)
    monkeypatch.setattr(_thesis_learners, "FEW", 4)
    FewGCosLA(n_neighbors=5, random_state=0).fit(X, y)
    every, few = ({(i, j) for i, j in zip(p.left, p.right, strict=True)} for p in seen)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for i in range(len(y)):
        for side in (y == y[i], y != y[i]):
            others = np.flatnonzero(side & (np.arange(len(y)) != i))
            nearest = others[np.argsort(-unit[others] @ unit[i])[:5]]
            assert {(i, j) for j in nearest} <= every
    assert len(every) == 10 * len(y)
    assert len(few) == 40
    assert few < every
    for pairs in seen:
        np.testing.assert_array_equal(pairs.y == 1, y[pairs.left] == y[pairs.right])


def test_regions_answer_by_their_own_matrices():
    X, y = toy("")
    learn, test = np.arange(36) % 4 != 0, np.arange(36) % 4 == 0
    for answers in (_thesis_local.by_cell, _thesis_local.by_class):
        found = answers("gCosLA", X[learn], y[learn], X[test])
        assert np.mean(found == y[test]) > 0.8
    # Cells of one class have the cosine, whatever is learned elsewhere.
    far = np.eye(3)[y] + 0.01 * X
    found = _thesis_local.by_cell("SiLA", far[learn], y[learn], far[test])
    np.testing.assert_array_equal(found, y[test])


def test_paper_numbers_are_those_printed():
    assert ACCURACIES["Wine", "gCosLA", "sknn"] == 0.926
    assert ACCURACIES["Musk-1", "RBS-PSD", "knn"] == 0.851
    assert ACCURACIES["News", "SiLA", "knn"] == 0.947
    assert MARKS["Pima", ("cosine", "knn"), ("Euclidean", "knn")] == "≪"
    assert MARKS["German", ("RBS", "sknn"), ("sRBS", "sknn")] == "≫"
    assert MARKS["Heart", ("RBS", "knn"), ("RELIEF", "knn")] == "≪"
    assert MULTICLASS["Wine"]["LMNN"] == 0.974
    assert MULTICLASS["Balance"]["SNN"] == 0.879
    assert ERRORS["Ionosphere"]["SiLA"] == 8.9
    assert ERRORS["Waveform"]["Mahalanobis"] == 36.1
    assert ERRORS["Soybean"]["KRCA"] == 0.1
    assert {name for name, *_ in ACCURACIES} | set(ERRORS) <= set(SETS)
    better = _thesis_claims.printed_better(("cosine", "sknn"), ("cosine", "knn"))
    assert better == ["Balance", "Pima", "German", "Heart", "Yeast"]


def test_marks_point_to_the_better_one(monkeypatch):
    monkeypatch.setattr(_thesis_runs, "n_classes", lambda name: 3)
    good, bad = np.ones(40, dtype=bool), np.arange(40) % 2 == 0
    outcomes = {
        Key("Balance", method, "knn", "binary"): Outcome(np.array([a, a]), [], correct)
        for method, a, correct in (("cosine", 1.0, good), ("Euclidean", 0.5, bad))
    }
    results = Results(outcomes)
    rows = {row["claim"].split(",")[0]: row for row in _thesis_claims.claims(results, [])}
    row = rows["The cosine is better than the Euclidean distance"]
    assert (row["ours"], row["verdict"]) == (
        "1 of 1: Balance; the other way round: none",
        "confirmed: 1 of 1",
    )
    turned = rows["The Euclidean distance is better than the cosine"]
    assert turned["verdict"] == "not claimed on these sets"


def test_settled_is_where_accuracy_stays():
    values = (0.5, 0.9, 0.7, 0.8, 0.85, 0.8)
    rows = [{"accuracy": a, "one example": 0.05, "shown": i} for i, a in enumerate(values)]
    assert _thesis_looks.settled(rows)["shown"] == 3
    assert _thesis_looks.settled(rows[-1:])["shown"] == 5


def test_runs_do_not_depend_on_the_number_of_threads(tmp_path, monkeypatch):
    seen = []

    def learned(*_, **__):
        seen.append(numba.config.NUMBA_NUM_THREADS)
        raise InterruptedError

    monkeypatch.setattr(_thesis_runs, "double_cross_validation", learned)
    monkeypatch.setattr(_thesis_runs, "examples", lambda name: (np.eye(4), np.arange(4) % 2))
    with threads(2), pytest.raises(InterruptedError):
        _thesis_runs.measure(tmp_path, Key("Iris", "LMNN", "knn", "multiclass"))
    assert seen == [1]


def test_equal_methods_share_a_rank():
    assert _thesis_tables._order({"a": 0.2, "b": 0.1, "c": 0.2}) == "b · a, c"


def test_the_kept_results_are_those_of_the_plan():
    try:
        wanted = {at for name in SETS for at in thesis.runs(name)}
        two = [name for name in SETS if n_classes(name) == 2]
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    found = Records(RESULTS).all(list(SETS))
    assert set(found) == wanted
    assert all(at.mode == "multiclass" for at in found if at.name in two)
    with (RESULTS / "accuracies.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found)
    assert "Not run here" not in (RESULTS / "summary.md").read_text(encoding="utf-8")
