"""LMNN's loss and gradient over all triplets, as plain loops over the formula."""

from __future__ import annotations

import numpy as np


def target_neighbors(X, y, k):
    """The k nearest of the same class (fewer if there are fewer), ties by the smaller row."""
    targets = []
    for i in range(len(X)):
        same = [j for j in range(len(X)) if y[j] == y[i] and j != i]
        distances = [float(np.sum((X[i] - X[j]) ** 2)) for j in same]
        targets.append([same[at] for at in np.argsort(distances, kind="stable")[:k]])
    return targets


def loss_and_gradient(L, X, y, targets, mu, squared=False):
    """ε, ∂ε/∂L, the number of triplets with a positive hinge, and ∂ε/∂M."""
    pull = push = 0.0
    active = 0
    S = np.zeros((X.shape[1], X.shape[1]))
    M = L.T @ L
    for i in range(len(X)):
        for j in targets[i]:
            v = X[i] - X[j]
            pull += v @ M @ v
            S += (1 - mu) * np.outer(v, v)
            for m in range(len(X)):
                if y[m] == y[i]:
                    continue
                u = X[i] - X[m]
                h = 1 + v @ M @ v - u @ M @ u
                if h > 0:
                    active += 1
                    push += h**2 if squared else h
                    w = 2 * h if squared else 1.0
                    S += mu * w * (np.outer(v, v) - np.outer(u, u))
    return (1 - mu) * pull + mu * push, 2 * L @ S, active, S


def weighted_target_neighbors(X, y, weight, k):
    """Of each point, pairs (target, how often it counts); the counts add up to k."""
    targets = []
    for i in range(len(X)):
        same = [j for j in range(len(X)) if y[j] == y[i] and j != i and weight[j] > 0]
        distances = [float(np.sum((X[i] - X[j]) ** 2)) for j in same]
        mine, wanted = [], float(k)
        # Its own copies are the nearest.
        copies = [(i, weight[i] - 1)]
        for j, w in copies + [(same[at], weight[same[at]]) for at in np.argsort(distances)]:
            count = min(w, wanted)
            if count > 0:
                mine.append((j, count))
                wanted -= count
        targets.append(mine)
    return targets


def weighted_loss_and_gradient(L, X, y, weight, targets, mu, squared=False):
    """ε with weights, ∂ε/∂L, and the terms of each point."""
    S = np.zeros((X.shape[1], X.shape[1]))
    M = L.T @ L
    terms = np.zeros(len(X))
    for i in range(len(X)):
        for j, count in targets[i]:
            v = X[i] - X[j]
            cost = weight[i] * count
            terms[i] += cost * (1 - mu) * (v @ M @ v)
            S += cost * (1 - mu) * np.outer(v, v)
            for m in range(len(X)):
                u = X[i] - X[m]
                h = 1 + v @ M @ v - u @ M @ u
                if y[m] != y[i] and h > 0:
                    terms[i] += cost * weight[m] * mu * (h**2 if squared else h)
                    w = cost * weight[m] * mu * (2 * h if squared else 1.0)
                    S += w * (np.outer(v, v) - np.outer(u, u))
    return terms.sum(), 2 * L @ S, terms
