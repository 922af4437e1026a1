"""Which losses NCA reaches, here and with scikit-learn, both run to the end.

The problem is not convex, and where a run ends depends on where it began. Rows are sampled and
features scaled to unit variance.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from benchmarks.comparison import nca_loss
from samewise import NCA, datasets
from samewise.exceptions import DatasetNotFoundError, SamewiseWarning

ROWS = 1000
NAMES = (
    "digits letter segmentation isolet optdigits waveform21 yeast pima german_numeric "
    "ionosphere glass bupa sonar wine iris balance_scale"
).split()


def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = datasets.load(name, dtype=np.float64)
        X, y = data.data, data.target
    rows = np.random.default_rng(0).permutation(len(X))[:ROWS]
    X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    deviation = X.std(axis=0)
    X = (X[:, deviation > 0] - X.mean(axis=0)[deviation > 0]) / deviation[deviation > 0]
    if X.shape[1] > 100:
        X = X @ np.linalg.svd(X, full_matrices=False)[2][:100].T
    return X, y


def run() -> list[dict[str, object]]:
    """The losses, and the CPU seconds they took."""
    rows = []
    for name in NAMES:
        try:
            X, y = points(name)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        for n_components in (None, 2):
            learners = {
                "scikit-learn": NeighborhoodComponentsAnalysis(
                    n_components, max_iter=1000, random_state=0
                ),
                "samewise": NCA(n_components, max_iter=1000),
                "n_init=1": NCA(n_components, n_init=1, max_iter=1000),
                "n_init=3": NCA(n_components, n_init=3, max_iter=1000),
            }
            row: dict[str, object] = {
                "data": f"{name} {len(X)} × {X.shape[1]}",
                "rows of L": n_components or X.shape[1],
            }
            losses, seconds = [], []
            for learner in learners.values():
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    warnings.simplefilter("ignore", SamewiseWarning)
                    learner.fit(X, y)
                seconds.append(time.process_time() - begin)
                losses.append(nca_loss(learner.components_, {"X": X, "y": y}))
            row |= {who: f"{loss:.1f}" for who, loss in zip(learners, losses, strict=True)}
            row["higher"] = "yes" if losses[1] > losses[0] + 1e-2 else ""
            row |= {
                f"s, {who}": f"{spent:.2g}"
                for who, spent in zip(list(learners)[:2], seconds[:2], strict=True)
            }
            rows.append(row)
    return rows
