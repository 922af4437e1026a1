"""MLKR before k-NN regression: R² in three folds, and the tolerances that were compared.

The first row of each set, the Euclidean distance, is after scaling features to unit variance. `tol`
was chosen on these folds, so that they are no test of it; diabetes is halved, and its other half
had no part in the choice.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from samewise import MLKR, KNNRegressor

TOLERANCES = (3e-2, 1e-2, 3e-3, 1e-3, 1e-4)


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A half of a real set, and two made ones."""
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    L = rng.normal(size=(300, 10))
    return {
        "diabetes, first half": (X[::2], y[::2]),
        "diabetes, second half": (X[1::2], y[1::2]),
        "friedman1, 20 features": make_friedman1(300, 20, noise=1, random_state=0),
        "linear": (L, L[:, 0] - L[:, 1] + 0.3 * rng.normal(size=300)),
    }


def run() -> list[dict[str, object]]:
    """A row for each set and tolerance."""
    rows = []
    for name, (X, y) in sets().items():
        tried = [("Euclidean", None), *((f"tol={tol:g}", MLKR(tol=tol)) for tol in TOLERANCES)]
        for label, metric in tried:
            scores, start = [], time.process_time()
            for train, test in KFold(3, shuffle=True, random_state=0).split(X):
                scaler = StandardScaler().fit(X[train])
                model = KNNRegressor(metric, n_neighbors=10)
                model.fit(scaler.transform(X[train]), y[train])
                scores.append(model.score(scaler.transform(X[test]), y[test]))
            seconds = time.process_time() - start
            rows.append(
                {"set": name, "": label, "R²": f"{np.mean(scores):.3f}", "s": f"{seconds:.2f}"}
            )
    return rows
