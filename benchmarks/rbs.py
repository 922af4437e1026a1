"""RBS, sRBS and Relief at 20 000 examples of 57 features, against a loop over the examples."""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np

from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.relief import Relief
from samewise.learners.neighbors.srbs import SRBS

N, D, K, SHOWN = 20_000, 57, 3, 400
LIMIT = 5.0
MIB = 2**20


def examples(n_classes: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, N)
    X = rng.normal(size=(N, D)) + rng.normal(size=(n_classes, D))[y]
    return X.astype(dtype), y


def naive_rbs(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds that one example after the other would take, from the first few."""
    U = X / np.linalg.norm(X, axis=1)[:, None]
    Z = np.zeros((D, D))
    start = time.thread_time()
    for i in range(SHOWN):
        s = U @ U[i]
        s[i] = -np.inf
        own = np.where(y == y[i], s, -np.inf)
        others = np.where(y == y[i], -np.inf, s)
        hits, misses = (np.argpartition(c, -K)[-K:] for c in (own, others))
        Z += np.outer(U[i], U[hits].sum(axis=0) - U[misses].sum(axis=0))
    return (time.thread_time() - start) * N / SHOWN


def naive_relief(X: np.ndarray, y: np.ndarray) -> float:
    """Seconds that one example after the other would take, from the first few."""
    U = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    w = np.zeros(D)
    start = time.thread_time()
    for i in range(SHOWN // 10):
        diffs = np.abs(U - U[i])
        s = diffs.sum(axis=1)
        s[i] = np.inf
        hits = np.argpartition(np.where(y == y[i], s, np.inf), K)[:K]
        misses = np.argpartition(np.where(y == y[i], np.inf, s), K)[:K]
        w += diffs[misses].mean(axis=0) - diffs[hits].mean(axis=0)
    return (time.thread_time() - start) * N / (SHOWN // 10)


def measured(learner: object, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """CPU seconds, and memory beyond the data at its peak."""
    start = time.thread_time()
    learner.fit(X, y)
    seconds = time.thread_time() - start
    tracemalloc.start()
    learner.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / MIB
    tracemalloc.stop()
    return seconds, peak


def run() -> list[dict[str, object]]:
    warnings.filterwarnings("ignore", message="SRBS has not converged")
    cases = [
        ("RBS", RBS(K), 2, np.float64),
        ("RBS", RBS(K), 2, np.float32),
        ("RBS", RBS(K, structure="diagonal"), 2, np.float64),
        ("RBS", RBS(K, psd="end"), 26, np.float64),
        ("sRBS, 100 epochs", SRBS(K, max_iter=100, tol=0.0), 2, np.float64),
        ("Relief", Relief(K), 2, np.float64),
        ("Relief", Relief(K, structure="full"), 2, np.float64),
    ]
    rows = []
    for name, learner, n_classes, dtype in cases:
        X, y = examples(n_classes, dtype)
        learner.fit(X[:200], y[:200] % 2)
        seconds, peak = measured(learner, X, y)
        naive = {"RBS": naive_rbs, "Relief": naive_relief}.get(name)
        rows.append(
            {
                "learner": name,
                "structure": learner.structure,
                "psd": bool(learner.psd),
                "classes": n_classes,
                "type": np.dtype(dtype).name,
                "CPU s": round(seconds, 2),
                "wanted": LIMIT if name == "RBS" else "",
                "vs naive": round(naive(X, y) / seconds, 1) if naive else "",
                "peak MiB": round(peak),
            }
        )
    return rows
