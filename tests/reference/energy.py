"""The energy rule, by its sums: eq. 15 of the LMNN paper, and without its second margin."""

from __future__ import annotations

import numpy as np


def squared(M, a, b):
    v = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return v @ M @ v


def nearest(x, X, rows, k, M):
    """The k of the given rows that are nearest to x; the smaller number where distances tie."""
    return sorted(rows, key=lambda i: (squared(M, x, X[i]), i))[:k]


def input_targets(X, y, k):
    plain = np.eye(X.shape[1])
    everyone = range(len(X))
    return [
        nearest(X[i], X, [j for j in everyone if j != i and y[j] == y[i]], k, plain)
        for i in everyone
    ]


def energy(t, c, X, y, M, targets, k, *, mu=0.5, printed=False, groups=None, group_of=None):
    """Energy of the test point t in the class c.

    `M` maps each group to the matrix of its metric: D(x, x') is measured by that of the group of
    x'. Groups are the classes, or given for the training points, and by a function for t. The
    targets of training points are lists of row numbers.
    """
    groups = y if groups is None else groups
    mine = c if group_of is None else group_of(t)

    def D(x, i):
        return squared(M[groups[i]], x, X[i])

    members = [i for i in range(len(X)) if y[i] == c]
    strangers = [i for i in range(len(X)) if y[i] != c]
    if printed:
        own = nearest(t, X, members, k, np.eye(X.shape[1]))
    else:
        own = sorted(members, key=lambda i: (D(t, i), i))[:k]
    margin = 1.0 if printed else 0.0
    pull = sum(D(t, j) for j in own)
    invaded = sum(max(margin + D(t, j) - D(t, h), 0.0) for j in own for h in strangers)
    invading = sum(
        max(1.0 + D(X[i], j) - squared(M[mine], X[i], t), 0.0)
        for i in strangers
        for j in targets[i]
    )
    return (1 - mu) * pull + mu * (invaded + invading)


def energies(Q, X, y, M, k, *, targets=None, **given):
    """Energy of every row of Q in every class, in the order of the classes."""
    targets = input_targets(X, y, k) if targets is None else targets
    classes = sorted(set(y))
    M = M if isinstance(M, dict) else dict.fromkeys(classes, M)
    return np.array([[energy(t, c, X, y, M, targets, k, **given) for c in classes] for t in Q])
