"""What pairs, triplets and lists are made of: row numbers, never copies of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError
from samewise.supervision.supervision_checks import (
    checked_matrix,
    parameter_array,
    read_only,
)


class RowNumbers:
    """Row numbers into a matrix, and what goes with each: pairs or triplets."""

    __slots__: tuple[str, ...] = ()
    _members: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self._members[0]))

    def __getitem__(self, rows: slice | ArrayLike) -> Self:
        """The chosen ones (a slice, row numbers or a mask), over the same matrices."""
        rows = _chosen(rows, type(self).__name__.lower())
        chosen = object.__new__(type(self))
        for name in self.__slots__:
            values = getattr(self, name)
            whole = name in ("X", "feature_names", "items") or values is None
            setattr(chosen, name, values if whole else read_only(values[rows]))
        return chosen

    @property
    def shape(self) -> tuple[int, int]:
        """Their number and that of their members: lets scikit-learn split them."""
        return len(self), len(self._members)


Examples = TypeVar("Examples", bound=RowNumbers)


def _chosen(rows: Any, name: str) -> Any:
    """A slice, row numbers or a mask; scikit-learn adds an ellipsis for the other axes."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]
    if not isinstance(rows, slice):
        rows = np.asarray(rows)
        if not rows.size:
            # An empty list is an array of floats.
            rows = rows.astype(np.intp)
        if rows.ndim != 1 or rows.dtype.kind not in "biu":
            raise InvalidInputError(
                f"Choose {name} by a slice, a mask or an array of whole numbers."
            )
    return rows


def stacked(arrays: Any, members: int, name: str) -> Matrix:
    """(n, members, d) as (n·members, d) without a copy where the memory allows it."""
    if sp.issparse(arrays):
        raise InvalidInputError(
            f"An array of {name} must be dense with shape (n, {members}, d). Got a sparse matrix; "
            "hold the rows in one matrix and name them by row numbers instead."
        )
    arrays = parameter_array(arrays, name)
    if arrays.ndim != 3 or arrays.shape[1] != members:
        raise InvalidInputError(
            f"An array of {name} must have shape (n_{name}, {members}, n_features). Got shape "
            f"{arrays.shape}."
        )
    return checked_matrix(arrays.reshape(-1, arrays.shape[2]), name)


def passes(
    examples: Examples, n_passes: int, shuffle: bool, rng: np.random.RandomState
) -> Iterator[Examples]:
    """The examples, as often as asked, each time in their own order or in a new random one."""
    for _ in range(n_passes):
        yield examples[rng.permutation(len(examples))] if shuffle else examples
