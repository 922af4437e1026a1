"""The live adapter: an event of ten items, and a query, at 20 000 remembered events.

Times are of the processor, the best of means over 25 calls: other work on the machine makes calls
slower, never faster. "found" is the share of the nearest remembered lists that the cells find.
"torch" is a step of AdamW on a d × d matrix for one list, a batch of 1, with a softmax of the liked
items against the others, where PyTorch is installed; it is measured in turns with the event.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from samewise import LiveAdapter
from samewise.adapt.adapter_course import NEAREST
from samewise.kernels.adapter_event import near_cells, whiten
from samewise.kernels.event_cells import CANDIDATES, ENDED, NEVER, _candidates, _keep_nearest

WANTED = {384: 60, 1536: 1300}
"""µs of an event."""
QUERY = 30
"""µs of a query beyond the start's, at 384 features."""


def run() -> list[dict[str, object]]:
    return [_row(d, n_events) for d, n_events in ((384, 20_000), (768, 3000), (1536, 3000))]


def _row(d: int, n_events: int) -> dict[str, object]:
    random = np.random.RandomState(0)
    items = random.randn(200, d)[random.randint(200, size=8000)] + 0.8 * random.randn(8000, d)
    items = (items / np.linalg.norm(items, axis=1, keepdims=True)).astype(np.float32)
    adapter = LiveAdapter(items=items, log=False, random_state=0).fit(items)
    lists = items[random.randint(8000, size=(500, 10))]
    answers = np.where(random.rand(500, 10) < 0.5, 1, -1)
    answers[:, :2] = 1, -1
    queries = items[random.randint(8000, size=n_events)]

    def event(i: int) -> None:
        adapter.feedback(queries[i % n_events], lists[i % 500], answers[i % 500])

    for i in range(n_events):
        event(i)
        if i == n_events // 2:
            adapter.promote()
    row: dict[str, object] = {"features": d, "remembered": n_events}
    step = _torch_step(d, queries, lists, answers)
    if step is None:
        row["event"] = _best(event)
    else:
        # In turns: other work on the machine makes both slower.
        rounds = [(_best(event, repeats=20), _best(step, repeats=4)) for _ in range(4)]
        row["event"], row["torch"] = (min(times) for times in zip(*rounds, strict=True))
        row["times"] = round(row["torch"] / row["event"], 1)
    row["wanted"] = WANTED.get(d, "")
    for name in ("start", "live", "served"):
        form = getattr(adapter, name)
        row[f"query, {name}"] = _best(lambda i, form=form: form.embed_query(items[i % 8000]))
    row["wanted beyond the start"] = QUERY if d == 384 else ""
    row["found"] = round(_found(adapter, items[:200]), 2)
    return row


def _torch_step(
    d: int, queries: np.ndarray, lists: np.ndarray, answers: np.ndarray
) -> Callable[[int], object] | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    W = torch.nn.Parameter(torch.eye(d))
    optimizer = torch.optim.AdamW([W], lr=1e-4)

    def step(i: int) -> None:
        q, shown = torch.from_numpy(queries[i % len(queries)]), torch.from_numpy(lists[i % 500])
        scores = 20.0 * torch.nn.functional.normalize(W @ q, dim=0) @ shown.T
        liked = torch.from_numpy(answers[i % 500] > 0)
        loss = -torch.log_softmax(scores, dim=0)[liked].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def _best(call: Callable[[int], object], n: int = 25, repeats: int = 80) -> int:
    means = []
    for r in range(repeats):
        begin = time.thread_time()
        for i in range(r * n, (r + 1) * n):
            call(i)
        means.append((time.thread_time() - begin) / n)
    return round(1e6 * min(means))


def _found(adapter: LiveAdapter, queries: np.ndarray) -> float:
    """The share of the exactly nearest lists that are among the chosen ones."""
    course = adapter._fitted
    units, (cells, (vectors, numbers, _), sketches) = course.compiled_units, course.memory.compiled
    n = course.memory._n_slots
    view = np.array([course.memory.window], dtype=np.int64)
    seen = (numbers[:n] >= view[0, 0]) & (sketches[2][:n, ENDED] == NEVER)
    live = np.flatnonzero(seen & (course.memory._of_slot[:n] >= 0))
    shares, f = [], np.empty(units[1].shape[1], dtype=np.float32)
    for q in queries:
        whiten(q, units[0], units[1], f)
        z = f * units[2]
        slots = np.empty((1, CANDIDATES), dtype=np.int64)
        scores = np.empty((1, CANDIDATES), dtype=np.float32)
        held = _candidates(z, near_cells(z, units), cells, sketches, view, slots, scores)
        kept = _keep_nearest(slots[0], scores[0], held[0], NEAREST)
        exact = live[np.argsort(-(vectors[live, 0] @ q), kind="stable")[:NEAREST]]
        shares.append(np.isin(exact, slots[0, :kept]).mean())
    return float(np.mean(shares))
