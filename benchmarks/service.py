"""The service on loopback: durable events a second, and searches beside the bare product."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from samewise import Client
from samewise.serve.item_search import ItemSnapshot, ProductBatches, best_rows
from samewise.serve.vector_segments import VectorSegments

N_ITEMS, N_FEATURES = 20_000, 384
SECONDS = 4.0


def run_http() -> list[dict[str, object]]:
    """A process of its own, asked by this one: feedback, and searches while it learns and idles."""
    X = unit_rows(N_ITEMS, N_FEATURES)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        code = "from samewise.cli import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", folder, "--port", str(port)],
            stdout=subprocess.DEVNULL,
        )
        try:
            with Client(f"http://127.0.0.1:{port}", "c", retries=12) as client:
                client.make()
                for first in range(0, N_ITEMS, 2000):
                    names = [f"i{first + i}" for i in range(2000)]
                    client.put(names, X[first : first + 2000])
                client.start()
                return _measured(client, X)
        finally:
            process.terminate()
            process.wait()


def _measured(client: Client, X: np.ndarray) -> list[dict[str, object]]:
    random = np.random.RandomState(0)
    shown = client.search(X[0], k=10)
    ids = [result["id"] for result in shown["results"]]
    event = {"type": "judged", "impression": shown["impression"]}
    event |= {"liked": ids[:3], "disliked": ids[3:]}
    search = lambda: client.search(X[random.randint(N_ITEMS)], k=10)  # noqa: E731
    rows: list[dict[str, object]] = []
    idle = _latencies(search)
    rows.append({"what": "search, idle", "a second": _rate(idle), "p99 ms": _p99(idle)})
    for n, wanted in ((1, 500), (50, 5000)):
        spent = _latencies(lambda n=n: client.feedback([event] * n))
        row = {"what": f"feedback, {n} a request", "a second": n * _rate(spent)}
        rows.append({**row, "p99 ms": _p99(spent), "wanted": f">= {wanted} a second"})
    ends = threading.Event()
    with Client(client.url, "c") as other:
        teacher = threading.Thread(target=_teach, args=(other, event, ends))
        teacher.start()
        busy = _latencies(search)
        ends.set()
        teacher.join()
    ratio = round(_p99(busy) / _p99(idle), 2)
    row = {"what": "search, learning", "a second": _rate(busy), "p99 ms": _p99(busy)}
    rows.append({**row, "ratio": ratio, "wanted": "p99 <= 1.5 of idle"})
    return rows


def _teach(client: Client, event: dict[str, object], ends: threading.Event) -> None:
    while not ends.is_set():
        client.feedback([event] * 20)


def _latencies(work: Callable[[], object]) -> list[float]:
    spent: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return spent


def _rate(spent: list[float]) -> int:
    return round(len(spent) / sum(spent))


def _p99(spent: list[float]) -> float:
    return round(1000 * float(np.percentile(spent, 99)), 1)


def unit_rows(n: int, d: int) -> np.ndarray:
    X = np.random.RandomState(0).randn(n, d).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def run_search() -> list[dict[str, object]]:
    """Exact search of 32 queries that come at once, against the product of the same 32."""
    X = unit_rows(100_000, N_FEATURES)
    Q = unit_rows(32, N_FEATURES)
    with tempfile.TemporaryDirectory() as folder:
        segments = VectorSegments(Path(folder), N_FEATURES)
        segments.append(X)
        segments.sync()
        segments.committed()
        snapshot = ItemSnapshot(segments.maps(), np.ones(len(X), dtype=bool), len(X))
        batches = ProductBatches()
        bare, batched, products = [], [], []
        for _ in range(5):
            begin = time.process_time()
            _ = Q @ X.T
            bare.append(time.process_time() - begin)
            before = batches.n_products
            begin = time.process_time()
            _together(snapshot, batches, Q)
            batched.append(time.process_time() - begin)
            products.append(batches.n_products - before)
        segments.close()
    row: dict[str, object] = {"items": len(X), "queries": len(Q)}
    row["bare product ms a query"] = round(1000 * float(np.median(bare)) / len(Q), 2)
    row["search ms a query"] = round(1000 * float(np.median(batched)) / len(Q), 2)
    row["ratio"] = round(float(np.median(batched) / np.median(bare)), 2)
    return [{**row, "products": float(np.median(products)), "wanted": "<= 1.3"}]


def _together(snapshot: ItemSnapshot, batches: ProductBatches, Q: np.ndarray) -> None:
    ready = threading.Barrier(len(Q))

    def ask(q: np.ndarray) -> None:
        ready.wait()
        best_rows(snapshot, batches.scores(snapshot, q), q, 10)

    threads = [threading.Thread(target=ask, args=(q,)) for q in Q]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
