"""Objects of files of JSON lines, one after the other, in bounded memory."""

from __future__ import annotations

import gzip
import json
import os
import select
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from samewise.exceptions import FileFormatError
from samewise.files.container import unique_names

_Made = TypeVar("_Made")

LONGEST = 2**26
"""Bytes of a line, or of a file in a folder, that are read at most."""


def lines_of(source: str) -> Iterator[bytes | None]:
    """The lines of a file, or of standard input ("-"); None where that has no more for the moment.

    A file whose name ends in .gz is unpacked; damage is an error after the lines before it. Of a
    line longer than `LONGEST` no more is given than shows that it is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "file.jsonl"
    ...     _ = path.write_text('{"a": 1}\\n')
    ...     list(lines_of(str(path)))
    [b'{"a": 1}', b'']
    """
    return _split(_standard_input() if source == "-" else _content(source))


def _content(path: str) -> Iterator[bytes]:
    """The content of a file in pieces, unpacked if its name ends in .gz."""
    if not path.endswith(".gz"):
        with open(path, "rb") as file:
            yield from iter(partial(file.read, 2**16), b"")
        return
    try:
        with gzip.open(path, "rb") as packed:
            # Small pieces: the one in which damage is found is lost as a whole.
            yield from iter(partial(packed.read1, 2**12), b"")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError(
            f"{path} is damaged or cut off ({str(error).rstrip('.')}); what comes before that was "
            "read. Give the whole file."
        ) from error


def _split(pieces: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """The lines of pieces of text; of one that is too long, no more than shows that it is."""
    rest: list[bytes] = []
    length = 0
    for piece in pieces:
        if piece is None:
            yield None
            continue
        *lines, last = piece.split(b"\n")
        for line in lines:
            yield b"".join([*rest, line]) if rest else line
            rest, length = [], 0
        if last and length <= LONGEST:
            rest.append(last)
            length += len(last)
    yield b"".join(rest)


def _standard_input() -> Iterator[bytes | None]:
    """Pieces of standard input, and None whenever the next one has not come yet."""
    source: Any = sys.stdin.buffer
    try:
        number = source.fileno()
        select.select([number], [], [], 0)
    except (OSError, ValueError):
        # Not a file of the system, or a system that cannot ask it.
        yield from iter(partial(source.read1, 2**16), b"")
        return
    piece = b"any"
    while piece:
        if not select.select([number], [], [], 0)[0]:
            yield None
        piece = os.read(number, 2**20)
        yield piece


def objects(
    lines: Iterable[bytes | None],
    name: str,
    skip: Callable[[str], None],
    make: Callable[[dict[str, Any], str], _Made],
) -> Iterator[_Made | None]:
    """What `make` makes of the JSON object of each line, and of where it is; None while waiting.

    Lines that are malformed are skipped, blank ones silently.
    """
    number = 0
    for line in lines:
        if line is None:
            yield None
            continue
        number += 1
        if line.strip():
            try:
                yield make(json_object(line, f"{name}:{number}"), f"{name}:{number}")
            except FileFormatError as error:
                skip(str(error))


def check_text(text: str, where: str) -> None:
    """Refuse what JSON can write, but no file in UTF-8: half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FileFormatError(
            f"{where} has {text[error.start]!r}, half of a surrogate pair, which is no character; "
            "write both halves or leave it out."
        ) from error


def check_length(content: bytes, where: str) -> None:
    """Refuse what is too long to be read at once."""
    if len(content) > LONGEST:
        raise FileFormatError(
            f"{where} is longer than {LONGEST:,} bytes, the most that one document may have; cut "
            "it into several."
        )


def json_object(line: bytes, where: str) -> dict[str, Any]:
    """The JSON object of a line."""
    check_length(line, where)
    try:
        entry = json.loads(line, object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{where} is not JSON ({error}).") from error
    if not isinstance(entry, dict):
        raise FileFormatError(f"{where} should be an object, not {type(entry).__name__}.")
    return entry
