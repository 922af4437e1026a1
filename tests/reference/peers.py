"""ITML, LEGO, MMC, NCA and MCML as plain loops over their formulas."""

from __future__ import annotations

import numpy as np


def itml(V, y, gamma, u, low, A0, n_cycles):
    """Davis et al. 2007, algorithm 1, with the projection that holds for every γ.

    Yields A, λ and ξ after each cycle.
    """
    A = A0.copy()
    lam = np.zeros(len(V))
    xi = np.where(y > 0, u, low).astype(float)
    for _ in range(n_cycles):
        for i, v in enumerate(V):
            p = v @ A @ v
            alpha = min(lam[i], y[i] * gamma / (gamma + 1) * (1 / p - 1 / xi[i]))
            beta = y[i] * alpha / (1 - y[i] * alpha * p)
            xi[i] = gamma * xi[i] / (gamma + y[i] * alpha * xi[i])
            lam[i] -= alpha
            A = A + beta * np.outer(A @ v, A @ v)
        yield A, lam.copy(), xi.copy()


def logdet(A, B):
    """The LogDet divergence D(A, B)."""
    P = A @ np.linalg.inv(B)
    return np.trace(P) - np.linalg.slogdet(P)[1] - len(A)


def itml_loss(A, V, y, gamma, u, low, A0):
    """ITML's objective at A, each ξ as cheap as A allows."""
    loss = logdet(A, A0)
    for v, sign in zip(V, y, strict=True):
        p, bound = v @ A @ v, u if sign > 0 else low
        if sign * (p - bound) > 0:
            loss += gamma * (p / bound - np.log(p / bound) - 1)
    return loss


def lego(V, y, eta, u, low, A):
    """Jain et al. 2008: yields A after each pair; a pair within its bound moves nothing."""
    for v, sign in zip(V, y, strict=True):
        p, t = v @ A @ v, u if sign > 0 else low
        if sign * (p - t) > 1e-12 * t:
            a = eta * t * p - 1
            q = (a + np.sqrt(a**2 + 4 * eta * p**2)) / (2 * eta * p)
            beta = eta * (q - t)
            A = A - beta * np.outer(A @ v, A @ v) / (1 + beta * p)
        yield A


def project(M):
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def mmc_full(S, D, n_iter=1000, step=0.1):
    """Xing et al. 2002, figure 1: gradient ascent on Σ_D √(vᵀAv), with iterated projections on
    Σ_S vᵀAv ≤ 1 and A ⪰ 0; a step that does not help is halved, one that helps grows."""
    w = sum(np.outer(v, v) for v in S)

    def projections(A):
        for _ in range(300):
            excess = np.sum(w * A) - 1
            if excess > 0:
                A = A - excess * w / np.sum(w * w)
            A = project(A)
            if np.sum(w * A) <= 1 + 1e-6:
                break
        # The last word is a scaling, so that the result satisfies both exactly.
        return A / max(1.0, np.sum(w * A))

    def value(A):
        return sum(np.sqrt(v @ A @ v) for v in D)

    A = projections(np.eye(w.shape[0]))
    for _ in range(n_iter):
        G = sum(np.outer(v, v) / (2 * np.sqrt(max(v @ A @ v, 1e-12))) for v in D)
        # Only the part of the gradient along the border of the first set.
        G = G - np.sum(G * w) / np.sum(w * w) * w
        trial = projections(A + step * np.linalg.norm(A) * G / np.linalg.norm(G))
        if value(trial) > value(A):
            A, step = trial, 1.05 * step
        else:
            step /= 2
        if step < 1e-8:
            break
    return A, value(A)


def mmc_diagonal(S, D, n_iter=100):
    """Xing et al. 2002, section 2.1: Newton on Σ_S vᵀAv − log Σ_D √(vᵀAv), with halved steps and
    weights that are cut off just above zero."""
    s, w = np.sum(S**2, axis=0), D**2
    a = 1 / (len(s) * s)

    def value(a):
        return s @ a - np.log(np.sum(np.sqrt(w @ a)))

    for _ in range(n_iter):
        root = np.sqrt(w @ a)
        g = root.sum()
        first = (w / (2 * root[:, None])).sum(axis=0)
        second = -(w.T / (4 * root**3)) @ w
        gradient = s - first / g
        hessian = -second / g + np.outer(first, first) / g**2
        step = np.linalg.solve(hessian + 1e-9 * np.eye(len(s)), gradient)
        t = 1.0
        while t > 1e-10 and not value(np.maximum(a - t * step, 1e-12 / s)) < value(a):
            t /= 2
        if t <= 1e-10:
            break
        a = np.maximum(a - t * step, 1e-12 / s)
    return a, value(a)


def soft_neighbors(L, X):
    """p(j|i) = exp(−‖L(x_i − x_j)‖²)/Σ_k≠i …, 0 for j = i."""
    P = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        e = -np.array([np.sum((L @ (X[i] - x)) ** 2) for x in X])
        e[i] = -np.inf
        e = np.exp(e - e.max())
        P[i] = e / e.sum()
    return P


def nca(L, X, y):
    """Goldberger et al. 2005: Σ_i (1 − p_i), and its gradient (equation 5)."""
    P = soft_neighbors(L, X)
    loss, S = 0.0, np.zeros((X.shape[1], X.shape[1]))
    for i in range(len(X)):
        p = P[i, y == y[i]].sum()
        loss += 1 - p
        for j in range(len(X)):
            v = X[i] - X[j]
            S += P[i, j] * (p - (y[j] == y[i])) * np.outer(v, v)
    return loss, -2 * L @ S


def mcml(L, X, y):
    """Globerson and Roweis 2005: Σ_i KL(p₀(·|i) ‖ p(·|i)), and its derivative by M."""
    P = soft_neighbors(L, X)
    loss, G = 0.0, np.zeros((X.shape[1], X.shape[1]))
    for i in range(len(X)):
        same = (y == y[i]) & (np.arange(len(X)) != i)
        if not same.any():
            continue
        ideal = same / same.sum()
        loss += np.sum(ideal[same] * np.log(ideal[same] / P[i, same]))
        for j in range(len(X)):
            v = X[i] - X[j]
            G += (ideal[j] - P[i, j]) * np.outer(v, v)
    return loss, G
