"""What work on a cluster costs in CPU, from constants of this machine, and plans made with it.

Constants are CPU seconds of small probes. They are not fitted to what is predicted: the sizes that
predictions are compared with are larger than those of all probes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.optimize import nnls
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits

from benchmarks.scale import N_WORKERS, cluster, cpu_of, in_parts, rows_of
from samewise import LMNN, scale
from samewise.learners.batch.lmnn.objective import LMNNObjective
from samewise.learners.batch.points_by_class import nearest_rows
from samewise.scale.lmnn import PartObjective, PartProblems
from samewise.scale.moments import moments
from samewise.scale.row_blocks import RowBlock
from samewise.search import Index
from samewise.solvers.workers import Workers

DIRECTIONS, N_CLASSES = 50, 10
PROBES = ((6_000, 2), (12_000, 2), (12_000, 4))
"""Rows of MNIST and parts from which constants of LMNN are computed."""
STEPS = 5
LMNN_SIZES = ((18_000, 2), (24_000, 4), (36_000, 2))
CLOSED_SIZES = ((400_000, 50, 2), (150_000, 200, 4), (400_000, 100, 8))
NEAREST_SIZES = ((1_000, 100_000, 64, 2), (1_000, 200_000, 128, 4), (2_000, 150_000, 256, 2))
K = 10


@dataclass(frozen=True)
class Constants:
    """CPU seconds, in this order."""

    flop: float
    """An addition or multiplication of a product of float32 matrices."""
    flop64: float
    """The same in float64."""
    value: float
    """A value of a row that is read, checked, and added to means and extremes."""
    target: float
    """Two rows of a class that are compared for targets, beside their product."""
    row: float
    """A row that is offered targets by one part."""
    rival: float
    """Two rows of different classes that are compared for impostors, product and all."""
    found: float
    """A candidate pair that is found, put in order, and copied."""
    pair: float
    """A candidate pair in one step of LMNN."""
    pairs: float
    """Candidate pairs of a row, which is no time: the median of the probes."""
    look: float
    """The closeness of a query and an item, beside their product."""
    byte: float
    """A byte that goes from a worker to another, with its serialization."""
    task: float
    """A task of a worker and its result."""


def best(run: Callable[[], Any], repeats: int = 3) -> float:
    """The least CPU seconds of this process; others that compute raise them."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


@dataclass(frozen=True)
class Operations:
    """What LMNN did: CPU seconds of a search of impostors, of each step after it, and pairs."""

    searches: list[float]
    steps: list[float]
    pairs: list[int]


@contextmanager
def watched(cpu: Callable[[], float]) -> Iterator[Operations]:
    """Time what the objective of `DaskLMNN` does."""
    seen = Operations([], [], [])
    search, evaluate = PartObjective.search, PartObjective.value_and_gradient
    look = PartObjective.missing

    def timed_search(self: PartObjective, L: Any) -> None:
        start = cpu()
        search(self, L)
        self.candidates.parts.total(_done)
        seen.searches.append(cpu() - start)

    def timed_step(self: PartObjective, L: Any) -> Any:
        start = cpu()
        value = evaluate(self, L)
        seen.steps.append(cpu() - start)
        seen.pairs.append(len(self.candidates))
        return value

    def timed_look(self: PartObjective) -> float:
        start = cpu()
        missing = look(self)
        # Of the evaluation before it.
        seen.steps[-1] += cpu() - start
        return missing

    with (
        patch.object(PartObjective, "search", timed_search),
        patch.object(PartObjective, "value_and_gradient", timed_step),
        patch.object(PartObjective, "missing", timed_look),
    ):
        yield seen
    # Later searches reach further, as they have to, and then there are more pairs.
    first = seen.pairs.count(seen.pairs[0])
    del seen.searches[1:], seen.steps[first:], seen.pairs[first:]


def _done(part: Any) -> tuple[int]:
    return (1,)


@cache
def constants() -> Constants:
    """Measured once."""
    with threadpool_limits(1):
        c = _local()
    with cluster() as client:
        byte, task = _between(client)
        c = replace(c, byte=byte, task=task)
        runs = [(n, P, *lmnn_operations(client, n, P)) for n, P in PROBES]
    return _of_lmnn(c, runs)


def _of_lmnn(c: Constants, runs: list[tuple[int, int, float, Operations]]) -> Constants:
    """What is left of the probes without what is known already, in least squares of ratios."""
    counts = np.array([np.mean(seen.pairs) for *_, seen in runs])
    c = replace(c, pairs=float(np.median(counts / [n for n, *_ in runs])))

    def solved(measured: list[float], known: Callable[..., float], *names: str) -> dict[str, float]:
        own = [(replace(c, pairs=m / n), n, P) for m, (n, P, *_) in zip(counts, runs, strict=True)]
        none = dict.fromkeys(names, 0.0)

        def said(**some: float) -> list[float]:
            return [known(replace(k, **(none | some)), n, P) for k, n, P in own]

        given = said()
        columns = [said(**{name: 1.0}) for name in names]
        A = (np.array(columns) - given).T / np.array(measured)[:, None]
        return dict(zip(names, nnls(A, 1 - np.array(given) / measured)[0].tolist(), strict=True))

    return replace(
        c,
        **solved([run[2] for run in runs], lmnn_targets, "row"),
        **solved([_mean(run[3].searches) for run in runs], lmnn_search, "found"),
        **solved([_mean(run[3].steps) for run in runs], lmnn_step, "pair"),
    )


def _mean(seconds: list[float]) -> float:
    return float(np.mean(seconds))


def _product(dtype: type) -> float:
    """Seconds of a flop."""
    random = np.random.default_rng(0)
    A, B = (random.normal(size=(n, DIRECTIONS)).astype(dtype) for n in (1024, 4096))
    return best(lambda: [A @ B.T for _ in range(8)]) / (8 * 2 * A.size * len(B))


def _local() -> Constants:
    """What kernels cost in this process; the others are 0."""
    flop, flop64 = (_product(dtype) for dtype in (np.float32, np.float64))
    X = np.random.default_rng(0).normal(size=(40_000, 64))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", X)

        def read() -> None:
            rows = np.load(Path(folder) / "rows.npy")
            moments(RowBlock(check_array(rows), None), None)

        value = best(read) / X.size - X.shape[1] * flop64
    Q, index = X[:400], Index(None, X[:20_000])
    looked = best(lambda: index.query(Q, K)) / (400 * 20_000) - 2 * X.shape[1] * flop
    Z = rows_of("mnist", 4_000)[0]
    compared = best(lambda: nearest_rows(Z[:2000], Z, 3, Workers(1, None))) / (2000 * len(Z))
    zeros = dict.fromkeys((each.name for each in fields(Constants)), 0.0)
    known = {
        "value": value,
        # Rounding may take all of it.
        "look": max(looked, 0.0),
        "target": max(compared - 2 * DIRECTIONS * flop, 0.0),
        "rival": _rival(),
    }
    return Constants(**(zeros | known | {"flop": flop, "flop64": flop64}))


def _rival() -> float:
    """Seconds of two rows of different classes, in the last search of a plain LMNN."""
    n, spent, search = 12_000, [], LMNNObjective.search

    def timed(self: LMNNObjective, L: Any) -> None:
        start = time.process_time()
        search(self, L)
        spent.append(time.process_time() - start)

    X, y = rows_of("mnist", n)
    with patch.object(LMNNObjective, "search", timed):
        LMNN(max_iter=STEPS, tol=0.0).fit(X, y)
    return spent[-1] / (n * n / 2 * (1 - 1 / N_CLASSES))


def _between(client: Any) -> tuple[float, float]:
    """Seconds of a byte that goes to another worker, and of a task."""
    here, there = client.scheduler_info()["workers"]
    client.gather(client.map(abs, range(4), pure=False))
    start, n = cpu_of(client), 160
    for _ in range(n // 8):
        client.gather(client.map(abs, range(8), pure=False))
    task = (cpu_of(client) - start) / n
    size, n = 2**22, 12
    made = [client.submit(np.ones, size, pure=False, workers=here) for _ in range(n)]
    client.gather([client.submit(len, one, workers=here, pure=False) for one in made])
    start = cpu_of(client)
    client.gather([client.submit(len, one, workers=there, pure=False) for one in made])
    return (cpu_of(client) - start - n * task) / (n * 8 * size), task


def lmnn_targets(c: Constants, n: float, n_parts: float, n_workers: float = N_WORKERS) -> float:
    """The nearest rows of each class, among all parts, in 50 directions."""
    return (
        n * n / N_CLASSES * (2 * DIRECTIONS * c.flop + c.target)
        + n * n_parts * c.row
        + (n_workers - 1) * n * DIRECTIONS * 8 * c.byte
        + n_parts * (2 * n_parts + 4) * c.task
    )


def lmnn_search(c: Constants, n: float, n_parts: float, n_workers: float = N_WORKERS) -> float:
    """The impostors: mapped rows of every two parts are compared, in float32."""
    pairs = n * c.pairs
    copies = n * min(n_parts - 1, 2 * pairs / n) * (1 - 1 / n_workers)
    moved = (n_workers - 1) * n * DIRECTIONS * 4 + copies * DIRECTIONS * 8
    return (
        n * n / 2 * (1 - 1 / N_CLASSES) * c.rival
        + pairs * (2 - 1 / n_parts) * c.found
        + moved * c.byte
        + n_parts * (3 + 3 * (n_parts - 1) / 2) * c.task
    )


def lmnn_step(c: Constants, n: float, n_parts: float) -> float:
    """The loss, its gradient, and the look for missing pairs. Pairs of two parts are in both."""
    moved = 2 * n_parts * DIRECTIONS**2 * 8
    pairs = n * c.pairs * (2 - 1 / n_parts)
    return pairs * c.pair + moved * c.byte + 2 * n_parts * c.task


def closed_form(c: Constants, n: float, d: int, n_parts: float) -> float:
    """PCA: d² numbers of each part, of rows in files."""
    return n * d * (c.value + d * c.flop64) + n_parts * (d * d * 8 * c.byte + 3 * c.task)


def neighbors(c: Constants, n_queries: float, n: float, d: int, n_parts: float) -> float:
    """`nearest` among items in files, with all queries in each task."""
    sent = n_parts * n_queries * (d * 8 + K * 16)
    work = n_queries * n * (2 * d * c.flop + c.look)
    return n * d * c.value + work + sent * c.byte + 3 * n_parts * c.task


def run_constants() -> list[dict[str, object]]:
    c = constants()
    rows = [
        {"constant": each.name, "CPU ns": f"{1e9 * getattr(c, each.name):.3g}"}
        for each in fields(c)
        if each.name != "pairs"
    ]
    return [*rows, {"constant": f"candidate pairs of a row: {c.pairs:.0f}", "CPU ns": ""}]


def run_predictions() -> list[dict[str, object]]:
    """At sizes that constants were not measured at."""
    c = constants()
    rows: list[dict[str, object]] = []

    def compared(what: str, n: int, d: int, n_parts: int, measured: float, said: float) -> None:
        rows.append(
            {
                "what": what,
                "n × d": f"{n:,} × {d}",
                "parts": n_parts,
                "CPU s": f"{measured:.3g}",
                "predicted": f"{said:.3g}",
                "ratio": f"{said / measured:.2f}",
                "wanted": "0.75 to 1.25",
            }
        )

    with cluster() as client:
        for n, n_parts in LMNN_SIZES:
            targets, seen = lmnn_operations(client, n, n_parts)
            size = n, DIRECTIONS, n_parts
            # Pairs are counted: how many there are depends on the map that learning starts at.
            mine = replace(c, pairs=seen.pairs[0] / n)
            compared("LMNN, targets", *size, targets, lmnn_targets(c, n, n_parts))
            compared("LMNN, a search", *size, _mean(seen.searches), lmnn_search(mine, n, n_parts))
            compared("LMNN, a step", *size, _mean(seen.steps), lmnn_step(mine, n, n_parts))
        for n, d, n_parts in CLOSED_SIZES:
            with _files(n, d, n_parts) as folder:
                spent = _second(client, lambda: scale.DaskPCA(client).fit(folder))
            compared("PCA", n, d, n_parts, spent, closed_form(c, n, d, n_parts))
        for n_queries, n, d, n_parts in NEAREST_SIZES:
            Q = np.random.default_rng(1).normal(size=(n_queries, d))
            with _files(n, d, n_parts) as folder:
                spent = _second(client, partial(scale.nearest, None, Q, folder, K, client=client))
            said = neighbors(c, n_queries, n, d, n_parts)
            compared(f"nearest, {n_queries:,} queries", n, d, n_parts, spent, said)
    return rows


def _second(client: Any, run: Callable[[], Any]) -> float:
    """CPU seconds of a second run."""
    run()
    start = cpu_of(client)
    run()
    return cpu_of(client) - start


def lmnn_operations(client: Any, n: int, n_parts: int) -> tuple[float, Operations]:
    """CPU seconds of the search of targets, and of what comes after it."""
    small = in_parts(n_parts, *rows_of("mnist", 1_000))
    scale.DaskLMNN(client, max_iter=1).fit(*small)
    spent, plain = [], PartProblems.__call__

    def timed(self: Any, under: Any) -> Any:
        start = cpu_of(client)
        problem = plain(self, under)
        problem.objective._parts.total(_done)
        spent.append(cpu_of(client) - start)
        return problem

    with (
        patch.object(PartProblems, "__call__", timed),
        watched(lambda: cpu_of(client)) as seen,
    ):
        learner = scale.DaskLMNN(client, max_iter=STEPS, tol=0.0)
        learner.fit(*in_parts(n_parts, *rows_of("mnist", n)))
    return spent[0], seen


@contextmanager
def _files(n: int, d: int, n_parts: int) -> Iterator[str]:
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for part in range(n_parts):
            np.save(Path(folder) / f"{part:03}.npy", random.normal(size=(n // n_parts, d)))
        yield folder


PART, CLUSTER = 500_000, 64


def run_plan() -> list[dict[str, object]]:
    """Sizes that were not measured, by the model: parts of 500 000 rows, 64 workers."""
    c = constants()
    jobs: list[tuple[str, float, float]] = [
        ("PCA, 10⁹ items × 128", 1e9, closed_form(c, 1e9, 128, 1e9 / PART)),
        ("nearest, 1 000 queries, 10⁹ items × 128", 1e9, neighbors(c, 1e3, 1e9, 128, 1e9 / PART)),
    ]
    for what, n in (("10⁶ items", 1e6), ("10⁹ pairs", 1e9 / c.pairs), ("10⁹ items", 1e9)):
        parts = n / PART
        jobs += [
            (f"LMNN, {what}, targets", n, lmnn_targets(c, n, parts, CLUSTER)),
            (f"LMNN, {what}, a search", n, lmnn_search(c, n, parts, CLUSTER)),
            (f"LMNN, {what}, a step", n, lmnn_step(c, n, parts)),
        ]
    return [
        {
            "what": what,
            "items": f"{n:.1e}",
            "parts": f"{n / PART:.0f}",
            "CPU hours": f"{seconds / 3600:.3g}",
            f"hours, {CLUSTER} workers": f"{seconds / 3600 / min(CLUSTER, n / PART):.2g}",
        }
        for what, n, seconds in jobs
    ]
