"""What `samewise filter` prints, over runs that are killed and sources that are damaged."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
import tracemalloc
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from samewise.cli.app import app
from samewise.cli.printed import Printed
from samewise.exceptions import FileFormatError
from samewise.filtering import Document, Documents, FilterRun, Judgments, TopicFilter, read_topics
from tests.filtering.conftest import WORDS, make_documents

posix = pytest.mark.skipif(os.name != "posix", reason="output is read again on POSIX systems")
ARGUMENTS = ["filter", "--topics", "topics.json", "--thresholds", "0.3,0.7", "--initial", "3"]


TOPICS = {name: " ".join(words[:5]) for name, words in WORDS.items()}


class Stop(BaseException):
    """Stands for the end of the process: nothing tidies up after it."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = {"id": "both", "text": f"{TOPICS['gold']} {TOPICS['ships']}"}
    entries = [{"id": d.id, "text": d.text} for d in make_documents(60)[0]]
    entries[7:7] = [both, {**both, "id": "größer"}]
    described = [{"id": f"{name} ü", "text": text} for name, text in TOPICS.items()]
    (tmp_path / "topics.json").write_text(json.dumps(described))
    write("documents.jsonl", entries)
    return tmp_path


def write(name, entries):
    with open(name, "w") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)


@contextmanager
def printing_to(name):
    """Standard output as a file that all runs append to."""
    before = sys.stdout
    with open(name, "a", encoding="utf-8") as sys.stdout:
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stdout = before


def run(state):
    arguments = [*ARGUMENTS, "--documents", "documents.jsonl", "--state", state]
    app(arguments, standalone_mode=False)


def call(*arguments, code=0, **more):
    result = CliRunner().invoke(app, [*ARGUMENTS, *arguments], **more)
    assert result.exit_code == code, (result.output, result.exception)
    return result


class Stopping:
    """A file that ends the process at its n-th write, of which a part is done."""

    def __init__(self, file, n, part):
        self._file, self._left, self._part = file, n, part

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        self._left -= 1
        if self._left:
            return self._file.write(data)
        self._file.write(data[: round(self._part * len(data))])
        self._file.flush()
        raise Stop


@pytest.fixture
def whole(files):
    with printing_to("whole.jsonl"):
        run("whole")
    lines = (files / "whole.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) > 12
    return lines


@posix
@pytest.mark.parametrize("part", [0, 0.3, 0.6, 1])
@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_killed_while_a_file_is_written(part, n, files, whole):
    with printing_to("out.jsonl"):
        sys.stdout = Stopping(sys.stdout, n, part)
        with pytest.raises(Stop):
            run("run")
    with printing_to("out.jsonl"):
        run("run")
    assert (files / "out.jsonl").read_bytes() == b"".join(whole)
    with printing_to("out.jsonl"):
        run("run")
    assert (files / "out.jsonl").read_bytes() == b"".join(whole)


@posix
@pytest.mark.parametrize("n", [1, 2, 10])
def test_killed_after_a_file_was_written(n, files, whole, monkeypatch):
    opened = Printed._open

    def stopping(self, path):
        opened(self, path)
        self._file = Stopping(self._file, n, 0)

    with printing_to("out.jsonl"), monkeypatch.context() as patch:
        patch.setattr(Printed, "_open", stopping)
        with pytest.raises(Stop):
            run("run")
    with printing_to("out.jsonl"):
        run("run")
    assert (files / "out.jsonl").read_bytes() == b"".join(whole)


@posix
def test_what_others_wrote_to_the_output_is_not_taken_for_ours(files, whole):
    with printing_to("out.jsonl"):
        sys.stdout = Stopping(sys.stdout, 5, 0)
        with pytest.raises(Stop):
            run("run")
    before = (files / "out.jsonl").read_bytes()
    with printing_to("out.jsonl"):
        print("said by others")
        sys.stdout.flush()
        run("run")
    printed = (files / "out.jsonl").read_bytes()
    rest = b"".join(whole).removeprefix(before)
    assert printed == before + b"said by others\n" + rest


def through_a_pipe():
    """A run whose output is read from a pipe; its lines."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as end:
        with printing_to(writing), suppress(Stop):
            run("run")
        return end.readlines()


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_of_a_pipe_at_most_one_document_is_printed_again(n, files, whole, monkeypatch):
    opened = Printed._open

    def stopping(self, path):
        opened(self, path)
        self._file = Stopping(self._file, n, 0)

    with monkeypatch.context() as patch:
        patch.setattr(Printed, "_open", stopping)
        first = through_a_pipe()
    second = through_a_pipe()
    last = json.loads(first[-1])["document"]
    again = [line for line in first if json.loads(line)["document"] == last]
    assert second[: len(again)] == again
    assert first + second[len(again) :] == whole
    assert through_a_pipe() == []


def test_a_damaged_count_is_refused(files):
    call("--documents", "documents.jsonl", "--state", "run")
    (files / "run" / "printed").write_text("[12, ")
    error = call("--documents", "documents.jsonl", "--state", "run", code=1).stderr
    assert "printed is damaged; write into it how many documents were printed" in error


# Sources


@pytest.mark.parametrize("bad", [{"id": "x", "text": "a \ud83d b"}, {"id": "\udc00", "text": "a"}])
def test_half_a_surrogate_pair_is_skipped(bad, files):
    with open("documents.jsonl") as file:
        entries = list(map(json.loads, file))
    clean = call("--documents", "documents.jsonl").stdout
    write("documents.jsonl", [*entries[:30], bad, *entries[30:]])
    for _ in range(2):
        result = call("--documents", "documents.jsonl", "--state", "run")
        assert "documents.jsonl:31 has '\\ud" in result.stderr
        assert "half of a surrogate pair" in result.stderr
        assert result.stdout == clean
        clean = ""
    # UTF-8 that was written by programs that do not know better.
    line = b'{"id": "y", "text": "gold \xed\xa0\x80"}\n'
    assert "half of a surrogate pair" in call("--documents", "-", input=line).stderr


def test_half_a_surrogate_pair_elsewhere(files):
    write("topics.jsonl", [{"id": "a", "text": "gold \ud800"}])
    with pytest.raises(
        FileFormatError, match=r"topics\.jsonl:1 has '\\ud800', half of a surrogate"
    ):
        read_topics("topics.jsonl")
    for entry in (
        {"id": "\ud800", "topics": []},
        {"id": "a", "topics": ["\ud800"]},
        {"document": "a", "topic": "\ud800", "relevant": True},
    ):
        write("judged.jsonl", [entry])
        with pytest.raises(FileFormatError, match=r"judged\.jsonl:1 has '\\ud800', half of a surr"):
            Judgments.read("judged.jsonl")


@posix
def test_a_name_of_a_file_that_is_no_text(files):
    (files / "folder").mkdir()
    (files / "folder" / "a.txt").write_text("gold")
    try:
        (files / os.fsdecode(b"folder/b\xff.txt")).write_text("gold")
    except OSError:
        pytest.skip("this file system has no such names")
    said = []
    documents = Documents(files / "folder", report=said.append)
    assert [document.id for document in documents] == ["a.txt"]
    assert "half of a surrogate pair" in said[0]


def test_texts_in_memory_may_be_any(files):
    given = [Document("a", "gold \ud800"), Document("\ud800", "gold mine")]
    for wanted in (2, 0):
        with FilterRun(
            TopicFilter(thresholds=(0.1, 0.7)).fit({**TOPICS, "\udc00": "gold"}), "run"
        ) as run:
            assert len(list(run.process(given))) == wanted
            assert [id for id, _ in run.history()] == ["a", "\ud800"]


@pytest.mark.parametrize("how", ["cut off", "overwritten", "other checksum", "no gzip"])
def test_damaged_gzip(how, files):
    text = (files / "documents.jsonl").read_bytes()
    lines = text.splitlines(keepends=True)
    # Stored in two members, so that it is known what comes before the damage.
    first, second = gzip.compress(b"".join(lines[:40])), gzip.compress(b"".join(lines[40:]))
    damaged, n = {
        "cut off": (second[: len(second) // 2], None),
        "overwritten": (second[:15] + b"\xff" * 60 + second[75:], None),
        "other checksum": (second[:-8] + b"\0" * 8, len(lines)),
        "no gzip": (b"nothing", 40),
    }[how]
    (files / "d.jsonl.gz").write_bytes(first + damaged)
    result = call("--documents", "d.jsonl.gz", "--state", "run", code=1)
    assert "error: d.jsonl.gz is damaged or cut off (" in result.stderr
    assert "what comes before that was read. Give the whole file." in result.stderr
    log = (files / "run" / "decisions.jsonl").read_text().splitlines()
    assert len(log) >= 40 and n in (None, len(log))
    # The whole file goes on from there.
    (files / "d.jsonl.gz").write_bytes(gzip.compress(text))
    rest = call("--documents", "d.jsonl.gz", "--state", "run").stdout
    assert result.stdout + rest == call("--documents", "documents.jsonl").stdout


def test_damage_costs_no_more_than_a_piece(files):
    lines = [b'{"id": "%d", "text": "gold"}\n' % k for k in range(3000)]
    packed = gzip.compress(b"".join(lines))
    (files / "d.jsonl.gz").write_bytes(packed[:-9])
    documents = iter(Documents(files / "d.jsonl.gz"))
    n = 0
    with pytest.raises(FileFormatError, match="damaged or cut off"):
        for n, _ in enumerate(documents, 1):  # noqa: B007
            pass
    assert n > 2900
    (files / "judged.jsonl.gz").write_bytes(packed[:-9])
    with pytest.raises(FileFormatError, match=r"judged\.jsonl\.gz is damaged or cut off"):
        Judgments.read(files / "judged.jsonl.gz", "skip")


@pytest.mark.parametrize("source", ["documents.jsonl", "d.jsonl.gz", "-"])
def test_lines_without_end(source, files, monkeypatch):
    monkeypatch.setattr("samewise.files.json_lines.LONGEST", 2**18)
    with open("documents.jsonl", "a") as file:
        file.write('{"id": "long", "text": "' + 6 * 2**20 * "a" + '"}\n{"id": "end", "text": "a"}')
    with open("documents.jsonl", "rb") as file, gzip.open("d.jsonl.gz", "wb", 1) as packed:
        packed.write(file.read())
    said = []
    with open("documents.jsonl", "rb") as file:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file))
        tracemalloc.start()
        ids = [document.id for document in Documents(source, report=said.append)]
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert ids[-1] == "end" and len(ids) == 63
    assert len(said) == 1
    assert ":63 is longer than 262,144 bytes, the most that one document may have" in said[0]
    assert most < 4 * 2**20


def test_files_without_end(files, monkeypatch):
    monkeypatch.setattr("samewise.files.json_lines.LONGEST", 100)
    (files / "folder").mkdir()
    for name, n in {"a": 100, "b": 101}.items():
        (files / "folder" / name).write_text(n * "a")
    said = []
    assert [d.id for d in Documents(files / "folder", report=said.append)] == ["a"]
    assert "b is longer than 100 bytes" in said[0]


def cpu_seconds(path):
    least = float("inf")
    for _ in range(3):
        start = time.process_time()
        read_topics(path)
        least = min(least, time.process_time() - start)
    return least


@pytest.mark.parametrize("kind", ["lines", "nested"])
def test_topics_in_time_linear_in_their_size(kind, tmp_path):
    def written(n):
        text = "a\n" * n if kind == "lines" else "<b>a" * n + "</b>" * n
        path = tmp_path / f"{n}.xml"
        path.write_text(f"<top><num>1</num><title>{text}</title></top>")
        return path

    n = 40_000 if kind == "lines" else 4_000
    few, many = written(n), written(8 * n)
    assert read_topics(few)[0].title.count("a") == n
    # Eight times the text: about 8 times the work, 64 times if it were quadratic.
    assert cpu_seconds(many) < 24 * cpu_seconds(few)
