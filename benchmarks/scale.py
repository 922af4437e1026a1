"""Learners on Dask: CPU beside the plain learner, copies of rows, and what a task costs.

CPU seconds are those of all processes; a first run, which is not counted, compiles and loads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from samewise import LMNN, PCA, Bilinear, FactoredAROMA, Triplets, scale
from samewise.datasets import load
from samewise.scores import retrieval_scores

N_WORKERS = 2
GHOSTS = ((20_000, "letter"), (20_000, "mnist"))
CAP = "700MiB"
DIRECTIONS, N_TRIPLETS, STREAMS = 128, 32_000, (1, 8, 32)


@contextmanager
def cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def rows_of(name: str, n: int) -> tuple[Any, Any]:
    """MNIST in 50 principal directions, as is usual for LMNN; or letters."""
    data = load(name)
    rows = np.random.RandomState(0).permutation(len(data.data))[:n]
    X, y = data.data[rows].astype(np.float32), data.target[rows]
    return (PCA(50).fit(X).transform(X) if X.shape[1] > 50 else X.astype(np.float64)), y


def in_parts(n_parts: int, *arrays: Any) -> tuple[Any, ...]:
    import dask.array as da

    size = -(-len(arrays[0]) // n_parts)
    return tuple(da.from_array(array, chunks=(size, *array.shape[1:])) for array in arrays)


def _spent() -> float:
    times = os.times()
    return times.user + times.system


def cpu_of(client: Any) -> float:
    return _spent() + sum(client.run(_spent).values())


def _measured(client: Any, run: Any) -> tuple[Any, float, float]:
    """What it returned, CPU seconds and seconds, of a second run."""
    run()
    cpu, start = cpu_of(client), time.perf_counter()
    found = run()
    return found, cpu_of(client) - cpu, time.perf_counter() - start


def run_overhead() -> list[dict[str, object]]:
    rows = []
    with cluster() as client:
        for name, n, plain, many in (
            ("letter", 20_000, LMNN(), scale.DaskLMNN(client)),
            ("mnist", 60_000, LMNN(), scale.DaskLMNN(client)),
        ):
            X, y = rows_of(name, n)
            parts = in_parts(N_WORKERS, X, y)
            one, cpu, seconds = _measured(client, lambda: plain.fit(X, y))  # noqa: B023
            two, cpu_2, seconds_2 = _measured(client, lambda: many.fit(*parts))  # noqa: B023
            row = {
                "learner": type(many).__name__,
                "data": f"{name} {len(X):,} × {X.shape[1]}",
                "CPU s, plain": f"{cpu:.1f}",
                "two workers": f"{cpu_2:.1f}",
                "ratio": f"{cpu_2 / cpu:.2f}",
                "wanted": "≤ 1.5 from 60 000 rows",
                "s": f"{seconds:.1f} → {seconds_2:.1f}",
            }
            row["loss differs by"] = f"{abs(two.loss_ / one.loss_ - 1):.0e}"
            rows.append(row)
    return rows


def run_ghosts() -> list[dict[str, object]]:
    rows = []
    with cluster() as client:
        for n, name in GHOSTS:
            X, y = rows_of(name, n)
            for n_parts in (4, 16):
                apart = in_parts(n_parts, X, y)
                near = scale.partition(*apart, n_parts, client=client, random_state=0)
                found = [
                    scale.DaskLMNN(client, max_iter=1, tol=1.0).fit(*parts).ghost_fraction_
                    for parts in (apart, near)
                ]
                rows.append(
                    {
                        "data": f"{name} {n:,}",
                        "parts": n_parts,
                        "copies in a part / n, as given": f"{found[0]:.2f}",
                        "cut by space": f"{found[1]:.2f}",
                        "wanted": "≤ 0.3 at 16" if n_parts == 16 else "",
                    }
                )
    return rows


def run_task() -> list[dict[str, object]]:
    with cluster() as client:
        client.gather(client.map(abs, range(4), pure=False))
        cpu, start = cpu_of(client), time.perf_counter()
        n = 200
        for i in range(n):
            client.submit(abs, i, pure=False).result()
        return [
            {
                "a task and its result, ms": f"{1e3 * (time.perf_counter() - start) / n:.1f}",
                "CPU ms": f"{1e3 * (cpu_of(client) - cpu) / n:.1f}",
            }
        ]


def run_out_of_core() -> list[dict[str, object]]:
    """Rows that are made on the fly, in blocks of 32 MB, and are never there together."""
    import dask.array as da
    from distributed import Client, LocalCluster

    n_blocks, n, d = 64, 80_000, 50
    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            memory_limit=CAP,
            dashboard_address=":0",
        ) as workers,
        Client(workers) as client,
    ):
        X = da.random.default_rng(0).normal(size=(n_blocks * n, d), chunks=(n, d))
        before = max(client.run(_peak).values())
        cpu, start = cpu_of(client), time.perf_counter()
        scale.DaskPCA(client).fit(X)
        return [
            {
                "GB": f"{X.nbytes / 1e9:.1f}",
                "cap of a worker": CAP,
                "peak of a worker, MB": f"{max(client.run(_peak).values()):.0f}",
                "of these without data": f"{before:.0f}",
                "s": f"{time.perf_counter() - start:.0f}",
                "CPU s": f"{cpu_of(client) - cpu:.0f}",
            }
        ]


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def run_mixing() -> list[dict[str, object]]:
    """Mean average precision on the half that nothing was learned from, over three seeds."""
    data = load("banking77_minilm")
    X = PCA(DIRECTIONS).fit(data.data[::2]).transform(data.data).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    learned, judged = (X[::2], data.target[::2]), (X[1::2][:2000], data.target[1::2][:2000])
    scores: dict[int, list[float]] = {n: [] for n in STREAMS}
    for seed in range(3):
        triplets = Triplets.from_labels(*learned, n_triplets=N_TRIPLETS, random_state=seed)
        for n, found in scores.items():
            size = N_TRIPLETS // n
            parts = [triplets[at * size : (at + 1) * size] for at in range(n)]
            found.append(_map(scale.mix(FactoredAROMA(), parts).metric_, *judged))
    start = _map(Bilinear(np.eye(DIRECTIONS, dtype=np.float32)), *judged)
    return [
        {
            "streams": n,
            "mAP": f"{100 * np.mean(found):.1f}",
            "seeds": " ".join(f"{100 * one:.1f}" for one in found),
            "wanted": "within 1 of one stream" if n > 1 else f"no learning: {100 * start:.1f}",
        }
        for n, found in scores.items()
    ]


def _map(form: Any, X: Any, y: Any) -> float:
    scores = retrieval_scores(form.blocks(X, X), y, y, ks=(1,), exclude_self=True)
    return float(scores.means["map"])
