"""Multi-metric LMNN's loss and gradients over all triplets, as plain loops over the formula."""

from __future__ import annotations

import numpy as np


def loss_and_gradients(L, X, y, groups, targets, mu):
    """ε, ∂ε/∂L_g for each group, and the number of triplets with a positive hinge.

    The distance of a point to a neighbor is measured by the map of the neighbor's group.
    """
    loss, active = 0.0, 0
    S = np.zeros((len(L), X.shape[1], X.shape[1]))

    def measured(i, j):
        v = X[i] - X[j]
        z = L[groups[j]] @ v
        return z @ z, np.outer(v, v)

    for i in range(len(X)):
        for j in targets[i]:
            near, pulled = measured(i, j)
            loss += (1 - mu) * near
            S[groups[j]] += (1 - mu) * pulled
            for m in range(len(X)):
                if y[m] == y[i]:
                    continue
                far, pushed = measured(i, m)
                if 1 + near - far > 0:
                    active += 1
                    loss += mu * (1 + near - far)
                    S[groups[j]] += mu * pulled
                    S[groups[m]] -= mu * pushed
    return loss, np.array([2 * L[g] @ S[g] for g in range(len(L))]), active
