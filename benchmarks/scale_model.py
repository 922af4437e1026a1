"""What work on a cluster costs in CPU, from constants of this machine, and plans made with it.

Constants come from small probes, most of them on the cluster. They are not fitted to what is
predicted: the sizes that predictions are compared with are larger than those of all probes. What an
idle cluster spends is taken off all measurements, so that waiting for a busy machine is no work;
each is the least of three.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.scale import N_WORKERS, cluster, cpu_of, in_parts, rows_of
from samewise import scale
from samewise.scale.lmnn import PartObjective, PartProblems

DIRECTIONS, N_CLASSES = 50, 10
PROBES = ((6_000, 2), (12_000, 4), (15_000, 2))
"""Rows of MNIST and parts from which constants of LMNN are computed."""
CLOSED_PROBES = ((100_000, 50, 2), (40_000, 200, 4), (100_000, 100, 8))
NEAREST_PROBES = ((500, 50_000, 64, 2), (1_000, 50_000, 128, 4), (500, 40_000, 256, 2))
STEPS, REPEATS = 5, 3
LMNN_SIZES = ((18_000, 2), (24_000, 4), (36_000, 2))
CLOSED_SIZES = ((400_000, 50, 2), (150_000, 200, 4), (400_000, 100, 8))
NEAREST_SIZES = ((1_000, 100_000, 64, 2), (1_000, 200_000, 128, 4), (2_000, 150_000, 256, 2))
K = 10


@dataclass(frozen=True)
class Constants:
    """CPU seconds, in this order."""

    flop: float
    """An addition or multiplication of a product of float32 matrices."""
    byte: float
    """A byte that goes from a worker to another, with its serialization."""
    task: float
    """A task of a worker and its result."""
    value: float = 0.0
    """A value of a row that is read, checked, and added to means and extremes."""
    square: float = 0.0
    """A product of two values of a row, added to a scatter in float64."""
    item: float = 0.0
    """A value of an item that is read, checked, and put into an index."""
    look: float = 0.0
    """The closeness of a query and an item, beside their product."""
    target: float = 0.0
    """Two rows of a class that are compared for targets, beside their product."""
    row: float = 0.0
    """A row that is offered targets by one part."""
    rival: float = 0.0
    """Two rows of different classes that are compared for impostors, product and all."""
    found: float = 0.0
    """A candidate pair that is found, put in order, and copied."""
    own: float = 0.0
    """A row in one step of LMNN: mapped, with its targets."""
    pair: float = 0.0
    """A candidate pair in one step of LMNN."""
    pairs: float = 0.0
    """Candidate pairs of a row, which is no time: the median of the probes."""


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
    """What LMNN did: CPU seconds of searches of targets and impostors, of steps, and pairs."""

    targets: list[float]
    searches: list[float]
    steps: list[float]
    pairs: list[int]

    @property
    def whole(self) -> float:
        """All of it."""
        return sum(self.targets) + sum(self.searches) + sum(self.steps)


class Clock:
    """CPU seconds of all processes of a cluster, without those that it spends when idle."""

    def __init__(self, client: Any) -> None:
        self._client, self._idle = client, 0.0
        start = self()
        time.sleep(2)
        self._idle = (self() - start) / 2

    def __call__(self) -> float:
        return cpu_of(self._client) - self._idle * time.perf_counter()

    def least(self, run: Callable[[], Any]) -> float:
        """That of the cheapest of several runs after a first one."""
        run()
        spent = []
        for _ in range(REPEATS):
            start = self()
            run()
            spent.append(self() - start)
        return min(spent)


@contextmanager
def watched(clock: Clock) -> Iterator[Operations]:
    """Time what `DaskLMNN` does."""
    seen = Operations([], [], [], [])
    begin, search = PartProblems.__call__, PartObjective.search
    evaluate, look = PartObjective.value_and_gradient, PartObjective.missing

    def timed_begin(self: PartProblems, under: Any) -> Any:
        start = clock()
        problem = begin(self, under)
        problem.objective._parts.total(_done)
        seen.targets.append(clock() - start)
        return problem

    def timed_search(self: PartObjective, L: Any) -> None:
        start = clock()
        search(self, L)
        self.candidates.parts.total(_done)
        seen.searches.append(clock() - start)

    def timed_step(self: PartObjective, L: Any) -> Any:
        start = clock()
        value = evaluate(self, L)
        seen.steps.append(clock() - start)
        seen.pairs.append(len(self.candidates))
        return value

    def timed_look(self: PartObjective) -> float:
        start = clock()
        missing = look(self)
        # Of the evaluation before it.
        seen.steps[-1] += clock() - start
        return missing

    with (
        patch.object(PartProblems, "__call__", timed_begin),
        patch.object(PartObjective, "search", timed_search),
        patch.object(PartObjective, "value_and_gradient", timed_step),
        patch.object(PartObjective, "missing", timed_look),
    ):
        yield seen


def _done(part: Any) -> tuple[int]:
    return (1,)


@cache
def constants() -> Constants:
    """Measured once."""
    with threadpool_limits(1):
        flop = _product(np.float32)
    with cluster() as client:
        clock = Clock(client)
        c = Constants(flop, *_between(client, clock))
        closed = [(pca(client, clock, *size), size) for size in CLOSED_PROBES]
        c = solved(c, closed, closed_form, "value", "square")
        found = [(neighbors_of(client, clock, *size), size) for size in NEAREST_PROBES]
        c = solved(c, found, neighbors, "item", "look")
        runs = [(n, P, lmnn_operations(client, clock, n, P)) for n, P in PROBES]
    c = replace(c, pairs=float(np.median([seen.pairs[0] / n for n, _, seen in runs])))
    targets = [(_mean(seen.targets), (n, P)) for n, P, seen in runs]
    c = solved(c, targets, lmnn_targets, "target", "row")
    searches = [(seen.searches[0], (n, P, seen.pairs[0] / n)) for n, P, seen in runs]
    c = solved(c, searches, lmnn_search, "rival", "found")
    steps = [(_mean(seen.steps), (n, P, _mean(seen.pairs) / n)) for n, P, seen in runs]
    return solved(c, steps, lmnn_step, "own", "pair")


def solved(
    c: Constants, runs: list[tuple[float, Any]], formula: Callable[..., float], *names: str
) -> Constants:
    """The constants of these names, in least squares of the ratios of said to measured."""

    def said(**some: float) -> Any:
        known = replace(c, **(dict.fromkeys(names, 0.0) | some))
        return np.array([formula(known, *size) for _, size in runs])

    measured, given = np.array([spent for spent, _ in runs]), said()
    A = np.array([said(**{name: 1.0}) - given for name in names]).T / measured[:, None]
    found = nnls(A, 1 - given / measured)[0].tolist()
    return replace(c, **dict(zip(names, found, strict=True)))


def _mean(values: list[Any]) -> float:
    return float(np.mean(values))


def _product(dtype: type) -> float:
    """Seconds of a flop."""
    random = np.random.default_rng(0)
    A, B = (random.normal(size=(n, DIRECTIONS)).astype(dtype) for n in (1024, 4096))
    return best(lambda: [A @ B.T for _ in range(8)]) / (8 * 2 * A.size * len(B))


def _between(client: Any, clock: Clock) -> tuple[float, float]:
    """Seconds of a byte that goes to another worker, and of a task."""
    here, there = client.scheduler_info()["workers"]
    n = 160
    task = clock.least(
        lambda: [client.gather(client.map(abs, range(8), pure=False)) for _ in range(n // 8)]
    )
    size, spent = 2**22, []
    for _ in range(REPEATS):
        made = [client.submit(np.ones, size, pure=False, workers=here) for _ in range(8)]
        client.gather([client.submit(len, one, workers=here, pure=False) for one in made])
        start = clock()
        client.gather([client.submit(len, one, workers=there, pure=False) for one in made])
        spent.append(clock() - start - 8 * task / n)
    return max(min(spent), 0.0) / (8 * 8 * size), task / n


def pca(client: Any, clock: Clock, n: int, d: int, n_parts: int) -> float:
    """CPU seconds of `DaskPCA` of rows in files."""
    with _files(n, d, n_parts) as folder:
        return clock.least(lambda: scale.DaskPCA(client).fit(folder))


def neighbors_of(client: Any, clock: Clock, n_queries: int, n: int, d: int, n_parts: int) -> float:
    """CPU seconds of `nearest` among items in files."""
    Q = np.random.default_rng(1).normal(size=(n_queries, d))
    with _files(n, d, n_parts) as folder:
        return clock.least(partial(scale.nearest, None, Q, folder, K, client=client))


def lmnn_targets(c: Constants, n: float, n_parts: float, n_workers: float = N_WORKERS) -> float:
    """The nearest rows of each class, among all parts, in 50 directions."""
    return (
        n * n / N_CLASSES * (2 * DIRECTIONS * c.flop + c.target)
        + n * n_parts * c.row
        + (n_workers - 1) * n * DIRECTIONS * 8 * c.byte
        + n_parts * (2 * n_parts + 4) * c.task
    )


def lmnn_search(
    c: Constants, n: float, n_parts: float, pairs: float, n_workers: float = N_WORKERS
) -> float:
    """The impostors: mapped rows of every two parts are compared, in float32."""
    pairs *= n
    copies = n * min(n_parts - 1, 2 * pairs / n) * (1 - 1 / n_workers)
    moved = (n_workers - 1) * n * DIRECTIONS * 4 + copies * DIRECTIONS * 8
    return (
        n * n / 2 * (1 - 1 / N_CLASSES) * c.rival
        + pairs * (2 - 1 / n_parts) * c.found
        + moved * c.byte
        + n_parts * (3 + 3 * (n_parts - 1) / 2) * c.task
    )


def lmnn_step(c: Constants, n: float, n_parts: float, pairs: float) -> float:
    """The loss, its gradient, and the look for missing pairs. Pairs of two parts are in both."""
    moved = 2 * n_parts * DIRECTIONS**2 * 8
    work = n * c.own + n * pairs * (2 - 1 / n_parts) * c.pair
    return work + moved * c.byte + 2 * n_parts * c.task


def closed_form(c: Constants, n: float, d: int, n_parts: float) -> float:
    """PCA: d² numbers of each part, of rows in files."""
    return n * d * (c.value + d * c.square) + n_parts * (d * d * 8 * c.byte + 3 * c.task)


def neighbors(c: Constants, n_queries: float, n: float, d: int, n_parts: float) -> float:
    """`nearest` among items in files, with all queries in each task."""
    sent = n_parts * n_queries * (d * 8 + K * 16)
    work = n_queries * n * (2 * d * c.flop + c.look)
    return n * d * c.item + work + sent * c.byte + 3 * n_parts * c.task


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
        clock = Clock(client)
        for n, n_parts in LMNN_SIZES:
            seen = lmnn_operations(client, clock, n, n_parts)
            # Pairs are counted: how many there are depends on the map that learning starts at.
            pairs = [count / n for count in seen.pairs]
            targets = lmnn_targets(c, n, n_parts)
            search = lmnn_search(c, n, n_parts, pairs[0])
            step = lmnn_step(c, n, n_parts, _mean(pairs))
            size = n, DIRECTIONS, n_parts
            compared("LMNN, targets", *size, seen.targets[0], targets)
            compared("LMNN, first search", *size, seen.searches[0], search)
            compared("LMNN, a step", *size, _mean(seen.steps), step)
            most = lmnn_search(c, n, n_parts, pairs[-1])
            searches = search + (len(seen.searches) - 1) * most
            whole = targets + searches + len(seen.steps) * step
            compared("LMNN, whole", *size, seen.whole, whole)
        for size in CLOSED_SIZES:
            compared("PCA", *size, pca(client, clock, *size), closed_form(c, *size))
        for sizes in NEAREST_SIZES:
            spent, said = neighbors_of(client, clock, *sizes), neighbors(c, *sizes)
            compared(f"nearest, {sizes[0]:,} queries", *sizes[1:], spent, said)
    return rows


def lmnn_operations(client: Any, clock: Clock, n: int, n_parts: int) -> Operations:
    """The least CPU seconds of each operation of some steps, over several runs."""
    parts = in_parts(n_parts, *rows_of("mnist", n))
    runs = []
    for _ in range(1 + REPEATS):
        with watched(clock) as seen, warnings.catch_warnings():
            # Some steps are enough.
            warnings.simplefilter("ignore", ConvergenceWarning)
            scale.DaskLMNN(client, max_iter=STEPS, tol=0.0).fit(*parts)
        runs.append(seen)
    least = [
        [min(values) for values in zip(*(getattr(run, name) for run in runs[1:]), strict=True)]
        for name in ("targets", "searches", "steps")
    ]
    return Operations(*least, runs[0].pairs)


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
            (f"LMNN, {what}, a search", n, lmnn_search(c, n, parts, c.pairs, CLUSTER)),
            (f"LMNN, {what}, a step", n, lmnn_step(c, n, parts, c.pairs)),
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
