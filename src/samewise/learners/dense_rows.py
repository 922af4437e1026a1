"""Sparse rows for learners that work on dense ones."""

from __future__ import annotations

import scipy.sparse as sp

from samewise._typing import Array, Matrix
from samewise.exceptions import TooLargeError

MOST_SPARSE = 2**27
"""The most values of a sparse matrix that is made dense."""


def dense_rows(X: Matrix, owner: str) -> Array:
    """X as a dense array; refused if it is sparse and too large.

    Examples
    --------
    >>> dense_rows(sp.csr_array([[0.0, 1.0]]), "LMNN")
    array([[0., 1.]])
    """
    if not sp.issparse(X):
        return X
    if X.shape[0] * X.shape[1] > MOST_SPARSE:
        raise TooLargeError(
            f"{owner} works on dense rows; made dense, X would have {X.shape[0]:,} × "
            f"{X.shape[1]:,} values, more than {MOST_SPARSE:,}. Reduce the features first, for "
            "example with sklearn.decomposition.TruncatedSVD, take fewer examples, or use OASIS, "
            "which keeps sparse rows."
        )
    return X.toarray()
