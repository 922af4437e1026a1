"""What a kept run has printed, so that the next one prints the rest and nothing twice."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from samewise.exceptions import FileFormatError


class Printed:
    """Prints what was decided about documents, in their order, each once over all runs.

    After each document that is printed, its number goes to the file `printed` of the run's
    directory. A kill between the two would have it printed again. If the output is appended to the
    same file by all runs, that is seen too: the number goes there with the size of the output, and
    what the output has beyond it is compared with what is to be printed.

    Parameters
    ----------
    directory : Path or None
        The directory that keeps the run; without one nothing is remembered.
    """

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / "printed"
        self._file: Any = None
        self._n = 0
        self._begun = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def show(self, n: int, lines: Iterable[str]) -> None:
        """Print the lines about document number n, unless they were printed before."""
        # Opened late: the directory is made, and locked, when the first document is decided.
        if self._path is not None and self._file is None:
            self._open(self._path)
        if n <= self._n:
            return
        text = "".join(lines)
        if self._begun:
            data = text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")
            sys.stdout.buffer.write(data.removeprefix(self._begun))
            sys.stdout.buffer.flush()
            self._begun = b""
        else:
            # At once: whoever reads an endless stream must not wait for a full buffer.
            print(text, end="", flush=True)
        self._n = n
        self._record()

    def _open(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        content = self._file.read() or b"[0, 0, 0, 0]"
        try:
            self._n, *output, size = map(int, json.loads(content))
        except (ValueError, TypeError) as error:
            raise FileFormatError(
                f"{path} is damaged; write into it how many documents were printed, as [n, 0, 0, 0]"
                ", or start in another directory."
            ) from error
        if any(output) and output == _output()[:2]:
            self._begun = _output_beyond(size)
        if not self._begun:
            self._record()

    def _record(self) -> None:
        if self._file is not None:
            # Always as long, and so written over the last one at a stroke.
            self._file.seek(0)
            self._file.write(f"{json.dumps([self._n, *_output()]):<99}\n".encode())


def _output() -> list[int]:
    """Device, number and size of the file that standard output is; zeros if it is none."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return [0, 0, 0]
    if not stat.S_ISREG(found.st_mode):
        return [0, 0, 0]
    return [found.st_dev, found.st_ino, found.st_size]


def _output_beyond(size: int) -> bytes:
    """What standard output has beyond a size; nothing where it cannot be read again."""
    try:
        with open(f"/dev/fd/{sys.stdout.fileno()}", "rb") as file:
            file.seek(size)
            return file.read()
    except OSError:
        return b""
