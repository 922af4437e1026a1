"""What people write first, and what careful people write: the loops to beat."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dger


def naive_pa1(pairs, C: float) -> tuple[np.ndarray, float, int]:
    """PA-I with np.outer temporaries."""
    X, left, right, y = pairs.X, pairs.left, pairs.right, pairs.y
    M = np.zeros((X.shape[1], X.shape[1]))
    b, updates = 0.0, 0
    for i in range(len(y)):
        v = X[left[i]] - X[right[i]]
        p = 1 - y[i] * (b - v @ M @ v)
        if p > 1e-12:
            tau = min(C, p / (1 + (v @ v) ** 2))
            M = M - tau * y[i] * np.outer(v, v)
            b = b + tau * y[i]
            updates += 1
    return M, b, updates


def in_place_pa1(pairs, C: float) -> tuple[np.ndarray, float, int]:
    """PA-I with BLAS's rank-one update in place."""
    X, left, right, y = pairs.X, pairs.left, pairs.right, pairs.y
    M = np.zeros((X.shape[1], X.shape[1]), order="F")
    b, updates = 0.0, 0
    for i in range(len(y)):
        v = X[left[i]] - X[right[i]]
        p = 1 - y[i] * (b - v @ (M @ v))
        if p > 1e-12:
            tau = min(C, p / (1 + (v @ v) ** 2))
            M = dger(-tau * y[i], v, v, a=M, overwrite_a=1)
            b = b + tau * y[i]
            updates += 1
    return M, b, updates


def eigh_pa1(pairs, C: float, M: np.ndarray, b: float) -> tuple[np.ndarray, float, int]:
    """PA-I with a full eigendecomposition after every update that subtracts (the only ones that
    can leave the cone, so a careful loop skips the others)."""
    X, left, right, y = pairs.X, pairs.left, pairs.right, pairs.y
    updates = 0
    for i in range(len(y)):
        v = X[left[i]] - X[right[i]]
        p = 1 - y[i] * (b - v @ M @ v)
        if p > 1e-12:
            tau = min(C, p / (1 + (v @ v) ** 2))
            M = M - tau * y[i] * np.outer(v, v)
            b = max(b + tau * y[i], 1.0)
            if y[i] == 1:
                values, vectors = np.linalg.eigh(M)
                if values[0] < 0:
                    M = (vectors * np.maximum(values, 0)) @ vectors.T
            updates += 1
    return M, b, updates
