"""SNN and HIER, pair by pair and class by class."""

from __future__ import annotations

import math

import numpy as np


def similarity(x, z, U, V, c, w, b):
    """σ(b + Σ_h w_h (tanh(u·x + v·z + c) + tanh(v·x + u·z + c)))."""
    total = b
    for u, v, bias, weight in zip(U, V, c, w, strict=True):
        total += weight * math.tanh(u @ x + v @ z + bias)
        total += weight * math.tanh(v @ x + u @ z + bias)
    return 1 / (1 + math.exp(-total))


def loss(pairs, targets, weights, alpha, U, V, c, w, b):
    """The weighted mean of the squared errors, and the penalty."""
    total = 0.0
    for (x, z), target, weight in zip(pairs, targets, weights, strict=True):
        total += weight * (similarity(x, z, U, V, c, w, b) - target) ** 2
    penalty = alpha / 2 * (np.sum(U**2) + np.sum(V**2) + np.sum(w**2))
    return total / sum(weights) + penalty


def gradient(pairs, targets, weights, alpha, U, V, c, w, b):
    """Its derivatives by U, V, c, w and b, by the chain rule."""
    dU, dV, dc, dw, db = alpha * U, alpha * V, np.zeros_like(c), alpha * w, 0.0
    for (x, z), target, weight in zip(pairs, targets, weights, strict=True):
        s = similarity(x, z, U, V, c, w, b)
        slope = weight / sum(weights) * 2 * (s - target) * s * (1 - s)
        db += slope
        for h in range(len(w)):
            # The unit, and its mirror image: x and z change places.
            for left, right in ((x, z), (z, x)):
                t = math.tanh(U[h] @ left + V[h] @ right + c[h])
                dw[h] += slope * t
                inner = slope * w[h] * (1 - t * t)
                dU[h] += inner * left
                dV[h] += inner * right
                dc[h] += inner
    return dU, dV, dc, dw, db


def class_similarity(parents, classes):
    """1 − height of the lowest common ancestor / height of the root."""
    nodes = set(parents) | set(parents.values())

    def height(node):
        return max((1 + height(child) for child in parents if parents[child] == node), default=0)

    def ancestors(node):
        return [node, *(ancestors(parents[node]) if node in parents else [])]

    (root,) = [node for node in nodes if node not in parents]
    S = np.empty((len(classes), len(classes)))
    for i, one in enumerate(classes):
        for j, other in enumerate(classes):
            common = [node for node in ancestors(one) if node in ancestors(other)]
            S[i, j] = 1 - min(height(node) for node in common) / height(root)
    return S


def posterior_similarity(x, z, W, b, S):
    """Σ_ij p_i(x) S_ij p_j(z), p = softmax(Wx + b)."""

    def posterior(x):
        e = [math.exp(w @ x + bias) for w, bias in zip(W, b, strict=True)]
        return [value / sum(e) for value in e]

    p, q = posterior(x), posterior(z)
    return sum(p[i] * S[i][j] * q[j] for i in range(len(p)) for j in range(len(q)))
