"""Why an item is where it is: its score under the forms, and what feedback has to do with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from samewise._typing import Array
from samewise.adapt import LiveAdapter
from samewise.serve.learning_curve import LearningCurve

NEAREST = 5
"""Remembered lists with the nearest queries that are named."""


def score_parts(adapter: LiveAdapter, query: Array, item: Array) -> dict[str, dict[str, float]]:
    """The score under each form, and how much of it the linear part and remembered lists add.

    "first" is the form that chooses the first place of what is served.
    """
    p, rows = item.astype(np.float64), query[None]
    course, base = adapter._fitted, adapter._base(rows)
    start = float(base[0].astype(np.float64) @ p)
    parts = {}
    for name in ("start", "served", "live", "first"):
        which, place = ("served", "first") if name == "first" else (name, "rest")
        form, window = course.form(which, place)
        # Without remembered lists, and with them.
        alone, whole = (
            float(course.embed(rows, base, form, seen)[0].astype(np.float64) @ p)
            for seen in ((0, 0, 0), window)
        )
        parts[name] = {"score": whole, "linear": alone - start, "remembered": whole - alone}
    return parts


def nearest_lists(
    adapter: LiveAdapter, curve: LearningCurve, query: Array, item: Array
) -> list[dict[str, Any]]:
    """The remembered lists with the nearest queries, and how far each pulls toward the item.

    `seq` is the list's record in the log, None if it is not known; `pull` is the item's product
    with the mean of the liked minus the mean of the disliked items of the list.
    """
    memory = adapter._fitted.memory
    queries, directions, numbers, _ = memory.events
    used = memory.used_slots()
    close = queries[used] @ query
    nearest = used[np.argsort(-close, kind="stable")[:NEAREST]]
    return [
        {
            "seq": curve.record_of(int(numbers[slot]), memory),
            "similarity": float(queries[slot] @ query),
            "pull": float(directions[slot] @ item),
        }
        for slot in nearest.tolist()
    ]
