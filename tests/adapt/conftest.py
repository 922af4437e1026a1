"""Items in groups, and users who like what is of the query's group."""

from __future__ import annotations

import numpy as np
import pytest


class World:
    """Unit vectors whose largest directions say least about what users mean by "the same"."""

    def __init__(self, n=400, d=12, n_groups=8, seed=0):
        self.random = np.random.RandomState(seed)
        self.groups = self.random.randint(n_groups, size=n)
        centers = self.random.randn(n_groups, d)
        X = 0.8 * centers[self.groups] + self.random.randn(n, d)
        X[:, : d // 3] *= 3.0
        self.items = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)

    def judged(self, noise=0.0):
        """A query, ten items and answers, with both kinds among them."""
        while True:
            q = int(self.random.randint(len(self.items)))
            shown = self.random.choice(np.delete(np.arange(len(self.items)), q), 10, replace=False)
            y = np.where(self.groups[shown] == self.groups[q], 1, -1)
            y = np.where(self.random.rand(10) < noise, -y, y)
            if abs(y.sum()) < 10:
                return q, shown, y


@pytest.fixture
def world():
    return World()


@pytest.fixture
def make_world():
    return World
