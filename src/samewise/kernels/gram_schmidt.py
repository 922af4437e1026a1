"""Orthonormal coordinates from inner products alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.kernels.compiling import compiled


@compiled
def gram_schmidt(
    R: NDArray[np.float64], scale: NDArray[np.float64], tol: float
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Coordinates T (n × t) with T Tᵀ = R, in a basis that grows with the rows that need it.

    R is the Gram matrix of vectors; row j adds a direction where the square of what the earlier
    directions leave of it exceeds tol · scale_j. Returns T and the rows that added one: T of those
    rows is lower triangular with a positive diagonal.
    """
    n = R.shape[0]
    T = np.zeros((n, n))
    pivots = np.empty(n, dtype=np.intp)
    t = 0
    for j in range(n):
        rest = R[j, j]
        for k in range(t):
            rest -= T[j, k] * T[j, k]
        if rest <= tol * scale[j]:
            continue
        length = np.sqrt(rest)
        for i in range(j, n):
            inner = R[i, j]
            for k in range(t):
                inner -= T[i, k] * T[j, k]
            T[i, t] = inner / length
        T[j, t] = length
        pivots[t] = j
        t += 1
    return T[:, :t].copy(), pivots[:t].copy()
