"""OASIS and AROMA, one triplet at a time."""

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


def diagonal_aroma(Q, P, anchor, positive, negative, r, margin=1.0, *, W=None, weights=None):
    """One pass of d-AROMA; `run.Sigmas` are Σ before each update and after the last."""
    m, n = Q.shape[1], P.shape[1]
    run = Run(np.zeros((m, n)) if W is None else W.copy(), 0.0)
    run.Sigma = np.ones((m, n))
    run.Sigmas = [run.Sigma]
    run.hypotheses.append((run.M, 0.0))
    run.used.append(0)
    for i in range(len(anchor)):
        q, p = Q[anchor[i]], P[positive[i]] - P[negative[i]]
        score = q @ run.M @ p
        loss = max(margin - score, 0.0)
        run.losses.append(loss)
        run.mistakes += score <= 0
        run.used[-1] += 1
        w = 1.0 if weights is None else weights[i]
        if loss <= ROUNDING or (q @ q) * (p @ p) == 0 or w == 0:
            continue
        G = np.outer(q, p)
        s = np.sum(G**2 * run.Sigma)
        run.M = run.M + loss / (s + r / w) * run.Sigma * G
        run.Sigma = run.Sigma - (run.Sigma * G) ** 2 / (s + r / w)
        run.Sigmas.append(run.Sigma)
        run.rounds.append(i)
        run.hypotheses.append((run.M, 0.0))
        run.used.append(0)
    return run


def factored_aroma(
    Q, P, anchor, positive, negative, r, margin=1.0, *, W=None, weights=None, update="margin"
):
    """One pass of f-AROMA; `run.factors` are (Λ, Ω) before each update and after the last.

    With update="mistake", Theorem 2's variant: an update only where qᵀWp ≤ 0, and W = Λ_i B Ω_i
    with the new matrices; B stays in `run.B`.
    """
    m, n = Q.shape[1], P.shape[1]
    run = Run(np.zeros((m, n)) if W is None else W.copy(), 0.0)
    run.Lambda, run.Omega = np.eye(m), np.eye(n)
    run.B = run.M.copy()
    run.factors = [(run.Lambda, run.Omega)]
    run.hypotheses.append((run.M, 0.0))
    run.used.append(0)
    for i in range(len(anchor)):
        q, p = Q[anchor[i]], P[positive[i]] - P[negative[i]]
        score = q @ run.M @ p
        loss = max(margin - score, 0.0)
        run.losses.append(loss)
        run.mistakes += score <= 0
        run.used[-1] += 1
        w = 1.0 if weights is None else weights[i]
        if loss <= ROUNDING or (q @ q) * (p @ p) == 0 or w == 0:
            continue
        if update == "mistake" and score > 0:
            continue
        u, v = run.Lambda @ q, run.Omega @ p
        s, t = q @ u, p @ v
        step = loss / (r / w + s * t)
        run.Omega = run.Omega - s / (m * r / w + s * t) * np.outer(v, v)
        run.Lambda = run.Lambda - t / (n * r / w + s * t) * np.outer(u, u)
        if update == "mistake":
            run.B = run.B + step * np.outer(q, p)
            run.M = run.Lambda @ run.B @ run.Omega
        else:
            run.M = run.M + step * np.outer(u, v)
        run.factors.append((run.Lambda, run.Omega))
        run.rounds.append(i)
        run.hypotheses.append((run.M, 0.0))
        run.used.append(0)
    return run


def average(run, kind, number=0):
    """The W handed out, from the full list of hypotheses."""
    return np.tensordot(mixture(run, kind, number), [W for W, _ in run.hypotheses], axes=1)
