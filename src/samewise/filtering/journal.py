"""Runs that survive: every input and decision is written down before anyone acts on it.

A directory holds

- ``filter``: the filter after some number n of documents, written whole or not at all;
- ``inputs-n.jsonl``: what came since: documents, feedback, and answers of the judge. Its first line
  says how long the log was then; it is there before the filter is;
- ``decisions.jsonl``, the log: one line for each document ever decided, and for each feedback.

A block of documents is first appended to the inputs; then it is decided; then the decisions are
appended to their log; only then does the caller see them. An answer of the judge is appended before
the filter learns from it. So after a crash at any moment the filter is loaded, the inputs since
are given to it again, and it decides the same (a filter has no randomness): decisions that are in
the log are checked and kept, those that are not are added, and no document is decided twice. Files
that were lost, emptied or put back from another time do not fit each other, and are refused.

Each append is handed to the operating system at once, which a killed process does not undo. With
fsync=True it is also forced to the disk, which a crash of the machine does not undo.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.locking import lock, optional_module
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
        path = self._inputs_path(n_seen)
        _whole_lines(self._log)
        others = set(self.directory.glob("inputs-*.jsonl")) - {path}
        begun = self.filter_path.exists() or others or os.path.getsize(self._log.name)
        if begun and not path.exists():
            self._refuse(f"{path.name} is missing, which holds what came after document {n_seen}")
        self._inputs = path.open("a+b")
        _whole_lines(self._inputs)
        self._inputs.seek(0)
        entries = [self._entry(line) for line in self._inputs]
        if not entries:
            if begun:
                self._refuse(f"{path.name} is empty, which held what came after document {n_seen}")
            self._inputs_head(self._inputs)
            return [], []
        return self._logged_since(entries[0].get("log"), n_seen), entries[1:]

    def _logged_since(self, start: Any, n_seen: int) -> list[str]:
        """The log after its first `start` bytes, which must hold n_seen documents."""
        if type(start) is not int:
            self._refuse(f"{Path(self._inputs.name).name} has lost its first line")
        self._log.seek(0)
        n_documents = place = 0
        while place < start and (line := self._log.readline()):
            place += len(line)
            n_documents += line.startswith(b'{"document": ')
        if place != start or n_documents != n_seen:
            self._refuse(
                f"decisions.jsonl should hold {n_seen} documents in its first {start} bytes, but "
                f"holds {n_documents} in {place}"
            )
        return [line.decode("utf-8", "surrogatepass").rstrip("\n") for line in self._log]

    def check_replayed(self, again: list[str], logged: list[str]) -> None:
        """Refuse a log that the inputs do not lead to."""
        inputs = Path(self._inputs.name).name
        if again[: len(logged)] == logged:
            return
        if logged[: len(again)] == again:
            self._refuse(
                f"decisions.jsonl has {len(logged)} lines since the filter was written, but "
                f"{inputs} leads to {len(again)} only"
            )
        raise FileFormatError(
            f"{self.directory} holds decisions that its inputs do not lead to; it was changed, or "
            "written by another version. Start in another directory."
        )

    def inputs(self, entries: Iterable[dict[str, Any]]) -> None:
        """Append to the inputs."""
        self._append(self._inputs, map(as_json, entries))

    def log(self, lines: Iterable[str]) -> None:
        """Append to the decisions."""
        self._append(self._log, lines)

    def save(self, filter: Filter) -> None:
        """Write the filter and start its inputs anew, unless only feedback came since the last."""
        path = self._inputs_path(filter.n_seen_)
        if path != Path(self._inputs.name):
            with path.open("wb") as file:
                self._inputs_head(file)
            filter.save(self.filter_path)
            self._inputs.close()
            self._inputs = path.open("a+b")
        elif not self.filter_path.exists():
            filter.save(self.filter_path)
        for other in self.directory.glob("inputs-*.jsonl"):
            if other != path:
                other.unlink()

    def decided(self) -> Iterator[dict[str, Any]]:
        """The lines of all documents that were decided, in order."""
        with open(self._log.name, "rb") as lines:
            for number, line in enumerate(lines, 1):
                entry = _parsed(line)
                if not (_is_decision(entry) or "feedback" in entry):
                    self._refuse(f"decisions.jsonl is damaged in line {number}")
                if "document" in entry:
                    yield entry

    def close(self) -> None:
        """Close the files; the lock goes with them."""
        for file in (self._inputs, self._log, self._lock):
            if file is not None:
                file.close()

    def _inputs_path(self, n_seen: int) -> Path:
        return self.directory / f"inputs-{n_seen}.jsonl"

    def _inputs_head(self, file: Any) -> None:
        self._append(file, [as_json({"log": self._log.seek(0, os.SEEK_END)})])

    def _entry(self, line: bytes) -> dict[str, Any]:
        match entry := _parsed(line):
            case (
                {"log": int()}
                | {"document": str(), "text": str()}
                | {"feedback": [str(), str(), bool()]}
                | {"answer": [str(), str(), bool()]}
            ):
                return entry
        self._refuse(f"{Path(self._inputs.name).name} is damaged")

    def _refuse(self, what: str) -> NoReturn:
        raise FileFormatError(
            f"{self.directory} cannot go on: {what}. Put back all its files as one run left them, "
            "or start in another directory."
        )

    def _append(self, file: Any, lines: Iterable[str]) -> None:
        text = "".join(f"{line}\n" for line in lines)
        if text:
            file.seek(0, os.SEEK_END)
            # A text in memory may hold halves of surrogate pairs; json reads them back.
            file.write(text.encode("utf-8", "surrogatepass"))
            file.flush()
            if self._fsync:
                os.fsync(file.fileno())


def as_json(value: Any) -> str:
    """A value in one line."""
    return json.dumps(value, ensure_ascii=False)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _is_decision(entry: dict[str, Any]) -> bool:
    match entry:
        case {"document": str(), "topics": [*topics]}:
            needed = {"topic", "score", "action"}
            names = [set(each) if isinstance(each, dict) else set() for each in topics]
            return all(needed <= each <= needed | {"answer"} for each in names)
    return False


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
    file, got = log, lock(log)
    if got is None and (msvcrt := optional_module("msvcrt")):
        # Windows: what is locked cannot be read either, so it is a file of its own.
        file = (directory / "lock").open("ab")
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            got = False
    if got is False:
        file.close()
        log.close()
        raise InvalidInputError(
            f"{directory} is used by another run; wait for it, or give another directory."
        )
    return file
