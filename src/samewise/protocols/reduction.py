"""Learning in the leading principal directions, where learning in all features would take long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from samewise._typing import Array, Matrix
from samewise.forms import Form

MAX_DIRECTIONS = 200
_SLOW = {"ITML", "LMNN", "MCML", "MMC", "NCA", "MultiMetricLMNN"}
"""By their names: a learner that is not used is not loaded."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """Rows X in the coordinates XVᵀ, and forms over these as forms over X.

    Attributes
    ----------
    axes : array V of shape (r, d) with orthonormal rows, or None
        None leaves rows and forms as they are.
    """

    axes: Array | None = None

    @property
    def n_directions(self) -> int | None:
        """How many directions are left, if any are left out."""
        return None if self.axes is None else len(self.axes)

    def rows(self, X: Matrix) -> Matrix:
        """The coordinates of rows: array of shape (n, r)."""
        return X if self.axes is None else X @ self.axes.T

    def lift(self, form: Form) -> Form:
        """The same distances, of rows in all features: ‖L(Vx − Vx')‖ has the map LV."""
        return form if self.axes is None else form.lift(self.axes)


def reduction_for(learner: Any, X: Matrix, max_directions: int = MAX_DIRECTIONS) -> Reduction:
    """The leading principal directions, for learners of distances that are slow in many features.

    These are LMNN, NCA, MCML, ITML and MMC; their papers reduce inputs in the same way. All other
    learners, sparse rows, and rows of few features are left as they are.

    Parameters
    ----------
    learner : estimator
    X : array or CSR matrix of shape (n, d)
        What it is to learn from.
    max_directions : int, default=200
        More features than these are reduced to so many directions.

    Returns
    -------
    Reduction

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import LMNN
    >>> from samewise.protocols import reduction_for
    >>> X = np.random.default_rng(0).normal(size=(50, 9)) * np.arange(1, 10)
    >>> reduction = reduction_for(LMNN(), X, max_directions=4)
    >>> reduction.rows(X).shape
    (50, 4)
    """
    d = X.shape[1]
    slow = any(cls.__name__ in _SLOW for cls in type(learner).__mro__)
    if not slow or sp.issparse(X) or d <= max_directions:
        return Reduction()
    centered = X - X.mean(axis=0)
    # By the smaller of the two Gram matrices: either gives the same directions.
    if len(X) < d:
        V = np.linalg.svd(centered, full_matrices=False)[2][:max_directions]
    else:
        V = np.linalg.eigh((centered.T @ centered).astype(np.float64))[1].T[::-1][:max_directions]
    return Reduction(np.ascontiguousarray(V, dtype=X.dtype))
