"""How time and memory grow: exponents in n, d and the number of classes, by lines through logs.

Each cost is measured at four or five sizes, a factor of 2 apart, all else equal: CPU seconds of the
faster of two runs, and the peak of what is allocated in a run of its own. Of LMNN and NCA so many
iterations are timed, of the search so many queries, of the online learners one pass. "off by" is
the largest distance of a measurement from its line: where it is large, the exponent itself changes
over the sizes, which "last" shows, the exponent between the two largest.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from samewise import LMNN, NCA, OASIS, FactoredAROMA, Pairs, PassiveAggressive, Triplets
from samewise.search import Index

ITERATIONS = 5
QUERIES = 500

Work = Callable[[], object]


class Growth(NamedTuple):
    """One cost along one axis: `make(size)` gives the work of that size."""

    what: str
    axis: str
    sizes: tuple[int, ...]
    make: Callable[[int], Work]


def points(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes that overlap, each with its own center."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((n_classes, d))[y] / np.sqrt(d / 16)
    return X.astype(np.float32), y


def of_classes(learner: object, n: int, d: int, n_classes: int) -> Work:
    X, y = points(n, d, n_classes)

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner.fit(X, y)

    return fit


def enough(info: dict[str, object]) -> bool:
    """Stop after so many iterations."""
    return info["iteration"] == ITERATIONS


def lmnn(n: int = 6000, d: int = 32, n_classes: int = 10) -> Work:
    return of_classes(LMNN(tol=0, callback=enough), n, d, n_classes)


def nca(n: int = 1500, d: int = 24, n_classes: int = 10) -> Work:
    return of_classes(NCA(tol=0, callback=enough, random_state=0), n, d, n_classes)


def search(n: int = 10_000, d: int = 64) -> Work:
    X, _ = points(n + QUERIES, d, 10)
    index = Index(None, X[:n])
    return lambda: index.query(X[n:], 3)


def pairs(n: int = 2000, d: int = 64) -> Work:
    X, y = points(2000, d, 10)
    given = Pairs.from_labels(X / np.sqrt(2 * d), y, n, random_state=0)
    return lambda: PassiveAggressive("pa1", 0.01, psd="end").fit(given)


def triplets(learner: object, n: int = 2000, d: int = 64) -> Work:
    X, y = points(2000, d, 10)
    given = Triplets.from_labels(X / np.sqrt(2 * d), y, n, random_state=0)
    return lambda: learner.fit(given)


MANY = (4000, 8000, 16_000, 32_000)
WIDE = (128, 256, 512, 1024)
CLASSES = (2, 4, 8, 16, 32)
CASES = [
    Growth("LMNN", "n", (2000, 4000, 8000, 16_000), lmnn),
    Growth("LMNN", "d", (16, 32, 64, 128), lambda d: lmnn(d=d)),
    Growth("LMNN", "classes", CLASSES, lambda c: lmnn(n_classes=c)),
    Growth("NCA", "n", (500, 1000, 2000, 4000), nca),
    Growth("NCA", "d", (16, 32, 64, 128), lambda d: nca(d=d)),
    Growth("NCA", "classes", CLASSES, lambda c: nca(n_classes=c)),
    Growth("search", "n", (8000, 16_000, 32_000, 64_000), search),
    Growth("search", "d", (32, 64, 128, 256), lambda d: search(d=d)),
    Growth("PA-I", "n", MANY, pairs),
    Growth("PA-I", "d", WIDE, lambda d: pairs(d=d)),
    Growth("OASIS", "n", MANY, lambda n: triplets(OASIS(0.1, 1.0), n)),
    Growth("OASIS", "d", WIDE, lambda d: triplets(OASIS(0.1, 1.0), d=d)),
    Growth("f-AROMA", "n", MANY, lambda n: triplets(FactoredAROMA(1.0), n)),
    Growth("f-AROMA", "d", WIDE, lambda d: triplets(FactoredAROMA(1.0), 500, d)),
]


def cost(work: Work) -> tuple[float, float]:
    """CPU seconds of the faster of two runs, and MiB that a run before them allocates at most."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    spent = []
    for _ in range(2):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent), peak


def line(sizes: tuple[int, ...], costs: list[float]) -> tuple[float, float]:
    """The exponent, and the largest factor by which a cost is off the line, less 1."""
    x, y = np.log(sizes), np.log(costs)
    slope, start = np.polyfit(x, y, 1)
    return float(slope), float(np.expm1(np.abs(y - slope * x - start).max()))


def run() -> list[dict[str, object]]:
    """A row for each cost and axis."""
    rows = []
    for what, axis, sizes, make in CASES:
        make(sizes[0])()  # compile
        seconds, peaks = zip(*(cost(make(size)) for size in sizes), strict=True)
        time_exponent, time_off = line(sizes, list(seconds))
        peak_exponent, peak_off = line(sizes, list(peaks))
        rows.append(
            {
                "what": what,
                "in": axis,
                "from": sizes[0],
                "to": sizes[-1],
                "CPU s": f"{seconds[0]:.3g}–{seconds[-1]:.3g}",
                "exponent": f"{time_exponent:.2f}",
                "off by": f"{time_off:.0%}",
                "last": f"{np.log2(seconds[-1] / seconds[-2]):.2f}",
                "peak MiB": f"{peaks[0]:.3g}–{peaks[-1]:.3g}",
                "exponent ": f"{peak_exponent:.2f}",
                "off by ": f"{peak_off:.0%}",
            }
        )
    return rows
