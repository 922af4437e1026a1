"""Runs that survive: every input and decision is written down before anyone acts on it.

A directory holds

- ``filter``: the filter after some number n of documents, written whole or not at all;
- ``inputs-n.jsonl``: what came since: documents, feedback, and answers of the judge;
- ``decisions.jsonl``: one line for each document ever decided, and for each feedback.

A block of documents is first appended to the inputs; then it is decided; then the decisions are
appended to their log; only then does the caller see them. An answer of the judge is appended before
the filter learns from it. So after a crash at any moment the filter is loaded, the inputs since
are given to it again, and it decides the same (a filter has no randomness): decisions that are in
the log are checked and kept, those that are not are added, and no document is decided twice.

Each append is handed to the operating system at once, which a killed process does not undo. With
fsync=True it is also forced to the disk, which a crash of the machine does not undo.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.filtering.document_filter import Filter


class Journal:
    """The files of a directory, appended to line by line."""

    def __init__(self, directory: Path, fsync: bool) -> None:
        self.directory, self._fsync = directory, fsync
        directory.mkdir(parents=True, exist_ok=True)
        self.filter_path = directory / "filter"
        self._log = (directory / "decisions.jsonl").open("a+b")
        self._inputs: Any = None
        self._lock = _locked(self._log, directory)

    def open(self, n_seen: int) -> tuple[list[str], list[dict[str, Any]]]:
        """Open the inputs since document n_seen; what they hold, and what was decided of it."""
        _whole_lines(self._log)
        self._inputs = self._inputs_path(n_seen).open("a+b")
        _whole_lines(self._inputs)
        self._inputs.seek(0)
        entries = [self._entry(line) for line in self._inputs]
        if not entries:
            # Not even its head: the run stopped right after the filter was written.
            self._inputs_head()
            return [], []
        self._log.seek(entries[0].get("log", 0))
        return [line.decode().rstrip("\n") for line in self._log], entries[1:]

    def inputs(self, entries: Iterable[dict[str, Any]]) -> None:
        """Append to the inputs."""
        self._append(self._inputs, map(as_json, entries))

    def log(self, lines: Iterable[str]) -> None:
        """Append to the decisions."""
        self._append(self._log, lines)

    def save(self, filter: Filter) -> None:
        """Write the filter, and start its inputs anew."""
        filter.save(self.filter_path)
        path = self._inputs_path(filter.n_seen_)
        self._inputs.close()
        # Emptied if it is there: feedback may have come since, without a document.
        self._inputs = path.open("w+b")
        self._inputs_head()
        for other in self.directory.glob("inputs-*.jsonl"):
            if other != path:
                other.unlink()

    def decided(self) -> Iterator[dict[str, Any]]:
        """The lines of all documents that were decided, in order."""
        with open(self._log.name, "rb") as lines:
            for line in lines:
                entry = json.loads(line)
                if "document" in entry:
                    yield entry

    def close(self) -> None:
        """Close the files; the lock goes with them."""
        for file in (self._inputs, self._log, self._lock):
            if file is not None:
                file.close()

    def _inputs_path(self, n_seen: int) -> Path:
        return self.directory / f"inputs-{n_seen}.jsonl"

    def _inputs_head(self) -> None:
        self._append(self._inputs, [as_json({"log": self._log.seek(0, os.SEEK_END)})])

    def _entry(self, line: bytes) -> dict[str, Any]:
        try:
            entry = json.loads(line)
            if isinstance(entry, dict):
                return entry
        except ValueError:
            pass
        raise FileFormatError(f"{self._inputs.name} is damaged; start in another directory.")

    def _append(self, file: Any, lines: Iterable[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if text:
            file.seek(0, os.SEEK_END)
            file.write(text.encode())
            file.flush()
            if self._fsync:
                os.fsync(file.fileno())


def as_json(value: Any) -> str:
    """A value in one line."""
    return json.dumps(value, ensure_ascii=False)


def _whole_lines(file: Any) -> None:
    """Cut off a last line that was not written to its end."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(end - 2**16, 0)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    file.truncate(end)


def _locked(log: Any, directory: Path) -> Any:
    """Keep other processes out, where the system can; the lock ends with the returned file."""
    file = log
    try:
        if fcntl := _module("fcntl"):
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt := _module("msvcrt"):
            # Windows: what is locked cannot be read either, so it is a file of its own.
            file = (directory / "lock").open("ab")
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        return file
    except OSError as error:
        file.close()
        log.close()
        raise InvalidInputError(
            f"{directory} is used by another run; wait for it, or give another directory."
        ) from error


def _module(name: str) -> Any:
    """A module that only some systems have, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None
