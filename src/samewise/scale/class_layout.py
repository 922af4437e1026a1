"""Where rows of parts stand when all rows are sorted by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Indices


@dataclass(frozen=True)
class ClassLayout:
    """Numbers of rows in the order of their class, then of their part, then as they were given.

    They are the rows of the plain learner's sorted points.

    Parameters
    ----------
    counts : array of shape (n_parts, n_classes)

    Attributes
    ----------
    firsts : array of shape (n_parts, n_classes)
        The number of the first row of each class in each part.

    Examples
    --------
    >>> layout = ClassLayout(np.array([[2, 1], [1, 1]]))
    >>> [layout.numbers(part).tolist() for part in range(2)]
    [[0, 1, 3], [2, 4]]
    >>> layout.places(np.array([0, 2, 4]), 1)
    array([0, 1])
    """

    counts: NDArray[np.int64]

    @property
    def firsts(self) -> NDArray[np.int64]:
        """The number of the first row of each class in each part."""
        flat = self.counts.T.ravel()
        return (np.cumsum(flat) - flat).reshape(self.counts.T.shape).T

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def bounds(self, part: int) -> NDArray[np.int64]:
        """Class c has the rows bounds[c] … bounds[c + 1] of the sorted part."""
        return np.concatenate([[0], np.cumsum(self.counts[part])])

    def numbers(self, part: int) -> NDArray[np.int64]:
        """The number of each row of the sorted part."""
        offset = self.firsts[part] - self.bounds(part)[:-1]
        return np.arange(self.counts[part].sum()) + np.repeat(offset, self.counts[part])

    def labels(self, numbers: Indices) -> NDArray[np.intp]:
        """The class of rows."""
        ends = np.cumsum(self.counts.sum(axis=0))
        return np.searchsorted(ends, numbers, side="right")

    def places(self, numbers: Indices, part: int) -> NDArray[np.int64]:
        """Where in a sorted part those of the rows are that it has."""
        kind = self.labels(numbers)
        within = numbers - self.firsts[part][kind]
        mine = (within >= 0) & (within < self.counts[part][kind])
        return self.bounds(part)[kind[mine]] + within[mine]
