"""The service on loopback: durable events a second, and searches beside the bare product."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.service_process import ServiceProcess
from samewise import Client
from samewise.serve.collection import Collection
from samewise.serve.collection_stores import NewItem, Settings
from samewise.serve.item_graph import GraphKeeper
from samewise.serve.item_search import ItemSnapshot, ProductBatches, best_rows
from samewise.serve.vector_segments import VectorSegments

N_ITEMS, N_FEATURES = 20_000, 384
SECONDS = 1.5
ROUNDS = 6
"""How often what is compared takes turns."""


def run_workers() -> list[dict[str, object]]:
    """As `run_http`, with two processes that answer searches."""
    return run_http("--workers", "2")


def run_http(*options: str) -> list[dict[str, object]]:
    """A process of its own, asked by this one: feedback, and searches while it learns and idles."""
    X = unit_rows(N_ITEMS, N_FEATURES)
    with (
        tempfile.TemporaryDirectory() as folder,
        ServiceProcess(Path(folder), *options) as service,
        Client(service.url, "c", retries=12) as client,
    ):
        client.make()
        for first in range(0, N_ITEMS, 2000):
            names = [f"i{first + i}" for i in range(2000)]
            client.put(names, X[first : first + 2000])
        client.start()
        return _measured(service, client, X)


def _measured(service: ServiceProcess, client: Client, X: np.ndarray) -> list[dict[str, object]]:
    random = np.random.RandomState(0)
    shown = client.search(X[0], k=10)
    ids = [result["id"] for result in shown["results"]]
    event = {"type": "judged", "impression": shown["impression"]}
    event |= {"liked": ids[:3], "disliked": ids[3:]}
    search = lambda: client.search(X[random.randint(N_ITEMS)], k=10)  # noqa: E731
    rows: list[dict[str, object]] = []
    rows.append({"what": "4 kB to the disk, with fsync", "a second": _synced(service.folder)})
    for n, wanted in ((1, 500), (50, 5000)):
        client.feedback([event] * n)
        _wait(client)
        before, mine = service.cpu(), time.process_time()
        spent = _latencies(lambda n=n: client.feedback([event] * n), 4 * SECONDS)
        mine = time.process_time() - mine
        _wait(client)
        # Of the whole process, until all of it was learned: what bounds the rate, however busy the
        # machine is with other work, and with this client.
        n_events = n * len(spent)
        each = (service.cpu() - before) / n_events
        row = {"what": f"feedback, {n} a request", "a second": n * _rate(spent)}
        row |= {"p99 ms": _p99(spent), "CPU us an event": round(1e6 * each)}
        row |= {"a core allows": round(1 / each), "client's us": round(1e6 * mine / n_events)}
        rows.append({**row, "wanted": f">= {wanted} a second"})
    idle, busy, counts = [], [], []
    for _ in range(ROUNDS):
        idle += _latencies(search)
        ends = threading.Event()
        with Client(client.url, "c") as other:
            teacher = threading.Thread(target=_teach, args=(other, event, ends, counts))
            teacher.start()
            busy += _latencies(search)
            ends.set()
            teacher.join()
    rows.append({"what": "search, idle", "a second": _rate(idle), "p99 ms": _p99(idle)})
    ratio, taught = round(_p99(busy) / _p99(idle), 2), round(sum(counts) / ROUNDS / SECONDS)
    row = {"what": f"search, learning {taught}/s", "a second": _rate(busy), "p99 ms": _p99(busy)}
    rows.append({**row, "ratio": ratio, "wanted": "p99 <= 1.5 of idle"})
    return rows


def _synced(folder: Path) -> int:
    """How often a second a file can be written to and forced to the disk."""
    with (folder / "synced").open("wb") as file:

        def write() -> None:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

        return _rate(_latencies(write))


def _wait(client: Client) -> None:
    """Until all that is committed was learned from."""
    seq = client.describe()["committed"]
    while client.describe()["seq"] < seq:
        time.sleep(0.1)


def _teach(
    client: Client, event: dict[str, object], ends: threading.Event, counts: list[int]
) -> None:
    """About a thousand events a second."""
    while not ends.wait(0.02):
        client.feedback([event] * 20)
        counts.append(20)


def _latencies(work: Callable[[], object], seconds: float = SECONDS) -> list[float]:
    spent: list[float] = []
    end = time.perf_counter() + seconds
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
    """Exact search of 32 threads that ask again and again, against the product of 32 queries."""
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
            batched.append((time.process_time() - begin) / ROUNDS)
            products.append(batches.n_products - before)
        segments.close()
    row: dict[str, object] = {"items": len(X), "queries": len(Q)}
    row["bare product ms a query"] = round(1000 * float(np.median(bare)) / len(Q), 2)
    row["search ms a query"] = round(1000 * float(np.median(batched)) / len(Q), 2)
    row["ratio"] = round(float(np.median(batched) / np.median(bare)), 2)
    return [
        {
            **row,
            "queries a product": round(ROUNDS * len(Q) / float(np.median(products)), 1),
            "wanted": "<= 1.3",
        }
    ]


def _together(snapshot: ItemSnapshot, batches: ProductBatches, Q: np.ndarray) -> None:
    ready = threading.Barrier(len(Q))

    def ask(q: np.ndarray) -> None:
        ready.wait()
        for _ in range(ROUNDS):
            batches.best(snapshot, q, 10)

    threads = [threading.Thread(target=ask, args=(q,)) for q in Q]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_graph(n_items: int = 100_000) -> list[dict[str, object]]:
    """Search by a graph, of queries that are no items, against exact search of the same."""
    X, Q = grouped_rows(n_items, 1), grouped_rows(200, 2)
    with tempfile.TemporaryDirectory() as folder:
        segments = VectorSegments(Path(folder), N_FEATURES)
        segments.append(X)
        segments.sync()
        segments.committed()
        snapshot = ItemSnapshot(segments.maps(), np.ones(len(X), dtype=bool), len(X))
        begin = time.process_time()
        keeper = GraphKeeper(Path(folder) / "graph", lambda: snapshot, lambda n: Q[:0], 2)
        while keeper.graph is None:
            time.sleep(0.1)
        built, graph = time.process_time() - begin, keeper.graph
        batches, rows = ProductBatches(), []
        one = [_timed(lambda q=q: batches.best(snapshot, q, 10)) for q in Q]
        begin = time.process_time()
        for scores, q in zip(snapshot.scores(Q[:32]), Q[:32], strict=True):
            best_rows(snapshot, scores, q, 10)
        together = (time.process_time() - begin) / 32
        near = [_timed(lambda q=q: graph.best(snapshot, q, 10)) for q in Q]
        hits = [len(set(a[0]) & set(b[0])) for (_, a), (_, b) in zip(one, near, strict=True)]
        keeper.close()
        segments.close()
    alone, quick = (float(np.median([spent for spent, _ in each])) for each in (one, near))
    row: dict[str, object] = {"items": n_items, "breadth": graph.breadth}
    row["built, CPU s"] = round(built, 1)
    row["recall@10"] = round(float(np.mean(hits)) / 10, 4)
    row["ms a query"] = round(1000 * quick, 3)
    row["exact, alone"] = f"{alone / quick:.1f} x"
    row["exact, 32 together"] = f"{together / quick:.1f} x"
    rows.append({**row, "wanted": "recall >= .99 at >= 20 x"})
    return rows


def _timed(work: Callable[[], object]) -> tuple[float, Any]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def grouped_rows(n: int, seed: int) -> np.ndarray:
    """Unit vectors of 500 groups in 48 dimensions, with noise in all; a seed draws others."""
    fixed, random = np.random.RandomState(0), np.random.RandomState(seed)
    basis = fixed.randn(48, N_FEATURES) / np.sqrt(N_FEATURES)
    centers = fixed.randn(500, 48)
    X = (centers[random.randint(500, size=n)] + 0.7 * random.randn(n, 48)) @ basis
    X += 2.1 / np.sqrt(N_FEATURES) * random.randn(n, N_FEATURES)
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


_STARTED = """
import json, sys, time
begin = time.perf_counter()
from pathlib import Path
import numpy as np
from samewise.serve.collection import Collection
from samewise.serve.searching import Question

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

collection = Collection(Path(sys.argv[1]))
started, before = time.perf_counter() - begin, resident()
query = np.random.RandomState(1).randn(collection.stores.width)
for _ in range(3):
    collection.search(Question(), query)
found = {"seconds": started, "before": before, "after": resident()}
collection.close()
print(json.dumps(found))
"""


def run_large(n_items: int = 1_000_000) -> list[dict[str, object]]:
    """How long a process takes to open many items, imports included, and what it then holds."""
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection(Path(folder), Settings(index_from=None))
        random = np.random.default_rng(0)
        for first in range(0, n_items, 20_000):
            rows = random.standard_normal((20_000, N_FEATURES), dtype=np.float32)
            collection.put([NewItem(f"i{first + i}", {}) for i in range(len(rows))], rows)
        collection.start()
        collection.close()
        command = [sys.executable, "-c", _STARTED, folder]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = json.loads(text)
    size = n_items * N_FEATURES * 4 / 2**20
    row: dict[str, object] = {"items": n_items, "vectors MiB": round(size)}
    row["seconds to start"] = round(found["seconds"], 1)
    row["resident MiB at start"] = round(found["before"])
    row["after exact searches"] = round(found["after"])
    row["of the vectors"] = round(found["after"] / size, 2)
    return [{**row, "wanted": "start <= 10 s, < 1.2 of the vectors"}]
