"""The live adapter: an event of ten items, and a query, at 20 000 remembered events."""

from __future__ import annotations

import time

import numpy as np

from samewise import LiveAdapter

WANTED = {384: 60, 1536: 1300}
"""µs of an event."""
QUERY = 30
"""µs of a query beyond the start's, at 384 features."""


def run() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for d, n_events in ((384, 20_000), (768, 3000), (1536, 3000)):
        rows += _rows(d, n_events)
    return rows


def _rows(d: int, n_events: int) -> list[dict[str, object]]:
    random = np.random.RandomState(0)
    items = random.randn(200, d)[random.randint(200, size=8000)] + 0.8 * random.randn(8000, d)
    items = (items / np.linalg.norm(items, axis=1, keepdims=True)).astype(np.float32)
    adapter = LiveAdapter(items=items, log=False, random_state=0).fit(items)
    lists = items[random.randint(8000, size=(500, 10))]
    answers = np.where(random.rand(500, 10) < 0.5, 1, -1)
    answers[:, :2] = 1, -1
    queries = random.randint(8000, size=n_events)
    times = []
    for i, q in enumerate(queries):
        shown, y = lists[i % 500], answers[i % 500]
        begin = time.thread_time()
        adapter.feedback(items[q], shown, y)
        times.append(time.thread_time() - begin)
        if i == n_events // 2:
            adapter.promote()
    event = 1e6 * float(np.median(times[-1000:]))
    row: dict[str, object] = {"features": d, "remembered": n_events, "event": round(event)}
    row["wanted"] = WANTED.get(d, "")
    for name in ("start", "live", "served"):
        form = getattr(adapter, name)
        spent = [_query(form, items[i]) for i in range(1000)]
        row[f"query, {name}"] = round(1e6 * float(np.median(spent)))
    row["wanted beyond the start"] = QUERY if d == 384 else ""
    return [row]


def _query(form: object, q: object) -> float:
    begin = time.thread_time()
    form.embed_query(q)
    return time.thread_time() - begin
