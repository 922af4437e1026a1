"""LSML, SDML and SCML as plain loops over their formulas."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from tests.reference.peers import logdet


def residuals(M, near, far, weight):
    """Σ w [√(uᵀMu) − √(vᵀMv)]₊²."""
    total = 0.0
    for u, v, w in zip(near, far, weight, strict=True):
        total += w * max(np.sqrt(u @ M @ u) - np.sqrt(v @ M @ v), 0.0) ** 2
    return total


def lsml_loss(M, near, far, weight, gamma, prior):
    """LSML's objective, weights of sum 1."""
    return logdet(M, prior) + gamma * residuals(M, near, far, weight)


def lsml(near, far, weight, gamma, prior, n_iter):
    """Liu et al. 2012: down the gradient, the best of ten step sizes, eigenvalues cut off."""
    M, least = prior, lsml_loss(prior, near, far, weight, gamma, prior)
    for _ in range(n_iter):
        G = np.linalg.inv(prior) - np.linalg.inv(M)
        for u, v, w in zip(near, far, weight, strict=True):
            p, q = np.sqrt(u @ M @ u), np.sqrt(v @ M @ v)
            if p > q:
                G = G + gamma * w * ((1 - q / p) * np.outer(u, u) + (1 - p / q) * np.outer(v, v))
        best = None
        for step in np.logspace(-10, 0, 10):
            values, axes = np.linalg.eigh(M - step * G / np.linalg.norm(G))
            trial = (axes * np.maximum(values, 1e-8)) @ axes.T
            loss = lsml_loss(trial, near, far, weight, gamma, prior)
            if loss < least:
                best, least = trial, loss
        if best is None:
            break
        M = best
    return M, least


def sdml_loss(M, V, y, weight, balance, sparsity, prior):
    """SDML's objective."""
    loss = np.trace(np.linalg.inv(prior) @ M) - np.linalg.slogdet(M)[1]
    for v, sign, w in zip(V, y, weight, strict=True):
        loss += balance * w * sign * (v @ M @ v)
    d = len(M)
    return loss + sparsity * sum(abs(M[j, k]) for j in range(d) for k in range(d) if j != k)


def scml_loss(w, B, near, far, share, beta):
    """SCML's objective."""
    loss = beta * w.sum()
    for u, v, s in zip(near, far, share, strict=True):
        further = sum(wk * ((b @ u) ** 2 - (b @ v) ** 2) for wk, b in zip(w, B, strict=True))
        loss += s * max(1 + further, 0.0)
    return loss


def scml_least(B, near, far, share, beta):
    """The least loss that there is: a linear program over w ≥ 0 and hinges ξ ≥ 0."""
    D = (near @ B.T) ** 2 - (far @ B.T) ** 2
    cost = np.concatenate([np.full(len(B), beta), share])
    found = linprog(cost, A_ub=np.hstack([D, -np.eye(len(D))]), b_ub=-np.ones(len(D)))
    return found.fun
