"""Verify a folder: the database, every block of vectors, every file, and the model by replay."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from samewise.adapt import LiveAdapter
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container
from samewise.files.locking import lock
from samewise.files.storable import made
from samewise.serve.collection_stores import CollectionStores, is_collection
from samewise.serve.item_graph import damaged_graphs
from samewise.serve.replaying import replayed
from samewise.serve.text_encoder import TextEncoder


def check_folder(
    folder: Path, url: str | None = None
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """What the collections of a folder hold, and what is wrong with them.

    A tail that a killed process left behind its last commit is cut off, as at every start; that is
    nothing wrong.

    Parameters
    ----------
    folder : Path
        The folder of a service that is not running.
    url : str, default=None
        Of the PostgreSQL database that has the logs of some collections.

    Returns
    -------
    counts : dict
        For each collection, how many records, items, blocks, snapshots and graphs were verified.
    problems : list of str
        What is wrong; empty if nothing is.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder of samewise serve.")
    with (folder / "lock").open("ab") as file:
        if lock(file) is False:
            raise InvalidInputError(f"{folder} is used by a running service; end it first.")
        counts: dict[str, dict[str, int]] = {}
        problems: list[str] = []
        for path in sorted(folder.iterdir()):
            try:
                if not is_collection(path):
                    continue
                stores = CollectionStores(path, url=url)
            except (FileFormatError, OSError) as error:
                problems.append(str(error))
                continue
            try:
                counts[path.name], found = _check(stores)
            finally:
                stores.close()
            problems += [f"{path.name}: {one}" for one in found]
    return counts, problems


def _check(stores: CollectionStores) -> tuple[dict[str, int], list[str]]:
    problems = stores.database.problems()
    blocks = stores.items.blocks()
    if stores.segments is not None:
        for first in stores.segments.damaged(blocks):
            problems.append(f"the vectors from row {first} on are damaged.")
    covered = np.zeros(len(stores.snapshot.alive), dtype=bool)
    for block in blocks:
        covered[block.first : block.first + block.count] = True
    for row in np.flatnonzero(stores.snapshot.alive & ~covered)[:10]:
        problems.append(f"the item of row {row} has no vector.")
    snapshots = stores.models.snapshots()
    for path in snapshots.values():
        try:
            made(container.read(path), LiveAdapter)
        except FileFormatError as error:
            problems.append(str(error))
    if not problems:
        problems += _model_problems(stores)
    n_graphs, damaged = damaged_graphs(stores.folder / "graph", len(stores.snapshot.alive))
    problems += damaged
    counts = {
        "records": stores.events.last(),
        "items": stores.items.count(),
        "blocks": len(blocks),
        "snapshots": len(snapshots),
        **({"graphs": n_graphs} if n_graphs else {}),
    }
    return counts, problems


def _model_problems(stores: CollectionStores) -> list[str]:
    """Whether the log leads to the newest snapshot, to the bit."""
    start = stores.events.newest("start", stores.events.last())
    if start is None:
        return []
    try:
        if start.body["encoder"] is not None:
            stores.models.read_named(start.body["encoder"], TextEncoder)
        newest = next((s for s in stores.models.snapshots() if s >= start.seq), None)
        until = stores.events.last() if newest is None else newest
        replay = replayed(stores.events, stores.models, stores.vectors, until, snapshots=False)
    except (FileFormatError, OSError) as error:
        return [str(error)]
    assert replay.adapter is not None
    if newest is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.samewise"
        replay.adapter.save(path)
        if path.read_bytes() != stores.models.snapshots()[newest].read_bytes():
            return [f"the log does not lead to the model of record {newest}."]
    return []
