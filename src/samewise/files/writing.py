"""Write a file whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from samewise.files.locking import lock

_POSIX = os.name == "posix"


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[Any]) -> None:
    """Write chunks of bytes to a temporary file beside the path, then move it there.

    Whoever opens the path, at any moment and after any crash, finds the old content or the new.
    Temporary files that killed writers of this path left behind are removed; that of a writer at
    work is locked, which tells them apart.

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
    _sweep(folder, name)
    temporary, file = _locked_temporary(folder, name)
    try:
        with file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            if _POSIX:
                # While it is locked: nobody may take it for one that was left behind.
                os.replace(temporary, target)
        if not _POSIX:
            os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def _locked_temporary(folder: str, name: str) -> tuple[str, Any]:
    while True:
        path = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
        # "x" and not mkstemp: the file gets the permissions any new file of the user gets.
        file = open(path, "xb")
        if lock(file) is not False and os.path.exists(path):
            return path, file
        # Swept between the two steps: it was not locked yet.
        file.close()


def _sweep(folder: str, name: str) -> None:
    """Remove temporary files of this name whose writers were killed."""
    ours = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}\.tmp")
    try:
        found = list(filter(ours.fullmatch, os.listdir(folder)))
    except OSError:
        # One may write to a folder that one may not list.
        return
    for left in found:
        # Another process may sweep, or finish, at the same time.
        with suppress(OSError), open(os.path.join(folder, left), "rb") as file:
            if lock(file):
                os.unlink(file.name)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Bring the names of the files of a folder to the disk.

    Examples
    --------
    >>> sync_folder(".")
    """
    # Where folders cannot be opened (Windows), the move needs no such push.
    if not _POSIX:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
