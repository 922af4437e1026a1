"""Whatever is given to the commands: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from typer.testing import CliRunner

from samewise import load
from samewise.cli import console, exports
from samewise.cli.app import app
from samewise.cli.errors import one_sentence
from samewise.exceptions import InvalidInputError
from samewise.forms import Mahalanobis
from samewise.learners import LDA
from samewise.model import Model
from samewise.protocols import learner_comparison
from tests.learning_here import learn_here

Y = np.arange(40) % 2
X = np.random.default_rng(0).normal(size=(40, 2)) + 2 * Y[:, None]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit | None)
    return result


def refused(*arguments):
    result = call(*arguments, code=1)
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert "unexpected" not in result.stderr
    return result.stderr


def table(names=("a", "b"), classes=("0", "1"), ids=None, path="t.csv"):
    frame = pd.DataFrame(X, columns=list(names))
    frame["class"] = [classes[k] for k in Y]
    if ids is not None:
        frame.insert(0, "name", ids)
    frame.to_csv(path, index=False)
    return path


FIT = ("--label", "class", "--learner", "lda", "--out", "m.sw")


# Names that mean something to whoever prints them.

MARKUP = ("[/b]", "[bold]:smile:[/bold]")


def test_names_of_topics_and_documents_are_shown_as_they_are(folder):
    topics = [{"id": "[/b]", "title": "cocoa beans"}]
    (folder / "topics.json").write_text(json.dumps(topics))
    lines = [{"id": "a\x9b", "text": "cocoa beans"}, {"id": "a\x9b", "text": "again"}]
    (folder / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = call("filter", "--topics", "topics.json", "--documents", "d.jsonl", "--mode", "simple")
    assert json.loads(result.stdout)["document"] == "a\x9b"
    assert "[/b]" in result.stderr and "\x9b" not in result.output


def test_markup_is_nothing_but_its_letters():
    call("fit", table(MARKUP, ("[/red]", ":smile:"), ids=["[/x]"] * 40), "--id", "name", *FIT)
    shown = call("inspect", "m.sw").stdout
    assert "│ [/b] " in shown and "│ [bold]:smile:[/bold] " in shown
    shown = call("search", "m.sw", "t.csv", "--row", "0", "--id", "name").stdout
    assert "Nearest to row [/x] (label [/red]):" in shown and "│ [/red] │" in shown
    Model(Mahalanobis.identity(2), MARKUP, "class", learner="[/b]").save("m.sw")
    assert "learned with [/b] from" in call("inspect", "m.sw").stdout
    assert "┃ [/b]: row ┃" in call("search", "m.sw", "t.csv", "--row", "0", "--drop", "name").stdout
    assert "│ [/b] (model) │" in call("evaluate", "m.sw", "t.csv", "--drop", "name").stdout
    text = refused("search", "m.sw", table(["[/b", "x"]), "--row", "0")
    assert "missing here: '[/b]'" in text


def test_working_shows_markup_and_control_characters_as_they_are(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    terminal = {"force_terminal": True, "width": 100, "file": sys.stderr}
    monkeypatch.setattr(console, "Console", lambda **_: Console(**terminal))
    with console.working("[/a]") as show:
        show("[/b]\x07")
    shown = capsys.readouterr().err
    assert "[/b]\\x07" in shown and "\x07" not in shown


CONTROL = "\x1b[2J\x07\x9b31m\u202e"
ESCAPED = r"\x1b[2J\x07\x9b31m\u202e"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


def safe(result):
    # Typer removes escape sequences where there is no terminal, but no other control characters.
    assert not DANGEROUS.search(result.output), ascii(result.output)
    return result


def test_control_characters_do_not_reach_the_terminal(monkeypatch):
    names, classes = (CONTROL, "b"), (f"x{CONTROL}", "y")
    path = table(names, classes, ids=[CONTROL] * 40)
    safe(call("fit", path, "--id", "name", *FIT))
    options = ("--id", "name")
    assert ESCAPED in safe(call("inspect", "m.sw")).stdout
    shown = safe(call("search", "m.sw", path, "--row", "0", *options)).stdout
    assert f"row {ESCAPED} (label x{ESCAPED})" in shown and f" x{ESCAPED} " in shown
    assert ESCAPED in safe(call("fit", path, "--label", CONTROL, code=1)).stderr
    assert ESCAPED in safe(call("fit", f"{CONTROL}.csv", code=1)).stderr
    found = safe(call("search", "m.sw", path, "--row", "0", *options, "--json")).stdout
    assert json.loads(found)["row"] == CONTROL and json.loads(found)["label"] == f"x{CONTROL}"
    text = safe(call("fit", f"{CONTROL}.csv", "--json", code=1)).stderr
    assert CONTROL in json.loads(text)["error"]

    def warn(self, X, y):
        warnings.warn(f"about {CONTROL}", stacklevel=1)
        raise InvalidInputError(f"Stopped {CONTROL}.")

    monkeypatch.setattr(LDA, "fit", warn)
    assert f"warning: about {ESCAPED}" in safe(call("fit", path, *options, *FIT, code=1)).stderr
    monkeypatch.setattr(learner_comparison, "learn_alone", learn_here)
    compared = safe(call("compare", path, *options, "--label", "class", "--learners", "lda"))
    assert f"lda refused: Stopped {ESCAPED}." in compared.stdout


def test_half_a_character_is_shown_as_an_escape(folder):
    rows = [{"id": f"\ud800{i}", "vector": list(x), "class": str(Y[i])} for i, x in enumerate(X)]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    call("fit", "t.jsonl", *FIT)
    found = call("search", "m.sw", "t.jsonl", "--row", "0")
    assert r"Nearest to row \ud8000 (label 0)" in found.stdout
    found = call("search", "m.sw", "t.jsonl", "--row", "0", "--json")
    assert json.loads(found.stdout)["row"] == "\ud8000"
    for label in ("\ud800", "a\0"):
        rows[3]["class"] = label
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
        assert "holds text that is no valid Unicode, or has NUL in it" in (
            refused("fit", "t.jsonl", *FIT)
        )


def test_csv_on_a_terminal_has_no_control_characters(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    exports.write_table("-", X[:1], y=np.array(["x\x1b[2J"]))
    assert "x\\x1b[2J" in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    exports.write_table("-", X[:1], y=np.array(["x\x1b[2J"]))
    assert "x\x1b[2J" in capsys.readouterr().out


def test_dollars_in_names_are_no_formulas():
    pytest.importorskip("matplotlib")
    names, classes = ("$\\foo$", "a$_b$"), ("$\\x$", "\\$$")
    call("fit", table(names, classes), *FIT)
    Model(load("m.sw").form, names, "class", learner="$\\bar$").save("m.sw")
    call("report", "m.sw", "t.csv", "--out", "r.html")
    with open("r.html", encoding="utf-8") as file:
        text = file.read()
    assert all(name in text for name in (*names, *classes, "$\\bar$ (model)"))


# Files.


@pytest.mark.parametrize(
    "metadata",
    [
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"index_columns": 5}',
        b'{"index_columns": [{"kind": "range"}], "columns": []}',
        b'{"index_columns": ["z"], "columns": [{}], "column_indexes": []}',
        b"[" * 100_000,
    ],
    ids=range(8),
)
def test_damaged_metadata_of_parquet(metadata):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(**{"class": Y})
    rows = pa.Table.from_pandas(frame).replace_schema_metadata({b"pandas": metadata})
    pq.write_table(rows, "t.parquet")
    text = refused("fit", "t.parquet", *FIT)
    assert "t.parquet cannot be read as Parquet (" in text and "Write the file again." in text


def test_archives_and_lines_of_other_kinds(folder):
    np.savez("t.npz", X=X, y=np.zeros(40, dtype=[("a", int)]))
    assert "which cannot be classes" in refused("fit", "t.npz", "--learner", "lda")
    np.savez("t.npz", X=X, y=np.array(Y, dtype=object))
    assert "y.npy holds pickled objects" in refused("fit", "t.npz", "--learner", "lda")
    (folder / "t.jsonl").write_text('{"vector": [' + "1" * 400 + '], "class": 0}')
    assert "no finite number" in refused("fit", "t.jsonl", *FIT)
    (folder / "t.jsonl").write_text("[" * 100_000)
    assert "line 1: no JSON (maximum recursion" in refused("fit", "t.jsonl", *FIT)
    deep = '{"a": ' * 100_000
    assert "--params is no JSON object: maximum" in refused("fit", "t.csv", "--params", deep)
    Mahalanobis.identity(2).save("m.sw")
    search = ("search", "m.sw", table(), "--label", "class", "--vector")
    for vector in ("[" * 100_000, "[" + "1" * 400 + "]"):
        assert "--vector must be numbers" in refused(*search, vector)


@pytest.mark.parametrize(
    "measured",
    [
        {"rows": 5},
        {"rows": "[/b]", "errors": {}},
        {"rows": 5, "errors": [1]},
        {"rows": 5, "errors": {"lda": "x"}},
        {"rows": 5, "errors": {"lda": None}},
        {"rows": 5, "errors": {"lda": 10**400}},
        {"errors": {"lda": 0.5}},
    ],
)
def test_a_model_with_odd_measurements(measured, monkeypatch):
    form = Mahalanobis.identity(2)
    with pytest.raises(InvalidInputError, match="measured must be empty, or have the number of"):
        Model(form, measured=measured)
    with monkeypatch.context() as patched:
        patched.setattr("samewise.model._is_measured", lambda found: True)
        Model(form, measured=measured).save("m.sw")
    text = refused("inspect", "m.sw")
    assert "m.sw" in text and "measured must be empty" in text


def test_a_model_with_an_odd_threshold():
    Model(Mahalanobis.identity(2), threshold=10**400).save("m.sw")
    assert "not make a Model: it has a wrong threshold" in refused("inspect", "m.sw")


class OddError(Exception):
    """Not one that anybody thought of."""


def test_what_nobody_thought_of_is_one_sentence_too(monkeypatch):
    def fail(self, X, y):
        raise OddError("some\n\x07detail")

    monkeypatch.setattr(LDA, "fit", fail)
    text = call("fit", table(), *FIT, code=1).stderr
    expected = "an unexpected OddError (some \\x07detail); run again with --debug for the traceback"
    assert text == f"error: {expected}\n"
    text = call("fit", "t.csv", *FIT, "--json", code=1).stderr
    assert json.loads(text)["error"] == expected.replace("\\x07", "\x07")
    result = CliRunner().invoke(app, ["fit", "t.csv", *FIT, "--debug"])
    assert isinstance(result.exception, OddError)


def test_a_sentence_has_an_end(capsys):
    with pytest.raises(BaseException), one_sentence(debug=False):  # noqa: B017
        raise InvalidInputError("a" * 5_000_000 + " the end.")
    text = capsys.readouterr().err
    assert len(text) < 2100 and text.endswith(" the end.\n")


# What is written.


@pytest.mark.parametrize("ending", ["csv", "jsonl", "npz", "parquet"])
def test_what_is_written_is_whole_or_not_there(ending, folder, monkeypatch):
    call("fit", table(), *FIT)
    out = folder / f"z.{ending}"
    out.write_text("old")
    before = sorted(os.listdir())
    whole = os.replace

    def killed(source, target):
        # All of it stands beside the file already.
        assert os.path.getsize(source) > 100 and out.read_text() == "old"
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("os.replace", killed)
    assert "No space left on device" in refused("transform", "m.sw", "t.csv", "--out", out)
    assert out.read_text() == "old" and sorted(os.listdir()) == before
    monkeypatch.setattr("os.replace", whole)
    call("transform", "m.sw", "t.csv", "--out", out)
    assert sorted(os.listdir()) == before and out.stat().st_size > 100


def test_long_tables_are_written_in_parts_with_one_line_of_names(monkeypatch):
    Z = np.arange(6.0).reshape(3, 2)
    monkeypatch.setattr(exports, "row_slices", lambda *_: [slice(0, 2), slice(2, 3)])
    exports.write_table("z.csv", Z, ["a", "b"])
    with open("z.csv") as file:
        assert file.read() == "a,b\n0.0,1.0\n2.0,3.0\n4.0,5.0\n"


def test_a_device_or_pipe_is_not_replaced(folder):
    os.mkfifo("pipe.csv")
    call("fit", table(), *FIT)
    text = refused("transform", "m.sw", "t.csv", "--out", "pipe.csv")
    assert "pipe.csv is a device or a pipe, which a file would replace" in text
    assert (folder / "pipe.csv").is_fifo()


FORMULAS = ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "x=1", "-5", "+2.5", "'"]
NEUTRAL = ["'=1+1", "'+x", "'-x", "'@x", "'\tx", "'\rx", "x=1", "-5", "+2.5", "'"]


def test_text_that_a_spreadsheet_would_take_for_a_formula():
    Z = np.array([[-1.5]] * len(FORMULAS))
    labels = np.array(FORMULAS)
    given = {"y": labels, "label": "=y", "ids": labels.astype(object)}

    def written(path="z.csv", **options):
        exports.write_table(path, Z, ["@z"], **given, **options)
        if path.endswith("parquet"):
            return pd.read_parquet(path)
        return pd.read_csv(path, dtype=str, keep_default_na=False, lineterminator="\n")

    found = written()
    assert list(found.columns) == ["id", "'@z", "'=y"]
    assert found["id"].tolist() == found["'=y"].tolist() == NEUTRAL
    assert found["'@z"].tolist() == ["-1.5"] * len(FORMULAS)
    for found in (written(safe=False), written("z.parquet")):
        assert list(found.columns) == ["id", "@z", "=y"]
        assert found["id"].tolist() == found["=y"].tolist() == FORMULAS


def test_commands_that_write_text_are_safe_unless_told_otherwise(folder, monkeypatch):
    call("fit", table(classes=("=cmd()", "b")), *FIT)
    for options, cell in (((), "'=cmd()"), (("--no-safe",), "=cmd()")):
        shown = call("transform", "m.sw", "t.csv", *options).stdout
        assert shown.splitlines()[1].split(",")[-1] == cell
        monkeypatch.setenv("SAMEWISE_DATA", str(folder))
        np.savez("set.npz", X=X, y=Y, classes=["=cmd()", "b"])
        call("datasets", "export", "set", "z.csv", *options)
        assert pd.read_csv("z.csv")["class"][0] == cell


def test_a_label_named_as_another_column_keeps_its_own():
    ids, labels = np.array(["a", "b"], dtype=object), np.array(["x", "y"])
    exports.write_table("z.csv", X[:2], ["id_", "v"], y=labels, label="id", ids=ids)
    found = pd.read_csv("z.csv")
    assert list(found.columns) == ["id", "id_", "v", "id__"]
    assert found["id"].tolist() == ["a", "b"] and found["id__"].tolist() == ["x", "y"]
