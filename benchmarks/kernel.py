"""KernelLMNN on 10 000 points: landmarks, their memory and the error, beside LMNN's.

The kernel has one width for all; the rows that are judged by had no part in choosing it.
"""

from __future__ import annotations

import numpy as np

from benchmarks._learner_runner import measured
from samewise import LMNN, KernelLMNN, KNNClassifier, datasets
from samewise.exceptions import DatasetNotFoundError

N, TESTED, D = 10_000, 4000, 164
GAMMA = 0.02
LANDMARKS = (250, 500, None)


def run() -> list[dict[str, object]]:
    """A row for each number of landmarks; None is the default."""
    try:
        digits = datasets.load("mnist", dtype=np.float32)
    except DatasetNotFoundError as missing:
        print(missing)
        return []
    X, y = digits.data[: N + TESTED] / 255, digits.target[: N + TESTED]
    X = X - X[:N].mean(axis=0)
    axes = np.linalg.eigh(np.cov(X[:N].T))[1][:, ::-1][:, :D]
    X = (X @ axes).astype(np.float32)
    LMNN(max_iter=2, tol=1).fit(X[:1000], y[:1000])  # compile
    learners = [
        KernelLMNN("rbf", {"gamma": GAMMA}, n_landmarks=s, random_state=0) for s in LANDMARKS
    ]
    rows = [row("Euclidean", None, X, y)]
    return rows + [row(type(one).__name__, one, X, y) for one in (LMNN(), *learners)]


def row(name: str, learner: object, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    cost: dict[str, object] = {}
    if learner is not None:
        cost = measured(lambda: (learner.fit(X[:N], y[:N]).components_, None))
    knn = KNNClassifier(learner, n_neighbors=3).fit(X[:N], y[:N])
    return {
        "learner": name,
        "landmarks": len(learner.landmarks_) if name == "KernelLMNN" else "",
        "CPU s": f"{cost['cpu']:.1f}" if cost else "",
        "peak MiB": f"{cost['mib']:.0f}" if cost else "",
        "error %": f"{100 - 100 * knn.score(X[N:], y[N:]):.2f}",
    }
