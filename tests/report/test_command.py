"""The command `samewise report`."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
from typer.testing import CliRunner

from samewise import LMNN, PassiveAggressive
from samewise.cli.app import app
from samewise.model import Model, row_marks
from samewise.protocols import mean_and_scale


@pytest.fixture
def files(tmp_path, monkeypatch):
    """rows.csv with a name column and a label column, and a model of its first half."""
    monkeypatch.chdir(tmp_path)
    # Drawing takes most of the time, and has its own tests.
    monkeypatch.setattr("samewise.report.html_report.drawings", lambda subject, measured: [])
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 4)) * [1.0, 10.0, 1.0, 1.0]
    X[:, 0] += 2 * y
    header = "name,a,b,c,d,kind\n"
    lines = [
        f"item {i}," + ",".join(f"{v:.6f}" for v in row) + f",{'xy'[c]}\n"
        for i, (row, c) in enumerate(zip(X, y, strict=True))
    ]
    (tmp_path / "rows.csv").write_text(header + "".join(lines))
    X = np.round(X, 6)
    mean, scale = mean_and_scale(X[:40])
    form = LMNN(2).fit((X[:40] - mean) / scale, y[:40]).metric_
    Model(
        form,
        ("a", "b", "c", "d"),
        "kind",
        mean=mean,
        scale=scale,
        learner="lmnn",
        params={"n_neighbors": 2},
        seen=np.unique(row_marks(X[:40])),
    ).save(tmp_path / "model.sw")
    PassiveAggressive(random_state=0).fit(X[:40], y[:40]).save(tmp_path / "learner.sw")
    return tmp_path


def call(*arguments, code=0):
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_model_and_its_data_make_a_report(files):
    result = call("model.sw", "rows.csv", "--id", "name", "--out", "out.html")
    assert result.output.rstrip().endswith("Written to out.html.")
    html = (files / "out.html").read_text(encoding="utf-8")
    assert "<h1>lmnn on rows.csv</h1>" in html
    assert "the rows that the model was not trained on" in html
    assert "samewise report model.sw rows.csv --out out.html" in html and "--id name" in html
    assert "<h4>item " in html, "rows have their names"
    assert "n_neighbors" in html


def test_json_has_the_numbers(files):
    found = json.loads(call("model.sw", "rows.csv", "--id", "name", "--json").stdout)
    assert found["report"] == "report.html" and (files / "report.html").exists()
    assert (found["items"], found["queries"]) == (40, 40)
    assert [m["name"] for m in found["measured"]] == ["Euclidean", "cosine", "lmnn (model)"]
    assert {g["mark"] for g in found["gains"]} <= set("≫>=<≪")


def test_a_saved_learner_shows_its_learning_curve(files, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "samewise.report.html_report.drawings",
        lambda subject, measured: shown.append(subject) or [],
    )
    call("learner.sw", "rows.csv", "--label", "kind", "--drop", "name")
    assert shown[0].learners["PassiveAggressive (model)"].n_seen_ > 0
    html = (files / "report.html").read_text(encoding="utf-8")
    assert "Parameters of PassiveAggressive (model)" in html


def test_rows_to_judge_by_may_be_another_file(files):
    (files / "test.csv").write_text("".join((files / "rows.csv").read_text().splitlines(True)[:21]))
    result = call("model.sw", "rows.csv", "--id", "name", "--test", "test.csv", "--json")
    found = json.loads(result.stdout)
    assert (found["items"], found["queries"]) == (80, 20)
    assert "learned from 20 of them" in found["judged_by"]


def test_rows_can_be_images(files):
    call("model.sw", "rows.csv", "--id", "name", "--image-shape", "2x2")
    assert 'alt="Test image of class' in (files / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.sw", "rows.csv"], "there is no file nothing.sw"),
        (["model.sw", "rows.csv", "--label", "kinds"], "did you mean 'kind'?"),
        (["model.sw", "rows.csv", "--image-shape", "2"], "--image-shape must be HEIGHTxWIDTH"),
        (["model.sw", "rows.csv", "--id", "name", "--image-shape", "3x3"], "with 4 values in all"),
        (["model.sw", "rows.csv", "--out", "no/where.html"], "There is no folder"),
        (["rows.csv", "rows.csv"], "rows.csv"),
    ],
)
def test_errors_are_one_sentence(files, arguments, message):
    result = call(*arguments, code=1)
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert not (files / "report.html").exists()


def test_help_has_an_example():
    assert "Example: samewise report" in CliRunner().invoke(app, ["report", "--help"]).output
