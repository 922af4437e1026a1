"""Test images that Euclidean and learned neighbors judge differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from demo.study import Study
from samewise import KNNClassifier

SHOWN_NEIGHBORS = 5


@dataclass(frozen=True)
class Query:
    """A test image and the training images nearest to it, as row numbers."""

    row: int
    before: NDArray[np.intp]
    after: NDArray[np.intp]


@dataclass(frozen=True)
class Disagreements:
    """How often only one of the two metrics is right, and the first such test images."""

    gained: int
    lost: int
    shown_gained: list[Query]
    shown_lost: list[Query]


def disagreements(study: Study, n_gained: int = 4, n_lost: int = 2) -> Disagreements:
    """1-NN in the small store under the Euclidean and the learned metric, compared."""
    split, store = study.split, study.small_store
    nearest = {}
    for name in ("Euclidean", "learned"):
        classifier = KNNClassifier(study.forms[name], 1).fit(
            split.X_train[store], split.y_train[store]
        )
        indices = classifier.kneighbors(split.X_test, SHOWN_NEIGHBORS, return_distance=False)
        nearest[name] = store[indices]
    right = {name: split.y_train[rows[:, 0]] == split.y_test for name, rows in nearest.items()}
    gained = np.flatnonzero(right["learned"] & ~right["Euclidean"])
    lost = np.flatnonzero(right["Euclidean"] & ~right["learned"])

    def queries(rows: NDArray[np.intp]) -> list[Query]:
        return [Query(int(i), nearest["Euclidean"][i], nearest["learned"][i]) for i in rows]

    return Disagreements(len(gained), len(lost), queries(gained[:n_gained]), queries(lost[:n_lost]))
