"""Approximate search for many items: an HNSW graph over rows, whose finds are scored exactly.

Rows never change, and learning moves queries only, so that a graph stays right for as long as its
rows exist. It covers the rows up to a number; newer ones are few and are searched exactly, and
those that died since are passed over. Where a graph finds too little, exact search answers.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.files.writing import file_sha256
from samewise.kernels.neighbors import top_k
from samewise.serve.item_search import SPARE, ItemSnapshot, best_of

BREADTHS = (32, 64, 128, 256)
"""How many candidates a search of the graph keeps; the smallest that is good enough is taken."""
RECALL = 0.99
"""How many of the ten best of sampled queries must be found, or search stays exact."""
SAMPLED = 64
MOST_TRIED = 2048
"""Candidates beyond which a filter is so selective that exact search is asked."""
_LINKS, _BUILD_BREADTH = 16, 128
_TOGETHER = 1000
_FILE = re.compile(r"rows-(\d{12})-([0-9a-f]{64})\.usearch")
_LOG = logging.getLogger("samewise.serve")


class ItemGraph:
    """A graph over the rows before a number; it never changes.

    Parameters
    ----------
    index : usearch.index.Index
        Rows by their numbers.
    n_rows : int
        The number before which all rows are in it that were an item's then.
    """

    def __init__(self, index: Any, n_rows: int) -> None:
        self._index, self.n_rows = index, n_rows
        self.breadth = BREADTHS[0]

    def __len__(self) -> int:
        return len(self._index)

    def candidates(self, query: Array, count: int) -> Indices:
        """About the best rows for a query, also such that died since."""
        keys: Indices = self._index.search(query, count, threads=1).keys.astype(np.int64)
        return keys

    def best(
        self,
        snapshot: ItemSnapshot,
        query: Array,
        k: int,
        accepted: Callable[[Indices], NDArray[np.bool_]] | None = None,
    ) -> tuple[Indices, NDArray[np.float64]] | None:
        """The k best rows and their scores; None if there are too few among the candidates.

        Parameters
        ----------
        snapshot : ItemSnapshot
        query : array of shape (d,)
        k : int
        accepted : callable, default=None
            Of rows, whether each may be found.
        """
        count = k + SPARE
        newer = self._newer(snapshot, query, count)
        while count <= max(MOST_TRIED, k + SPARE) and count <= len(self):
            rows = self.candidates(query, max(count, self.breadth))
            rows = rows[rows < snapshot.maps.n_rows]
            rows = np.concatenate([rows[snapshot.alive[rows]], newer])
            if accepted is not None:
                rows = rows[accepted(rows)]
            if len(rows) >= k:
                return best_of(snapshot, rows, query, k)
            count *= 4
        return None

    def _newer(self, snapshot: ItemSnapshot, query: Array, k: int) -> Indices:
        """The best of the rows that are not in the graph."""
        scores = snapshot.scores(query[None], self.n_rows)[0]
        if not len(scores):
            return np.empty(0, dtype=np.int64)
        rows = top_k(scores[None], min(k, len(scores)))[0] + self.n_rows
        return rows[snapshot.alive[rows]]

    def tune(self, snapshot: ItemSnapshot, queries: Array) -> float:
        """Take the smallest breadth that is good enough; the share of the ten best that it finds.

        Parameters
        ----------
        snapshot : ItemSnapshot
        queries : array of shape (n, d)
        """
        k = min(10, snapshot.n_alive)
        truth = [set(top_k(snapshot.scores(q[None]), k)[0].tolist()) for q in queries]
        recall = 0.0
        for breadth in BREADTHS:
            self.breadth = self._index.expansion_search = breadth
            found = [self.best(snapshot, q, k) for q in queries]
            hits = sum(
                len(right & set(rows[0].tolist()))
                for right, rows in zip(truth, found, strict=True)
                if rows is not None
            )
            recall = hits / (k * len(queries))
            if recall >= RECALL:
                break
        return recall


class GraphKeeper:
    """A thread that loads, builds and extends the graph of a collection; searches never wait.

    Parameters
    ----------
    folder : Path
        Where graphs are kept.
    snapshot : callable
        The items as they are now.
    queries : callable
        Of a number, the newest queries that were asked, at most so many.
    least : int or None
        From how many items on there is a graph; None for never.
    builds : bool, default=True
        Whether it builds; else it loads what another process built.
    """

    def __init__(
        self,
        folder: Path,
        snapshot: Callable[[], ItemSnapshot],
        queries: Callable[[int], Array],
        least: int | None,
        builds: bool = True,
    ) -> None:
        self._folder, self._snapshot, self._queries = folder, snapshot, queries
        self._least, self._builds = least, builds
        self._refused = 0
        self._loaded: Path | None = None
        self.graph: ItemGraph | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samewise-graph", daemon=True)
        if least is not None and _usearch() is not None:
            folder.mkdir(exist_ok=True)
            self._thread.start()

    def close(self) -> None:
        """End; what is being built is left."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()

    # The thread

    def _run(self) -> None:
        try:
            if self._builds:
                self._sweep()
            while not self._ends.is_set():
                self._look()
                self._ends.wait(0.5)
        except Exception:
            # Search is exact from now on.
            self.graph = None
            _LOG.exception("the graph of %s is given up", self._folder.parent.name)

    def _sweep(self) -> None:
        """Remove what killed processes left."""
        newest = self._newest()
        for path in self._folder.iterdir():
            if path.suffix == ".new" or (_FILE.fullmatch(path.name) and path != newest):
                path.unlink()

    def _look(self) -> None:
        snapshot = self._snapshot()
        assert self._least is not None
        if snapshot.n_alive < self._least:
            self.graph = None
            return
        self._load(snapshot)
        if not self._builds:
            return
        n_rows = snapshot.maps.n_rows
        due = max(2 * self._refused, 1)
        if self.graph is not None:
            due = self.graph.n_rows + max(_TOGETHER, self.graph.n_rows // 100)
        if n_rows >= due:
            self._build(snapshot)
            self._load(snapshot)

    def _newest(self) -> Path | None:
        found = [path for path in self._folder.iterdir() if _FILE.fullmatch(path.name)]
        return max(found, key=lambda path: path.name, default=None)

    def _load(self, snapshot: ItemSnapshot) -> None:
        """Use the newest file, if it is whole and finds what exact search finds."""
        path = self._newest()
        if path is None or path == self._loaded:
            return
        match = _FILE.fullmatch(path.name)
        assert match is not None
        self._loaded = path
        try:
            whole = file_sha256(path) == match[2]
            # A damaged file is not looked into: it could end the process.
            index = _usearch().restore(str(path), view=True) if whole else None
        except FileNotFoundError:
            # Replaced by a newer one meanwhile.
            return
        n_rows, recall, name = int(match[1]), 0.0, self._folder.parent.name
        if index is None:
            _LOG.warning("%s: the file of the graph is damaged; it is built again", name)
        else:
            graph = ItemGraph(index, n_rows)
            recall = graph.tune(snapshot, self._sample(snapshot))
            if recall >= RECALL:
                self.graph, self._refused = graph, 0
                return
            _LOG.warning("%s: the graph finds %.3f of the best; search is exact", name, recall)
        self.graph, self._refused = None, 0 if index is None else n_rows
        if self._builds:
            path.unlink()
            self._loaded = None

    def _sample(self, snapshot: ItemSnapshot) -> Array:
        """Queries that were asked; of a new collection, items that are moved by half their size."""
        asked = self._queries(SAMPLED)
        if len(asked) >= SAMPLED:
            return asked
        random = np.random.RandomState(0)
        rows = snapshot.maps.rows(random.choice(np.flatnonzero(snapshot.alive), SAMPLED))
        size = np.linalg.norm(rows, axis=1, keepdims=True) / np.sqrt(rows.shape[1])
        moved = rows + 0.5 * size * random.randn(*rows.shape).astype(np.float32)
        return np.asarray(moved, dtype=np.float32)

    def _build(self, snapshot: ItemSnapshot) -> None:
        """Add the rows that are not in the newest graph, and write it; anew if half of it died."""
        old = self._newest()
        index, begin = (
            _usearch()(
                ndim=snapshot.maps.width,
                metric="ip",
                dtype="f16",
                connectivity=_LINKS,
                expansion_add=_BUILD_BREADTH,
            ),
            0,
        )
        if self.graph is not None and old is not None and old == self._loaded:
            n_alive = int(snapshot.alive[: self.graph.n_rows].sum())
            if 2 * n_alive >= len(self.graph):
                index, begin = _usearch().restore(str(old)), self.graph.n_rows
                index.expansion_add = _BUILD_BREADTH
        rows = np.flatnonzero(snapshot.alive[begin:]) + begin
        for first in range(0, len(rows), _TOGETHER):
            if self._ends.is_set():
                return
            part = rows[first : first + _TOGETHER]
            index.add(part, snapshot.maps.rows(part), threads=1)
        self._write(index, snapshot.maps.n_rows, old)

    def _write(self, index: Any, n_rows: int, old: Path | None) -> None:
        new = self._folder / f"{n_rows:012d}.new"
        index.save(str(new))
        digest = file_sha256(new)
        with new.open("rb") as file:
            os.fsync(file.fileno())
        path = self._folder / f"rows-{n_rows:012d}-{digest}.usearch"
        new.replace(path)
        if old is not None and old != path:
            # Windows keeps a file that is mapped; it goes at the next start.
            with suppress(PermissionError):
                old.unlink()


def damaged_graphs(folder: Path, n_rows: int) -> tuple[int, list[str]]:
    """How many files of graphs there are, and what is wrong with them.

    Parameters
    ----------
    folder : Path
        Where graphs are kept; it need not be there.
    n_rows : int
        How many rows the collection has.
    """
    found, problems = 0, []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _FILE.fullmatch(path.name)
        if match is None:
            continue
        found += 1
        if file_sha256(path) != match[2]:
            problems.append(f"{path} is damaged; delete it, and the service builds it again.")
        elif int(match[1]) > n_rows:
            problems.append(
                f"{path} is of {int(match[1])} rows, and there are {n_rows}; delete it."
            )
    return found, problems


def _usearch() -> Any:
    """The index of usearch; None where it is not installed."""
    try:
        from usearch.index import Index
    except ModuleNotFoundError:
        return None
    return Index
