"""Learners that sample pairs from labels as the papers do: replications do not follow defaults."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from samewise._typing import Array, Indices
from samewise.forms import GeneralizedCosine
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.snn import SNN
from samewise.learners.online.gcosla import GCosLA
from samewise.supervision import Pairs


class PapersPairs:
    """Learns from random pairs, half of them similar; none are held out."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from labeled examples, with one sequence of random numbers for all."""
        given = self.random_state  # type: ignore[has-type]
        self.random_state = check_random_state(given)
        try:
            return super().fit(self._pairs_of(X, y))  # type: ignore[misc]
        finally:
            self.random_state = given

    def _pairs_of(self, X: Array, y: Indices) -> Pairs:
        return Pairs.from_labels(X, y, self.n_pairs, random_state=self.random_state)  # type: ignore[attr-defined]


class PapersMMC(PapersPairs, MMC):
    """MMC."""


class PapersSNN(PapersPairs, SNN):
    """SNN."""


class PapersITML(PapersPairs, ITML):
    """ITML from 20c² pairs for c classes."""

    def _pairs_of(self, X: Array, y: Indices) -> Pairs:
        n = len(y)
        few = min(20 * len(np.unique(y)) ** 2, n * (n - 1) // 2)
        return Pairs.from_labels(X, y, few, random_state=self.random_state)


class PapersGCosLA(PapersPairs, GCosLA):
    """gCosLA from each example's nearest of both kinds."""

    def _pairs_of(self, X: Array, y: Indices) -> Pairs:
        return Pairs.from_labels(
            X,
            y,
            self.n_pairs,
            strategy="nearest",
            n_neighbors=self.n_neighbors,
            form=GeneralizedCosine(np.eye(X.shape[1], dtype=X.dtype), on_zero="zero"),
            merge_duplicates=True,
            random_state=self.random_state,
        )
