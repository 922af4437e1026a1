"""The data sets of `defaults`: training and test parts, standardized."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, train_test_split

from samewise._typing import Array, Indices
from samewise.datasets import load

DEVELOPMENT = (
    "letter", "satellite", "waveform21", "digits", "segmentation", "wine",
    "ionosphere", "pima", "isolet", "spambase", "glass", "yaleb32",
)  # fmt: skip
"""Sets on whose training parts, and nothing else, defaults were chosen."""
OTHERS = (
    "balance_scale", "breast_wisconsin", "bupa", "caltech10_surf",
    "coil20", "ecoli", "german_numeric", "heart_statlog", "iris", "magic04",
    "mfeat", "mnist", "musk1", "olivetti", "optdigits", "sonar", "soybean_large", "soybean_small",
    "waveform40", "wdbc", "yeast",
)  # fmt: skip
"""Sets that had no part in the choice."""

TRAIN, TEST = 2000, 2000
"""Rows at most; more would only take longer."""
WIDE, KEPT = 100, 60
"""Sets with more features than that are reduced to so many by PCA of the training part."""
N_FOLDS = 2


class Parts(NamedTuple):
    """Rows to learn from and rows to judge by, standardized by the first."""

    X: Array
    y: Indices
    X_test: Array
    y_test: Indices


def parts(name: str) -> Parts:
    """The training and the test part of a set."""
    X, y, train, test = _split(name)
    return _scaled(X[train], y[train], X[test], y[test])


def folds(name: str) -> list[Parts]:
    """Folds of the training part alone."""
    X, y, train, _ = _split(name)
    X, y = X[train], y[train]
    split = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
    return [_scaled(X[a], y[a], X[b], y[b]) for a, b in split]


def _split(name: str) -> tuple[Array, Indices, Indices, Indices]:
    """Rows, labels, and which rows are the training and the test part."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        given = None
    else:
        bunch = load(name)
        X, y, given = bunch.data, bunch.target, bunch.get("train")
    if given is None or name == "segmentation":
        # The standard training part of segmentation has 30 rows of each class.
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=0)
    else:
        train, test = np.flatnonzero(given), np.flatnonzero(~np.asarray(given))
    return np.asarray(X, dtype=np.float64), y, _some(train, y, TRAIN), _some(test, y, TEST)


def _some(rows: Indices, y: Indices, most: int) -> Indices:
    """At most so many of the rows, of each class its part."""
    if len(rows) <= most:
        return np.sort(rows)
    return np.sort(train_test_split(rows, train_size=most, stratify=y[rows], random_state=0)[0])


def _scaled(X: Array, y: Indices, X_test: Array, y_test: Indices) -> Parts:
    mean, size = X.mean(axis=0), X.std(axis=0)
    size[size < 1e-9] = 1.0
    X, X_test = (X - mean) / size, (X_test - mean) / size
    if X.shape[1] > WIDE:
        pca = PCA(min(KEPT, len(X) - 1), random_state=0).fit(X)
        X, X_test = pca.transform(X), pca.transform(X_test)
    return Parts(X, y, X_test, y_test)
