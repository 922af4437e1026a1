"""Manhattan distances of rows, all against all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.kernels.compiling import compiled

_TILE = 1024


def manhattan(X: NDArray[np.float64], YT: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ_l |x_il − y_jl| for all i and j.

    Parameters
    ----------
    X : array of shape (n, d)
    YT : array of shape (d, m)
        The other rows as columns, in C order: neighbors in memory are added up together.

    Returns
    -------
    array of shape (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> manhattan(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0], [2.0, 0.5]]))
    array([[3. , 0.5]])
    """
    D = np.zeros((X.shape[0], YT.shape[1]))
    _add(X, YT, D)
    return D


@compiled(nogil=True)
def _add(X: Any, YT: Any, D: Any) -> None:
    n, d = X.shape
    m = YT.shape[1]
    # A tile of columns stays in the cache while all rows of X pass over it.
    for start in range(0, m, _TILE):
        stop = min(start + _TILE, m)
        for i in range(n):
            row = D[i, start:stop]
            for l in range(d):  # noqa: E741 - the letter of the features
                x = X[i, l]
                column = YT[l, start:stop]
                for j in range(stop - start):
                    row[j] += abs(x - column[j])
