"""A distance that is learned along a stream of dicts with labels, and the latest of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.learners.online.passive_aggressive import PassiveAggressive
from samewise.supervision import Pairs

Vector = NDArray[np.float64]

FIRST = 16
"""Places for rows at the beginning; they are doubled up to the window."""


class StreamMetric:
    """The latest examples of a stream, and a metric learned from pairs of them.

    Each example makes two pairs: with the nearest of its own label among those kept, and with the
    nearest of another. A feature that is seen for the first time gets a column of its own, in which
    earlier examples have 0 and the metric starts as the Euclidean distance.

    Parameters
    ----------
    learner : learner of pairs with `init` and `partial_fit`
    window : int
        How many examples are kept.
    every : int
        After so many pairs they are learned from.
    """

    def __init__(self, learner: Any, window: int, every: int) -> None:
        if window < 2 or every < 1:
            raise InvalidInputError(
                f"window must be at least 2 and every at least 1. Got {window} and {every}."
            )
        self.learner = PassiveAggressive() if learner is None else learner
        self.window, self.every = window, every
        self.columns: dict[Hashable, int] = {}
        self.root: Vector = np.zeros((0, 0))
        self.labels: list[Any] = []
        self.seen: dict[Any, None] = {}
        self._rows: Vector = np.zeros((0, 0))
        self._mapped: Vector = np.zeros((0, 0))
        self._next = 0
        self._pairs: list[tuple[Vector, Vector, int]] = []
        self._online: Any = None

    def __len__(self) -> int:
        return len(self.labels)

    def row(self, x: Mapping[Hashable, Any], grow: bool = False) -> Vector:
        """The values of a dict by column; what is missing is 0, what is unknown is left out."""
        for name, value in x.items():
            if not isinstance(value, Real) or not math.isfinite(value):
                raise InvalidInputError(
                    f"Features must be finite numbers. Got {value!r} for {name!r}; encode or "
                    "impute it before."
                )
        if grow and not x.keys() <= self.columns.keys():
            self._widen(x)
        found = np.zeros(len(self.columns))
        for name, value in x.items():
            if name in self.columns:
                found[self.columns[name]] = value
        return found

    def embed(self, x: Mapping[Hashable, Any]) -> Vector:
        """M^½ x."""
        return self.root @ self.row(x)

    def nearest(self, x: Mapping[Hashable, Any], k: int) -> tuple[list[Any], Vector]:
        """Labels and distances of the k nearest examples that are kept, nearest first."""
        D = self._squared(self.root @ self.row(x))
        k = min(k, len(D))
        some = np.argpartition(D, k - 1)[:k] if 0 < k < len(D) else np.arange(len(D))
        some = some[np.argsort(D[some], kind="stable")]
        return [self.labels[place] for place in some], np.sqrt(D[some])

    def learn(self, x: Mapping[Hashable, Any], y: Any) -> None:
        """Learn from an example, and keep it."""
        row = self.row(x, grow=True)
        z = self.root @ row
        if self.labels:
            D = self._squared(z)
            same = np.fromiter((label == y for label in self.labels), bool, len(self.labels))
            for sign, kind in ((1, same), (-1, ~same)):
                if kind.any():
                    place = int(np.argmin(np.where(kind, D, np.inf)))
                    self._pairs.append((row, self._rows[place].copy(), sign))
        self._keep(row, z, y)
        if len(self._pairs) >= self.every:
            self._learn_pairs()

    def _squared(self, z: Vector) -> Vector:
        difference = self._mapped[: len(self.labels)] - z
        return np.asarray(np.einsum("ij,ij->i", difference, difference))

    def _keep(self, row: Vector, z: Vector, y: Any) -> None:
        """In the place of the oldest, once the window is full."""
        if len(self.labels) < self.window:
            self.labels.append(y)
            if len(self.labels) > len(self._rows):
                n = min(max(2 * len(self._rows), FIRST), self.window)
                self._rows, self._mapped = (_larger(A, n) for A in (self._rows, self._mapped))
        self.labels[self._next] = y
        self.seen[y] = None
        self._rows[self._next], self._mapped[self._next] = row, z
        self._next = (self._next + 1) % self.window

    def _learn_pairs(self) -> None:
        left, right, signs = zip(*self._pairs, strict=True)
        X = np.concatenate([left, right])
        n = len(signs)
        if self._online is None:
            self._online = copy.deepcopy(self.learner).set_params(init=self.root.T @ self.root)
        self._online.partial_fit(Pairs(X, np.arange(n), np.arange(n, 2 * n), signs))
        self._pairs = []
        self.root = np.array(self._online.metric_.root, dtype=np.float64)
        self._mapped = self._rows @ self.root

    def _widen(self, x: Mapping[Hashable, Any]) -> None:
        """Give new features a column; what was learned of the others stays."""
        before = len(self.columns)
        for name in x:
            self.columns.setdefault(name, len(self.columns))
        more = ((0, 0), (0, len(self.columns) - before))
        self._rows, self._mapped = (np.pad(A, more) for A in (self._rows, self._mapped))
        self._pairs = [(np.pad(a, more[1]), np.pad(b, more[1]), sign) for a, b, sign in self._pairs]
        root = np.eye(len(self.columns))
        root[:before, :before] = self.root
        self.root, self._online = root, None


def _larger(A: Vector, n: int) -> Vector:
    return np.concatenate([A, np.zeros((n - len(A), A.shape[1]))])
