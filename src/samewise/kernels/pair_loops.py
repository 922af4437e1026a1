"""Distances of pairs of rows, and sums over pairs, compiled: no row is copied for a pair."""

from __future__ import annotations

from samewise._typing import Array, Indices
from samewise.kernels.compiling import compiled
from samewise.kernels.rank_one import FAST


@compiled(fastmath=FAST)
def pair_distances(E: Array, left: Indices, right: Indices, out: Array) -> None:
    """out_t = ‖e_l − e_r‖² for each pair.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.empty(1)
    >>> pair_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0]), np.array([1]), out)
    >>> out
    array([25.])
    """
    for t in range(len(left)):
        i, j = left[t], right[t]
        total = 0.0
        for k in range(E.shape[1]):
            v = E[i, k] - E[j, k]
            total += v * v
        out[t] = total


@compiled(fastmath=FAST)
def add_weighted_differences(
    E: Array, left: Indices, right: Indices, weight: Array, out: Array
) -> None:
    """Add Q with QᵀX = Σ_t w_t (e_l − e_r)(x_l − x_r)ᵀ for any rows X to `out`.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros((2, 1))
    >>> one = np.array([2.0])
    >>> add_weighted_differences(np.array([[1.0], [4.0]]), np.array([0]), np.array([1]), one, out)
    >>> out.ravel()
    array([-6.,  6.])
    """
    for t in range(len(left)):
        if weight[t] != 0.0:
            i, j = left[t], right[t]
            for k in range(E.shape[1]):
                v = weight[t] * (E[i, k] - E[j, k])
                out[i, k] += v
                out[j, k] -= v
