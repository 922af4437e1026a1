"""The last documents of a stream: what feedback can still be about."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.filtering.sparse_store import Rows, packed, stacked, unpacked_names

_Block: TypeAlias = tuple[int, Sequence[str], Rows]


class RecentDocuments:
    """Ids and vectors of the last `size` documents.

    Examples
    --------
    >>> from samewise.filtering.sparse_store import as_rows
    >>> window = RecentDocuments(2, n_features=1)
    >>> window.add(["a", "b", "c"], as_rows([[1.0], [2.0], [3.0]]))
    >>> window.get("a"), window.get("c").data
    (None, array([3.]))
    """

    def __init__(self, size: int, n_features: int) -> None:
        self.size, self.n_features = size, n_features
        self.n_seen = 0
        # Each block with the number of its first document in the stream.
        self._blocks: deque[_Block] = deque()
        self._places: dict[str, tuple[int, _Block]] = {}

    def checked(self, ids: Sequence[str] | None, n: int) -> list[str]:
        """Ids for n documents to come, by default their numbers; none may be repeated."""
        if ids is None:
            return self.checked([str(self.n_seen + i) for i in range(n)], n)
        if isinstance(ids, str) or len(ids) != n:
            raise InvalidInputError(
                f"There must be one id for each of {n} documents. Got {len(ids)}."
            )
        new: dict[str, int] = {}
        for place, id in enumerate(ids, self.n_seen):
            if not isinstance(id, str):
                raise InvalidInputError(f"Ids must be texts. Got {id!r}; use str(id).")
            before = new.get(id, self._place(id))
            if before >= max(place - self.size, 0):
                raise InvalidInputError(
                    f"The id {id!r} was seen already, {place - before} documents before; give each "
                    "document an id of its own."
                )
            new[id] = place
        return list(ids)

    def seen(self, id: str, ahead: int) -> bool:
        """Whether the document that comes after `ahead` others may not have this id."""
        return self._place(id) >= max(self.n_seen + ahead - self.size, 0)

    def add(self, ids: Sequence[str], rows: Rows) -> None:
        """Take in documents that are being decided."""
        # A copy: a part of a large block must not keep all of it in memory.
        rows = Rows(rows.indptr, rows.indices.copy(), rows.data.copy(), rows.n_features)
        block = (self.n_seen, ids, rows)
        self._blocks.append(block)
        self._places.update((id, (place, block)) for place, id in enumerate(ids, self.n_seen))
        self.n_seen += len(ids)
        while self._blocks and self._blocks[0][0] + len(self._blocks[0][1]) <= self._first:
            start, old, _ = self._blocks.popleft()
            for place, id in enumerate(old, start):
                if self._place(id) == place:
                    del self._places[id]

    @property
    def _first(self) -> int:
        return max(self.n_seen - self.size, 0)

    def _place(self, id: str) -> int:
        return self._places[id][0] if id in self._places else -1

    def get(self, id: str) -> Rows | None:
        """The vector of a document, if it is one of the last."""
        if self._place(id) < self._first:
            return None
        place, (start, _, rows) = self._places[id]
        return rows.row(place - start)

    def last(self, n: int) -> tuple[list[str], Rows]:
        """Ids and vectors of the last n documents, or of all that are there."""
        first = max(self._first, self.n_seen - n)
        ids: list[str] = []
        parts: list[Rows] = []
        for start, names, rows in self._blocks:
            skip = max(first - start, 0)
            ids += names[skip:]
            parts.append(rows[skip:])
        return ids, stacked(parts, self.n_features)

    def state(self) -> State:
        """The last documents, in whatever blocks they came."""
        ids, rows = self.last(self.size)
        return State({"ids": packed(ids)}, {"n_seen": self.n_seen}).add("rows", rows.state())

    @classmethod
    def restore(cls, saved: Saved, size: int, n_features: int) -> RecentDocuments:
        """The window of a saved state."""
        window = cls(size, n_features)
        ids = unpacked_names(saved, "ids")
        n_seen = saved.count("n_seen")
        rows = Rows.restore(saved.part("rows"), len(ids))
        right = len(ids) == min(size, n_seen) == len(set(ids)) and rows.n_features == n_features
        saved.check(right, "recent documents must be the last ones")
        window.n_seen = n_seen - len(ids)
        window.add(ids, rows)
        return window


def is_mark(n: int) -> bool:
    """Whether n is 2ᵏ or 3·2ᵏ."""
    return n > 0 and n >> ((n & -n).bit_length() - 1) in (1, 3)


def until_mark(n: int) -> int:
    """How many are missing to the next mark after n."""
    power = 1 << max(n.bit_length() - 1, 0)
    return 1 if n == 0 else (3 * power // 2 if power > 1 and n < 3 * power // 2 else 2 * power) - n
