"""OASIS, one triplet at a time (algorithms.md §3, §9)."""

from __future__ import annotations

import numpy as np

from tests.reference.pairs import ROUNDING, Run, mixture


def project(W):
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def oasis(Q, P, anchor, positive, negative, C, margin=1.0, *, W=None, weights=None, psd=None):
    """One pass; `psd` is a number of updates after which W is projected."""
    run = Run(np.eye(Q.shape[1], P.shape[1]) if W is None else W.copy(), 0.0)
    run.hypotheses.append((run.M, 0.0))
    run.used.append(0)
    for i in range(len(anchor)):
        q, p = Q[anchor[i]], P[positive[i]] - P[negative[i]]
        score = q @ run.M @ p
        loss = max(margin - score, 0.0)
        run.losses.append(loss)
        run.mistakes += score <= 0
        run.used[-1] += 1
        norm = (q @ q) * (p @ p)
        w = 1.0 if weights is None else weights[i]
        if loss <= ROUNDING or norm == 0 or w == 0:
            continue
        run.M = run.M + min(C * w, loss / norm) * np.outer(q, p)
        run.rounds.append(i)
        if psd is not None and len(run.rounds) % psd == 0:
            run.M = project(run.M)
        run.hypotheses.append((run.M, 0.0))
        run.used.append(0)
    return run


def average(run, kind, number=0):
    """The W handed out, from the full list of hypotheses."""
    return np.tensordot(mixture(run, kind, number), [W for W, _ in run.hypotheses], axes=1)
