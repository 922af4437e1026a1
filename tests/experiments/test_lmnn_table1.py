import csv
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from experiments import (
    __main__,
    _lmnn_data,
    _lmnn_figures,
    _lmnn_paper,
    _lmnn_report,
    _lmnn_summary,
    _lmnn_svm,
    lmnn_table1,
)
from experiments._lmnn_data import SETS, Set, Split
from experiments._lmnn_records import Records, Result
from samewise.exceptions import DatasetNotFoundError
from samewise.learners import LMNN

RESULTS = Path(lmnn_table1.__file__).parent / "results" / "lmnn_table1"


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def toy(i=0, n=90, d=4):
    """Three classes that differ in the first column, drowned by the last."""
    random = np.random.RandomState(i)
    y = np.arange(n) % 3
    X = random.normal(size=(n, d)) * np.array([0.4] + [1] * (d - 2) + [10.0])
    X[:, 0] += y
    inputs = X[: n // 2], X[n // 2 :]
    return Split(inputs, inputs, (y[: n // 2], y[n // 2 :]))


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setitem(SETS, "wine", Set(toy, 3))
    monkeypatch.setitem(SETS, "iris", Set(toy, 2, 0.3))
    monkeypatch.setattr(lmnn_table1, "_last", {})


def test_paper_numbers_are_those_of_table_1():
    assert set(_lmnn_paper.NAMES) | {"mnist_sheared"} == set(SETS)
    assert _lmnn_paper.TABLE["metrics"]["mnist"] == 1.18
    assert _lmnn_paper.TABLE["LMNN after LDA"]["oFaces"] == 40.72
    assert "mnist" not in _lmnn_paper.TABLE["NCA"]
    assert _lmnn_paper.TABLE["SVM"]["iris"] == 3.45
    assert all(len(seconds) == 9 for seconds in _lmnn_paper.SECONDS.values())


def test_principal_components_are_ordered_and_of_the_training_part():
    random = np.random.RandomState(0)
    A, B = random.normal(size=(60, 5)) * [1, 5, 3, 0.1, 2], random.normal(size=(7, 5))
    Z, W = _lmnn_data.principal(A, B, 4, n_dropped=1)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    C = np.cov(Z.T)
    np.testing.assert_allclose(C, np.diag(np.diag(C)), atol=1e-9)
    assert np.diag(C).tolist() == sorted(np.diag(C), reverse=True)
    assert (Z.shape, W.shape) == ((60, 3), (7, 3))
    wide = _lmnn_data.principal(A.T, A.T[:1], 3)[0]
    assert wide.shape == (5, 3)
    assert np.cov(wide.T)[0, 0] >= np.cov(wide.T)[1, 1]


def test_classes_are_split_alike():
    y = np.repeat([0, 1, 2], [10, 20, 30])
    first, second = _lmnn_data.within_classes(y, 0.7, 3)
    assert np.bincount(y[first]).tolist() == [7, 14, 21]
    assert sorted([*first, *second]) == list(range(60))


def test_shearing_makes_a_slanted_stroke_upright_and_centers_it():
    image = np.zeros((28, 28), dtype=np.float32)
    for i in range(6, 18):
        image[i, 4 + i // 2] = 1
    straight = _lmnn_data.sheared(image.reshape(1, -1)).reshape(28, 28)
    assert straight.sum() == pytest.approx(image.sum(), rel=0.02)
    at = np.arange(28)
    assert straight.sum(axis=1) @ at / straight.sum() == pytest.approx(13.5, abs=0.1)
    columns = straight.sum(axis=0)
    assert columns @ at / straight.sum() == pytest.approx(13.5, abs=0.1)
    assert columns[12:16].sum() > 0.99 * columns.sum()
    # What is upright already, and in the middle of pixels, stays.
    bar = np.zeros((28, 28), dtype=np.float32)
    bar[8:20, 13:15] = 1
    np.testing.assert_allclose(_lmnn_data.sheared(bar.reshape(1, -1))[0], bar.ravel(), atol=1e-5)


def test_records_go_on_where_they_stopped(tmp_path):
    records = Records(tmp_path)
    result = Result({"PCA": 12.5, "SVM chosen": "rbf C=1"}, {"SVM": (1.0, 2.0)})
    records.keep("wine", 1, "plain", result)
    records.keep("wine", 0, "plain", result._replace(values={"PCA": 10.0, "SVM chosen": "rbf"}))
    assert records.done("wine") == {(0, "plain"), (1, "plain")}
    assert records.values("wine") == {"PCA": [10.0, 12.5], "SVM chosen": ["rbf", "rbf C=1"]}
    records.sort("wine")
    assert [row["split"] for row in read(tmp_path / "records" / "wine.csv")] == ["0", "0", "1", "1"]
    assert records.seconds("wine")["SVM"].tolist() == [1.0, 2.0]
    records.forget("wine")
    assert records.done("wine") == set()


def test_an_interrupted_run_ends_like_an_uninterrupted_one(tmp_path, toys):
    whole, parts = Records(tmp_path / "whole"), Records(tmp_path / "parts")
    lmnn_table1.fill(whole, "wine", 2, 1)
    lmnn_table1.fill(parts, "wine", 1, 1, ("single", "metrics"))
    lmnn_table1.fill(parts, "wine", 2, 1)
    files = [out / "records" / "wine.csv" for out in (whole.out, parts.out)]
    assert files[0].read_bytes() == files[1].read_bytes()
    lmnn_table1.fill(parts, "wine", 2, 1)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole.done("wine") == {(i, part) for i in range(2) for part in lmnn_table1.PARTS}


def test_learning_finds_the_column_that_matters(toys):
    split = toy()
    values = lmnn_table1.without_learning("wine", 0, split).values
    learned = lmnn_table1.single_metric("wine", 0, split).values
    assert values["Euclidean"] == values["PCA"] > 40
    assert learned["LMNN"] < values["PCA"] - 10
    assert learned["active"] > 0
    several = lmnn_table1.several_passes("wine", 0, split).values
    assert several["passes 1"] == learned["LMNN"]
    assert len(several) == lmnn_table1.N_PASSES


def test_methods_to_compare_with_are_parts_of_their_own(toys):
    split = toy()
    euclidean = lmnn_table1.without_learning("wine", 0, split).values["PCA"]
    for row in ("RCA", "MCC", "NCA"):
        result = lmnn_table1.PARTS[row]("wine", 0, split)
        assert list(result.values) == list(result.seconds) == [row]
        assert result.values[row] < euclidean - 10


def test_methods_are_run_where_the_paper_has_them():
    assert set(lmnn_table1.PARTS) - set(lmnn_table1.parts_of("mnist")) == {"MCC", "NCA"}
    for name in ("bal", "oFaces", "wine", "iris"):
        assert lmnn_table1.parts_of(name) == list(lmnn_table1.PARTS)
    assert all("RCA" in lmnn_table1.parts_of(name) for name in SETS)


def test_a_new_row_leaves_the_others_as_they_are(tmp_path, toys):
    records = Records(tmp_path)
    lmnn_table1.fill(records, "wine", 2, 1, ("plain", "svm"))
    path = tmp_path / "records" / "wine.csv"
    before = path.read_text(encoding="utf-8").splitlines()
    lmnn_table1.fill(records, "wine", 2, 1, ("plain", "svm", "RCA"))
    after = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in after if ",RCA," not in line] == before
    assert len(after) == len(before) + 2


def test_a_pass_over_mapped_inputs_is_a_further_pass():
    A, a = toy(1).train
    first = LMNN(tol=1e-6).fit(A, a)
    second = LMNN(init="identity", tol=1e-6).fit(first.transform(A), a)
    both = LMNN(n_target_searches=2, tol=1e-6).fit(A, a)
    assert second.loss_ < 0.9 * first.loss_
    assert second.loss_ == pytest.approx(both.loss_, rel=1e-3)


def test_svm_is_chosen_on_training_examples():
    random = np.random.RandomState(0)
    A, a = random.normal(size=(120, 2)), np.arange(120) % 2
    A[:, 0] += 4 * a
    svm, chosen = _lmnn_svm.best(1e4 * A, a)
    assert svm.score(1e4 * A, a) > 0.95
    assert chosen.split()[0] in ("linear", "poly", "rbf")


def test_tables_have_the_papers_numbers_beside_ours(tmp_path):
    records = Records(tmp_path)
    for i, (pca, lmnn) in enumerate([(20.0, 9.0), (22.0, 9.5)]):
        values = {"PCA": pca, "LMNN": lmnn, "passes 1": lmnn, "passes 3": lmnn - 1}
        about = dict.fromkeys(("inputs", "dimensions", "training", "testing", "classes"), 7)
        records.keep("wine", i, "plain", Result(about | values, {"LMNN": (0.5, 1.0)}))
    _lmnn_report.write(tmp_path, records)
    table = {row["row"]: row for row in read(tmp_path / "table1.csv")}
    assert (table["PCA"]["paper"], table["PCA"]["ours"]) == ("25.000000", "21.000000")
    assert float(table["LMNN"]["sd"]) == pytest.approx(0.5 / np.sqrt(2), abs=1e-6)
    assert (table["RCA"]["ours"], table["passes"]["ours"]) == ("", "8.250000")
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "21.00 (25.00)" in text
    assert "Not run, or not on all splits: mnist; " in text
    assert "LMNN (2 of 100 splits)" in text
    assert _lmnn_report.missing({"letters": {"LMNN": [1.0] * 10}})[2].startswith(
        "letters: Euclidean, PCA, LDA, RCA, LMNN after LDA"
    )
    assert "`LMNN` against `PCA`: better on 1 (wine)" in text
    # 9.25 is more than two standard errors (0.25) above 8.72.
    assert "not on 1 (wine 9.25 for 8.72)" in text
    assert read(tmp_path / "times.csv")[0]["paper_cpu"] == "14"


def test_reached_allows_for_chance():
    cell = {"set": "mnist", "paper": 1.72, "ours": 1.9, "sd": None, "splits": 1}
    cells = {("mnist", "LMNN"): cell}
    assert _lmnn_summary._reached(cells, ["mnist"], "LMNN")["ours"] == (
        "nearly on 1 (mnist 1.90 for 1.72)"
    )
    cell["ours"] = 2.0
    found = _lmnn_summary._reached(cells, ["mnist"], "LMNN")["ours"]
    assert found == "not on 1 (mnist 2.00 for 1.72)"
    cell["ours"] = 1.72
    found = _lmnn_summary._reached(cells, ["mnist"], "LMNN")["ours"]
    assert found == "reached on 1 (mnist)"


def test_figures_of_toys(tmp_path):
    pytest.importorskip("matplotlib")
    assert not _lmnn_figures.present(tmp_path)
    _lmnn_figures.compute(tmp_path, quick=True)
    assert _lmnn_figures.present(tmp_path)
    circles = {row["metrics"]: float(row["error"]) for row in read(tmp_path / "fig7_circles.csv")}
    assert circles["1"] == 100
    assert circles["4"] < circles["2"]
    rows = read(tmp_path / "fig13_dimensions.csv")
    found = {(row["method"], int(row["dimensions"])): float(row["error"]) for row in rows}
    assert found["LMNN-R", 2] < found["PCA", 2]
    for row in read(tmp_path / "fig12_impostors.csv"):
        assert row["found_products"] == row["found_trees"]


def test_quick_form_prints_a_summary(capsys, monkeypatch):
    monkeypatch.setattr(_lmnn_figures, "compute", lambda out, quick: None)
    try:
        __main__.main(["lmnn_table1", "--quick"])
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    text = capsys.readouterr().out
    assert "| LMNN |" in text
    assert "| iris | 4 | 4 | 90 | 38 | 3 | 2 |" in text


def test_only_what_is_known(tmp_path):
    with pytest.raises(SystemExit, match="--only knows mnist"):
        lmnn_table1.run(tmp_path, quick=True, jobs=1, only=("nothing",))
    with pytest.raises(SystemExit):
        __main__.main(["pa_study", "--only", "wine"])


def committed(name):
    path = RESULTS / name
    if not path.exists():
        pytest.skip(f"no results of the whole experiment: {name}")
    return read(path)


def test_committed_table_is_that_of_the_records():
    found = {(row["set"], row["row"]): row for row in committed("table1.csv")}
    records = Records(RESULTS)
    for (name, row), cell in found.items():
        if key := _lmnn_report.ROWS[row]:
            values = records.values(name).get(key, [])
            assert int(cell["splits"]) == len(values) <= SETS[name].n_splits
            assert not values or float(cell["ours"]) == pytest.approx(np.mean(values), abs=1e-5)
    assert all(0 <= float(r["ours"]) < 100 for (_, row), r in found.items() if row == "LMNN")


def test_committed_pictures_are_small():
    assert all(path.stat().st_size < 200_000 for path in RESULTS.glob("*.png"))
