"""What need not be kept: what came before the newest start, and vectors that nobody needs."""

from __future__ import annotations

import numpy as np

from samewise.serve.collection_stores import CollectionStores


def compact(stores: CollectionStores) -> dict[str, int]:
    """Remove what no replay and no search can reach; a job of the writer.

    Records before the newest start go, with the files they name. A segment of vectors goes when
    none of its rows belongs to an item, to feedback that a replay would read, or to an impression.

    Returns
    -------
    dict of str to int
        How many records and segments were removed.
    """
    start = stores.events.newest("start", stores.events.last())
    n_records = 0
    if start is not None:
        n_records = stores.events.drop_before(start.seq)
        stores.models.drop_unnamed([start])
    segments = [] if stores.segments is None else _needless(stores, start.seq if start else 0)
    if stores.segments is not None:
        size = stores.segments.per_segment
        stores.items.drop_rows([(s * size, (s + 1) * size) for s in segments])
        stores.drop_segments(segments)
    return {"records": n_records, "segments": len(segments)}


def _needless(stores: CollectionStores, start: int) -> list[int]:
    """Segments without a row that is needed; the last one stays, since rows are counted on."""
    assert stores.segments is not None
    size, n_rows = stores.segments.per_segment, stores.segments.n_rows
    needed = np.zeros(n_rows // size + 1, dtype=bool)
    needed[-1] = needed[(n_rows - 1) // size] = True
    needed[np.flatnonzero(stores.snapshot.alive) // size] = True
    for row in stores.impressions.needed_rows():
        needed[row // size] = True
    after = start
    while records := stores.events.read(after):
        for record in records:
            if record.kind == "feedback":
                needed[np.array(record.body["rows"]) // size] = True
        after = records[-1].seq
    there = [first // size for first, _ in stores.snapshot.maps.parts]
    return [segment for segment in there if not needed[segment]]
