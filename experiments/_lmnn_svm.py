"""Multiclass SVMs for `lmnn_table1`, with parameters chosen on training examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC, LinearSVC

from samewise._typing import Array, Indices

MOST = 1000
"""Examples for the choice of parameters."""

MAX_ITER = 200_000

GRID = (
    {"kernel": ["linear"], "C": [0.1, 1.0, 10.0]},
    {"kernel": ["poly"], "gamma": [1.0], "degree": [2, 4], "coef0": [1.0], "C": [1.0, 10.0]},
    {"kernel": ["rbf"], "gamma": [1.0, 4.0, 16.0], "C": [1.0, 10.0, 100.0]},
)
"""On inputs scaled by one number, to a mean squared distance of 1 from their mean."""


def best(A: Array, a: Indices) -> tuple[Any, str]:
    """The kernel and parameters of the least error in three-fold cross validation."""
    scale = _scale(A)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    base = SVC(max_iter=MAX_ITER, cache_size=500)
    search = GridSearchCV(base, list(GRID), cv=folds, refit=False).fit(*_some(A * scale, a))
    chosen = search.best_params_
    return _Scaled(scale, base.set_params(**chosen).fit(A * scale, a)), _name(chosen)


def of_digits(A: Array, a: Indices) -> tuple[Any, str]:
    """The paper's kernel for MNIST, of degree four; C = 10."""
    scale = _scale(A)
    chosen = {"kernel": "poly", "degree": 4, "coef0": 1.0, "gamma": 1.0, "C": 10.0}
    return _Scaled(scale, SVC(cache_size=1000, **chosen).fit(A * scale, a)), _name(chosen)


def of_words(A: Any, a: Indices) -> tuple[Any, str]:
    """Linear, one against the rest."""
    X, y = train_test_split(np.arange(len(a)), train_size=4000, stratify=a, random_state=0)[0], a
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0, 10.0]}, cv=3, refit=False)
    chosen = search.fit(A[X], y[X]).best_params_
    return LinearSVC(**chosen).fit(A, a), _name({"kernel": "linear", **chosen})


class _Scaled:
    def __init__(self, scale: float, svm: SVC) -> None:
        self.scale, self.svm = scale, svm

    def score(self, B: Array, b: Indices) -> float:
        return self.svm.score(B * self.scale, b)


def _scale(A: Array) -> float:
    centered = A - A.mean(axis=0)
    return float(1 / np.sqrt(np.mean(np.sum(centered**2, axis=1))))


def _some(A: Array, a: Indices) -> tuple[Array, Indices]:
    if len(a) <= MOST:
        return A, a
    rows, _ = train_test_split(np.arange(len(a)), train_size=MOST, stratify=a, random_state=0)
    return A[rows], a[rows]


def _name(chosen: dict[str, Any]) -> str:
    shown = {key: chosen[key] for key in ("degree", "gamma", "C") if key in chosen}
    return " ".join([chosen["kernel"], *(f"{key}={value:g}" for key, value in shown.items())])
