"""LMNN: seconds, loss and error on real data, and how the cost grows with n and d."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from samewise import KNNClassifier, datasets
from samewise.exceptions import DatasetNotFoundError
from samewise.learners.lmnn import LMNN

MIB = 2**20

# data: wall seconds and test error wanted on two cores
WANTED = {"letter": (0.6, ""), "isolet": (2.0, ""), "mnist": (10.0, 1.75)}


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


def prepared(name: str) -> tuple[np.ndarray, ...]:
    """Training and test rows and labels, reduced by PCA where the paper does."""
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
        X = ((X - mean) @ V[:, : {"isolet": 172, "mnist": 164}[name]]).astype(np.float32)
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


def clusters(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten overlapping classes of a few Gaussian clusters each, with decaying variances."""
    rng = np.random.default_rng(seed)
    scale = 1 / np.sqrt(np.arange(1, d + 1))
    centers = 3 * rng.normal(size=(50, d)) * scale
    which = rng.integers(0, 50, n)
    X = centers[which] + rng.normal(size=(n, d)) * scale
    return X.astype(np.float32), which % 10


def run_growth() -> list[dict[str, object]]:
    """Ten iterations: one start, the searches they need, and the exact loss at the end."""
    rows, last = [], None
    for n, d in [(5000, 50), (10000, 50), (20000, 50), (40000, 50), (20000, 16), (20000, 200)]:
        X, y = clusters(n, d)
        lmnn = LMNN(tol=0, callback=lambda info: info["iteration"] == 10)
        lmnn.fit(X[:500], y[:500])
        cpu = timed(lmnn, X, y)[1]
        tracemalloc.start()
        lmnn.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1] / MIB
        tracemalloc.stop()
        exponent = ""
        if last is not None and last[1] == d:
            exponent = round(np.log(cpu / last[2]) / np.log(n / last[0]), 2)
        rows.append(
            {
                "n": n,
                "d": d,
                "cpu s": round(cpu, 2),
                "exponent of n": exponent,
                "X MiB": round(X.nbytes / MIB, 1),
                "peak MiB beyond X": round(peak, 1),
            }
        )
        last = (n, d, cpu)
    return rows
