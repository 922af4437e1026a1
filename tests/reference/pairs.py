"""POLA and the passive–aggressive family, one pair at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

ROUNDING = 1e-12


@dataclass
class Run:
    """Every hypothesis (M, b) in the order in which it came to be, and who made it."""

    M: np.ndarray
    b: float
    rounds: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    mistakes: int = 0
    hypotheses: list[tuple[np.ndarray, float]] = field(default_factory=list)
    used: list[int] = field(default_factory=list)


def constrain(M, b):
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T, max(b, 1.0)


def step(rule, p, v, C, gamma=0.0, weight=1.0):
    """τ of each rule."""
    norm = 1 + (v @ v) ** 2
    loss = max(p, 0.0)
    if rule == "pa":
        return loss / (norm + gamma)
    if rule == "pa1":
        return min(C * weight, loss / norm)
    if rule == "pa2":
        return loss / (norm + 1 / (2 * C * weight))
    if rule == "pals":
        return p / (norm + 1 / (2 * C * weight))
    raise ValueError(rule)


def passive_aggressive(
    X, left, right, y, rule, C, psd, *, b=0.0, gamma=0.0, tolerance=0.0, M=None, weights=None
):
    """One pass. `psd` is "each", "end" or a number of updates; the result is not yet constrained
    for the last two."""
    d = X.shape[1]
    run = Run(np.zeros((d, d)) if M is None else M.copy(), b)
    run.hypotheses.append((run.M, run.b))
    run.used.append(0)
    updates = 0
    for i in range(len(y)):
        v = X[left[i]] - X[right[i]]
        distance = v @ run.M @ v
        p = 1 - y[i] * (run.b - distance)
        run.losses.append(max(p, 0.0))
        run.mistakes += (1 if distance <= run.b else -1) != y[i]
        run.used[-1] += 1
        w = 1.0 if weights is None else weights[i]
        if w == 0 or abs(p) <= ROUNDING or (p < 0 and rule != "pals"):
            continue
        tau = step(rule, p, v, C, gamma, w)
        if abs(tau) < tolerance:
            continue
        run.M = run.M - tau * y[i] * np.outer(v, v)
        run.b = run.b + tau * y[i]
        updates += 1
        if psd == "each" or (isinstance(psd, int) and updates % psd == 0):
            run.M, run.b = constrain(run.M, run.b)
        run.rounds.append(i)
        run.hypotheses.append((run.M, run.b))
        run.used.append(0)
    return run


def forgetting(ages, half_life):
    """The weight of each hypothesis, round by round: one of half_life rounds ago counts half."""
    used = [m for m, age in enumerate(ages) for _ in range(int(age))]
    weights = np.zeros(len(ages))
    for t, m in enumerate(used):
        weights[m] += 0.5 ** ((len(used) - 1 - t) / half_life)
    return weights


def mixture(run: Run, kind, number=0):
    """How much each hypothesis counts in an average; they sum to 1."""
    ages = np.array(run.used, dtype=float)
    n = len(ages)
    weights = {
        "last": np.eye(n)[-1],
        "uniform": np.ones(n),
        "survival": ages,
        "cutoff": np.maximum(ages - number, 0),
        "suffix": np.arange(n) >= n - number,
        "decay": forgetting(ages, max(number, 1)),
    }[kind].astype(float)
    if weights.sum() == 0:
        weights = np.eye(n)[-1]
    return weights / weights.sum()


def average(run: Run, kind, number=0):
    """The (M, b) handed out, constrained; from the full list of hypotheses."""
    Ms = np.array([M for M, _ in run.hypotheses])
    bs = np.array([b for _, b in run.hypotheses])
    weights = mixture(run, kind, number)
    return constrain(np.tensordot(weights, Ms, axes=1), weights @ bs)


def pola_batch(X, left, right, y, epsilon, max_passes):
    """Passes of POLA until the hypothesis at the end of one has no loss above epsilon."""
    V = X[left] - X[right]
    M, b = None, 1.0
    n_passes = 0
    while n_passes < max_passes:
        n_passes += 1
        run = passive_aggressive(X, left, right, y, "pa", 0.0, "each", b=b, M=M)
        M, b = run.M, run.b
        if np.max(1 - y * (b - np.einsum("ij,jk,ik->i", V, M, V))) <= epsilon:
            break
    return M, b, n_passes
