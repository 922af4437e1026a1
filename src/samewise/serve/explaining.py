"""Why an item is where it is: its score under the forms, and what feedback has to do with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt import LiveAdapter
from samewise.serve.event_store import EventStore

NEAREST = 5
MOST_READ = 20_000
"""Lists with the nearest queries that are named, among the newest so many records."""


def score_parts(adapter: LiveAdapter, query: Array, item: Array) -> dict[str, dict[str, float]]:
    """The score under each form, and how much of it the linear part and remembered lists add."""
    p = item.astype(np.float64)
    start = float(adapter.start.embed_query(query).astype(np.float64) @ p)
    parts = {}
    for which in ("start", "served", "live"):
        form = getattr(adapter, which)
        score = float(form.embed_query(query).astype(np.float64) @ p)
        matrix, bias = form.to_matrix()
        linear = float((query.astype(np.float64) @ matrix + bias) @ p) - start
        parts[which] = {"score": score, "linear": linear, "remembered": score - start - linear}
    return parts


def nearest_lists(
    events: EventStore, vectors: Any, query: Array, item: Array
) -> list[dict[str, float]]:
    """The judged lists with the nearest queries, and how far each pulls toward the item.

    `pull` is the item's product with the mean of the liked minus the mean of the disliked items.
    """
    found: list[tuple[float, int, list[int], list[int]]] = []
    after = max(events.last() - MOST_READ, 0)
    while records := events.read(after):
        after = records[-1].seq
        judged = [r for r in records if r.kind == "feedback" and r.body["type"] == "judged"]
        if not judged:
            continue
        close = np.stack([np.asarray(r.query) for r in judged]) @ query
        found += [
            (float(s), r.seq, r.body["rows"], r.body["y"])
            for s, r in zip(close, judged, strict=True)
        ]
        found = sorted(found, key=lambda one: (-one[0], -one[1]))[:NEAREST]
    lists = []
    for similarity, seq, rows, y in found:
        shown, answers = vectors(rows).astype(np.float64), np.array(y)
        if not {1, -1} <= set(y):
            continue
        v = shown[answers > 0].mean(axis=0) - shown[answers < 0].mean(axis=0)
        lists.append({"seq": seq, "similarity": similarity, "pull": float(v @ item)})
    return lists
