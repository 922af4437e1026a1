"""Directories of runs whose files were lost, emptied, cut or put back, and files left by kills."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from samewise.exceptions import FileFormatError
from samewise.files import writing
from samewise.files.writing import write_atomically
from samewise.filtering import FilterRun, TopicFilter
from samewise.filtering.document_filter import Filter
from tests.filtering.conftest import WORDS, make_documents

TOPICS = {name: " ".join(words[:5]) for name, words in WORDS.items()}
DOCUMENTS = make_documents(100)[0]


class Stop(BaseException):
    """Stands for the end of the process: nothing tidies up after it."""


def started(directory):
    filter = TopicFilter(thresholds=(0.3, 0.7), n_initial=3, feedback_budget=8).fit(TOPICS)
    return FilterRun(filter, directory, block=8, save_every=40, fsync=False)


def stopped(directory, n=70, after_feedback=False):
    """A run that was killed after n documents; the filter was written after 40 of them."""
    with pytest.raises(Stop), started(directory) as run:
        list(run.process(DOCUMENTS[:n]))
        if after_feedback:
            run.feedback(DOCUMENTS[n - 1].id, "gold", True)
        raise Stop


def content(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def cut(path, n_lines):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:n_lines]))


def append(path, line):
    path.write_bytes(path.read_bytes() + line)


def without_line(path, number):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))


MISSING = (
    "inputs-40.jsonl is missing, which holds what came after document 40. Put back all its files"
)
DAMAGE = {
    "inputs deleted": (lambda run: (run / "inputs-40.jsonl").unlink(), MISSING),
    "inputs emptied": (
        lambda run: (run / "inputs-40.jsonl").write_bytes(b""),
        "inputs-40.jsonl is empty, which held what came after document 40",
    ),
    "inputs cut": (
        lambda run: cut(run / "inputs-40.jsonl", 11),
        "decisions.jsonl has 30 lines since the filter was written, but inputs-40.jsonl leads to "
        "10 only",
    ),
    "only the head of the inputs": (lambda run: cut(run / "inputs-40.jsonl", 1), "leads to 0 only"),
    "no head of the inputs": (
        lambda run: without_line(run / "inputs-40.jsonl", 0),
        "inputs-40.jsonl has lost its first line",
    ),
    "an input less": (
        lambda run: without_line(run / "inputs-40.jsonl", 5),
        "decisions that its inputs do not lead to",
    ),
    "inputs of another shape": (
        lambda run: (run / "inputs-40.jsonl").write_text('{"log": 5}\n{"document": 3}\n'),
        "inputs-40.jsonl is damaged",
    ),
    "log deleted": (
        lambda run: (run / "decisions.jsonl").unlink(),
        "decisions.jsonl should hold 40 documents in its first",
    ),
    "log cut": (lambda run: cut(run / "decisions.jsonl", 30), "but holds 30 in "),
    "a line of the log less": (
        lambda run: without_line(run / "decisions.jsonl", 10),
        "decisions.jsonl should hold 40 documents in its first",
    ),
    "more in the log": (
        lambda run: append(run / "decisions.jsonl", b'{"document": "x", "topics": []}\n'),
        "decisions.jsonl has 31 lines since the filter was written, but inputs-40.jsonl leads to "
        "30 only",
    ),
    "filter deleted": (
        lambda run: (run / "filter").unlink(),
        "inputs-0.jsonl is missing, which holds what came after document 0",
    ),
    "filter and log deleted": (
        lambda run: [(run / name).unlink() for name in ("filter", "decisions.jsonl")],
        "inputs-0.jsonl is missing",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_noticed(kind, tmp_path):
    stopped(tmp_path / "run")
    damage, sentence = DAMAGE[kind]
    damage(tmp_path / "run")
    before = content(tmp_path / "run")
    for _ in range(2):
        with pytest.raises(FileFormatError) as error:
            started(tmp_path / "run")
        assert sentence in str(error.value)
        assert str(tmp_path / "run") in str(error.value)
        assert (
            str(error.value).endswith("or start in another directory.") or kind == "an input less"
        )
    after = content(tmp_path / "run")
    # Opening the log makes an empty one where there is none.
    assert {**before, "decisions.jsonl": before.get("decisions.jsonl", b"")} == after


@pytest.mark.parametrize("kind", ["older", "newer"])
def test_a_filter_of_another_time_is_noticed(kind, tmp_path):
    stopped(tmp_path / "other", n=30 if kind == "older" else 90)
    stopped(tmp_path / "run")
    shutil.copy(tmp_path / "other" / "filter", tmp_path / "run" / "filter")
    n = {"older": 0, "newer": 80}[kind]
    with pytest.raises(FileFormatError, match=rf"inputs-{n}\.jsonl is missing, which holds what"):
        started(tmp_path / "run")


def test_feedback_that_was_lost_is_noticed(tmp_path):
    stopped(tmp_path / "run", n=40, after_feedback=True)
    cut(tmp_path / "run" / "inputs-40.jsonl", 1)
    with pytest.raises(FileFormatError, match="has 1 lines since the filter was written"):
        started(tmp_path / "run")
    (tmp_path / "run" / "inputs-40.jsonl").unlink()
    with pytest.raises(FileFormatError, match=r"inputs-40\.jsonl is missing"):
        started(tmp_path / "run")


@pytest.mark.parametrize("bad", [b": 35}", b": [3]}", b': []"}', b'"5: []'])
def test_a_damaged_line_of_the_log_is_named(bad, tmp_path):
    stopped(tmp_path / "run")
    log = tmp_path / "run" / "decisions.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    number = next(k for k, line in enumerate(lines) if b": []}" in line)
    assert number < 40
    # As long as before: the filter was written after this line.
    lines[number] = lines[number][: -len(bad) - 1] + bad + b"\n"
    log.write_bytes(b"".join(lines))
    with started(tmp_path / "run") as run:
        with pytest.raises(FileFormatError, match=f"is damaged in line {number + 1}"):
            list(run.history())


def test_feedback_is_not_given_twice(tmp_path, monkeypatch):
    """Killed while it is closed, after feedback: at whatever step, it counts once."""
    stopped(tmp_path / "whole", n=40, after_feedback=True)
    with started(tmp_path / "whole") as run:
        wanted = run.filter
    wanted.save(tmp_path / "wanted")
    for step in ("before", "after"):
        directory = tmp_path / step
        stopped(directory, n=40, after_feedback=True)
        saved = Filter.save

        def stopping(self, path, saved=saved, step=step):
            if step == "after":
                saved(self, path)
            raise Stop

        with monkeypatch.context() as patch:
            patch.setattr(Filter, "save", stopping)
            with suppress(Stop):
                started(directory).close()
        with started(directory) as run:
            run.filter.save(tmp_path / "found")
        assert (tmp_path / "found").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_inputs_of_earlier_filters_are_swept(tmp_path):
    stopped(tmp_path / "run")
    (tmp_path / "run" / "inputs-0.jsonl").write_text('{"log": 0}\n')
    (tmp_path / "run" / "inputs-72.jsonl").write_text('{"log": ')
    with started(tmp_path / "run") as run:
        list(run.process(DOCUMENTS))
    assert sorted(content(tmp_path / "run")) == ["decisions.jsonl", "filter", "inputs-100.jsonl"]


# Temporary files

WRITER = """
import sys, time
from samewise.files import writing
from samewise.files.writing import write_atomically
def chunks():
    yield b"new"
    print("writing", flush=True)
    sys.stdin.readline()
    yield b"er"
write_atomically(sys.argv[1], chunks())
"""


@pytest.fixture
def writers(tmp_path):
    pytest.importorskip("fcntl")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "file")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout.readline() == b"writing\n"
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_temporary_files_of_killed_writers_are_swept(writers, tmp_path):
    others = [".file.tmp", ".file.0123456789abcdeg.tmp", ".other.0123456789abcdef.tmp"]
    for name in others:
        (tmp_path / name).write_text("of others")
    killed, alive = writers
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    write_atomically(tmp_path / "file", [b"old"])
    left = [name for name in names(tmp_path) if name not in others]
    assert len(left) == 2 and left[1] == "file"
    # The one at work was not disturbed.
    alive.communicate(b"\n")
    assert alive.returncode == 0
    assert (tmp_path / "file").read_bytes() == b"newer"
    assert names(tmp_path) == sorted([*others, "file"])


def test_a_file_that_is_swept_before_it_is_locked(tmp_path, monkeypatch):
    """The worst moment: another writer sweeps between the making of a file and its lock."""
    calls = []

    def late(file, lock=writing.lock):
        if not calls:
            os.unlink(file.name)
        calls.append(file.name)
        return lock(file)

    monkeypatch.setattr(writing, "lock", late)
    write_atomically(tmp_path / "file", [b"content"])
    assert len(calls) == 2
    assert (tmp_path / "file").read_bytes() == b"content"
    assert names(tmp_path) == ["file"]


def test_the_file_and_its_folder_are_forced_to_the_disk(tmp_path, monkeypatch):
    if os.name != "posix":
        pytest.skip("folders are not opened elsewhere")
    done = []
    fsync, replace = os.fsync, os.replace

    def noting(descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        done.append("folder" if os.path.samefile(path, tmp_path) else "file")
        fsync(descriptor)

    def moving(*paths):
        done.append("move")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(os, "replace", moving)
    write_atomically(tmp_path / "file", [b"content"])
    assert done == ["file", "move", "folder"]
