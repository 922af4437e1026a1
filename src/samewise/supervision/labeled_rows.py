"""Rows with a label for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.supervision.supervision_checks import checked_rows


def labeled_rows(
    X: Any, y: ArrayLike, names: tuple[str, str] = ("X", "y")
) -> tuple[Matrix, NDArray[Any]]:
    """Finite rows of floats, and a label for each of them.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        The rows.
    y : array of shape (n,)
        Their labels.
    names : (str, str), default=("X", "y")
        What to call the two in messages.

    Returns
    -------
    X : array or CSR matrix of shape (n, d)
        Of float64 or float32.
    y : array of shape (n,)
        The labels.
    """
    X = checked_rows(X, None, names[0])
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise InvalidInputError(
            f"{names[1]} must have one label for each of the {X.shape[0]} rows of {names[0]}. "
            f"Got shape {labels.shape}."
        )
    return X, labels
