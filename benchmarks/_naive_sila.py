"""The loops that SiLA and gCosLA are measured against."""

from __future__ import annotations

import numpy as np


def base_targets(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of the same class by the cosine; rows of X have unit length."""
    targets = np.empty((len(y), k), dtype=int)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        S = X[rows] @ X[rows].T
        np.fill_diagonal(S, -np.inf)
        targets[rows] = rows[np.argsort(-S, axis=1, kind="stable")[:, :k]]
    return targets


def naive_sila(
    X: np.ndarray, y: np.ndarray, targets: np.ndarray, shown: np.ndarray, A: np.ndarray, sort: bool
) -> tuple[np.ndarray, int]:
    """An epoch of SiLA over unit rows; impostors by a full sort, or by a partition."""
    k = targets.shape[1]
    total, votes, mistakes = np.zeros_like(A), 1, 0
    for i in shown:
        s = X @ (A.T @ X[i])
        own = s[targets[i]].sum()
        s[y == y[i]] = -np.inf
        impostors = np.argsort(-s)[:k] if sort else np.argpartition(-s, k)[:k]
        if own - s[impostors].sum() <= 0:
            total = total + votes * A
            A = A + np.outer(X[i], X[targets[i]].sum(axis=0) - X[impostors].sum(axis=0))
            votes, mistakes = 1, mistakes + 1
        else:
            votes += 1
    return total + votes * A, mistakes


def eigh_esila(X: np.ndarray, y: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, int]:
    """An epoch of eSiLA over unit rows in the order of their classes, with an eigh at each step."""
    k, d = targets.shape[1], X.shape[1]
    A, updates = np.zeros((d, d)), 0
    for i in range(len(y)):
        s = X @ (A.T @ X[i])
        own = s[targets[i]].sum()
        s[y == y[i]] = -np.inf
        impostors = np.argsort(-s, kind="stable")[:k]
        if own - s[impostors].sum() > 0:
            continue
        F = np.outer(X[i], X[targets[i]].sum(axis=0) - X[impostors].sum(axis=0))
        values, vectors = np.linalg.eigh(A + (F + F.T) / 2)
        A = (vectors * np.maximum(values, 0)) @ vectors.T
        updates += 1
    return A, updates


def eigh_gcosla(
    pairs, gamma: float, beta: float, A: np.ndarray, b: float
) -> tuple[np.ndarray, float, int]:
    """gCosLA with a full eigendecomposition after every step."""
    X, left, right, y = pairs.X, pairs.left, pairs.right, pairs.y
    updates = 0
    for i in range(len(y)):
        x, z, sign = X[left[i]], X[right[i]], float(y[i])
        xx, zz, xz = x @ A @ x, z @ A @ z, x @ A @ z
        if sign * (b - xz / np.sqrt(xx * zz)) + gamma <= 1e-12:
            continue
        R = 1 / max(xx, zz) if sign > 0 else 1 / min(xx, zz)
        S = (np.outer(x, z) + np.outer(z, x)) / 2
        a = (beta - sign * (R * xz - b)) / (R**2 * np.sum(S * S) + 1)
        if a <= 0:
            continue
        values, vectors = np.linalg.eigh(A + sign * a * R * S)
        A = (vectors * np.maximum(values, 0)) @ vectors.T
        b = min(max(b - sign * a, -1 + gamma), 1 - gamma)
        updates += 1
    return A, b, updates
