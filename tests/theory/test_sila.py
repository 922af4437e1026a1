"""What the thesis proves of SiLA, and what a step of gCosLA promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from samewise import Pairs
from samewise.learners.neighbors.sila import SiLA
from samewise.learners.online.gcosla import GCosLA
from tests.pairwise import SEEDS, pairwise
from tests.reference import labels as reference

STRUCTURES = ["full", "symmetric", "diagonal"]


def examples(seed, noise, n=90, d=6):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    centers = rng.normal(size=(3, d))
    return centers[y] + noise * rng.normal(size=(n, d)), y


def margins_under(U, X, y, k, structure):
    """min over impostors of Σ_T U·φ − Σ_B U·φ for each example; targets by the cosine."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    base = X @ X.T
    np.fill_diagonal(base, -np.inf)
    S = X @ U @ X.T
    if structure == "symmetric":
        S = S + S.T
    margins = np.empty(len(y))
    for i in range(len(y)):
        same, other = np.flatnonzero(y == y[i]), np.flatnonzero(y != y[i])
        targets = same[np.argsort(-base[i, same])[:k]]
        margins[i] = S[i, targets].sum() - np.sort(S[i, other])[-k:].sum()
    return margins


def longest_step(X, y, k, **given):
    run = reference.sila(X, y, k, init="zero", **given)
    return max(np.linalg.norm(b - a) for a, b in itertools.pairwise(run.hypotheses))


# Thinned from 18 cases to 9.
@pairwise(seed=SEEDS, structure=STRUCTURES, pool=[None, 5])
def test_mistakes_on_separable_examples(structure, pool, seed):
    k, n_passes = 2, 6
    X, y = examples(seed, noise=0.1)
    # Whatever separates will do: here what a longer run has found.
    found = SiLA(
        k, init="zero", structure=structure, step="pa1", C=10.0, n_passes=60, average="last"
    ).fit(X, y)
    U = found.metric_.matrix / np.linalg.norm(found.metric_.matrix)
    gamma = margins_under(U, X, y, k, structure).min()
    assert gamma > 0
    learner = SiLA(
        k, init="zero", structure=structure, impostors=pool or "exact", n_passes=n_passes
    ).fit(X, y)
    R = longest_step(X, y, k, structure=structure, pool=pool, n_passes=n_passes)
    assert 0 < learner.n_mistakes_ <= R**2 / gamma**2
    # So the mistakes come to an end.
    long = SiLA(k, init="zero", structure=structure, n_passes=200).fit(X, y)
    mistakes = long.history_["mistakes"]
    assert mistakes[-1] == mistakes[len(mistakes) // 2]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_mistakes_of_an_epoch_on_any_examples(structure, noise, seed):
    k = 2
    X, y = examples(seed, noise)
    learner = SiLA(k, init="zero", structure=structure, n_passes=1).fit(X, y)
    R = longest_step(X, y, k, structure=structure)
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    candidates = [np.eye(d), learner.metric_.matrix, np.diag(rng.random(d))]
    for U in candidates:
        U = U / np.linalg.norm(U)
        margins = margins_under(U, X, y, k, structure)
        for gamma in (0.01, 0.1, 0.5, 2.0):
            D = np.sqrt(np.sum(np.maximum(gamma - margins, 0) ** 2))
            assert learner.n_mistakes_ <= (R + D) ** 2 / gamma**2


def steps_of(X, y, gamma, beta, psd, seed):
    """(pair, A and b before, A and b after) of every step of a fast run."""
    pairs = Pairs.from_labels(X, y, n_pairs=150, random_state=seed)
    learner = GCosLA(gamma, beta, psd=psd, average="last").partial_fit(pairs[:1])
    for i in range(1, len(pairs)):
        A, b, updates = (
            learner._online.mover.store.matrix,
            learner._online.mover.b,
            learner.n_updates_,
        )
        learner.partial_fit(pairs[i : i + 1])
        if learner.n_updates_ > updates:
            pair = X[pairs.left[i]], X[pairs.right[i]], float(pairs.y[i])
            yield pair, (A, b), (learner._online.mover.store.matrix, learner._online.mover.b)


def frozen(pair, A):
    x, z, sign = pair
    lengths = x @ A @ x, z @ A @ z
    return 1 / (max(lengths) if sign > 0 else min(lengths))


@pytest.mark.parametrize("gamma, beta", [(0.1, 0.1), (0.3, 0.1), (0.1, -0.2)])
def test_after_the_half_space_step_the_frozen_constraint_holds_with_equality(gamma, beta, seed):
    X, y = examples(seed, 0.7)
    checked = 0
    for pair, (A, _), (M, c) in steps_of(X, y, gamma, beta, "end", seed):
        if abs(c) < 1 - gamma - 1e-12:  # Otherwise b was cut off.
            x, z, sign = pair
            assert sign * (frozen(pair, A) * (x @ M @ z) - c) == pytest.approx(beta, abs=1e-9)
            checked += 1
    assert checked > 5


@pytest.mark.parametrize("gamma, beta", [(0.1, 0.1), (0.1, -0.2)])
def test_no_step_leads_away_from_what_satisfies_it(gamma, beta, seed):
    X, y = examples(seed, 0.7)
    rng = np.random.default_rng(seed)
    checked = 0
    for pair, (A, b), (M, c) in steps_of(X, y, gamma, beta, "each", seed):
        x, z, sign = pair
        for _ in range(20):
            L = rng.normal(size=(6, 6)) * rng.choice([0.1, 1.0])
            other, e = L @ L.T, rng.uniform(-1 + gamma, 1 - gamma)
            if sign * (frozen(pair, A) * (x @ other @ z) - e) >= beta:
                before = np.sum((A - other) ** 2) + (b - e) ** 2
                after = np.sum((M - other) ** 2) + (c - e) ** 2
                assert after <= before + 1e-9 * before
                checked += 1
    assert checked > 50
