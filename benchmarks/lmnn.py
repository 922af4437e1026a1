"""LMNN: seconds, loss and error on real data, and how the cost grows with n and d."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from samewise import KNNClassifier, datasets
from samewise.exceptions import DatasetNotFoundError
from samewise.learners import LMNN
from samewise.learners.batch.lmnn.estimator import SMALL

MIB = 2**20

# data: wall seconds and test error wanted on two cores
WANTED = {"letter": (0.6, ""), "isolet": (2.0, ""), "mnist": (10.0, 1.75)}

# sizes (n, d) along which the cost is followed, and the anchors learned from
CURVES: list[tuple[list[tuple[int, int]], int | None]] = [
    ([(n, 50) for n in (5000, 10000, 20000, 40000, 80000)], None),
    ([(n, 50) for n in (62500, 125000, 250000, 500000)], 5000),
    ([(10000, d) for d in (16, 32, 64, 128, 256, 512, 784)], None),
]
# of the standard deviation of each column, where rows are repeated
NOISE = 0.2


def deskewed(images: np.ndarray) -> np.ndarray:
    """Rows of images shifted by whole pixels, so that the ink's principal axis stands upright."""
    n, size = images.shape[0], 28
    I = images.reshape(n, size, size)  # noqa: E741
    at = np.arange(size)
    mass = I.sum(axis=(1, 2))
    y = (I.sum(axis=2) @ at) / mass
    x = (I.sum(axis=1) @ at) / mass
    rows = at - y[:, None]
    slant = np.einsum("nij,ni,nj->n", I, rows, at - x[:, None])
    slant /= np.einsum("nij,ni->n", I, rows**2)
    shift = np.rint(slant[:, None] * rows).astype(int)
    columns = (at + shift[:, :, None]) % size
    return np.take_along_axis(I, columns, axis=2).reshape(n, -1)


def prepared(name: str, n_components: int | None = None) -> tuple[np.ndarray, ...]:
    """Training and test rows and labels, on principal components as in the paper, or so many."""
    data = datasets.load(name, dtype=np.float32)
    X, y = data.data, data.target
    if name == "letter":
        train = np.zeros(len(X), dtype=bool)
        train[np.random.default_rng(0).permutation(len(X))[:14000]] = True
    else:
        train = data.train
        X = deskewed(X / 255) if name == "mnist" else X
        mean = X[train].mean(axis=0)
        V = np.linalg.eigh(np.cov((X[train] - mean).T))[1][:, ::-1]
        V = V[:, : n_components or {"isolet": 172, "mnist": 164}[name]]
        X = ((X - mean) @ V).astype(np.float32)
    return X[train], y[train], X[~train], y[~train]


def timed(lmnn: LMNN, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    lmnn.fit(X, y)
    return time.perf_counter() - wall, time.process_time() - cpu


def run() -> list[dict[str, object]]:
    rows = []
    for name, (seconds, error) in WANTED.items():
        try:
            X, y, X_test, y_test = prepared(name)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        LMNN(max_iter=2, tol=1).fit(X[:1000], y[:1000])
        for rank in (None, 64) if name == "mnist" else (None,):
            lmnn = LMNN(n_components=rank)
            wall, cpu = min(timed(lmnn, X, y) for _ in range(1 if name == "mnist" else 3))
            knn = KNNClassifier(lmnn, n_neighbors=3).fit(X, y)
            rows.append(
                {
                    "data": name,
                    "n": len(X),
                    "d": X.shape[1],
                    "rank": rank or "",
                    "wall s": round(wall, 2),
                    "wanted": seconds,
                    "cpu s": round(cpu, 2),
                    "iterations": lmnn.n_iter_,
                    "loss": round(lmnn.loss_, 1),
                    "test error %": round(100 * (1 - knn.score(X_test, y_test)), 2),
                    "wanted %": error,
                }
            )
    return rows


def grown(X: np.ndarray, y: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The first n rows; beyond those there are, again and again with a little noise."""
    source = np.arange(n) % len(X)
    rng = np.random.default_rng(0)
    more = X[source]
    noise = rng.standard_normal((max(0, n - len(X)), X.shape[1]), dtype=np.float32)
    more[len(X) :] += NOISE * X.std(axis=0) * noise
    return more, y[source]


def run_growth() -> list[dict[str, object]]:
    """Ten iterations: targets, a start, the searches they need, and the exact loss at the end.

    An exponent is that of the time (or memory) from the row before; at the end of each curve, of
    the line fitted through all of it. Where "anchors" is a number, targets and impostors are found
    for so many points (`max_anchors`). "type" is that of the work.
    """
    try:
        X, y, _, _ = prepared("mnist", 784)
    except DatasetNotFoundError as missing:
        print(missing)
        return []
    for n in (1000, SMALL // X.shape[1] + 1):
        cost(X[:n], y[:n], 100)  # compile, for both types
    rows: list[dict[str, object]] = []
    for sizes, anchors in CURVES:
        spent, held = [], []
        for n, d in sizes:
            A, b = grown(X[:, :d], y, n)
            wall, cpu, peak = cost(A, b, anchors)
            spent.append(cpu)
            held.append(peak)
            rows.append(
                {
                    "n": n,
                    "d": d,
                    "anchors": anchors or "all",
                    "type": "float64" if A.size <= SMALL else "float32",
                    "wall s": round(wall, 2),
                    "cpu s": round(cpu, 2),
                    "exponent": exponent(sizes[: len(spent)][-2:], spent[-2:]),
                    "X MiB": round(A.nbytes / MIB, 1),
                    "peak MiB beyond X": round(peak, 1),
                    "peak exponent": exponent(sizes[: len(spent)][-2:], held[-2:]),
                }
            )
        rows.append(dict.fromkeys(rows[-1], "") | {
            "n": "curve",
            "exponent": exponent(sizes, spent),
            "peak exponent": exponent(sizes, held),
        })  # fmt: skip
    return rows


def cost(X: np.ndarray, y: np.ndarray, anchors: int | None) -> tuple[float, float, float]:
    """Wall and CPU seconds, and peak MiB beyond X, of ten iterations."""
    lmnn = LMNN(
        tol=0, max_anchors=anchors, random_state=0, callback=lambda info: info["iteration"] == 10
    )
    tracemalloc.start()
    wall, cpu = timed(lmnn, X, y)
    peak = tracemalloc.get_traced_memory()[1] / MIB
    tracemalloc.stop()
    return wall, cpu, peak


def exponent(sizes: list[tuple[int, int]], values: list[float]) -> object:
    """The slope of log values over log sizes, n·d, of which one changes."""
    if len(values) < 2:
        return ""
    return round(np.polyfit(np.log([n * d for n, d in sizes]), np.log(values), 1)[0], 2)
