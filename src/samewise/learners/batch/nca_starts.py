"""Where NCA starts: coordinates in which the Euclidean distance serves neighbors well already.

Features of unit variance, features as they are, and coordinates in which the scatter within classes
is that of the unit ball. The last are fitted to labels, so that the loss of the points they were
fitted to says little: starts are compared on one half of the points, with what the other half says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from samewise._typing import Array, Indices
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.soft_neighbors import (
    SAMPLE,
    Coordinates,
    Rule,
    SoftNeighbors,
    at_scale,
    centered,
    covariance,
    spread_over,
)
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers

SPREAD = 10.0
"""Neighbors that p(·|i) spreads over at the start, at most."""

CLEARLY = 1.05
"""Features of unit variance come first unless their loss is more than this many times another."""

FEWEST = 8
"""Points that starts are compared on; with fewer it would be luck."""


class Basis(Protocol):
    """Coordinates of points that are sorted by class."""

    rows: Array

    def components(self, L: Matrix64, /) -> Matrix64:
        """L′ as a map of the given features."""

    def coordinates(self, L: Matrix64, /) -> Matrix64:
        """A map of the given features, in these coordinates."""

    def principal(self, n_components: int, /) -> Matrix64:
        """The leading directions of the points."""


class FeatureScales:
    """x′ = (x − mean)/lengths, feature by feature.

    Parameters
    ----------
    X : array of shape (n, d)
        In the order given; its type is that of the work.
    classes : Classes
    alike : bool, default=False
        Whether all features are divided by the same length, or each by its deviation.

    Attributes
    ----------
    rows : array of shape (n, d)
        x′, sorted by class.
    """

    def __init__(self, X: Array, classes: Classes, alike: bool = False) -> None:
        S, unit = centered(X, classes)
        deviations = S.std(axis=0, dtype=np.float64)
        # What rounding has left of a constant is not blown up.
        noise = 8 * np.finfo(X.dtype).eps * np.abs(X).max(axis=0).astype(np.float64) / unit
        varies = deviations > noise
        mean = float(np.sqrt(np.mean(deviations[varies] ** 2))) if varies.any() else 1.0
        lengths = np.full_like(deviations, mean) if alike else np.where(varies, deviations, mean)
        self._lengths = lengths * unit
        self.rows = S / lengths.astype(S.dtype)

    def components(self, L: Matrix64) -> Matrix64:
        """L′ as a map of the given features."""
        return L / self._lengths

    def coordinates(self, L: Matrix64) -> Matrix64:
        """A map of the given features, in these coordinates."""
        return L * self._lengths

    def principal(self, n_components: int) -> Matrix64:
        """The leading principal directions; where these are all, the axes."""
        d = self.rows.shape[1]
        if n_components == d:
            return np.eye(d)
        return np.linalg.eigh(covariance(self.rows))[1][:, ::-1][:, :n_components].T


class GivenScales(FeatureScales):
    """Features that keep their scales relative to each other."""

    def __init__(self, X: Array, classes: Classes) -> None:
        super().__init__(X, classes, alike=True)


class DiscriminantScales(Coordinates):
    """Coordinates of unit scatter within classes, whose principal directions are discriminant."""

    def principal(self, n_components: int, power: float = 0.5) -> Matrix64:
        """The leading directions of the points, see `leading`."""
        return super().principal(n_components, power)


BASES: tuple[Callable[[Array, Classes], Basis], ...] = (
    FeatureScales,
    GivenScales,
    DiscriminantScales,
)


def spread(classes: Classes) -> Callable[[Array], float]:
    """The scale to start at: at which p(·|i) spreads over `SPREAD` neighbors.

    Of more than its class has, a point would see mostly others; of one, nothing.
    """
    partners = float(np.median(classes.ends - classes.starts - 1))
    return lambda D: spread_over(D, max(1.5, min(SPREAD, partners)))


def compared_bases(
    X: Array, labels: Indices, n_components: int, rule: Rule
) -> list[Callable[[Array, Classes], Basis]]:
    """`BASES`, those first whose leading directions have the least loss on points not fitted to."""
    order = np.argsort(labels, kind="stable")
    fitted, judged = order[::2], order[1::2]
    judged = judged[:: len(judged) // SAMPLE + 1]
    if len(judged) < FEWEST:
        return list(BASES)
    known, classes = (Classes(labels[rows], labels.max() + 1) for rows in (fitted, judged))
    S, unit = centered(X[judged], classes)
    losses = []
    for make in BASES:
        basis = make(X[fitted], known)
        A = unit * basis.components(basis.principal(n_components))
        points = SoftNeighbors(S @ A.T.astype(S.dtype), classes, Workers(1, None))
        L = at_scale(points, np.eye(n_components), spread(classes))
        losses.append(points.sum(L, rule)[0] / (CLEARLY if make is FeatureScales else 1.0))
    return [BASES[i] for i in np.argsort(losses, kind="stable")]
