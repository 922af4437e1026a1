"""Learners on Dask: CPU beside the plain learner, copies of rows, and what a task costs.

CPU seconds are those of all processes; a first run, which is not counted, compiles and loads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from samewise import (
    ITML,
    LDA,
    LMNN,
    MCML,
    MMC,
    NCA,
    OASIS,
    PCA,
    POLA,
    RCA,
    Bilinear,
    Covariance,
    DiagonalAROMA,
    FactoredAROMA,
    Mahalanobis,
    Pairs,
    PassiveAggressive,
    Triplets,
    scale,
)
from samewise.datasets import load
from samewise.scores import retrieval_scores

N_WORKERS = 2
EQUAL = (("letter", 20_000), ("mnist", 10_000))
ITEMS = 40, 250_000, 10_000, 1_000_000
"""Blocks, items of a block, classes, and pairs for errors of verification."""
GHOSTS = ((20_000, "letter"), (20_000, "mnist"))
SOME = 2_000
"""Rows for learners whose work grows with n²."""
CAP = "1GiB"
N_TRIPLETS, STREAMS = 32_000, (1, 32)
DIRECTIONS, N_TERMS = 128, 200


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


def run_equality() -> list[dict[str, object]]:
    """Every learner on 1, 2, 4 and 8 parts, beside the plain one."""
    rows = []
    with cluster() as client:
        for name, n in EQUAL:
            X, y = rows_of(name, n)
            X = X.astype(np.float64)
            pairs = Pairs.from_labels(X, y, n_pairs=10_000, random_state=0)
            both = np.stack([X[pairs.left], X[pairs.right]], axis=1), pairs.y.astype(np.int64)
            few = X[:SOME], y[:SOME]
            for kind, settings, data in (
                (Covariance, {}, (X,)),
                (PCA, {"n_components": 10}, (X,)),
                (LDA, {}, (X, y)),
                (RCA, {"random_state": 0}, (X, y)),
                (MMC, {}, both),
                (ITML, {}, both),
                (LMNN, {}, (X, y)),
                (NCA, {"n_components": 5, "max_iter": 20}, few),
                (MCML, {}, few),
            ):
                one = kind(**settings).fit(*data)
                found = [
                    getattr(scale, f"Dask{kind.__name__}")(client, **settings)
                    .fit(*in_parts(n_parts, *data))
                    .to_local()
                    for n_parts in (1, 2, 4, 8)
                ]
                M = one.metric_.matrix
                apart = max(np.abs(each.metric_.matrix - M).max() for each in found)
                row = {
                    "learner": kind.__name__,
                    "data": f"{name} {len(data[0]):,}",
                    "matrix, relative": f"{apart / np.abs(M).max():.0e}",
                }
                for attribute in ("loss_", "objective_"):
                    if (value := getattr(one, attribute, None)) is not None:
                        others = [getattr(each, attribute) / value - 1 for each in found]
                        row["loss, relative"] = f"{np.abs(others).max():.0e}"
                rows.append(row)
    return rows


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

    n, d = 80_000, 50
    rows = []
    for what, n_blocks in (("PCA", 640), ("nearest, 20 queries", 160)):
        with (
            LocalCluster(
                n_workers=N_WORKERS, threads_per_worker=1, memory_limit=CAP, dashboard_address=":0"
            ) as workers,
            Client(workers) as client,
        ):
            X = da.random.default_rng(0).normal(size=(n_blocks * n, d), chunks=(n, d))
            before = max(client.run(_peak).values())
            cpu, start = cpu_of(client), time.perf_counter()
            if what == "PCA":
                variances = scale.DaskPCA(client).fit(X).explained_variance_
                check = f"variances within {abs(variances - 1).max():.0e} of the true 1"
            else:
                found = scale.nearest(None, np.zeros((20, d)), X, 10, client=client)[1]
                check = f"{len(set(found[0].tolist()))} neighbors"
            rows.append(
                {
                    "what": what,
                    "GB": f"{X.nbytes / 1e9:.1f}",
                    "cap of a worker": CAP,
                    "peak of a worker, MB": f"{max(client.run(_peak).values()):.0f}",
                    "of these without data": f"{before:.0f}",
                    "s": f"{time.perf_counter() - start:.0f}",
                    "CPU s": f"{cpu_of(client) - cpu:.0f}",
                    "found": check,
                }
            )
    return rows


def run_items() -> list[dict[str, object]]:
    """10⁷ items of 10 000 classes, made on the fly: neighbors, classes, ranks and errors."""
    import dask.array as da

    (n_blocks, n, n_classes, n_pairs), d, n_queries = ITEMS, 16, 50
    centers = np.random.default_rng(0).normal(size=(n_classes, d)).astype(np.float32)

    def labels_of(info: Any) -> Any:
        first, end = info[0]["array-location"][0]
        return np.arange(first, end) % n_classes

    def rows_at(info: Any) -> Any:
        y = labels_of(info)
        random = np.random.default_rng(info[0]["array-location"][0][0])
        return centers[y] + random.standard_normal((len(y), d), dtype=np.float32) / 4

    sizes = (n,) * n_blocks
    labels = da.zeros(n_blocks * n, chunks=(sizes,), dtype=np.int64)
    y = labels.map_blocks(lambda _, block_info=None: labels_of(block_info), dtype=np.int64)
    zeros = da.zeros((n_blocks * n, d), chunks=(sizes, d), dtype=np.float32)
    X = zeros.map_blocks(lambda _, block_info=None: rows_at(block_info), dtype=np.float32)
    known = np.arange(n_queries)
    Q = centers[known] + np.random.default_rng(1).normal(size=(n_queries, d)).astype("f4") / 4
    form = Mahalanobis(np.eye(d, dtype=np.float32))
    # The first half of the pairs are of one class, the others of two.
    half = n_pairs // 2
    others = [X[n_classes : n_classes + half], X[n_classes + half + 1 : n_classes + n_pairs + 1]]
    pairs = da.stack([X[:n_pairs], da.concatenate(others)], axis=1)
    signs = da.where(da.arange(n_pairs, chunks=n) < half, 1, -1)
    rows = []
    with cluster() as client:
        for what, run in (
            ("nearest, k = 10", lambda: scale.nearest(form, Q, X, 10, client=client)[1].shape),
            ("classify", lambda: np.mean(scale.classify(form, Q, X, y, 5, client=client) == known)),
            (
                "ranking_scores",
                lambda: scale.ranking_scores(form, Q, known, X, y, client=client).means["map"],
            ),
            (
                f"pair_roc, {n_pairs:,} pairs",
                lambda: scale.pair_roc(form, pairs, signs, client=client).auc,
            ),
        ):
            cpu, start = cpu_of(client), time.perf_counter()
            found = run()
            rows.append(
                {
                    "what": what,
                    "items": f"{n_blocks * n:,} × {d}",
                    "queries": n_queries,
                    "result": found if isinstance(found, tuple) else f"{found:.4f}",
                    "s": f"{time.perf_counter() - start:.0f}",
                    "CPU s": f"{cpu_of(client) - cpu:.0f}",
                    "peak of a worker, MB": f"{max(client.run(_peak).values()):.0f}",
                }
            )
    return rows


def _peak() -> float:
    """The most memory that this process has had, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def run_streams() -> list[dict[str, object]]:
    """What one process learns in a second of CPU, of 384 features."""
    X, y = _sentences(384)[1]
    triplets = Triplets.from_labels(X, y, n_triplets=20_000, random_state=0)
    pairs = Pairs.from_labels(X, y, n_pairs=20_000, random_state=0)
    rows = []
    for kind in (OASIS, FactoredAROMA, DiagonalAROMA, PassiveAggressive, POLA):
        given = pairs if kind in (PassiveAggressive, POLA) else triplets
        learner = kind().partial_fit(given[:500])
        start = time.process_time()
        learner.partial_fit(given[500:])
        spent = time.process_time() - start
        what = f"{type(given).__name__.lower()} a CPU second"
        rows.append(
            {"learner": kind.__name__, "of what": what, "learned": f"{19_500 / spent:,.0f}"}
        )
    return rows


def run_mixing() -> list[dict[str, object]]:
    """Mean average precision on the part that nothing was learned from, over three seeds."""
    return [
        _mixed(kind, *data)
        for data in (_sentences(DIRECTIONS), _documents())
        for kind in (DiagonalAROMA, FactoredAROMA)
    ]


def _mixed(
    kind: Any, name: str, learned: tuple[Any, Any], judged: tuple[Any, Any]
) -> dict[str, object]:
    d = judged[0].shape[1]
    scores: dict[int, list[float]] = {n: [] for n in STREAMS}
    for seed in range(3):
        triplets = Triplets.from_labels(*learned, n_triplets=N_TRIPLETS, random_state=seed)
        for n, found in scores.items():
            cuts = [N_TRIPLETS * at // n for at in range(n + 1)]
            parts = [triplets[a:b] for a, b in pairwise(cuts)]
            found.append(_map(scale.mix(kind(), parts).metric_, *judged))
    start = _map(Bilinear(np.eye(d, dtype=np.float32)), *judged)
    one, many = (100 * np.array(found) for found in scores.values())
    return {
        "learner": kind.__name__,
        "data": f"{name} × {d}",
        "no learning": f"{100 * start:.1f}",
        "one stream": _means(one),
        f"{STREAMS[-1]} streams": _means(many),
        "lost, at most": f"{(one - many).max():.2f}",
        "wanted": "≤ 1",
    }


def _means(scores: Any) -> str:
    return f"{scores.mean():.1f} ({', '.join(f'{one:.1f}' for one in scores)})"


def _sentences(n_features: int) -> tuple[str, tuple[Any, Any], tuple[Any, Any]]:
    """Every second sentence is learned from; 2000 of the others are judged."""
    data = load("banking77_minilm")
    X = data.data.astype(np.float32)
    if n_features < X.shape[1]:
        X = PCA(n_features).fit(X[::2]).transform(X)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = data.target
    return "banking77", (X[::2], y[::2]), (X[1::2][:2000], y[1::2][:2000])


def _documents() -> tuple[str, tuple[Any, Any], tuple[Any, Any]]:
    """65 % of the articles are learned from; 2000 of the others are judged."""
    from experiments._news_data import documents

    split = next(documents(1, N_TERMS, 1))
    X, y = split.test
    return "newsgroups", split.train, (X[:2000].toarray(), y[:2000])


def _map(form: Any, X: Any, y: Any) -> float:
    scores = retrieval_scores(form.blocks(X, X), y, y, ks=(1,), exclude_self=True)
    return float(scores.means["map"])
