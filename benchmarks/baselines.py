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


def naive_oasis(triplets, C: float) -> tuple[np.ndarray, int]:
    """OASIS with np.outer temporaries, from zero."""
    X = triplets.X
    W = np.zeros((X.shape[1], X.shape[1]))
    updates = 0
    for a, b, c in zip(triplets.anchor, triplets.positive, triplets.negative, strict=True):
        q, p = X[a], X[b] - X[c]
        loss = 1 - q @ W @ p
        if loss > 1e-12:
            W = W + min(C, loss / ((q @ q) * (p @ p))) * np.outer(q, p)
            updates += 1
    return W, updates


def flat_oasis(triplets, C: float) -> tuple[np.ndarray, int]:
    """OASIS on CSR rows, touching only the block they span, by flat gathers and scatters."""
    X = triplets.X
    n = X.shape[1]
    Q, P = X[triplets.anchor], (X[triplets.positive] - X[triplets.negative]).tocsr()
    W = np.zeros(n * n)
    updates = 0
    for i in range(len(triplets)):
        a, b = slice(*Q.indptr[i : i + 2]), slice(*P.indptr[i : i + 2])
        q, p = Q.data[a], P.data[b]
        where = (Q.indices[a].astype(np.int64)[:, None] * n + P.indices[b]).ravel()
        block = W.take(where)
        G = np.outer(q, p).ravel()
        loss = 1 - block @ G
        if loss > 1e-12:
            W[where] = block + min(C, loss / ((q @ q) * (p @ p))) * G
            updates += 1
    return W, updates


def naive_factored(triplets, r: float) -> tuple[np.ndarray, int]:
    """f-AROMA with np.outer temporaries."""
    X = triplets.X
    d = X.shape[1]
    W, A, B = np.zeros((d, d)), np.eye(d), np.eye(d)
    updates = 0
    for a, b, c in zip(triplets.anchor, triplets.positive, triplets.negative, strict=True):
        q, p = X[a], X[b] - X[c]
        loss = 1 - q @ W @ p
        if loss > 1e-12:
            u, v = A @ q, B @ p
            s, t = q @ u, p @ v
            W = W + loss / (r + s * t) * np.outer(u, v)
            B = B - s / (d * r + s * t) * np.outer(v, v)
            A = A - t / (d * r + s * t) * np.outer(u, u)
            updates += 1
    return W, updates


def in_place_factored(triplets, r: float) -> tuple[np.ndarray, int]:
    """f-AROMA with BLAS's rank-one updates in place."""
    X = triplets.X
    d = X.shape[1]
    W, A, B = np.zeros((d, d), order="F"), np.eye(d, order="F"), np.eye(d, order="F")
    updates = 0
    for a, b, c in zip(triplets.anchor, triplets.positive, triplets.negative, strict=True):
        q, p = X[a], X[b] - X[c]
        loss = 1 - q @ (W @ p)
        if loss > 1e-12:
            u, v = A @ q, B @ p
            s, t = q @ u, p @ v
            W = dger(loss / (r + s * t), u, v, a=W, overwrite_a=1)
            B = dger(-s / (d * r + s * t), v, v, a=B, overwrite_a=1)
            A = dger(-t / (d * r + s * t), u, u, a=A, overwrite_a=1)
            updates += 1
    return W, updates


def flat_diagonal(triplets, r: float) -> tuple[np.ndarray, int]:
    """d-AROMA on CSR rows, touching only the block they span, by flat gathers and scatters."""
    X = triplets.X
    n = X.shape[1]
    Q, P = X[triplets.anchor], (X[triplets.positive] - X[triplets.negative]).tocsr()
    W, S = np.zeros(n * n), np.ones(n * n)
    updates = 0
    for i in range(len(triplets)):
        a, b = slice(*Q.indptr[i : i + 2]), slice(*P.indptr[i : i + 2])
        where = (Q.indices[a].astype(np.int64)[:, None] * n + P.indices[b]).ravel()
        G = np.outer(Q.data[a], P.data[b]).ravel()
        block = W.take(where)
        loss = 1 - block @ G
        if loss > 1e-12:
            sure = S.take(where)
            moved = sure * G
            s = moved @ G + r
            W[where] = block + loss / s * moved
            S[where] = sure - moved * moved / s
            updates += 1
    return W, updates
