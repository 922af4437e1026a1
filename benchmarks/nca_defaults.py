"""NCA and scikit-learn's, both with their defaults: time, loss, and 3-NN error on held-out points.

Of each set 70 % are learned from, in 20 splits (100 of sets with fewer than 300 points, where an
error is 2 %), after features were scaled to unit variance there.
Both learn from the same points one after the other; time is CPU time of all threads, and the ratio
that of the medians. The error is followed by its mean difference to scikit-learn's over the splits,
with its standard error. Sets of more than `MOST` points are thinned out, and those of more than 150
features are reduced to 50 principal components first.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from threadpoolctl import threadpool_limits

from benchmarks.comparison import nca_loss
from samewise import NCA, datasets
from samewise.exceptions import DatasetNotFoundError

SPLITS, MOST, FEWEST = 20, 1800, 4
SMALL, SPLITS_OF_SMALL = 300, 100
BUILT_IN = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
STORED = "banking77_minilm caltech101_bow letter isolet pima balance_scale optdigits".split()


def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels; classes of fewer than `FEWEST` points are left out."""
    if name in BUILT_IN:
        return BUILT_IN[name](return_X_y=True)
    data = datasets.load(name, dtype=np.float64)
    rows = np.random.default_rng(0).permutation(len(data.target))[:MOST]
    X, y = data.data[rows], np.unique(data.target[rows], return_inverse=True)[1]
    if sp.issparse(X):
        X = X.toarray()
    if X.shape[1] > 150:
        X = X - X.mean(axis=0)
        X = X @ np.linalg.svd(X, full_matrices=False)[2][:50].T
    kept = np.bincount(y)[y] >= FEWEST
    return X[kept], y[kept]


def split(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Rows to learn from and held-out ones, scaled by the former, and the labels of both."""
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    deviations = A.std(axis=0)
    varies = deviations > 0
    A, B = ((Z - A.mean(axis=0))[:, varies] / deviations[varies] for Z in (A, B))
    return A, B, a, b


def measured(learner: object, A: np.ndarray, B: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple:
    """Seconds, loss and error in percent."""
    begin = time.process_time()
    learner.fit(A, a)
    seconds = time.process_time() - begin
    wrong = KNeighborsClassifier(3).fit(learner.transform(A), a).predict(learner.transform(B)) != b
    return seconds, nca_loss(learner.components_, {"X": A, "y": a}), 100 * wrong.mean()


def run(names: list[str] | None = None, splits: int | None = None) -> list[dict[str, object]]:
    """A row for each set."""
    rows = []
    for name in names or [*BUILT_IN, *STORED]:
        try:
            X, y = points(name)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        found: list[list[tuple]] = [[], []]
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            NCA(max_iter=2).fit(*split(X, y, 0)[::2])  # compile, or load what was compiled
            seeds = range(splits or (SPLITS if len(y) >= SMALL else SPLITS_OF_SMALL))
            for seed in seeds:
                parts = split(X, y, seed)
                for learner, to in zip(
                    (NeighborhoodComponentsAnalysis(), NCA()), found, strict=True
                ):
                    to.append(measured(learner, *parts))
        theirs, ours = (np.array(side) for side in found)
        apart = ours[:, 2] - theirs[:, 2]
        rows.append(
            {
                "data": f"{name} {len(parts[0])} × {parts[0].shape[1]}",
                "classes": len(np.unique(y)),
                "time ratio": f"{np.median(ours[:, 0]) / np.median(theirs[:, 0]):.2f}",
                "loss": f"{ours[:, 1].mean():.2f}",
                "scikit-learn's": f"{theirs[:, 1].mean():.2f}",
                "error": f"{ours[:, 2].mean():.2f}",
                "scikit-learn": f"{theirs[:, 2].mean():.2f}",
                "difference": f"{apart.mean():+.2f} ± {apart.std() / len(seeds) ** 0.5:.2f}",
            }
        )
    return rows
