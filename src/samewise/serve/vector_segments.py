"""Vectors in append-only files of float32 rows, mapped into memory and checked by checksums.

Rows are numbered. Segment k is the file ``vectors-k.f32``, with the rows from k·R to (k + 1)·R − 1
one after the other. Rows come in blocks, whose checksums stand in the database: a block counts once
the transaction that names it is committed, and the rows are on the disk before that. What lies
behind the last block was written by a process that was killed; it is cut off when the folder is
opened.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files.writing import sync_folder

SEGMENT_BYTES = 2**26
"""A segment has as many rows as fit into this."""


@dataclass(frozen=True)
class Block:
    """Rows that were appended together, within one segment."""

    first: int
    count: int
    crc: int


def rows_of_segment(width: int, segment_bytes: int) -> int:
    """How many rows a full segment has."""
    return max(segment_bytes // (4 * width), 1)


def segment_name(segment: int) -> str:
    """The name of the file of a segment."""
    return f"vectors-{segment:06d}.f32"


def segment_lengths(
    blocks: Iterable[tuple[int, int]], width: int, segment_bytes: int
) -> dict[str, int]:
    """Of each file, how many bytes the blocks, (first row, count), name."""
    size = rows_of_segment(width, segment_bytes)
    lengths: dict[str, int] = {}
    for first, count in blocks:
        name = segment_name(first // size)
        lengths[name] = max(lengths.get(name, 0), (first % size + count) * 4 * width)
    return lengths


class VectorSegments:
    """The vectors of a collection.

    Parameters
    ----------
    folder : Path
        Where the files are.
    width : int
        Numbers in a row.
    blocks : iterable of Block
        What is committed.
    segment_bytes : int, default=SEGMENT_BYTES
        The size of a full segment; the same for as long as the folder exists.
    """

    def __init__(
        self,
        folder: Path,
        width: int,
        blocks: Iterable[Block] = (),
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.folder, self.width = folder, width
        self.per_segment = rows_of_segment(width, segment_bytes)
        self._files: dict[int, Any] = {}
        self._touched: set[int] = set()
        self._ends: dict[int, int] = {}
        self.n_rows = 0
        for block in blocks:
            segment = block.first // self.per_segment
            end = block.first + block.count
            self._ends[segment] = max(self._ends.get(segment, 0), end)
            self.n_rows = max(self.n_rows, end)
        self.cut()

    def path(self, segment: int) -> Path:
        """The file of a segment."""
        return self.folder / segment_name(segment)

    def cut(self) -> int:
        """Cut off what is not committed; how many bytes that were."""
        gone = 0
        for path in sorted(self.folder.glob("vectors-*.f32")):
            segment = int(path.stem.removeprefix("vectors-"))
            size, wanted = path.stat().st_size, self._bytes(segment)
            if size <= wanted:
                continue
            gone += size - wanted
            if wanted:
                os.truncate(path, wanted)
            else:
                path.unlink()
        for segment in self._ends:
            path = self.path(segment)
            if not path.exists() or path.stat().st_size < self._bytes(segment):
                raise FileFormatError(
                    f"{path} is missing or shorter than what was committed; put back the files of "
                    "the collection from a copy."
                )
        return gone

    def _bytes(self, segment: int) -> int:
        """How long the file of a segment is."""
        if segment not in self._ends:
            return 0
        return (self._ends[segment] - segment * self.per_segment) * 4 * self.width

    # Writing, by one thread

    def append(self, vectors: Array) -> list[Block]:
        """Write rows behind the last; the blocks to commit. They are safe after `sync`."""
        rows = np.ascontiguousarray(vectors, dtype="<f4")
        blocks = []
        while len(rows):
            segment, place = divmod(self.n_rows, self.per_segment)
            part = rows[: self.per_segment - place]
            rows = rows[len(part) :]
            data = part.tobytes()
            file = self._file(segment)
            file.seek(place * 4 * self.width)
            file.write(data)
            blocks.append(Block(self.n_rows, len(part), zlib.crc32(data)))
            self.n_rows += len(part)
            self._touched.add(segment)
        return blocks

    def _file(self, segment: int) -> Any:
        if segment not in self._files:
            for file in self._files.values():
                file.flush()
            path = self.path(segment)
            self._files[segment] = path.open("r+b" if path.exists() else "x+b")
        return self._files[segment]

    def sync(self) -> None:
        """Bring what was appended to the disk."""
        for segment in self._touched:
            file = self._files[segment]
            file.flush()
            os.fsync(file.fileno())
        new = self._touched - self._ends.keys()
        if new:
            sync_folder(self.folder)

    def committed(self) -> None:
        """The blocks since the last call are committed."""
        for segment in self._touched:
            end = min(self.n_rows, (segment + 1) * self.per_segment)
            if end > segment * self.per_segment:
                self._ends[segment] = end
        self._touched.clear()
        for segment in sorted(self._files)[:-1]:
            self._files.pop(segment).close()

    def take_back(self, n_rows: int) -> None:
        """Rows from this number on were not committed; they will be written over."""
        self.n_rows = n_rows

    def remove(self, segments: Iterable[int]) -> None:
        """Delete files whose rows nobody needs; their blocks are no longer in the database."""
        for segment in segments:
            self._ends.pop(segment, None)
            if segment in self._files:
                self._files.pop(segment).close()
            self.path(segment).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    # Reading, of what is committed

    def maps(self) -> Maps:
        """The committed rows as they are now, for readers."""
        return map_rows(self.folder, self.width, self.per_segment, self._ends, self.n_rows)

    def damaged(self, blocks: Iterable[Block]) -> list[int]:
        """The first rows of blocks whose checksum does not match."""
        found, maps = [], self.maps()
        for block in blocks:
            try:
                rows = maps.rows(np.arange(block.first, block.first + block.count))
            except InvalidInputError:
                found.append(block.first)
                continue
            if zlib.crc32(rows.astype("<f4").tobytes()) != block.crc:
                found.append(block.first)
        return found


@dataclass(frozen=True, eq=False)
class Maps:
    """Committed rows at one moment: (number of the first row, rows) of each segment."""

    parts: tuple[tuple[int, Array], ...]
    n_rows: int
    width: int

    def rows(self, numbers: Sequence[int] | NDArray[np.integer[Any]]) -> Array:
        """Some rows, copied."""
        wanted = np.asarray(numbers, dtype=np.int64)
        if len(self.parts) == 1 and len(wanted):
            # Most often, and quicker.
            first, part = self.parts[0]
            places = wanted - first
            if places.min() >= 0 and places.max() < len(part):
                return np.asarray(part.take(places, axis=0), dtype=np.float32)
        found = np.empty((len(wanted), self.width), dtype=np.float32)
        filled = np.zeros(len(wanted), dtype=bool)
        for first, part in self.parts:
            mine = (wanted >= first) & (wanted < first + len(part))
            found[mine] = part[wanted[mine] - first]
            filled |= mine
        if not filled.all():
            raise InvalidInputError(f"There is no vector {int(wanted[~filled][0])}.")
        return found


def map_rows(
    folder: Path, width: int, per_segment: int, ends: Mapping[int, int], n_rows: int
) -> Maps:
    """Rows of files: of each segment those before a number."""
    parts = []
    for segment, end in sorted(ends.items()):
        first = segment * per_segment
        shape = (end - first, width)
        mapped: Any = np.memmap(folder / segment_name(segment), dtype="<f4", mode="r", shape=shape)
        # A plain array over the map: slices of a memmap cost more.
        parts.append((first, np.asarray(mapped).view(np.ndarray)))
    return Maps(tuple(parts), n_rows, width)
