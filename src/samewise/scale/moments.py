"""Means and scatters of groups of rows, part by part: what learners in closed form need."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.learners.closed.closed_form import VANISHING, group_sums
from samewise.scale.row_blocks import RowBlock, Shape, shape_of, shapes

Vector = NDArray[np.float64]


class Moments(NamedTuple):
    """The groups of some rows.

    Attributes
    ----------
    keys : array of shape (n_groups,)
        The groups, ascending.
    counts : array of shape (n_groups,)
        How many rows each has.
    means : array of shape (n_groups, d)
    within : array of shape (d, d)
        Σ (x − m)(x − m)ᵀ with the mean m of the group of x.
    low, high : arrays of shape (d,)
        The least and the largest value of each feature.
    shape : Shape
        How many rows there are, and of which type.
    """

    keys: NDArray[Any]
    counts: NDArray[np.int64]
    means: Vector
    within: Vector
    low: Array
    high: Array
    shape: Shape

    @property
    def mean(self) -> Vector:
        """That of all rows."""
        return self.means[0] + self._weights @ (self.means - self.means[0])

    @property
    def _weights(self) -> Vector:
        return self.counts / self.counts.sum()

    @property
    def between(self) -> Vector:
        """Σ n (m − mean)(m − mean)ᵀ over the groups of n rows."""
        D = self.means - self.mean
        return (D.T * self.counts) @ D

    @property
    def still(self) -> NDArray[np.bool_]:
        """Which features hold only rounding."""
        mean = self.mean
        return np.maximum(self.high - mean, mean - self.low) <= self.rounding

    @property
    def rounding(self) -> Vector:
        """Differences that are not larger are none."""
        size = np.maximum(self.high, -self.low).astype(np.float64)
        return np.maximum(16 * np.finfo(self.shape.dtype).eps * size, VANISHING)

    def covariance(self) -> Vector:
        """The covariance of all rows, by n; 0 for features that hold only rounding."""
        return without(self.still, (self.within + self.between) / self.counts.sum())


def moments(block: RowBlock, groups: NDArray[Any] | None) -> Moments:
    """Those of a block of rows; without groups, all rows are one."""
    X = block.X
    if groups is None:
        groups = np.zeros(len(X), dtype=np.int64)
    keys, numbers, counts = np.unique(groups, return_inverse=True, return_counts=True)
    pilot = X[0].astype(np.float64)
    Z = X - pilot
    means = group_sums(Z, numbers, len(keys)) / counts[:, None]
    Z -= means[numbers]
    return Moments(
        keys, counts, means + pilot, Z.T @ Z, X.min(axis=0), X.max(axis=0), shape_of(block)
    )


def label_moments(block: RowBlock) -> Moments:
    """The groups are the labels."""
    return moments(block, block.y)


def merged(parts: list[Moments]) -> Moments:
    """The moments of all rows of the parts: exact, in any order up to rounding.

    With the mean m of a group and its mean m_p in part p, its scatter is the sum of those within
    the parts and of n_p (m_p − m)(m_p − m)ᵀ.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [6.0]])
    >>> whole = moments(RowBlock(rows, None), None)
    >>> both = merged([moments(RowBlock(part, None), None) for part in (rows[:2], rows[2:])])
    >>> both.means, both.within, whole.within
    (array([[3.]]), array([[14.]]), array([[14.]]))
    """
    sizes, n_features, dtype = shapes([part.shape for part in parts])
    pilot = parts[0].means[0]
    keys = np.unique(np.concatenate([part.keys for part in parts]))
    places = [np.searchsorted(keys, part.keys) for part in parts]
    counts, sums = np.zeros(len(keys), dtype=np.int64), np.zeros((len(keys), n_features))
    for part, place in zip(parts, places, strict=True):
        counts[place] += part.counts
        sums[place] += part.counts[:, None] * (part.means - pilot)
    means = pilot + sums / counts[:, None]
    within = np.zeros((n_features, n_features))
    for part, place in zip(parts, places, strict=True):
        D = part.means - means[place]
        within += part.within + (D.T * part.counts) @ D
    if sum(sizes) < 2:
        raise InvalidInputError("At least two rows are needed. Got one.")
    low = np.min([part.low for part in parts], axis=0)
    high = np.max([part.high for part in parts], axis=0)
    shape = Shape(sum(sizes), n_features, dtype)
    return Moments(keys, counts, means, within, low, high, shape)


def without(still: NDArray[np.bool_], S: Vector) -> Vector:
    """S with 0 in the rows and columns of some features."""
    S = S.copy()
    S[still] = 0
    S[:, still] = 0
    return S
