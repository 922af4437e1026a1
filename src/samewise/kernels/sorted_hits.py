"""Where the relevant items of rankings stand, without the order of all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.kernels.compiling import compiled


@compiled(nogil=True)
def mark_hits(
    ordered: Array, relevant: Array, counts: NDArray[np.int64], out: NDArray[np.bool_]
) -> None:
    """Mark where the relevant values of each row stand among all; of equal ones the first places.

    Parameters
    ----------
    ordered : array of shape (n, m)
        Values, each row ascending.
    relevant : array of shape (n, m)
        In the first places of each row those that are relevant, ascending.
    counts : array of shape (n,)
        How many of each row are relevant.
    out : bool array of shape (n, m)
        False everywhere before.
    """
    for i in range(ordered.shape[0]):
        place = 0
        for j in range(ordered.shape[1]):
            if place == counts[i]:
                break
            if ordered[i, j] == relevant[i, place]:
                out[i, j] = True
                place += 1
