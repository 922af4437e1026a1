"""Runs that are killed go on, with nothing lost and nothing decided twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.filtering import (
    BatchTopicFilter,
    Document,
    Documents,
    FilterRun,
    Judgments,
    PerceptronFilter,
    TextVectors,
    TopicFilter,
)
from samewise.filtering.journal import _whole_lines
from tests.filtering.conftest import make_documents


def make(topics, **more):
    settings = {"thresholds": (0.3, 0.7), "n_initial": 3, "feedback_budget": 8, "max_documents": 30}
    return TopicFilter(**{**settings, **more}).fit(topics)


def everything(directory):
    return {
        path.name: path.read_bytes() for path in directory.iterdir() if path.name != "documents"
    }


def run_through(topics, documents, directory, judge, **more):
    with FilterRun(make(topics), directory, judge=judge, fsync=False, **more) as run:
        return [decisions for _, decisions in run.process(documents)]


@pytest.fixture
def whole(topics, documents, judge, tmp_path):
    """The decisions and files of a run that nothing disturbed."""
    decisions = run_through(topics, documents, tmp_path / "whole", judge)
    return decisions, everything(tmp_path / "whole")


class Stop(BaseException):
    """Stands for the end of the process: nothing tidies up after it."""


def stopping(after, documents):
    for k, document in enumerate(documents):
        if k == after:
            raise Stop
        yield document


@pytest.mark.parametrize("after", [0, 1, 37, 64, 150, 399])
def test_stopped_and_resumed(after, whole, topics, documents, judge, tmp_path):
    directory, options = tmp_path / "run", {"block": 16, "save_every": 50}
    first = []
    with pytest.raises(Stop), FilterRun(make(topics), directory, judge=judge, **options) as run:
        for _, decisions in run.process(stopping(after, documents)):
            first.append(decisions)
    rest = run_through(topics, documents, directory, judge, **options)
    assert first + rest == whole[0]
    assert everything(directory) == whole[1]


@pytest.mark.parametrize("where", ["decide", "log", "save", "answer"])
def test_stopped_at_the_worst_moments(
    where, whole, topics, documents, judge, tmp_path, monkeypatch
):
    directory, options = tmp_path / "run", {"block": 16, "save_every": 50}
    moments = {
        "decide": "samewise.filtering.document_filter.Filter.observe_many",
        "log": "samewise.filtering.journal.Journal.log",
        "save": "samewise.filtering.journal.Journal._inputs_head",
        "answer": "samewise.filtering.adaptive_filter.AdaptiveFilter._take_feedback",
    }
    calls = [0]

    def stop(*args, **kwargs):
        calls[0] += 1
        if calls[0] == 4:
            raise Stop
        return original(*args, **kwargs)

    module, _, name = moments[where].rpartition(".")
    owner_module, _, owner = module.rpartition(".")
    original = getattr(getattr(sys.modules[owner_module], owner), name)
    with monkeypatch.context() as patch:
        patch.setattr(moments[where], stop)
        with pytest.raises(Stop):
            run_through(topics, documents, directory, judge, **options)
    run_through(topics, documents, directory, judge, **options)
    assert everything(directory) == whole[1]


def test_a_torn_last_line(whole, topics, documents, judge, tmp_path):
    directory = tmp_path / "run"
    with pytest.raises(Stop):
        run_through(topics, stopping(90, documents), directory, judge, block=16)
    for path in directory.glob("*.jsonl"):
        path.write_bytes(path.read_bytes()[:-7])
    run_through(topics, documents, directory, judge)
    assert everything(directory) == whole[1]


def test_a_torn_last_line_that_is_long(whole, topics, documents, judge, tmp_path):
    directory = tmp_path / "run"
    with pytest.raises(Stop):
        run_through(topics, stopping(90, documents), directory, judge, block=16)
    for path in directory.glob("*.jsonl"):
        before = path.read_bytes()
        with path.open("ab") as file:
            file.write(b'{"document": "' + 200_000 * b"a")
        with path.open("r+b") as file:
            _whole_lines(file)
        assert path.read_bytes() == before
    run_through(topics, documents, directory, judge)
    assert everything(directory) == whole[1]


def test_no_question_is_asked_twice(topics, documents, tmp_path, monkeypatch):
    """Neither after yes nor after no: the judge of the second run would say the opposite."""
    run, whole, asked = tmp_path / "run", tmp_path / "whole", []

    def judge(document, topic):
        return int(document[1:]) % 2 == 0

    def once(document, topic):
        known = (document, topic) in asked
        asked.append((document, topic))
        return judge(document, topic) != known

    def stop(self, lines):
        if list(lines):
            raise Stop

    # Killed before decisions are written: all that is known of the answers is in the inputs.
    with monkeypatch.context() as patch:
        patch.setattr("samewise.filtering.journal.Journal.log", stop)
        with pytest.raises(Stop):
            run_through(topics, documents, run, once, block=400)
    assert {judge(*question) for question in asked} == {True, False}
    run_through(topics, documents, run, once)
    run_through(topics, documents, whole, judge)
    assert len(set(asked)) == len(asked)
    assert everything(run) == everything(whole)


@pytest.mark.parametrize("fsync", [True, False])
def test_appends_are_forced_to_the_disk(fsync, topics, documents, judge, tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr(os, "fsync", forced.append)
    with FilterRun(make(topics), tmp_path / "run", judge=judge, block=10, fsync=fsync) as run:
        forced.clear()
        asked = [d.answer for _, made in run.process(documents[:100]) for d in made]
        n = sum(answer is not None for answer in asked)
        assert n > 3
        # Ten blocks: inputs and decisions; and each answer.
        assert len(forced) == (20 + n if fsync else 0)


SCRIPT = """
import json, sys
from samewise.filtering import Documents, Judgments, FilterRun, TopicFilter
folder = sys.argv[1]
topics = json.load(open(folder + "/topics.json"))
settings = {"n_initial": 3, "feedback_budget": 8, "max_documents": 30}
filter = TopicFilter(thresholds=(0.3, 0.7), **settings).fit(topics)
judge = Judgments.read(folder + "/judged.jsonl")
with FilterRun(filter, folder + "/killed", judge=judge, block=32, save_every=300) as run:
    for document, decisions in run.process(Documents(folder + "/documents.jsonl")):
        print(document.id, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX systems")
def test_kill_9_in_the_middle(topics, tmp_path):
    documents, about = make_documents(2500, seed=4)
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    texts = [{"id": d.id, "text": d.text} for d in documents]
    judged = [{"id": d.id, "topics": t} for d, t in zip(documents, about, strict=True)]
    for name, entries in {"documents": texts, "judged": judged}.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, entries)))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.strip() == "d1200":
                break
        time.sleep(0.003)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    before = (tmp_path / "killed" / "decisions.jsonl").read_bytes()
    judge = Judgments.read(tmp_path / "judged.jsonl")
    source = Documents(tmp_path / "documents.jsonl")
    for name in ("killed", "whole"):
        run_through(topics, source, tmp_path / name, judge)
    assert everything(tmp_path / "killed") == everything(tmp_path / "whole")
    log = (tmp_path / "whole" / "decisions.jsonl").read_bytes()
    assert len(before) < len(log)
    decided = [json.loads(line)["document"] for line in log.splitlines()]
    assert decided == [d.id for d in documents]


def test_a_run_without_a_directory(topics, documents, judge):
    with FilterRun(make(topics), judge=judge) as run:
        found = [decisions for _, decisions in run.process(documents)]
        run.feedback("d399", "gold", True)
    assert found == make(topics).observe_many(documents, judge=judge)


def test_feedback_is_kept(topics, documents, tmp_path):
    def tell(run):
        for document, _ in run.process(documents[:60]):
            if document.id == "d40":
                run.feedback("d40", "gold", True)
                run.feedback("d39", "cocoa", False)

    with FilterRun(make(topics), tmp_path / "a", block=1) as run:
        tell(run)
    with pytest.raises(Stop), FilterRun(make(topics), tmp_path / "b", block=1) as run:
        tell(run)
        raise Stop
    with FilterRun(make(topics), tmp_path / "b") as run:
        assert run.resumed == 60
        assert list(run.process(documents[:60])) == []
        assert len(list(run.history())) == 60
    assert everything(tmp_path / "a") == everything(tmp_path / "b")
    with (
        FilterRun(make(topics), tmp_path / "b") as run,
        pytest.raises(InvalidInputError, match="no topic"),
    ):
        run.feedback("d59", "silver", True)
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_a_stream_that_continues(topics, documents, judge, whole, tmp_path):
    run_through(topics, documents[:150], tmp_path / "run", judge)
    run_through(topics, documents[150:], tmp_path / "run", judge)
    assert everything(tmp_path / "run") == whole[1]


def test_other_documents_topics_or_parameters_are_refused(topics, documents, judge, tmp_path):
    directory = tmp_path / "run"
    run_through(topics, documents[:50], directory, judge)
    before = everything(directory)
    others = [*documents[:20], Document("other", "x"), *documents[20:]]
    with pytest.raises(
        InvalidInputError, match="has 'other' where 'd20' was decided, as number 21"
    ):
        run_through(topics, others, directory, judge)
    with pytest.raises(InvalidInputError, match="ends where 'd30' was decided"):
        run_through(topics, documents[:30], directory, judge)
    for filter, what in [
        (make(topics, alpha=0.5), "alpha"),
        (make({**topics, "rain": "rain"}), "topics"),
        (make(topics, vectorizer=TextVectors(64)), "topics"),
        (make(topics, vectorizer=TextVectors(idf=None)), "vectorizer"),
        (PerceptronFilter().fit(topics), "class"),
    ]:
        with pytest.raises(InvalidInputError, match=f"a run with another {what}"):
            FilterRun(filter, directory)
    assert everything(directory) == before


def test_two_runs_at_once_are_refused(topics, tmp_path):
    pytest.importorskip("fcntl")
    with (
        FilterRun(make(topics), tmp_path),
        pytest.raises(InvalidInputError, match="used by another run"),
    ):
        FilterRun(make(topics), tmp_path)


def test_runs_need_no_posix_module(topics, documents, judge, whole, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", None)
    decisions, files = whole
    assert run_through(topics, documents, tmp_path / "run", judge) == decisions
    assert everything(tmp_path / "run") == files


def test_windows_locks_a_file_of_its_own(topics, tmp_path, monkeypatch):
    locked = []

    def locking(number, how, n_bytes):
        if any(os.path.sameopenfile(number, other) for other in locked):
            raise PermissionError("[WinError 33] locked")
        locked.append(number)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    msvcrt = SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    with FilterRun(make(topics), tmp_path) as run:
        assert (tmp_path / "lock").read_bytes() == b""
        with pytest.raises(InvalidInputError, match="used by another run"):
            FilterRun(make(topics), tmp_path)
        assert list(run.process([Document("a", "some text")]))
    locked.clear()
    with FilterRun(make(topics), tmp_path) as run:
        assert run.resumed == 1


def test_commands_need_no_posix_module(tmp_path):
    (tmp_path / "topics.json").write_text('[{"id": "gold", "title": "gold ore"}]')
    (tmp_path / "documents.jsonl").write_text('{"id": "d1", "text": "gold ore again"}\n')
    code = (
        "import sys\n"
        "sys.modules.update(fcntl=None, resource=None)\n"
        "import samewise\n"
        "from samewise.cli import main\n"
        "sys.argv[0] = 'samewise'\n"
        "main()\n"
    )
    given = ["--topics", "topics.json", "--documents", "documents.jsonl", "--state", "run"]
    command = [sys.executable, "-c", code, "filter", *given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["document"] == "d1"
    assert (tmp_path / "run" / "decisions.jsonl").exists()


def test_a_batch_is_no_stream(topics):
    with pytest.raises(InvalidInputError, match="whole collection with decide"):
        FilterRun(BatchTopicFilter().fit(topics))


def test_a_used_filter_is_refused(topics):
    filter = make(topics)
    filter.observe("x")
    with pytest.raises(InvalidInputError, match="has seen nothing"):
        FilterRun(filter)


def test_changed_logs_are_refused(topics, documents, judge, tmp_path):
    directory = tmp_path / "run"
    with pytest.raises(Stop):
        run_through(topics, stopping(60, documents), directory, judge, block=8)
    log = directory / "decisions.jsonl"
    text = log.read_text()
    assert '"assign"' in text
    log.write_text(text.replace('"assign"', '"ask"'))
    with pytest.raises(FileFormatError, match="decisions that its inputs do not lead to"):
        FilterRun(make(topics), directory, judge=judge)
    log.write_text(text)
    inputs = next(directory.glob("inputs-*.jsonl"))
    inputs.write_bytes(b"garbage\n" + inputs.read_bytes())
    with pytest.raises(FileFormatError, match="is damaged"):
        FilterRun(make(topics), directory, judge=judge)


def test_ids_that_repeat(topics, tmp_path):
    path = tmp_path / "d.jsonl"
    lines = [{"id": i, "text": "rain"} for i in ("a", "b", "a", "c", "b", "c", "d")]
    path.write_text("\n".join(map(json.dumps, lines)))
    for wanted in (["a", "b", "c", "d"], []):
        said = []
        with FilterRun(make(topics), tmp_path / "run") as run:
            found = list(run.process(Documents(path, report=said.append)))
        assert [document.id for document, _ in found] == wanted
        assert [sentence.removeprefix(str(path)) for sentence in said] == [
            f":{line} has the id {id!r}, which was seen already; ids must differ."
            for line, id in [(3, "a"), (5, "b"), (6, "c")]
        ]
    with pytest.raises(InvalidInputError, match="'a', which was seen already"):
        list(FilterRun(make(topics)).process([Document("a", "x"), Document("a", "y")]))
