"""Who changed what: one line of JSON for each action of an operator."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from samewise.files.writing import sync_folder

MOST_BYTES = 16 * 2**20
"""Of a file; then it is named audit.jsonl.1, the one of this name audit.jsonl.2, and so on."""
KEPT = 9
"""Older files that are kept."""


class AuditLog:
    """Lines at the end of a file, each on the disk before the answer is sent.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab")
        self._lock = threading.Lock()

    def add(self, who: str, action: str, collection: str, outcome: str) -> None:
        """Write down an action. JSON escapes line breaks, so that nobody can forge a line."""
        entry = {"time": time.time(), "who": who, "action": action, "collection": collection}
        line = (json.dumps({**entry, "outcome": outcome}) + "\n").encode()
        with self._lock:
            if 0 < self._file.tell() > MOST_BYTES - len(line):
                self._rotate()
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())

    def _rotate(self) -> None:
        """Begin a new file; the oldest of those that are kept goes."""
        self._file.close()
        files = audit_files(self._path)
        for old, new in zip(files[-2::-1], files[:0:-1], strict=True):
            if old.exists():
                old.replace(new)
        self._file = self._path.open("ab")
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def audit_files(path: Path) -> list[Path]:
    """The files of an audit log that there may be, the newest first."""
    return [path, *(path.with_name(f"{path.name}.{n + 1}") for n in range(KEPT))]
