"""Rows added to rows that may be named more than once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled


@compiled
def add_rows(G: Array, rows: NDArray[np.intp], values: Array) -> None:
    """G[rows[i]] += values[i] for each i, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> G = np.zeros((2, 1))
    >>> add_rows(G, np.array([1, 1]), np.array([[2.0], [3.0]]))
    >>> G
    array([[0.],
           [5.]])
    """
    for i in range(len(rows)):
        row = rows[i]
        for j in range(values.shape[1]):
            G[row, j] += values[i, j]
