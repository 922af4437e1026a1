"""Target neighbors that are given: which rows should be near which."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError
from samewise.supervision.supervision_checks import parameter_array


def checked_targets(targets: ArrayLike, labels: Indices) -> Indices:
    """Target neighbors by row number, of the same class and not the row itself; -1 is none.

    Parameters
    ----------
    targets : array of shape (n, n_targets)
        What the user gave.
    labels : array of shape (n,)
        The class of each row.

    Returns
    -------
    array of shape (n, n_targets)
        The same, checked.

    Examples
    --------
    >>> import numpy as np
    >>> checked_targets([[1], [0], [-1]], np.array([0, 0, 1]))
    array([[ 1],
           [ 0],
           [-1]])
    """
    T, n = parameter_array(targets, "targets"), len(labels)
    if T.ndim != 2 or T.shape[0] != n or T.shape[1] == 0 or T.dtype.kind not in "iu":
        raise InvalidInputError(
            f"targets must be row numbers, an integer array of shape ({n}, n_targets). Got "
            f"{T.dtype} of shape {T.shape} instead."
        )
    if T.min() < -1 or T.max() >= n:
        raise InvalidInputError(
            f"targets must be row numbers from 0 to {n - 1}, or -1 for none. Got numbers from "
            f"{T.min()} to {T.max()} instead."
        )
    wrong = (T >= 0) & ((labels[T] != labels[:, None]) | (np.arange(n)[:, None] == T))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise InvalidInputError(
            f"targets must be other examples of the same class, but row {i} names row {T[i, j]}; "
            "give targets that were found for these rows and labels, and -1 where there is none."
        )
    return T
