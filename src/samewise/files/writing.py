"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[Any]) -> None:
    """Write chunks of bytes to a temporary file beside the path, then move it there.

    Whoever opens the path, at any moment and after any crash, finds the old content or the new.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "file"
    ...     write_atomically(path, [b"ab", b"c"])
    ...     path.read_bytes()
    b'abc'
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    try:
        # "x" and not mkstemp: the file gets the permissions any new file of the user gets.
        with open(temporary, "xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    # Where folders cannot be opened (Windows), the move needs no such push.
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
