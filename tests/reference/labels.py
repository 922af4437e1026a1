"""SiLA and gCosLA, one example or pair at a time, by their formulas."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference.pairs import forgetting


@dataclass
class Run:
    """Every hypothesis in the order in which it came to be, its votes, and who made it."""

    hypotheses: list = field(default_factory=list)
    votes: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    violations: list[float] = field(default_factory=list)
    seen: int = 0


def project(A):
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def normalizer(name, x, z):
    """N(x, z)."""
    if name is None:
        return 1.0
    if callable(name):
        return name(x[None], z[None])[0, 0]
    if name == "cosine":
        return np.linalg.norm(x) * np.linalg.norm(z)
    sizes = np.abs(x).sum() + np.abs(z).sum()
    return sizes / 2 if name == "dice" else sizes - x @ z


def feature(structure, name, x, z):
    """f(x, z)."""
    G = np.outer(x, z) / normalizer(name, x, z)
    return {"full": G, "symmetric": G + G.T, "diagonal": np.diag(np.diag(G))}[structure]


def nearest(X, y, i, wanted, k, similarity):
    """The k most similar of the wanted rows; ties by the smaller class, then the smaller row."""
    ranked = sorted(wanted, key=lambda j: (-similarity(X[i], X[j]), y[j], j))
    return ranked[:k]


def sila(
    X,
    y,
    k,
    *,
    structure="full",
    name="cosine",
    psd=False,
    pool=None,
    step="perceptron",
    C=1.0,
    n_passes=1,
    init="identity",
):
    """The run, hypotheses being A; a hypothesis starts with one vote, but the first with none."""
    n, d = X.shape

    def base(x, z):
        return x @ z / normalizer(name, x, z)

    others = [[j for j in range(n) if y[j] != y[i]] for i in range(n)]
    targets = [
        nearest(X, y, i, [j for j in range(n) if y[j] == y[i] and j != i], k, base)
        for i in range(n)
    ]
    targets = [T[: len(others[i])] for i, T in enumerate(targets)]
    if pool is not None:
        others = [nearest(X, y, i, others[i], max(pool, k), base) for i in range(n)]
    run = Run([np.eye(d) if init == "identity" else np.zeros((d, d))], [0])
    for _ in range(n_passes):
        for i in range(n):
            if not targets[i]:
                continue
            run.seen += 1
            A = run.hypotheses[-1]

            def similarity(x, z, A=A):
                return x @ A @ z / normalizer(name, x, z)

            impostors = nearest(X, y, i, others[i], len(targets[i]), similarity)
            margin = sum(similarity(X[i], X[j]) for j in targets[i])
            margin -= sum(similarity(X[i], X[j]) for j in impostors)
            F = sum(feature(structure, name, X[i], X[j]) for j in targets[i])
            F = F - sum(feature(structure, name, X[i], X[j]) for j in impostors)
            tau = 0.0
            if step == "perceptron":
                run.violations.append(-margin)
                tau = 1.0 if margin <= 0 else 0.0
            else:
                loss = 1 - margin
                run.violations.append(loss)
                raised = sum(feature("full", name, X[i], X[j]) for j in targets[i])
                raised = raised - sum(feature("full", name, X[i], X[j]) for j in impostors)
                gain = np.sum(F * raised)
                if loss > 1e-12 and gain > 0:
                    tau = min(C, loss / gain) if step == "pa1" else loss / (gain + 1 / (2 * C))
            if tau == 0:
                run.votes[-1] += 1
                continue
            A = A + tau * F
            if psd:
                A = np.diag(np.maximum(np.diag(A), 0)) if structure == "diagonal" else project(A)
            run.hypotheses.append(A)
            run.votes.append(1)
            run.rounds.append(run.seen - 1)
    return run


def voted(run, kind, number=0):
    """The matrix handed out by SiLA, from the full list of hypotheses."""
    n = len(run.votes)
    votes = np.array(run.votes, dtype=float)
    # The first is the zero matrix; it only sets the scale, and is used by the round that ends it.
    votes[0] += n > 1
    weights = {
        "last": np.eye(n)[-1],
        "uniform": np.ones(n),
        "survival": votes,
        "cutoff": np.maximum(votes - number, 0),
        "suffix": votes * (np.arange(n) >= n - number),
        "decay": forgetting(votes, max(number, 1)),
    }[kind]
    return np.tensordot(weights / weights.sum(), np.array(run.hypotheses), axes=1)


def gcosla(X, left, right, y, gamma, beta, *, psd="each", update="projection", A=None, b=0.0):
    """The run of one pass, hypotheses being (A, b); also votes as the rounds each was used in."""
    run = Run([(np.eye(X.shape[1]) if A is None else A, b)], [0])
    updates = 0
    for i in range(len(y)):
        A, b = run.hypotheses[-1]
        x, z, sign = X[left[i]], X[right[i]], float(y[i])
        xx, zz, xz = x @ A @ x, z @ A @ z, x @ A @ z
        run.votes[-1] += 1
        run.seen += 1
        lost = min(xx / (x @ x), zz / (z @ z)) <= 1e-12 * np.abs(np.diag(A)).max()
        # Before a projection A may be indefinite, and the quotient beyond 1.
        s = 0.0 if lost else np.clip(xz / np.sqrt(xx * zz), -1, 1)
        loss = sign * (b - s) + gamma
        run.violations.append(loss)
        if loss <= 1e-12 or (lost and (sign < 0 or max(xx, zz) <= 0)):
            continue
        R = 1 / max(xx, zz) if sign > 0 else 1 / min(xx, zz)
        S = (np.outer(x, z) + np.outer(z, x)) / 2
        if update == "projection":
            a = max(0.0, (beta - sign * (R * xz - b)) / (R**2 * np.sum(S * S) + 1))
            if a == 0:
                continue
            A, b = A + sign * a * R * S, b - sign * a
        else:
            a = (beta - sign * R * xz + sign * b) / (R * (x @ x) * (z @ z))
            A, b = A + sign * a * S, b + sign * a
        updates += 1
        if psd == "each" or (isinstance(psd, int) and updates % psd == 0):
            A = project(A)
        run.hypotheses.append((A, min(max(b, -1 + gamma), 1 - gamma)))
        run.votes.append(0)
        run.rounds.append(i)
    return run


def averaged(run, kind, number=0):
    """The (A, b) handed out by gCosLA."""
    n = len(run.votes)
    ages = np.array(run.votes, dtype=float)
    weights = {
        "last": np.eye(n)[-1],
        "uniform": np.ones(n),
        "survival": ages,
        "cutoff": np.maximum(ages - number, 0),
        "suffix": (np.arange(n) >= n - number).astype(float),
        "decay": forgetting(ages, max(number, 1)),
    }[kind]
    weights = weights / weights.sum()
    A = np.tensordot(weights, np.array([A for A, _ in run.hypotheses]), axes=1)
    return project(A), weights @ np.array([b for _, b in run.hypotheses])


def mlkr(L, X, y):
    """The leave-one-out squared error of kernel regression, row by row."""
    loss = 0.0
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        weights = [np.exp(-np.sum((L @ (X[i] - X[j])) ** 2)) for j in others]
        predicted = sum(w * y[j] for w, j in zip(weights, others, strict=True)) / sum(weights)
        loss += (y[i] - predicted) ** 2
    return loss
