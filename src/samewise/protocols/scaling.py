"""Whether columns are to be standardized before anything is learned."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.protocols.measuring import knn_correct
from samewise.protocols.row_splits import learn_and_judge
from samewise.scores import s_test

Scaling = tuple[Array, Array] | None
"""Mean and scale of the columns; None leaves them alone."""

_SPREAD = 10.0
_JUDGED = 3000
"""Rows that 3-NN is judged on, at most."""


def standardization(X: Matrix, y: ArrayLike) -> Scaling:
    """Mean and scale of columns that look as if they had different units; None to leave them alone.

    Dense columns whose spreads differ more than tenfold are standardized, unless 3-NN on a part
    set aside says clearly that this is worse (s-test): pixels at the border of an image hardly
    vary, and should not count as much as those in the middle. Columns without any spread do not
    count, and are not scaled. Rows of one length are left alone: they were made to be compared by
    their angles, as embeddings are.

    Examples
    --------
    >>> import numpy as np
    >>> standardization(np.array([[0.0, 100.0], [2.0, 300.0]]), ["a", "b"])
    (array([  1., 200.]), array([  1., 100.]))
    >>> standardization(np.array([[0.0, 1.0], [2.0, 3.0]]), ["a", "b"]) is None
    True
    """
    if sp.issparse(X):
        return None
    lengths = np.linalg.norm(X, axis=1)
    if np.ptp(lengths) <= 2e-3 * lengths.max():
        return None
    mean, scale = mean_and_scale(X)
    spread = X.std(axis=0, dtype=np.float64)
    spread = spread[spread > 0]
    if not spread.size or spread.max() <= _SPREAD * spread.min():
        return None
    try:
        A, a, B, b = learn_and_judge(X, np.asarray(y), 0.25, _JUDGED, 0)
    except InvalidInputError:
        # Too few rows to tell.
        return mean, scale
    unit = scale.astype(X.dtype)
    given = knn_correct(None, A, a, B, b)
    scaled = knn_correct(None, A / unit, a, B / unit, b)
    test = s_test(given, scaled)
    # Only one direction is asked for: 10 % on both sides is 5 % on this one.
    return None if test.n_better > test.n_worse and test.p_value <= 0.1 else (mean, scale)


def chosen_scaling(X: Matrix, y: ArrayLike, scale: str) -> Scaling:
    """The mean and scale for "auto", "standard" or "none"."""
    if scale not in ("auto", "standard", "none"):
        raise InvalidInputError(f"scale must be 'auto', 'standard' or 'none'. Got {scale!r}.")
    if scale == "none":
        return None
    if scale == "auto":
        return standardization(X, y)
    if sp.issparse(X):
        raise InvalidInputError(
            "Scaling 'standard' would make sparse rows dense; use scaling 'none'."
        )
    return mean_and_scale(X)


def mean_and_scale(X: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; 1 for a column without spread."""
    scale = X.std(axis=0, dtype=np.float64)
    return X.mean(axis=0, dtype=np.float64), np.where(scale > 0, scale, 1.0)
