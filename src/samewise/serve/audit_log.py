"""Who changed what: one line of JSON for each action of an operator."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path


class AuditLog:
    """Lines at the end of a file, each on the disk before the answer is sent.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._lock = threading.Lock()

    def add(self, who: str, action: str, collection: str, outcome: str) -> None:
        """Write down an action. JSON escapes line breaks, so that nobody can forge a line."""
        entry = {"time": time.time(), "who": who, "action": action, "collection": collection}
        line = json.dumps({**entry, "outcome": outcome}) + "\n"
        with self._lock:
            self._file.write(line.encode())
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
