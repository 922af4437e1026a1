"""What the demo measures: four metrics on one split of the digits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from samewise import (
    LMNN,
    Form,
    GeneralizedCosine,
    KNNClassifier,
    Mahalanobis,
    Pairs,
    PassiveAggressive,
    Verifier,
    tune_C,
)

PORTION = 500
"""Pairs handed to one `partial_fit`."""

WARM_UP = 5000
"""C is chosen on this many pairs from the beginning of the stream."""

HELD_OUT = 10_000
"""Pairs of test images for the verification error."""

FROM_PAIRS, FROM_LABELS = "learned from pairs", "learned from labels"
N_NEIGHBORS = 3
PER_CLASS = 10
DRAWS = 20

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """The digits, pixels in [0, 1], half for training and half for testing."""

    X_train: Floats
    X_test: Floats
    y_train: NDArray[np.int64]
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """One line of the table. Errors are fractions."""

    metric: str
    knn_error: float
    few_error: float
    few_spread: float
    verification_error: float
    training_seconds: float | None


@dataclass(frozen=True)
class Study:
    """All that the report shows."""

    split: Split
    learner: PassiveAggressive
    lmnn: LMNN
    n_pairs: int
    C: float
    tuning_seconds: float
    forms: dict[str, Form]
    table: list[Row]
    trajectory: list[tuple[int, Mahalanobis]]

    def row(self, metric: str) -> Row:
        """The line of that metric."""
        return next(row for row in self.table if row.metric == metric)


def run(n_pairs: int = 20_000) -> Study:
    """Learn from `n_pairs` pairs of training images, and from labels; measure on test images."""
    split = load_split()
    stream = Pairs.from_labels(split.X_train, split.y_train, n_pairs, random_state=0)
    start = time.perf_counter()
    C = tune_C(untrained(), stream[:WARM_UP]).C
    tuning_seconds = time.perf_counter() - start
    start = time.perf_counter()
    learner = learn(untrained(C), stream)
    seconds: dict[str, float | None] = {FROM_PAIRS: time.perf_counter() - start}
    start = time.perf_counter()
    lmnn = LMNN(N_NEIGHBORS).fit(split.X_train, split.y_train)
    seconds[FROM_LABELS] = time.perf_counter() - start

    d = split.X_train.shape[1]
    forms = {
        "Euclidean": Mahalanobis.identity(d),
        "cosine": GeneralizedCosine(np.eye(d)),
        FROM_PAIRS: learner.metric_,
        FROM_LABELS: lmnn.metric_,
    }
    stores = small_stores(split.y_train)
    held_out = Pairs.from_labels(split.X_test, split.y_test, HELD_OUT, random_state=1)
    table = []
    for name, form in forms.items():
        if name == FROM_PAIRS:
            verifier = Verifier(learner).fit()
        else:
            verifier = Verifier(form, criterion="balanced_accuracy").fit(stream)
        few = [neighbor_error(form, split, 1, store) for store in stores]
        table.append(
            Row(
                metric=name,
                knn_error=neighbor_error(form, split, N_NEIGHBORS),
                few_error=float(np.mean(few)),
                few_spread=float(np.std(few)),
                verification_error=1.0 - verifier.score(held_out),
                training_seconds=seconds.get(name),
            )
        )
    return Study(
        split, learner, lmnn, len(stream), C, tuning_seconds, forms, table, trajectory(C, stream)
    )


def load_split() -> Split:
    """Half of scikit-learn's digits for training, half for testing, classes in equal parts."""
    X, y = load_digits(return_X_y=True)
    return Split(*train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0))


def untrained(C: float = 1.0) -> PassiveAggressive:
    """The learner of the demo."""
    return PassiveAggressive("pa1", C, average="uniform")


def learn(learner: PassiveAggressive, stream: Pairs) -> PassiveAggressive:
    """Show the stream in portions, as feedback would arrive."""
    for start in range(0, len(stream), PORTION):
        learner.partial_fit(stream[start : start + PORTION])
    return learner


def trajectory(C: float, stream: Pairs) -> list[tuple[int, Mahalanobis]]:
    """The metric after 1 pair, and at ever longer intervals, with the updates made until then."""
    learner, seen, start = untrained(C), [], 0
    for end in np.unique(np.geomspace(1, len(stream), 40).astype(int)):
        learner.partial_fit(stream[start:end])
        seen.append((learner.n_updates_, learner.metric_))
        start = end
    return seen


def small_stores(y: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Row numbers of random stores with `PER_CLASS` training images of each class."""
    random = np.random.RandomState(0)
    members = [np.flatnonzero(y == c) for c in np.unique(y)]
    return [
        np.concatenate([random.choice(rows, PER_CLASS, replace=False) for rows in members])
        for _ in range(DRAWS)
    ]


def neighbor_error(form: Form, split: Split, k: int, store: Any = slice(None)) -> float:
    """Part of the test images that their k nearest stored training images classify wrongly."""
    classifier = KNNClassifier(form, k).fit(split.X_train[store], split.y_train[store])
    return 1.0 - float(classifier.score(split.X_test, split.y_test))
