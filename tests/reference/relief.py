"""RELIEF, RBS and sRBS as plain loops over the formulas."""

from __future__ import annotations

import numpy as np


def diff(l, x, z, ranges, discrete=()):  # noqa: E741
    if l in discrete:
        return float(x[l] != z[l])
    return abs(x[l] - z[l]) / ranges[l] if ranges[l] > 0 else 0.0


def nearest(i, rows, distance, k):
    """The k rows of least distance to i, ties by the smaller row."""
    return sorted(rows, key=lambda j: (distance(i, j), j))[:k]


def relief(X, y, k=1, discrete=(), taken=None, each=True, full=False):
    """w, or W, of (Relief, ReliefF): J examples, one for each entry of `taken`."""
    n, d = X.shape
    ranges = X.max(axis=0) - X.min(axis=0)

    def distance(i, j):
        return sum(diff(l, X[i], X[j], ranges, discrete) for l in range(d))  # noqa: E741

    def move(i, j):
        if full:
            v = np.array(
                [(X[i, m] - X[j, m]) / ranges[m] if ranges[m] > 0 else 0 for m in range(d)]
            )
            return np.outer(v, v)
        return np.array([diff(m, X[i], X[j], ranges, discrete) for m in range(d)])

    w = np.zeros((d, d) if full else d)
    taken = range(n) if taken is None else taken
    priors = {c: np.mean(y == c) for c in np.unique(y)}
    for i in taken:
        hits = nearest(i, [j for j in range(n) if j != i and y[j] == y[i]], distance, k)
        if not hits:
            continue
        for j in hits:
            w -= move(i, j) / len(hits) / len(taken)
        if each:
            for c in priors:
                if c == y[i]:
                    continue
                misses = nearest(i, [j for j in range(n) if y[j] == c], distance, k)
                for j in misses:
                    part = priors[c] / (1 - priors[y[i]])
                    w += part * move(i, j) / len(misses) / len(taken)
        else:
            misses = nearest(i, [j for j in range(n) if y[j] != y[i]], distance, k)
            for j in misses:
                w += move(i, j) / len(misses) / len(taken)
    return w


def size(x, z, normalizer):
    if normalizer is None:
        return 1.0
    if normalizer == "cosine":
        return np.sqrt(x @ x) * np.sqrt(z @ z)
    if normalizer == "dice":
        return (np.abs(x).sum() + np.abs(z).sum()) / 2
    return np.abs(x).sum() + np.abs(z).sum() - x @ z


def triples(X, y, k, normalizer):
    """For each i its pairs (target, impostor), by the base similarity."""
    n = len(X)

    def distance(i, j):
        return -(X[i] @ X[j]) / size(X[i], X[j], normalizer)

    found = []
    for i in range(n):
        hits = nearest(i, [j for j in range(n) if j != i and y[j] == y[i]], distance, k)
        misses = nearest(i, [j for j in range(n) if y[j] != y[i]], distance, k)
        found.append(list(zip(hits, misses, strict=False)))
    return found


def margin(A, X, i, pairs, normalizer):
    """Σ_q s_A(x_i, y_i^q) − s_A(x_i, z_i^q)."""
    total = 0.0
    for j, m in pairs:
        total += X[i] @ A @ X[j] / size(X[i], X[j], normalizer)
        total -= X[i] @ A @ X[m] / size(X[i], X[m], normalizer)
    return total


def contrast(X, i, pairs, normalizer):
    """∂ margin/∂A."""
    Z = np.zeros((X.shape[1], X.shape[1]))
    for j, m in pairs:
        Z += np.outer(X[i], X[j]) / size(X[i], X[j], normalizer)
        Z -= np.outer(X[i], X[m]) / size(X[i], X[m], normalizer)
    return Z


def projected(A):
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def rbs(X, y, k=1, normalizer="cosine", diagonal=False, psd=False):
    found = triples(X, y, k, normalizer)
    Z = sum(contrast(X, i, found[i], normalizer) for i in range(len(X)))
    if diagonal:
        Z = np.diag(np.diag(Z))
    if psd:
        Z = projected(Z)
    return Z / np.linalg.norm(Z)


def cost(A, X, y, k, normalizer, beta, lam):
    found = triples(X, y, k, normalizer)
    value = lam * np.sum(A**2)
    for i in range(len(X)):
        value += 1 / (1 + np.exp(beta * margin(A, X, i, found[i], normalizer)))
    return value


def srbs(X, y, k, normalizer, beta, lam, epochs, tol, diagonal=False, psd=False):
    """The schedule of the thesis; every A on the way."""
    found = triples(X, y, k, normalizer)
    n, d = X.shape
    A = np.eye(d)
    path = []
    for t in range(1, epochs + 1):
        minus = np.zeros((d, d))
        for i in range(n):
            g = np.exp(beta * margin(A, X, i, found[i], normalizer))
            minus += -beta * g / (1 + g) ** 2 * contrast(X, i, found[i], normalizer)
            minus += 2 * lam * A / n
        if diagonal:
            minus = np.diag(np.diag(minus))
        new = A - minus / (t * n)
        if psd:
            new = projected(new)
        change = np.abs(new - A).sum()
        A = new
        path.append(A)
        if change <= tol:
            break
    return path
