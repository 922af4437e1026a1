"""Rows with a label for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError


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
    try:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=names[0])
    except ValueError as error:
        raise InvalidInputError(str(error)) from error
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise InvalidInputError(
            f"{names[1]} must have one label for each of the {X.shape[0]} rows of {names[0]}. "
            f"Got shape {labels.shape}."
        )
    return X, labels
