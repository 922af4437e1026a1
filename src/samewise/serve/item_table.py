"""The items of a collection: names, payloads, and which row of the segments has the vector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.serve.database import Database
from samewise.serve.vector_segments import Block

_TOGETHER = 500
"""Values of one statement; SQLite takes at least 999."""


class ItemTable:
    """Items in the database of the collection. What replaces an item is a new entry with a new row.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # Writing, inside a transaction

    def put(self, id: str, payload: str, row: int | None, seq: int) -> int | None:
        """Add or replace an item; the row that died, if any."""
        died = self.delete(id, seq)
        self._database.writer.execute(
            "INSERT INTO items(id, payload, row) VALUES (?, ?, ?)", (id, payload, row)
        )
        return died[0] if died else None

    def delete(self, id: str, seq: int) -> list[int | None]:
        """Bury an item: its row (None if it has no vector yet); nothing if it is not there."""
        found = self._database.writer.execute(
            "UPDATE items SET dead = ? WHERE id = ? AND dead IS NULL RETURNING row", (seq, id)
        ).fetchall()
        return [row for (row,) in found]

    def move(self, keys: Sequence[int], first: int) -> None:
        """Give items new rows, one after the other."""
        rows = range(first, first + len(keys))
        self._database.writer.executemany(
            "UPDATE items SET row = ? WHERE key = ?", zip(rows, keys, strict=True)
        )

    def add_blocks(self, blocks: Iterable[Block]) -> None:
        """Name blocks of vectors, which count from now on."""
        values = [(b.first, b.count, b.crc) for b in blocks]
        self._database.writer.executemany("INSERT INTO blocks VALUES (?, ?, ?)", values)

    def drop_rows(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Forget the dead items and the blocks of some ranges of rows."""
        writer = self._database.writer
        for first, end in ranges:
            writer.execute("DELETE FROM blocks WHERE first >= ? AND first < ?", (first, end))
            writer.execute(
                "DELETE FROM items WHERE row >= ? AND row < ? AND dead IS NOT NULL", (first, end)
            )

    # Reading

    def blocks(self) -> list[Block]:
        """All committed blocks of vectors."""
        return [Block(*row) for row in self._database.read("SELECT * FROM blocks ORDER BY first")]

    def alive(self, n_rows: int) -> NDArray[np.bool_]:
        """For each row whether it is the vector of an item."""
        alive = np.zeros(n_rows, dtype=bool)
        statement = "SELECT row FROM items WHERE row > ? AND dead IS NULL ORDER BY row LIMIT 10000"
        last = -1
        # In parts: a million rows as objects would be most of the memory of a start.
        while part := self._database.read(statement, (last,)):
            last = part[-1][0]
            alive[[row for (row,) in part]] = True
        return alive

    def mark(self) -> tuple[int, int]:
        """The newest entry, and when the last one was buried: other marks, other items."""
        ((key,),) = self._database.read("SELECT max(key) FROM items")
        ((dead,),) = self._database.read("SELECT max(dead) FROM items WHERE dead IS NOT NULL")
        return int(key or 0), int(dead or 0)

    def changes(self, key: int, dead: int) -> tuple[list[int], list[int]]:
        """Since a mark: the rows of new items, and the rows of items that died."""
        added = "SELECT row FROM items WHERE key > ? AND dead IS NULL AND row IS NOT NULL"
        died = "SELECT row FROM items WHERE dead > ? AND row IS NOT NULL"
        found = [
            [int(row) for (row,) in self._database.read(text, (after,))]
            for text, after in ((added, key), (died, dead))
        ]
        return found[0], found[1]

    def n_rows(self) -> int:
        """The number after the last row of a block."""
        statement = "SELECT first + count FROM blocks ORDER BY first DESC LIMIT 1"
        return sum(int(end) for (end,) in self._database.read(statement))

    def ends(self, per_segment: int) -> dict[int, int]:
        """Of each segment, the number after its last row."""
        statement = "SELECT first / ?, max(first + count) FROM blocks GROUP BY 1"
        return {int(s): int(end) for s, end in self._database.read(statement, (per_segment,))}

    def count(self) -> int:
        """How many items there are, with and without a vector."""
        ((n,),) = self._database.read("SELECT count(*) FROM items WHERE dead IS NULL")
        return int(n)

    def all_alive(self) -> list[tuple[int, str]]:
        """The key and the payload of each item, in the order in which they came."""
        rows = self._database.read("SELECT key, payload FROM items WHERE dead IS NULL ORDER BY key")
        return [(int(key), str(payload)) for key, payload in rows]

    def of_rows(self, rows: Sequence[int]) -> dict[int, tuple[str, dict[str, Any]]]:
        """The id and the payload of rows, also of those that died."""
        found = {}
        for row, id, payload in self._in("SELECT row, id, payload FROM items WHERE row IN", rows):
            found[int(row)] = (str(id), json.loads(payload))
        return found

    def rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The rows of items by their ids; those that are not there are missing."""
        statement = "SELECT id, row FROM items WHERE dead IS NULL AND row IS NOT NULL AND id IN"
        return {str(id): int(row) for id, row in self._in(statement, ids)}

    def get(self, id: str) -> dict[str, Any] | None:
        """The payload of an item."""
        statement = "SELECT payload FROM items WHERE id = ? AND dead IS NULL"
        found = self._database.read(statement, (id,))
        return json.loads(found[0][0]) if found else None

    def _in(self, statement: str, values: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
        for start in range(0, len(values), _TOGETHER):
            part = tuple(values[start : start + _TOGETHER])
            marks = ", ".join("?" * len(part))
            yield from self._database.read(f"{statement} ({marks})", part)
