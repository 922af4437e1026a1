"""A copy of the folder of a service, also of one that is running, in which all fits together."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.writing import sync_folder
from samewise.serve.audit_log import audit_files
from samewise.serve.checking import check_folder
from samewise.serve.collection_stores import is_collection
from samewise.serve.model_files import ModelFiles, curve_of
from samewise.serve.vector_segments import segment_lengths

TRIALS = 5
"""How often to begin anew where a compaction has removed what was to be copied."""


def back_up(
    folder: Path, to: Path, check: bool = True, url: str | None = None
) -> dict[str, dict[str, int]]:
    """Copy the folder of a service; what the copy holds, if it is checked.

    The database is copied in one transaction, so it is the log, the items and the names of blocks
    at one moment. Vectors are only ever appended: of each segment the copy has what the database
    names. Models are written whole under names of their own.

    Parameters
    ----------
    folder : Path
        The folder of a service, running or not.
    to : Path
        Where the copy goes; there must be nothing yet. A copy that was killed leaves nothing there.
    check : bool, default=True
        Whether to verify the copy as `samewise serve --check` does.
    url : str, default=None
        Of the PostgreSQL database that has the logs of some collections; the copy has them in its
        own files.

    Returns
    -------
    dict
        For each collection, how many records, items, blocks and snapshots were verified.
    """
    if not (folder / "lock").is_file():
        raise InvalidInputError(f"{folder} is not a folder of samewise serve.")
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InvalidInputError(f"{to} is there already; give a folder that is not.")
    to = to.absolute()
    to.parent.mkdir(parents=True, exist_ok=True)
    partial = to.with_name(f".{to.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        for path in sorted(folder.iterdir()):
            if not path.name.startswith(".") and is_collection(path):
                _copy_collection(path, partial / path.name, url)
        for audit in audit_files(folder / "audit.jsonl"):
            _copy_audit(audit, partial / audit.name)
        (partial / "lock").touch()
        counts: dict[str, dict[str, int]] = {}
        if check:
            counts, problems = check_folder(partial)
            if problems:
                raise FileFormatError(f"The copy is not sound: {' '.join(problems)}")
        sync_folder(partial)
        partial.rename(to)
        sync_folder(to.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return counts


def _copy_collection(source: Path, to: Path, url: str | None) -> None:
    for trial in range(TRIALS):
        for each in (to, to / "vectors", to / "models"):
            each.mkdir()
        try:
            last, starts = _copy_log(source, to, url)
            _copy_vectors(source / "vectors", to)
            _copy_models(source / "models", to / "models", last, starts)
        except FileNotFoundError:
            shutil.rmtree(to)
            if trial == TRIALS - 1:
                raise
            continue
        for each in (to / "vectors", to / "models", to):
            sync_folder(each)
        return


def _copy_log(source: Path, to: Path, url: str | None) -> tuple[int, list[dict[str, object]]]:
    """Copy the database at one moment; its newest record, and what its starts name."""
    path = to / "collection.sqlite"
    with closing(sqlite3.connect(source / "collection.sqlite", timeout=30.0)) as old:
        id = old.execute("SELECT value FROM settings WHERE name = 'events'").fetchone()
        if id is None:
            _copy_database(old, path)
        elif url is None:
            raise InvalidInputError(f"The events of {source} are in PostgreSQL; give --events.")
        else:
            from samewise.serve.postgres_events import rows_at_one_moment

            # The log first: all that its records name is in the database by then.
            with rows_at_one_moment(url, id[0]) as (log, seen):
                _copy_database(old, path)
                _take_log(path, log, seen)
    with closing(sqlite3.connect(path)) as new:
        (last,) = new.execute("SELECT max(seq) FROM log").fetchone()
        starts = new.execute(
            "SELECT body FROM log WHERE kind = 'start' UNION "
            "SELECT value FROM settings WHERE name = 'start'"
        ).fetchall()
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    _sync(path)
    return int(last or 0), [json.loads(body) for (body,) in starts]


def _copy_database(old: sqlite3.Connection, path: Path) -> None:
    with closing(sqlite3.connect(path)) as new:
        # All pages in one step: a writer does not make it begin anew.
        old.backup(new, pages=-1)


def _take_log(path: Path, log: Iterable[Any], seen: Iterable[Any]) -> None:
    with closing(sqlite3.connect(path)) as new, new:
        new.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", log)
        new.executemany("INSERT INTO seen VALUES (?, ?)", seen)
        new.execute("DELETE FROM settings WHERE name = 'events'")


def _copy_vectors(source: Path, to: Path) -> None:
    with closing(sqlite3.connect(to / "collection.sqlite")) as database:
        settings = dict(database.execute("SELECT name, value FROM settings").fetchall())
        blocks = database.execute("SELECT first, count FROM blocks").fetchall()
    if "width" not in settings:
        return
    lengths = segment_lengths(blocks, int(settings["width"]), int(settings["segment_bytes"]))
    for name, length in lengths.items():
        _copy_beginning(source / name, to / "vectors" / name, length)


def _copy_models(source: Path, to: Path, last: int, starts: list[dict[str, object]]) -> None:
    named = [part["file"] for body in starts for part in body.values() if isinstance(part, dict)]
    for name in named:
        shutil.copyfile(source / name, to / name)
        _sync(to / name)
    for seq, path in ModelFiles(source).snapshots().items():
        for each in (curve_of(path), path) if seq <= last else ():
            try:
                shutil.copyfile(each, to / each.name)
            except FileNotFoundError:
                # Newer ones have taken its place; the log leads to the same model.
                (to / each.name).unlink(missing_ok=True)
                continue
            _sync(to / each.name)


def _copy_beginning(source: Path, to: Path, length: int) -> None:
    left = length
    with source.open("rb") as old, to.open("xb") as new:
        while left:
            data = old.read(min(left, 2**24))
            if not data:
                raise FileFormatError(f"{source} is shorter than what was committed.")
            new.write(data)
            left -= len(data)
        new.flush()
        os.fsync(new.fileno())


def _copy_audit(source: Path, to: Path) -> None:
    if source.is_file():
        whole, _, _ = source.read_bytes().rpartition(b"\n")
        to.write_bytes(whole + b"\n" * bool(whole))
        _sync(to)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
