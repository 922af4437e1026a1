"""What a service holds while a million events go in: memory, the write-ahead log, the disk."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.service import unit_rows
from benchmarks.service_process import ServiceProcess
from samewise import Client

N_ITEMS, N_FEATURES, N_SHOWN = 2_000, 64, 10
N_EVENTS, TOGETHER = 1_000_000, 1_000
SHOWN_AT = (10_000, 50_000, 100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)


def run() -> list[dict[str, object]]:
    """Events with ids and users, in batches; and searches meanwhile."""
    X = unit_rows(N_ITEMS, N_FEATURES)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder, ServiceProcess(Path(folder)) as process:
        with Client(process.url, "c", retries=12) as client:
            client.make()
            client.put([f"i{i}" for i in range(N_ITEMS)], X)
            client.start()
            ends, n_searches = threading.Event(), [0]
            reader = threading.Thread(target=_read, args=(process.url, X, ends, n_searches))
            reader.start()
            wal = 0
            for first in range(0, N_EVENTS, TOGETHER):
                done = client.feedback(_events(X, first))
                wal = max(wal, process.size("collection.sqlite-wal"))
                n = first + TOGETHER
                if n in SHOWN_AT:
                    while client.describe()["seq"] < done["seq"]:
                        time.sleep(0.2)
                    rows.append(
                        {
                            "events": n,
                            "searches": n_searches[0],
                            "memory MB": process.memory(),
                            "WAL at most MB": wal // 10**6,
                            "disk MB": process.size("*") // 10**6,
                        }
                    )
            ends.set()
            reader.join()
    return rows


def _events(X: np.ndarray, first: int) -> list[dict[str, object]]:
    random = np.random.RandomState(first)
    queries = random.randint(len(X), size=TOGETHER)
    shown = random.randint(len(X), size=(TOGETHER, N_SHOWN))
    near = np.einsum("nd,nkd->nk", X[queries], X[shown])
    events: list[dict[str, object]] = []
    for i, (q, rows, scores) in enumerate(zip(queries, shown, near, strict=True)):
        rows, places = np.unique(rows, return_index=True)
        liked = scores[places] > np.median(scores[places])
        names = np.array([f"i{row}" for row in rows])
        events.append(
            {
                "type": "judged",
                "event": f"event {first + i}",
                "user": f"user {random.randint(10_000)}",
                "query": X[q].tolist(),
                "shown": names.tolist(),
                "liked": names[liked].tolist(),
                "disliked": names[~liked].tolist(),
            }
        )
    return events


def _read(url: str, X: np.ndarray, ends: threading.Event, n_searches: list[int]) -> None:
    random = np.random.RandomState(0)
    with Client(url, "c", retries=12, timeout=120) as client:
        while not ends.wait(0.01):
            client.search(X[random.randint(len(X))], k=10)
            n_searches[0] += 1
