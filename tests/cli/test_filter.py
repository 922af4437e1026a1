"""The command `samewise filter`, in process and in its own."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from samewise.cli import main
from samewise.cli.app import app
from samewise.filtering import TextVectors, TopicFilter
from samewise.forms import GeneralizedCosine, Mahalanobis
from samewise.model import Model

TOPICS = """<top><num>1</num><title>Cocoa beans</title></top>
<top><num>2</num><title>Gold mines</title></top>"""
DOCUMENTS = [
    {"id": "a", "text": "cocoa beans cocoa"},
    {"id": "b", "text": "rain"},
    {"id": "c", "text": "gold mines"},
    {"id": "d", "text": ""},
    {"id": "e", "text": "cocoa beans"},
]
JUDGED = [{"id": "a", "topics": ["1"]}, {"id": "b", "topics": []}, {"id": "c", "topics": ["1"]}]


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.xml").write_text(TOPICS)
    (tmp_path / "docs.jsonl").write_text(lines(DOCUMENTS))
    (tmp_path / "judged.jsonl").write_text(lines(JUDGED))
    return tmp_path


def call(*arguments, code=0, **more):
    result = CliRunner().invoke(app, ["filter", *arguments], **more)
    assert result.exit_code == code, result.output
    return result


def entries(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


BASIC = ("--topics", "topics.xml", "--documents", "docs.jsonl")
PAPER = ("--thresholds", "0.42,0.7")


def test_one_line_for_each_decision(files):
    result = call(*BASIC, "--mode", "simple")
    found = entries(result)
    assert [(e["document"], e["topic"], e["action"]) for e in found] == [
        ("a", "1", "assign"),
        ("c", "2", "assign"),
        ("e", "1", "assign"),
    ]
    assert "5 documents, 0 skipped, 0 questions" in result.stderr


def test_judged_streams_are_answered_and_scored(files):
    result = call(*BASIC, *PAPER, "--feedback", "judged.jsonl", "--json")
    *found, last = entries(result)
    assert [(e["document"], e["action"], e.get("answer")) for e in found] == [
        ("a", "ask", True),
        ("c", "ask", False),
        ("e", "ask", None),
    ]
    summary = last["summary"]
    assert summary["assigned"] == {"1": 1, "2": 0}
    assert summary["asked"] == 3 and summary["judged"] == 3
    assert summary["macro"]["precision"] == 1.0 and summary["macro"]["recall"] == 0.5
    assert result.stderr == ""
    assert "anticipation" in call(*BASIC, *PAPER, "--feedback", "judged.jsonl").stderr


def test_standard_input_and_batch(files):
    found = entries(call("--topics", "topics.xml", "--mode", "batch", "--initial", "1",
                         "--thresholds", "seeds", input=lines(DOCUMENTS)))  # fmt: skip
    assert {(e["document"], e["topic"]) for e in found} == {("e", "1"), ("c", "2")}


def test_a_run_that_is_kept_goes_on(files):
    state = ("--state", "run", "--feedback", "judged.jsonl", "--json")
    (files / "docs.jsonl").write_text(lines(DOCUMENTS[:3]))
    first = entries(call(*BASIC, *state))
    (files / "docs.jsonl").write_text(lines(DOCUMENTS))
    second = entries(call(*BASIC, *state))
    whole = entries(call(*BASIC, "--state", "whole", *state[2:]))
    assert first[:-1] + second[:-1] == whole[:-1]
    assert second[-1] == whole[-1]
    log = (files / "run" / "decisions.jsonl").read_text()
    assert log == (files / "whole" / "decisions.jsonl").read_text()
    assert len(log.splitlines()) == 5


def test_a_picture_of_the_scores(files):
    pytest.importorskip("matplotlib")
    call(*BASIC, "--feedback", "judged.jsonl", "--plot", "scores.png", "--every", "2")
    assert (files / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_the_course_of_the_scores_is_shown(files):
    shown = call(*BASIC, "--feedback", "judged.jsonl", "--every", "1").stderr
    line = next(line for line in shown.splitlines() if "F along the stream" in line)
    assert set(line.split()[-2]) <= set("▁▂▃▄▅▆▇█")
    assert len(line.split()[-2]) > 1


def test_a_saved_metric(files):
    vectors = TextVectors(64).fit([])
    rain, gold = (vectors.rows([word]).indices[0] for word in ("rain", "gold"))
    L = np.eye(64)
    # Rain is gold: the document b, which shares no word with a topic, now belongs to Gold mines.
    L[:, rain] = L[:, gold]
    GeneralizedCosine(L.T @ L).save(files / "metric")
    options = (*BASIC, "--features", "64", "--mode", "simple")

    def assigned(*metric):
        return [(e["document"], e["topic"]) for e in entries(call(*options, *metric))]

    assert assigned() == [("a", "1"), ("c", "2"), ("e", "1")]
    assert assigned("--metric", "metric") == [("a", "1"), ("b", "2"), ("c", "2"), ("e", "1")]


def test_malformed_lines(files):
    broken = lines(DOCUMENTS[:1]) + "{broken\n" + lines(DOCUMENTS[:2])
    (files / "docs.jsonl").write_text(broken)
    result = call(*BASIC, "--json")
    assert "skipped: docs.jsonl:2 is not JSON" in result.stderr
    assert "skipped: docs.jsonl:3 has the id 'a', which was seen already" in result.stderr
    assert entries(result)[-1]["summary"]["skipped"] == 2
    result = call(*BASIC, "--strict", code=1)
    assert result.stderr.startswith("error: docs.jsonl:2 is not JSON")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--topics", "nothing.xml"), "there is no file nothing.xml; check the path"),
        (("--topics", "topics.xml", "--documents", "no"), "There are no documents at no"),
        ((*BASIC, "--alpha", "3"), "'alpha' parameter of TopicFilter must be a float in"),
        ((*BASIC, "--plot", "a.png"), "need judgments: add --feedback"),
        ((*BASIC, "--mode", "batch", "--state", "s"), "--state is for streams"),
        ((*BASIC, "--feedback", "others.jsonl"), "None of the judgments is about any"),
        ((*BASIC, "--feedback", "topics.xml"), "topics.xml:1 is not JSON"),
        ((*BASIC, "--feedback", "no.jsonl"), "there is no file no.jsonl; check the path"),
        ((*BASIC, "--feedback", "others.jsonl", "--plot", "no/a.png"), "There is no folder"),
        ((*BASIC, "--state", "docs.jsonl"), "--state must name a directory"),
        (("--topics", "docs.jsonl", "--metric", "docs.jsonl"), "is not a samewise file"),
        ((*BASIC, "--metric", "table.sw"), "table.sw is a model of a table's columns"),
    ],
)
def test_errors_are_one_sentence(files, arguments, sentence):
    (files / "others.jsonl").write_text(lines([{"id": "a", "topics": ["9"]}]))
    Model(Mahalanobis.identity(1), ("cm",)).save(files / "table.sw")
    result = call(*arguments, code=1)
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    error = json.loads(call(*arguments, "--json", code=1).stderr)
    assert sentence in error["error"]


def test_wrong_usage_and_debug(files):
    assert "--topics" in call(code=2).stderr
    assert CliRunner().invoke(app, []).exit_code == 2
    result = CliRunner().invoke(app, ["filter", "--topics", "nothing.xml", "--debug"])
    assert isinstance(result.exception, FileNotFoundError)
    assert "--budget" in call("--help").stdout


def test_interrupted(files, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(TopicFilter, "observe_many", interrupt)
    assert "the same command goes on" in call(*BASIC, "--state", "run", code=130).stderr


def test_without_the_extra_the_command_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("samewise.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match=r"pip install 'samewise\[cli\]'"):
        main()


def test_a_reader_that_has_enough(files):
    command = [sys.executable, "-c", "from samewise.cli import main; main()", "filter", *BASIC]
    command += ["--mode", "simple"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.wait(timeout=60) == 1
        assert process.stderr.read() == b""
