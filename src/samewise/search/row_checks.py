"""What every search asks of its input."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_array

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError


def checked_rows(X: Matrix, n_features: int | None, name: str) -> Matrix:
    """X as finite float rows, dense or CSR, with the wanted number of features."""
    try:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name=name)
    except ValueError as error:
        raise InvalidInputError(str(error)) from error
    if n_features is not None and X.shape[1] != n_features:
        raise InvalidInputError(
            f"{name} has {X.shape[1]} features, but {n_features} are expected here; "
            "pass rows with the features the index and its form were made for."
        )
    return X
