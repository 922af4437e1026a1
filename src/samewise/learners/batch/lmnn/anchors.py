"""Which points LMNN's loss is summed over, when not over all, and what follows for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Indices
from samewise.learners.batch.points_by_class import Classes


class Anchors:
    """A sample of the N points that have targets, m at most.

    Every point is taken with probability m/N, and each class has its share, up to one point: m
    equal steps with a random start through the points, mixed within classes. N/m times a sum over
    the sample is an unbiased estimate of the sum over all.

    Attributes
    ----------
    chosen : array or None
        Sorted rows, ascending; None if all points are taken.
    factor : float
        N/m.
    """

    def __init__(
        self,
        classes: Classes,
        given: Indices | None,
        most: int | None,
        random: np.random.RandomState,
        weight: NDArray[np.float64] | None = None,
    ) -> None:
        having = classes.ends - classes.starts > 1
        if weight is not None:
            having |= weight[classes.order] > 1
        if given is not None:
            having &= np.any(given >= 0, axis=1)[classes.order]
        self._classes, self._having = classes, np.flatnonzero(having).astype(np.int32)
        self.chosen: NDArray[np.int32] | None = None
        self.factor = 1.0
        if most is not None and most < len(self._having):
            self.chosen = self._sampled(self._having, most, random)
            self.factor = len(self._having) / most

    def others(self, random: np.random.RandomState) -> NDArray[np.int32] | None:
        """As many of the points that were not chosen, or all of them; None if there are none."""
        if self.chosen is None:
            return None
        rest = np.setdiff1d(self._having, self.chosen, assume_unique=True)
        return self._sampled(rest, min(len(self.chosen), len(rest)), random)

    def estimate(self, loss: float, others: NDArray[np.float64]) -> tuple[float, float]:
        """The sum over all points and its standard error.

        Parameters
        ----------
        loss : float
            The sum over the points chosen.
        others : array
            The terms of `others`.
        """
        assert self.chosen is not None
        m, rest = len(others), len(self._having) - len(self.chosen)
        error = 0.0
        if m < rest:
            # As if sampled without regard to classes: no smaller. One term alone has no spread.
            spread = float(others.std(ddof=1)) if m > 1 else np.nan
            error = rest * spread * float(np.sqrt((1 - m / rest) / m))
        return loss + rest * float(others.mean()), error

    def _sampled(
        self, rows: NDArray[np.int32], m: int, random: np.random.RandomState
    ) -> NDArray[np.int32]:
        mixed = random.permutation(rows)
        mixed = mixed[np.argsort(self._classes.ends[mixed], kind="stable")]
        at = ((random.uniform() + np.arange(m)) * (len(rows) / m)).astype(np.intp)
        return np.sort(mixed[np.minimum(at, len(rows) - 1)])
