"""A collection as a process that only reads has it: items and model follow what another writes."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.serve.collection_stores import Settings, events_of
from samewise.serve.database import Database
from samewise.serve.event_store import UnreachableError
from samewise.serve.group_commit import BusyError
from samewise.serve.impressions import Impression, Impressions
from samewise.serve.item_graph import GraphKeeper
from samewise.serve.item_search import ItemSnapshot
from samewise.serve.item_table import ItemTable
from samewise.serve.learning import Learning
from samewise.serve.model_files import ModelFiles
from samewise.serve.searched_collection import Encode, SearchedCollection
from samewise.serve.searching import Searching
from samewise.serve.vector_segments import SEGMENT_BYTES, Maps, map_rows, rows_of_segment

PAUSE = 0.01
"""Seconds between two looks at the log."""

UNREACHABLE = 1.0
"""Seconds until a log that cannot be reached is looked at again."""

Keep = Callable[[Impression], None]


class FollowedStores:
    """The files of a collection, which are read only.

    Parameters
    ----------
    folder : Path
    keep : callable
        Brings an impression to the process that writes.
    url : str, default=None
        Of the PostgreSQL database with the log, if it is there.
    """

    def __init__(self, folder: Path, keep: Keep, url: str | None = None) -> None:
        self.folder, self._keep = folder, keep
        self.database = Database(folder / "collection.sqlite")
        self.settings = Settings(**json.loads(self.database.setting("settings") or "{}"))
        self.events = events_of(self.database, url, writes=False)
        self.items = ItemTable(self.database)
        self.impressions = Impressions(self.database, 0)
        self.models = ModelFiles(folder / "models")
        self._mark: Any = None
        self._refreshing = threading.Lock()
        self._alive = np.zeros(0, dtype=bool)
        self.snapshot = ItemSnapshot(Maps((), 0, 0), self._alive, 0)
        self.refresh(0)

    @property
    def width(self) -> int | None:
        """Numbers in a vector; None before the first."""
        return self.snapshot.maps.width or None

    def vectors(self, rows: Any) -> Array:
        """The vectors of rows."""
        try:
            return self.snapshot.maps.rows(rows)
        except InvalidInputError:
            # Of items that came after the last look: feedback about them is read already.
            self.refresh()
            return self.snapshot.maps.rows(rows)

    def keep(self, impression: Impression) -> None:
        """Bring an impression to the process that writes."""
        self._keep(impression)

    def close(self) -> None:
        """Close the files."""
        self.events.close()
        self.database.close()

    def refresh(self, start: int | None = None) -> None:
        """Take the items as they are committed; `start` is the number of the newest start.

        Reads that follow one another may see a later commit each. That does no harm: a row is
        mapped only if its block is known, and a row of a later commit is taken the next time.
        """
        with self._refreshing:
            self._refresh(start)

    def _refresh(self, start: int | None) -> None:
        width = int(self.database.setting("width") or 0)
        if start is None:
            start = 0 if self._mark is None else self._mark[0]
        mark = (start, *self.items.mark(), width)
        if mark == self._mark or not width:
            return
        size = rows_of_segment(width, int(self.database.setting("segment_bytes") or SEGMENT_BYTES))
        alive = self._alive_rows(mark)
        ends = self.items.ends(size)
        n_rows = max(ends.values(), default=0)
        # What was added meanwhile is taken the next time.
        alive = np.concatenate([alive, np.zeros(max(n_rows - len(alive), 0), dtype=bool)])[:n_rows]
        maps = map_rows(self.folder / "vectors", width, size, ends, n_rows)
        self._alive, self._mark = alive, mark
        self.snapshot = ItemSnapshot(maps, alive, int(alive.sum()))

    def _alive_rows(self, mark: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which rows are items: all are asked for after a start, else what changed."""
        old = self._mark
        n_rows = self.items.n_rows()
        if old is None or old[0] != mark[0]:
            return self.items.alive(n_rows)
        alive = np.zeros(n_rows, dtype=bool)
        alive[: len(self._alive)] = self._alive[:n_rows]
        added, died = self.items.changes(old[1], old[2])
        alive[[row for row in added if row < n_rows]] = True
        alive[[row for row in died if row < n_rows]] = False
        return alive


class FollowedCollection(SearchedCollection):
    """A collection that another process writes; searches are answered from the files.

    Parameters
    ----------
    folder : Path
    keep : callable
        Brings an impression to the process that writes.
    encode : callable, default=None
        Vectors of texts, for a collection with ``encoder="callable"``.
    url : str, default=None
        Of the PostgreSQL database with the log, if it is there.
    """

    def __init__(
        self, folder: Path, keep: Keep, encode: Encode | None = None, url: str | None = None
    ) -> None:
        self.stores: FollowedStores = FollowedStores(folder, keep, url)
        stores = self.stores
        self._encode = encode
        self._start = 0
        self._inode = stores.database.path.stat().st_ino
        self._encoder = None
        self.learning = Learning(
            stores.events, stores.models, stores.vectors, sys.maxsize, writes=False
        )
        self._look()
        self.graphs = GraphKeeper(
            folder / "graph",
            lambda: stores.snapshot,
            stores.impressions.queries,
            self.settings.index_from,
            builds=False,
        )
        self.searching = Searching(stores, self.learning, self.graphs)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samewise-follower", daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether searches can be answered here."""
        return self.learning.adapter is not None

    @property
    def there(self) -> bool:
        """Whether it follows a collection that was not deleted; else it must be opened again."""
        try:
            same = self.stores.database.path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False
        return same and self.learning.failed is None

    def close(self) -> None:
        """Close the files."""
        self._ends.set()
        self._thread.join()
        self.graphs.close()
        self.learning.close()
        self.stores.close()

    def _ensure_started(self) -> None:
        if not self.ready:
            raise BusyError("The collection is not ready here; try again.")

    # The thread that follows

    def _run(self) -> None:
        known = 0
        while not self._ends.wait(PAUSE):
            try:
                last = self.stores.events.last()
                if last != known:
                    # Items first: whoever finds a number learned finds the items up to it.
                    self._look()
                    self.learning.committed(last)
                    known = last
            except FileNotFoundError:
                # A segment that was removed between two looks.
                continue
            except UnreachableError:
                # Searches are answered with what was learned by then.
                self._ends.wait(UNREACHABLE)
            except Exception as error:
                self.learning.fail(error)
                return

    def _look(self) -> None:
        """Take the items and the encoder as they are committed."""
        start = self.stores.events.newest("start", self.stores.events.last())
        number = 0 if start is None else start.seq
        if number != self._start:
            self._encoder = self._newest_encoder()
        self.stores.refresh(number)
        self._start = number
