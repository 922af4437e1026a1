"""Objects whose attributes are set once and whose arrays are read-only."""

from __future__ import annotations

from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

Part = TypeVar("Part")


class Frozen:
    """Refuses to have attributes set or deleted, and is its own copy."""

    def _set(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} is frozen: {name!r} cannot be set; make a new form instead."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot be deleted.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled arrays come back writable.
        for value in state.values():
            freeze(value)
        self._set(**state)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def freeze(value: Part) -> Part:
    """Make an array, or the arrays of a CSR matrix, read-only in place, and return it."""
    held: Any = value
    for part in (held.data, held.indices, held.indptr) if sparse.issparse(held) else (held,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return value
