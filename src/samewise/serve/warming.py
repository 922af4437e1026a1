"""Compiled code, before the first request needs it."""

from __future__ import annotations

import numpy as np

from samewise.adapt import Judged, LiveAdapter
from samewise.adapt.own_memory import OwnMemory


def compile_loops() -> None:
    """Compile the loops of learning and mapping, or load what was compiled: nobody waits for it."""
    items = np.random.RandomState(0).randn(64, 8).astype(np.float32)
    adapter = LiveAdapter(log=False, random_state=0).fit(items)
    adapter.items = lambda rows: items[rows]
    event = Judged(items[0], [0, 1, 2], [1, -1, 0], None)
    adapter.feedback(event, weight=1.0)
    adapter.promote()
    # Live and served apart: the loops take two views or three.
    adapter.feedback(event, weight=1.0)
    for form in (adapter.start, adapter.live, adapter.served):
        form.embed_query(items[0])
    own = OwnMemory(adapter._fitted, 1)
    own.hear(items[0], items[:2], np.array([1, -1]), 1.0)
    own.added(items[0])
