"""Two forms on judged lists, and a map of queries, as plain loops."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.adapter import auc, best_is_liked


def gain(scores, y):
    """nDCG of the judged items; what an item is worth is its grade above the lowest."""
    judged = [i for i in range(len(y)) if y[i]]
    low = min(y[i] for i in judged)
    order = sorted(judged, key=lambda i: -scores[i])
    best = sorted((y[i] - low for i in judged), reverse=True)
    reached = sum((y[i] - low) / math.log2(2 + r) for r, i in enumerate(order))
    return reached / sum(g / math.log2(2 + r) for r, g in enumerate(best))


def measures(rest, first, y, candidate=-1):
    """AUC, whether the best item is liked, and nDCG with that item first."""
    judged = [i for i in range(len(y)) if y[i]]
    best = max(judged, key=lambda i: (first[i], -i))
    pinned = [math.inf if i == best else s for i, s in enumerate(rest)]
    return auc(rest, y, candidate), best_is_liked(first, y), gain(pinned, y)


def log_wealth(x, m):
    """The bet that x lie above m: λ = clip(Σz/(Σz² + ½), 0, 1/(2 + 2|m|)) of the past."""
    total = squares = wealth = 0.0
    for value in x:
        z = value - m
        share = min(max(total / (squares + 0.5), 0.0), 0.5 / (1 + abs(m)))
        wealth += math.log(1 + share * z)
        total, squares = total + z, squares + z * z
    return wealth


def mapped(q, matrix, bias, events, alpha, beta, center):
    """q matrix + bias + α Σ K v / (Σ K + 1) over events (query, v, weight)."""
    total, weighted = 0.0, np.zeros(len(q))
    for query, v, weight in events:
        K = weight * math.exp(min(beta * (q @ query - center), 60.0))
        if K >= 1e-4:
            total += K
            weighted += K * v
    return q @ matrix + bias + alpha * weighted / (total + 1)
