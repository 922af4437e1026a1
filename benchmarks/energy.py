"""The energy rule against a loop over test points that is vectorized over the training points."""

from __future__ import annotations

import os
import time

import numpy as np
from threadpoolctl import threadpool_limits

from samewise import KNNClassifier

K = 3
SAMPLE = 10
# training points, test points, dimensions, classes, wanted seconds
SIZES = [(14000, 6000, 16, 26, None), (60000, 10000, 64, 10, None), (60000, 10000, 164, 10, 4.0)]


def mixture(n: int, d: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap a little, with a spectrum like that of images."""
    spread = np.arange(1, d + 1) ** -0.7
    centers = 1.5 * np.random.RandomState(0).randn(n_classes, d) * spread
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=n)
    return (centers[y] + rng.randn(n, d) * spread).astype(np.float32), y


def one_by_one(X, y, Q, perimeters) -> np.ndarray:
    """Energies as one would write them down: a loop over test points and classes."""
    out = np.empty((len(Q), y.max() + 1))
    for t, q in enumerate(Q):
        D = ((X - q) ** 2).sum(axis=1).astype(np.float64)
        paid = np.maximum(perimeters - D[:, None], 0).sum(axis=1)
        for c in range(out.shape[1]):
            others = y != c
            own = np.partition(D[~others], K)[:K]
            pushed = np.maximum(own - D[others, None], 0).sum()
            out[t, c] = (own.sum() + pushed + paid[others].sum()) / 2
    return out


def timed(run):
    """Wall seconds, CPU seconds of all threads, result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def run() -> list[dict[str, object]]:
    """Wall and CPU seconds with a thread for each processor; the loop runs in one."""
    rows = []
    for n_train, n_test, d, n_classes, wanted in SIZES:
        X, y = mixture(n_train, d, n_classes, 1)
        Q, _ = mixture(n_test, d, n_classes, 2)
        with threadpool_limits(os.cpu_count(), user_api="blas"):
            fitting, _, model = timed(
                lambda X=X, y=y: KNNClassifier(n_neighbors=K, rule="energy").fit(X, y)
            )
            model.energies(Q[:SAMPLE])  # compile
            repeats = [timed(lambda m=model, Q=Q: m.energies(Q)) for _ in range(3)]
        seconds, cpu, energies = sorted(repeats, key=lambda repeat: repeat[0])[1]
        perimeters = 1 + np.stack(
            [((X - X[j]) ** 2).sum(axis=1, dtype=np.float64) for j in model.targets_.T], axis=1
        )
        _, loop, slow = timed(lambda X=X, y=y, Q=Q, p=perimeters: one_by_one(X, y, Q[:SAMPLE], p))
        np.testing.assert_allclose(energies[:SAMPLE], slow, rtol=1e-3)
        rows.append(
            {
                "training points": n_train,
                "test points": n_test,
                "d": d,
                "classes": n_classes,
                "fit s": round(fitting, 2),
                "energies s": round(seconds, 2),
                "wanted": wanted or "",
                "CPU s": round(cpu, 2),
                "CPU vs loop": round(loop / SAMPLE * n_test / cpu),
            }
        )
    return rows
