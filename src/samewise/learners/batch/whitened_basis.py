"""Coordinates in which a problem is well conditioned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.solvers.evaluation import Matrix64

FLOOR = 1e-3
"""The least scatter of a direction, relative to the mean: what hardly varies is not blown up."""

POWERS = (0.0, 0.25, 0.5)
"""Starts tried: from the given coordinates (0) to those with unit scatter (1/2)."""


class WhitenedBasis:
    """x′ = Bᵀ(x − mean), in which a given scatter is that of the unit ball.

    Steps are then of a similar size in all directions. L′ in these coordinates is L = L′Bᵀ in the
    given ones.

    Parameters
    ----------
    scatter : array of shape (r, r)
        That of the centered points divided by `unit`, in the span.
    unit : float
        What the centered points were divided by.
    span : array of shape (d, r), default=None
        An orthonormal basis of the points, as columns; by default that of all features.

    Attributes
    ----------
    lengths : array of shape (r,)
        What the axes are divided by.
    whitener : array of shape (r, r)
        What maps centered points, divided by `unit` and in the span, to these coordinates.
    """

    def __init__(
        self, scatter: Matrix64, unit: float, span: NDArray[np.float64] | None = None
    ) -> None:
        values, axes = np.linalg.eigh(scatter)
        mean = values.mean()
        self.lengths = np.ones(len(values))
        if mean > 0:
            self.lengths = np.sqrt(np.maximum(values, FLOOR * mean))
        self.whitener = axes / self.lengths
        back = axes * self.lengths
        self._B = (self.whitener if span is None else span @ self.whitener) / unit
        self._inverse = (back if span is None else span @ back) * unit

    def components(self, L: Matrix64) -> Matrix64:
        """L′ as a map of the given features."""
        return L @ self._B.T

    def coordinates(self, L: Matrix64) -> Matrix64:
        """A map of the given features, in these coordinates."""
        return L @ self._inverse

    def with_signs(self, L: Matrix64) -> Matrix64:
        """L′ with the signs, which eigenvectors leave open, that make each row's largest weight of
        a feature positive.
        """
        components = self.components(L)
        largest = np.abs(components).argmax(axis=1)
        return np.where(components[np.arange(len(L)), largest] < 0, -1.0, 1.0)[:, None] * L

    def leading(self, covariance: Array, n_components: int, power: float) -> Matrix64:
        """The leading directions of points, after axes were scaled by lengths^(−2·power).

        For the power 0 these are principal components, for 1/2 discriminant ones if the scatter is
        that within classes.
        """
        f = self.lengths ** (1 - 2 * power)
        V = np.linalg.eigh(f[:, None] * covariance * f)[1][:, ::-1]
        return V[:, :n_components].T * f
