"""What learners in closed form share: dense points, centering and whitening."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.forms import GeneralizedCosine, Mahalanobis
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, FormOf
from samewise.learners.dense_rows import dense_rows, typed
from samewise.learners.learner import ROWS, MapLearner

MOST = 2**27
"""The most values of a d × d matrix."""

VANISHING = float(np.sqrt(np.finfo(np.float64).tiny))
"""Numbers that are not larger have no exact square."""

FALLBACK = 1e-3
"""The shrinkage of a singular matrix for which none was chosen."""


class LinearMap(MapLearner, storable=False):
    """A learner in closed form whose distance is that of Lx."""

    metric_: Mahalanobis | GeneralizedCosine

    _learned: ClassVar[dict[str, Attribute]] = {"metric_": FormOf((Mahalanobis,))}
    _target_required: ClassVar[bool] = False

    def _points(self, X: Any) -> Array:
        """At least two points, checked and dense."""
        X = validate_data(self, sound_rows(X), ensure_min_samples=2, **ROWS)
        return dense_rows(X, type(self).__name__)

    def _keep(self, L: Array, dtype: np.dtype[Any]) -> None:
        self.metric_ = Mahalanobis.from_components(typed(L, dtype))


def centered(X: Array) -> Array:
    """x − mean in float64; 0 in features that do not vary.

    Examples
    --------
    >>> import numpy as np
    >>> centered(np.array([[1.0, 0.1], [2.0, 0.1], [6.0, 0.1]]))
    array([[-2.,  0.],
           [-1.,  0.],
           [ 3.,  0.]])
    """
    Z = X.astype(np.float64)
    Z -= Z.mean(axis=0)
    return without_rounding(Z, X)


def without_rounding(differences: Array, X: Array) -> Array:
    """Columns of differences of rows of X become 0 if they hold only rounding or vanish squared."""
    size = np.abs(X).max(axis=0).astype(np.float64)
    rounding = np.maximum(16 * np.finfo(X.dtype).eps * size, VANISHING)
    differences[:, np.abs(differences).max(axis=0) <= rounding] = 0
    return differences


def group_sums(Z: Array, groups: Indices, n_groups: int) -> Array:
    """The sum of the rows of each group 0, 1, …

    Examples
    --------
    >>> import numpy as np
    >>> group_sums(np.array([[1.0], [2.0], [5.0]]), np.array([1, 0, 1]), 2)
    array([[2.],
           [6.]])
    """
    n = len(groups)
    members = sp.csr_array((np.ones(n), (groups, np.arange(n))), shape=(n_groups, n))
    return np.asarray(members @ Z)


def differences_within(X: Array, groups: Indices) -> Array:
    """Rows minus the mean of their group, for rows in groups of two or more; −1 is no group.

    Examples
    --------
    >>> import numpy as np
    >>> differences_within(np.array([[1.0], [2.0], [3.0], [9.0]]), np.array([7, 0, 7, -1]))
    array([[-1.],
           [ 1.]])
    """
    rows = np.flatnonzero(groups >= 0)
    _, numbers, sizes = np.unique(groups[rows], return_inverse=True, return_counts=True)
    shared = sizes[numbers] > 1
    rows, numbers = rows[shared], numbers[shared]
    if not len(rows):
        return np.empty((0, X.shape[1]))
    X = X[rows]
    Z = centered(X)
    Z -= (group_sums(Z, numbers, len(sizes)) / sizes[:, None])[numbers]
    return without_rounding(Z, X)


def whitening(
    C: Array,
    T: Array,
    shrinkage: float,
    dtype: np.dtype[Any],
    what: str,
    stacklevel: int,
) -> Array:
    """W with WᵀW = ((1 − s) C + s tr(C)/d I)⁻¹, s being the shrinkage.

    A singular C without shrinkage is inverted within the directions in which the points differ at
    all, with FALLBACK as its shrinkage if it is singular even there; a warning says so.

    Parameters
    ----------
    C : array of shape (d, d)
        Symmetric positive semi-definite.
    T : array of shape (d, d)
        The scatter of all points.
    shrinkage : float
    dtype : the type of the points
    what : str
        What C is, for the messages.
    stacklevel : int
        For the warning: that of this function's caller.
    """
    if np.trace(C) == 0:
        raise InvalidInputError(
            f"The {what} is zero: the points do not differ at all. Give points that differ."
        )
    W = _inverse_root(shrunk(C, shrinkage), dtype)
    if len(W) == len(C):
        return W
    V = _span(T, dtype)
    within = V.T @ C @ V
    W = _inverse_root(within, dtype)
    rank = len(W)
    text = (
        f"The {what} is singular: of {len(C)} dimensions, the points differ in {len(within)} only. "
        "The others get no weight."
    )
    if rank < len(within):
        text = (
            f"The {what} is singular: its rank is {rank} in the {len(within)} dimensions in which "
            f"the points differ. It is regularized there by shrinkage={FALLBACK:g}."
        )
        W = _inverse_root(shrunk(within, FALLBACK), dtype)
    warnings.warn(
        f"{text} Set shrinkage to a value above 0, remove features that are constant or follow "
        "from others, or reduce the dimension before (PCA).",
        SamewiseWarning,
        stacklevel=stacklevel + 1,
    )
    return W @ V.T


def shrunk(C: Array, shrinkage: float) -> Array:
    """(1 − s) C + s tr(C)/d I."""
    return (1 - shrinkage) * C + shrinkage * np.trace(C) / len(C) * np.eye(len(C))


def _inverse_root(C: Array, dtype: np.dtype[Any]) -> Array:
    """W with WᵀW = C⁺, one row for each eigenvalue that counts."""
    U, values, scale = _correlations(C, dtype)
    return (U / np.sqrt(values)).T / scale


def _span(T: Array, dtype: np.dtype[Any]) -> Array:
    """An orthonormal basis of the range of T, as columns."""
    U, _, scale = _correlations(T, dtype)
    return np.linalg.qr(scale[:, None] * U).Q


def _correlations(C: Array, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Eigenvectors and eigenvalues, those that count, of C with unit diagonal; and its scales.

    So what counts does not depend on the units of the features.
    """
    scale = np.sqrt(np.diag(C))
    scale = np.where(scale > 0, scale, 1.0)
    values, U = np.linalg.eigh(C / scale / scale[:, None])
    # Rounding of the values of C, and rounding of the points that C squares.
    rounding = max(10 * np.finfo(np.float64).eps, 16 * np.finfo(dtype).eps ** 2)
    counts = values > len(C) * rounding * values[-1]
    return U[:, counts], values[counts], scale
