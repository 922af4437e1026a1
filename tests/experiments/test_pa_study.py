import csv
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from experiments import _pa_paper, _pa_report, pa_study
from experiments._pa_data import PA_STUDY
from samewise import ITML, Pairs
from samewise.exceptions import DatasetNotFoundError
from samewise.protocols import neighbor_accuracies

RESULTS = Path(pa_study.__file__).parent / "results" / "pa_study"
METHODS = list(_pa_paper.METHODS)
WITH_ITML = list(_pa_paper.WITH_ITML)


def read(name):
    with (RESULTS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_paper_numbers_cover_every_set():
    assert set(_pa_paper.ERRORS) == set(_pa_paper.SECONDS) == set(PA_STUDY)
    assert _pa_paper.ERRORS["balance"]["PALS-"] == (0.258, 6)
    assert _pa_paper.SECONDS["nist16"]["PALS+"] == 2007.20


def test_committed_table_2_has_every_set_and_method():
    rows = read("table2.csv")
    assert list(rows[0]) == ["set", "method", "paper_error", "paper_k", "error", "k", "sd"]
    assert {(r["set"], r["method"]) for r in rows} == {
        (name, method) for name in PA_STUDY for method in ("Euclidean", *WITH_ITML)
    }
    assert all(0 <= float(r["error"]) < 1 and 1 <= int(r["k"]) <= 25 for r in rows)


@pytest.mark.parametrize(
    ("name", "columns", "length"),
    [
        ("scaling.csv", ["set", "paper", "raw", "standardized", "chosen"], 12),
        ("table3.csv", ["set", "method", "paper_seconds", "seconds", "sd", "tuning"], 84),
        ("table4.csv", None, 7),
        ("table5.csv", ["first", "second", "paper", "ours", "ours_7_methods"], 12),
        ("friedman_errors.csv", ["method", "paper_mean_rank", "our_mean_rank"], 10),
        ("itml.csv", ["set", "run", "gamma", "cycles", "gap", "active", "rank"], 120),
        ("predictive.csv", ["set", *METHODS], 12),
        ("runs.csv", ["set", "run", "method", "C", "updates", "rank", "predictive_error"], 720),
        ("fig5_leading.csv", ["data", "eigenvectors", *METHODS], 68),
    ],
)
def test_committed_tables(name, columns, length):
    rows = read(name)
    assert len(rows) == length
    assert columns is None or list(rows[0]) == columns


def test_committed_curves_and_figures():
    curves = read("fig3_predictive_error.csv")
    assert {r["set"] for r in curves} == set(PA_STUDY)
    assert all(0 <= float(r[m]) <= 1 for r in curves for m in METHODS)
    ranks = read("fig4_rank.csv")
    assert list(ranks[0]) == ["step", *METHODS]
    assert all(path.stat().st_size < 200_000 for path in RESULTS.glob("*.png"))
    assert len(list(RESULTS.glob("*.png"))) == 2


def test_supervision_follows_the_protocol():
    random = np.random.RandomState(0)
    try:
        (X, y), _ = pa_study.split("iono", 0, "standardized")
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    pairs, stream = pa_study.supervision("iono", (X, y), 0)
    assert len(pairs) == 80
    # t = min(351·349 // 40, 50·80) = 3062 steps, in whole passes.
    assert len(stream) == 39 * 80
    start = 80 * random.randint(39)
    once = stream[start : start + 80]
    assert sorted(zip(once.left, once.right, strict=True)) == sorted(
        zip(pairs.left, pairs.right, strict=True)
    )
    assert np.array_equal(pairs.y == 1, y[pairs.left] == y[pairs.right])


def test_split_halves_and_standardizes_by_the_training_half():
    try:
        (A, a), (B, b) = pa_study.split("wine", 3, "standardized")
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    assert len(a) == len(b) == 89
    np.testing.assert_allclose(A.mean(axis=0), 0, atol=1e-12)
    assert np.abs(B.mean(axis=0)).max() > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_learn_on_a_toy(method):
    random = np.random.RandomState(0)
    X = random.standard_normal((60, 4))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 4 * y
    train, test = (X[:30], y[:30]), (X[30:], y[30:])
    pairs = Pairs.from_labels(*train, 80, strategy="random", random_state=0)
    result = pa_study.learn(method, pairs, pairs[np.r_[0:80, 0:80]], train, test)
    assert result["errors"].min() == 0
    assert result["C"] in pa_study.CS
    assert result["rounds"][-1] == 160
    assert result["predictive"][-1] == pytest.approx(result["predictive_end"])
    assert (result["seconds"] >= 0) and (1 <= result["rank"] <= 4)


@pytest.mark.filterwarnings("ignore:ITML has not converged")
def test_itml_takes_the_gamma_that_is_best_for_neighbors_of_the_training_half():
    random = np.random.RandomState(0)
    X = 5 * random.standard_normal((80, 4))
    y = np.arange(80) % 2
    X[:, 0] = y + 0.1 * random.standard_normal(80)
    train, test = (X[:40], y[:40]), (X[40:], y[40:])
    pairs = Pairs.from_labels(*train, 80, strategy="random", random_state=0)
    result = pa_study.learn_itml(pairs, train, test)
    accuracies = []
    for gamma in pa_study.GAMMAS:
        model = ITML(gamma, max_iter=pa_study.MAX_STEPS // 80).fit(pairs)
        accuracies.append(neighbor_accuracies(model.metric_, *train, pa_study.MAX_NEIGHBORS).max())
    assert result["gamma"] == pa_study.GAMMAS[np.argmax(accuracies)]
    assert max(accuracies) > min(accuracies)
    assert result["errors"].min() < 0.1
    assert result["cycles"] <= pa_study.MAX_STEPS / 80
    assert 0 < result["active"] <= 1
    assert 0 <= result["seconds"] <= result["tuning"]


def test_table_2_takes_the_best_k_of_the_mean():
    errors = [np.array([0.1, 0.3]), np.array([0.4, 0.1])]
    runs = [{key: {"errors": e} for key in ("Euclidean", *WITH_ITML)} for e in errors]
    row = _pa_report.table_2({"wine": runs})[0]
    assert (row["method"], row["k"], row["paper_error"]) == ("Euclidean", 2, 0.027)
    assert row["error"] == pytest.approx(0.2)


def test_committed_table_1_has_all_sets_with_the_papers_sizes():
    rows = read("table1.csv")
    assert [row["set"] for row in rows] == list(PA_STUDY)
    same = [row["set"] for row in rows if row["paper_d"] == row["ours_d"]]
    assert same == [name for name in PA_STUDY if name != "nist16"]
    assert all(row["note"] for row in rows)
