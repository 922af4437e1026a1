"""Sparse rows that are added, taken out and multiplied one at a time; rows and lists in files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from samewise.exceptions import InvalidInputError
from samewise.files.container import parse
from samewise.files.state import Saved, State
from samewise.kernels import sparse_rows
from samewise.kernels.sparse_structure import sound_rows
from samewise.supervision.supervision_checks import LARGEST

MOST = LARGEST[np.dtype(np.float64)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a sparse matrix: the three arrays of CSR, terms ascending, in float64.

    Examples
    --------
    >>> rows = as_rows([[3.0, 0.0, 4.0], [0.0, 2.0, 0.0]]).unit()
    >>> rows.dense()
    array([[0.6, 0. , 0.8],
           [0. , 1. , 0. ]])
    >>> len(rows.without(0).joined(rows))
    3
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]
    n_features: int

    @classmethod
    def empty(cls, n_features: int) -> Self:
        """No rows."""
        return cls(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0), n_features)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def parts(self) -> tuple[Any, Any, Any]:
        """The three arrays."""
        return self.indptr, self.indices, self.data

    def __getitem__(self, rows: slice) -> Rows:
        """Rows next to each other."""
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        indptr = self.indptr[start : stop + 1]
        first, last = indptr[0], indptr[-1]
        return Rows(
            indptr - first, self.indices[first:last], self.data[first:last], self.n_features
        )

    def row(self, i: int) -> Rows:
        """One row, in arrays of its own."""
        one = self[i : i + 1]
        return Rows(one.indptr, one.indices.copy(), one.data.copy(), self.n_features)

    def joined(self, *others: Rows) -> Rows:
        """These rows, and then the others."""
        every = (self, *others)
        shift = np.cumsum([0, *(part.indptr[-1] for part in every)])
        indptr = [part.indptr[1:] + s for part, s in zip(every, shift, strict=False)]
        return Rows(
            np.concatenate([[0], *indptr]).astype(np.int64, copy=False),
            np.concatenate([part.indices for part in every]),
            np.concatenate([part.data for part in every]),
            self.n_features,
        )

    def without(self, i: int) -> Rows:
        """All rows but one."""
        return self[:i].joined(self[i + 1 :])

    def unit(self) -> Rows:
        """Each row divided by its length."""
        data = self.data.copy()
        sparse_rows.to_unit(self.indptr, data)
        return Rows(self.indptr, self.indices, data, self.n_features)

    def dots(self, other: Rows, work: Any) -> NDArray[np.float64]:
        """The product of each row with the one row `other`; `work` has a zero per feature."""
        return sparse_rows.dots(self.parts, other.parts, work)

    def csr(self) -> Any:
        """The same rows for SciPy."""
        return sparse.csr_array(
            (self.data, self.indices, self.indptr), shape=(len(self), self.n_features)
        )

    def dense(self) -> NDArray[np.float64]:
        """The same rows as an array."""
        return self.csr().toarray()

    def state(self) -> State:
        """The three arrays and the number of features."""
        indices = self.indices.astype(np.int64)
        arrays = {"indptr": self.indptr, "indices": indices, "data": self.data}
        return State(arrays, {"n_features": self.n_features})

    @classmethod
    def restore(cls, saved: Saved, n_rows: int | None = None) -> Self:
        """The rows of a saved state."""
        d = saved.count("n_features", least=1, most=2**31 - 1)
        side = None if n_rows is None else n_rows + 1
        indptr = saved.array("indptr", side, dtypes=["int64"])
        indices = saved.array("indices", None, dtypes=["int64"], empty=True)
        data = saved.array("data", len(indices), dtypes=["float64"], empty=True)
        right = indptr[0] == 0 and indptr[-1] == len(indices) and np.all(np.diff(indptr) >= 0)
        right = right and (not len(indices) or 0 <= indices.min() <= indices.max() < d)
        if right and len(indices) > 1:
            steps = np.diff(indices)
            steps[indptr[(indptr > 0) & (indptr < len(indices))] - 1] = 1
            right = bool(np.all(steps > 0))
        saved.check(bool(right), "rows must be sparse rows with ascending terms")
        saved.check(np.abs(data).max(initial=0.0) <= MOST, f"rows must not hold more than {MOST:g}")
        return cls(indptr, indices.astype(np.int32), data, d)


def as_rows(X: Any, n_features: int | None = None, name: str = "documents") -> Rows:
    """Rows of a dense or sparse matrix, checked: finite, two-dimensional, of `n_features`."""
    X = sound_rows(X, name)
    try:
        # A copy: what follows changes it in place.
        matrix = sparse.csr_array(X, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be texts or a matrix of numbers, one row each, but {error}."
        ) from error
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"{name} must be a matrix with one row each. Got {matrix.ndim} dimension; reshape one "
            "vector with vector.reshape(1, -1)."
        )
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise InvalidInputError(f"{name} contain NaN or infinity; every value must be finite.")
    if (largest := np.abs(matrix.data).max(initial=0.0)) > MOST:
        raise InvalidInputError(
            f"{name} hold values up to {largest:.3g}, whose squares overflow; scale them below "
            f"{MOST:g}."
        )
    if n_features is not None and matrix.shape[1] != n_features:
        raise InvalidInputError(
            f"{name} have {matrix.shape[1]} features, but the topics have {n_features}; use the "
            "same vectorizer for both."
        )
    matrix.eliminate_zeros()
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Rows(indptr, indices, matrix.data, matrix.shape[1])


def stacked(rows: Sequence[Rows], n_features: int) -> Rows:
    """Many rows after each other."""
    return Rows.empty(n_features).joined(*rows)


def packed(values: Iterable[Any]) -> NDArray[np.uint8]:
    """A list of JSON values as bytes: a long one would not fit into the header of a file."""
    return np.frombuffer(json.dumps(list(values)).encode(), dtype=np.uint8)


def _unpacked(saved: Saved, name: str) -> list[Any]:
    """The list that was packed."""
    try:
        values = parse(saved.array(name, None, dtypes=["uint8"]).tobytes())
    except ValueError as error:
        raise InvalidInputError(f"{name} must be a list of values ({error}).") from error
    saved.check(isinstance(values, list), f"{name} must be a list of values")
    return values


def unpacked_names(saved: Saved, name: str) -> list[str]:
    """The list of texts that was packed."""
    names = _unpacked(saved, name)
    saved.check(all(isinstance(each, str) for each in names), f"{name} must be a list of texts")
    return names


def keyed_state(kept: Mapping[tuple[Any, Any], Rows], n_features: int) -> State:
    """Single rows by their keys."""
    state = State({"keys": packed(kept)})
    return state.add("rows", stacked(list(kept.values()), n_features).state())


def restored_keyed(saved: Saved, first: type, second: type) -> dict[tuple[Any, Any], Rows]:
    """The rows that `keyed_state` describes, if the keys are pairs of these types."""
    keys = unpacked_pairs(saved, "keys", first, second)
    rows = Rows.restore(saved.part("rows"), len(keys))
    return {key: rows.row(k) for k, key in enumerate(keys)}


def unpacked_pairs(saved: Saved, name: str, first: type, second: type) -> list[tuple[Any, Any]]:
    """The list of pairs that was packed, if they are of these types."""
    pairs = _unpacked(saved, name)
    right = all(
        isinstance(pair, list) and list(map(type, pair)) == [first, second] for pair in pairs
    )
    saved.check(right, f"{name} must be pairs of {first.__name__} and {second.__name__}")
    return [(pair[0], pair[1]) for pair in pairs]
