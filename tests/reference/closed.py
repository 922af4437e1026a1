"""Covariance, LDA, RCA and IGML as plain loops over their formulas."""

from __future__ import annotations

import numpy as np


def covariance(X):
    mean = sum(X) / len(X)
    return sum(np.outer(x - mean, x - mean) for x in X) / len(X)


def shrunk(C, s):
    return (1 - s) * C + s * np.trace(C) / len(C) * np.eye(len(C))


def within(X, chunklets):
    """C_w over the points in chunklets of two or more."""
    total, p = np.zeros((X.shape[1], X.shape[1])), 0
    for number in set(chunklets) - {-1}:
        points = [x for x, c in zip(X, chunklets, strict=True) if c == number]
        if len(points) > 1:
            mean = sum(points) / len(points)
            for x in points:
                total += np.outer(x - mean, x - mean)
                p += 1
    return total / p


def rca(X, chunklets, shrinkage=0.0):
    return np.linalg.inv(shrunk(within(X, chunklets), shrinkage))


def fisher_directions(X, chunklets, k):
    """k leading eigenvectors of C_w⁻¹ C, then whitened: M."""
    Cw, C = within(X, chunklets), covariance(X)
    values, A = np.linalg.eig(np.linalg.inv(Cw) @ C)
    A = A[:, np.argsort(-values.real)[:k]].real
    return A @ np.linalg.inv(A.T @ Cw @ A) @ A.T


def lda(X, y, k):
    """As `fisher_directions`, with the covariance between classes."""
    Cw, Cb = within(X, list(y)), covariance(X) - within(X, list(y))
    values, A = np.linalg.eig(np.linalg.inv(Cw) @ Cb)
    A = A[:, np.argsort(-values.real)[:k]].real
    return A @ np.linalg.inv(A.T @ Cw @ A) @ A.T


def chunklets_of(n, left, right, y):
    """Numbers by repeated merging of what similar pairs link; −1 for points in no such pair."""
    number = list(range(n))
    for i, j, sign in zip(left, right, y, strict=True):
        if sign == 1:
            old, new = number[j], number[i]
            number = [new if c == old else c for c in number]
    return [c if number.count(c) > 1 else -1 for c in number]


def ideal_kernel(y, smoothing):
    K = np.zeros((len(y), len(y)))
    for i in range(len(y)):
        for j in range(len(y)):
            K[i, j] = (y[i] == y[j]) + smoothing * (i == j)
    return K


def igml(X, y, smoothing, shrinkage=0.0):
    Z = X - sum(X) / len(X)
    G = Z.T @ np.linalg.inv(ideal_kernel(y, smoothing)) @ Z
    return np.linalg.inv(shrunk(G, shrinkage))


def divergence(M, X, y, smoothing):
    """KL(K_X ‖ K_D) without its constants; log|K_X| over the eigenvalues that are not 0."""
    Z = X - sum(X) / len(X)
    K = Z @ M @ Z.T
    values = np.linalg.eigvalsh(K)[-X.shape[1] :]
    return (np.trace(np.linalg.inv(ideal_kernel(y, smoothing)) @ K) - np.log(values).sum()) / 2


def lfda_scatters(X, y, k):
    """S_w and S_b of local Fisher discriminant analysis, pair by pair."""
    n, d = X.shape
    sizes = {c: sum(1 for other in y if other == c) for c in y}
    sigma = []
    for i in range(n):
        near = sorted(np.linalg.norm(X[i] - X[j]) for j in range(n) if y[j] == y[i])
        sigma.append(near[min(k, len(near) - 1)])
    within, between = np.zeros((d, d)), np.zeros((d, d))
    for i in range(n):
        for j in range(n):
            v = X[i] - X[j]
            if y[i] != y[j]:
                between += np.outer(v, v) / n / 2
            elif v.any():
                A = np.exp(-(v @ v) / (sigma[i] * sigma[j]))
                within += A / sizes[y[i]] * np.outer(v, v) / 2
                between += A * (1 / n - 1 / sizes[y[i]]) * np.outer(v, v) / 2
    return within, between


def lfda(X, y, k, n_components, embedding_type):
    """L: leading solutions of S_b a = λ S_w a with aᵀS_w a = 1."""
    within, between = lfda_scatters(X, y, k)
    values, A = np.linalg.eig(np.linalg.inv(within) @ between)
    order = np.argsort(-values.real)[:n_components]
    values, A = values.real[order], A.real[:, order]
    if embedding_type == "orthonormalized":
        return np.linalg.qr(A).Q.T
    A = A / np.sqrt(np.einsum("ij,ik,kj->j", A, within, A))
    return (A * np.sqrt(values) if embedding_type == "weighted" else A).T
