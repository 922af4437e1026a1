"""Rocchio and online logistic regression as filters that may ask a few questions.

Both go through the stream topic by topic. They know the whole collection's idf in advance, which
favors them. A document whose score reaches the threshold is assigned; the first `quota` of them are
asked about instead, are assigned only on a yes, and teach. One threshold holds for all topics: of
those where between 5 and 0.02 of 1000 documents are above it at first, the one with the best mean F
on topics that are kept for choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from samewise._typing import Array

SHARES = (5e-3, 3.5e-3, 2.5e-3, 1.7e-3, 1.2e-3, 8e-4, 5e-4, 3e-4, 1.7e-4, 8e-5, 2e-5)
_N_NEGATIVE = 256


class Rocchio:
    """q = t + 0.75 mean of relevant − 0.15 mean of irrelevant documents, without negative terms."""

    def __init__(self, topic: Any, X: Any) -> None:
        self._start = self._query = np.asarray(topic.todense()).ravel()
        self._seen: dict[bool, list[Array]] = {True: [], False: []}

    def scores(self, X: Any) -> Array:
        return X @ (self._query / np.linalg.norm(self._query))

    def learn(self, x: Any, relevant: bool) -> None:
        self._seen[relevant].append(np.asarray(x.todense()).ravel())
        self._query = self._start.copy()
        for yes, weight in ((True, 0.75), (False, -0.15)):
            if self._seen[yes]:
                self._query += weight * np.mean(self._seen[yes], axis=0)
        self._query = np.maximum(self._query, 0)


class Logistic:
    """Logistic regression by stochastic gradients, which starts from the topic as a positive.

    The first 256 documents, whoever they are relevant to, are its first negatives: hardly any is
    relevant to a topic.
    """

    def __init__(self, topic: Any, X: Any) -> None:
        self._model = SGDClassifier(
            loss="log_loss", alpha=1e-6, learning_rate="constant", eta0=1.0, random_state=0
        )
        rows = sparse.vstack([topic, X[:_N_NEGATIVE]]).tocsr()
        y = np.arange(rows.shape[0]) == 0
        weight = np.where(y, float(_N_NEGATIVE) / 8, 1.0)
        for _ in range(5):
            self._model.partial_fit(rows, y, classes=[False, True], sample_weight=weight)

    def scores(self, X: Any) -> Array:
        return self._model.decision_function(X)

    def learn(self, x: Any, relevant: bool) -> None:
        self._model.partial_fit(x, [relevant])


def best_run(
    kind: Any, topics: Any, X: Any, relevant: Array, quota: int, chosen_on: Sequence[int]
) -> tuple[Array, float]:
    """What is retrieved with the threshold that is the best on the topics `chosen_on`."""
    fresh = [kind(topics[[i]], X) for i in range(relevant.shape[1])]
    first = [model.scores(X) for model in fresh]
    grid = np.quantile(np.concatenate(first), 1 - np.array(SHARES))

    def run(theta: float, i: int) -> Array:
        return _one(deepcopy(fresh[i]), first[i], X, relevant[:, i], theta, quota)

    means = [np.mean([_f(run(t, i), relevant[:, i]) for i in chosen_on]) for t in grid]
    theta = float(grid[int(np.argmax(means))])
    return np.stack([run(theta, i) for i in range(relevant.shape[1])], axis=1), theta


def _one(model: Any, s: Array, X: Any, relevant: Array, theta: float, quota: int) -> Array:
    """The documents that one topic gets."""
    got = np.zeros(len(relevant), dtype=bool)
    start = 0
    for _ in range(quota):
        above = np.flatnonzero(s[start:] >= theta)
        if not len(above):
            break
        k = start + int(above[0])
        got[k] = relevant[k]
        model.learn(X[[k]], bool(relevant[k]))
        s, start = model.scores(X), k + 1
    got[start:] = s[start:] >= theta
    return got


def _f(got: Array, relevant: Array) -> float:
    return float(2 * np.sum(got & relevant) / max(1, np.sum(got) + np.sum(relevant)))
