"""Files of models: where feedback started from, and snapshots by sequence number."""

from __future__ import annotations

import re
import secrets
from copy import copy
from pathlib import Path
from typing import Any

from samewise.adapt import LiveAdapter
from samewise.exceptions import FileFormatError
from samewise.files import container
from samewise.files.storable import Storable, made
from samewise.files.writing import file_sha256
from samewise.serve.event_store import Record
from samewise.serve.learning_curve import LearningCurve

KEPT = 3
"""Snapshots that are kept; an older one is good where the newest are damaged."""
_SNAPSHOT = re.compile(r"model-(\d{16})\.samewise")
_NAMED = re.compile(r"(?:start|encoder)-[0-9a-f]{32}\.samewise")


class ModelFiles:
    """The folder with the models of a collection.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # What the log names

    def write_named(self, kind: str, what: Storable) -> dict[str, str]:
        """Write what a record of the log will name: its name and checksum."""
        name = f"{kind}-{secrets.token_hex(16)}.samewise"
        path = self.folder / name
        what.save(path)
        return {"file": name, "sha256": file_sha256(path)}

    def read_named(self, named: dict[str, str], family: type) -> Any:
        """What a record of the log names."""
        if not _NAMED.fullmatch(named["file"]):
            raise FileFormatError(f"{self.folder} has no file {named['file']!r}.")
        path = self.folder / named["file"]
        if file_sha256(path) != named["sha256"]:
            raise FileFormatError(f"{path} is not the file that was written; put it back.")
        return made(container.read(path), family)

    # Snapshots

    def snapshots(self) -> dict[int, Path]:
        """The snapshots by sequence number, the newest first."""
        found = {
            int(match[1]): path
            for path in self.folder.iterdir()
            if (match := _SNAPSHOT.fullmatch(path.name))
        }
        return dict(sorted(found.items(), reverse=True))

    def write_snapshot(self, seq: int, adapter: LiveAdapter, curve: LearningCurve) -> Path:
        """The model after a record; written whole or not at all. What was measured comes first.

        Called by the thread that learns, in no turn of its own: nothing changes meanwhile.
        """
        path = self.folder / f"model-{seq:016d}.samewise"
        curve.save(curve_of(path))
        # A shallow copy has a lock of its own: who maps queries meanwhile does not wait.
        copy(adapter).save(path)
        for old in list(self.snapshots().values())[KEPT:]:
            _remove(old)
        return path

    def curve(self, seq: int) -> LearningCurve | None:
        """What was measured until a snapshot; None where that is not known."""
        try:
            path = curve_of(self.folder / f"model-{seq:016d}.samewise")
            found: LearningCurve = made(container.read(path), LearningCurve)
        except (FileFormatError, FileNotFoundError):
            # The model does not depend on it.
            return None
        return found

    def newest(self, until: int, forgets: list[Record]) -> tuple[int, LiveAdapter | None]:
        """The newest good snapshot up to a number that knows nothing of what was forgotten."""
        for seq, path in self.snapshots().items():
            if seq > until or not sound_at(seq, forgets):
                continue
            try:
                return seq, made(container.read(path), LiveAdapter)
            except (FileFormatError, FileNotFoundError):
                # Damaged, or removed since by the process that writes: an older one and more
                # replay lead to the same model.
                continue
        return 0, None

    def drop_unsound(self, last: int, forgets: list[Record]) -> None:
        """Remove snapshots of records that are not in the log, or that know what was forgotten."""
        for seq, path in self.snapshots().items():
            if seq > last or not sound_at(seq, forgets):
                _remove(path)
        known = {curve_of(path) for path in self.snapshots().values()}
        for path in self.folder.glob("curve-*.samewise"):
            # A kill came between the two files.
            if path not in known:
                path.unlink()

    def drop_unnamed(self, starts: list[Record]) -> None:
        """Remove starts and encoders that no record names; by the thread that writes them."""
        named = {
            part["file"]
            for record in starts
            for part in record.body.values()
            if isinstance(part, dict)
        }
        for path in self.folder.iterdir():
            if _NAMED.fullmatch(path.name) and path.name not in named:
                path.unlink()


def curve_of(snapshot: Path) -> Path:
    """The file with what was measured until a snapshot."""
    return snapshot.with_name(snapshot.name.replace("model-", "curve-"))


def _remove(snapshot: Path) -> None:
    """Remove a snapshot, and what was measured until there."""
    curve_of(snapshot).unlink(missing_ok=True)
    snapshot.unlink()


def sound_at(seq: int, forgets: list[Record]) -> bool:
    """Whether a model after this record knows nothing that was forgotten later."""
    return all(
        seq >= forget.seq or not forget.body["first"] or seq < forget.body["first"]
        for forget in forgets
    )
