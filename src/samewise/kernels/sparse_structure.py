"""Whether the arrays of a sparse matrix fit together.

SciPy's loops and the compiled ones follow the indices of a sparse matrix without looking whether
they are within it, and SciPy looks at them only if it is asked to. Whoever takes a sparse matrix
from a user asks here first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from samewise.exceptions import InvalidInputError


def sound_rows(X: Any, name: str = "X") -> Any:
    """X, if it is sparse, as CSR with checked indices, sorted and unique; anything else as it is.

    Refused are arrays with masked values, and dates, which would be taken for numbers. The values
    are shared with X where possible. The indices are a copy, so that what is done to X later does
    not reach those that were checked.

    Examples
    --------
    >>> X = sparse.csr_array([[0.0, 1.0]])
    >>> X.indices[0] = 7
    >>> sound_rows(X)
    Traceback (most recent call last):
    ...
    samewise.exceptions.InvalidInputError: X is a sparse matrix whose arrays do not fit ...
    """
    if sparse.issparse(X) and X.ndim != 2:
        raise InvalidInputError(
            f"{name} must have two dimensions (rows, features), but it is a sparse array of "
            f"dimension {X.ndim}; reshape it with {name}.reshape(1, -1) if it is one row."
        )
    if not sparse.issparse(X):
        refuse_masked(X, name)
        _refuse_beyond_floats(X, name)
        if any(map(_is_of_time, _types(X))):
            raise InvalidInputError(
                f"{name} has dates or spans of time, but rows are numbers. Give differences to a "
                "date as numbers, in a unit of your choice."
            )
        return X
    try:
        X = _checked(X)
        if X.format != "csr":
            # Once more: of lists and dictionaries SciPy takes whatever indices they hold.
            X = _checked(X.tocsr())
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInputError(
            f"{name} is a sparse matrix whose arrays do not fit together or lead out of its shape "
            f"({str(error).rstrip('.')}). Its arrays may have been changed in place; make the "
            "matrix anew."
        ) from error
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def refuse_masked(values: Any, name: str) -> None:
    """Refuse an array with masked values: what lies below the mask would be taken for values."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidInputError(
            f"{name} is a masked array with {np.ma.count_masked(values)} masked values. Fill them, "
            "or leave their rows out."
        )


def _refuse_beyond_floats(X: Any, name: str) -> None:
    """Refuse whole numbers of hundreds of digits, which only lists and arrays of objects hold."""
    if not isinstance(X, list | tuple) and np.dtype(object) not in _types(X):
        return
    try:
        np.asarray(X, dtype=np.float64)
    except OverflowError as error:
        raise InvalidInputError(
            f"{name} holds a whole number beyond the largest of float64, 1.8e308; scale the values."
        ) from error
    except (TypeError, ValueError):
        # What else it is that is no number is said by those who need numbers.
        return


def _is_of_time(kind: Any) -> bool:
    """Whether a type of NumPy, pandas or polars is one of dates or spans of time."""
    if hasattr(kind, "kind"):
        return kind.kind in "mM"
    return str(kind).lower().startswith(("date", "time", "duration"))


def _types(X: Any) -> list[Any]:
    """The types of an array, or of the columns of a table."""
    kinds = getattr(X, "dtypes", None)
    if kinds is None:
        return [X.dtype] if hasattr(X, "dtype") else []
    return list(kinds) if np.ndim(kinds) else [kinds]


def _checked(X: Any) -> Any:
    """A matrix of the same arrays that SciPy has checked; it remembers nothing of X's flags."""
    match X.format:
        case "csr" | "csc" | "bsr":
            parts = X.data, np.array(X.indices), np.array(X.indptr)
            # SciPy believes a last pointer of 0 or less: it takes the matrix for empty.
            if np.any(np.diff(parts[2].astype(np.int64)) < 0):
                raise ValueError("index pointers must not fall.")
            X = type(X)(parts, shape=X.shape)
            X.check_format(full_check=True)
        case "coo":
            X = type(X)((X.data, (X.row, X.col)), shape=X.shape)
        case "dia":
            X = type(X)((X.data, X.offsets), shape=X.shape)
        case "lil":
            lengths = [[len(row) for row in rows] for rows in (X.rows, X.data)]
            if lengths[0] != lengths[1] or len(X.rows) != X.shape[0]:
                raise ValueError("there must be a value for each index.")
    return X
