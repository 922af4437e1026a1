"""What the thesis states of RBS and sRBS: the largest margin, and the gradient of the cost."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from samewise.learners.neighbors.rbs import RBS
from samewise.learners.neighbors.srbs import SRBS, MarginCost
from tests.pairwise import SEEDS, pairwise
from tests.reference import relief as reference


def total_margin(A, X, y, k, normalizer):
    found = reference.triples(X, y, k, normalizer)
    return sum(reference.margin(A, X, i, found[i], normalizer) for i in range(len(X)))


# Thinned from 48 cases to 6.
@pairwise(
    seed=SEEDS,
    diagonal=[False, True],
    psd=[None, "end"],
    k=[1, 2],
    normalizer=["cosine", None],
)
def test_no_matrix_of_norm_one_has_a_larger_margin(labeled, normalizer, k, psd, diagonal, seed):
    X, y = labeled[0][:24], labeled[1][:24]
    rbs = RBS(k, structure="diagonal" if diagonal else "full", normalizer=normalizer, psd=psd)
    A = rbs.fit(X, y).metric_.matrix
    assert np.linalg.norm(A) == pytest.approx(1)
    # The margin is linear in A: its values at the unit matrices are all there is to know.
    found = reference.triples(X, y, k, normalizer)
    Z = sum(reference.contrast(X, i, found[i], normalizer) for i in range(len(X)))
    assert total_margin(A, X, y, k, normalizer) == pytest.approx(np.sum(A * Z), rel=1e-9)
    best = np.sum(A * Z)

    def allowed(B):
        B = np.diag(np.diag(B)) if diagonal else B
        B = reference.projected(B) if psd else B
        norm = np.linalg.norm(B)
        return B / norm if norm else B

    rng = np.random.default_rng(seed)
    for scale in (1.0, 0.1, 0.001):
        for _ in range(50):
            near = allowed(A + scale * rng.normal(size=A.shape))
            assert np.sum(near * Z) <= best + 1e-12
    # Gradient ascent on the sphere, from anywhere, ends at A.
    B = allowed(rng.normal(size=A.shape) + 0.5 * np.eye(5))
    for _ in range(4000):
        B = allowed(B + 0.05 * Z / np.linalg.norm(Z))
    np.testing.assert_allclose(B, A, atol=1e-6)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("beta", [0.5, 30.0])
def test_the_gradient_of_the_cost_by_differences(diagonal, sparse, beta, seed):
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(2, 20, 4))
    make = sp.csr_array if sparse else np.asarray
    cost = MarginCost(make(X), make(V), beta, 0.3, diagonal)
    A = rng.normal(size=4 if diagonal else (4, 4)) / beta
    value, gradient = cost(A)
    full = np.diag(A) if diagonal else A
    by_hand = 0.3 * np.sum(A**2)
    by_hand += sum(1 / (1 + np.exp(beta * x @ full @ v)) for x, v in zip(X, V, strict=True))
    assert value == pytest.approx(by_hand, rel=1e-12)
    step = 1e-6 / beta
    for at in np.ndindex(*A.shape):
        E = np.zeros_like(A)
        E[at] = step
        difference = (cost(A + E)[0] - cost(A - E)[0]) / (2 * step)
        assert gradient[at] == pytest.approx(difference, rel=1e-5, abs=1e-6 * beta)


@pytest.mark.parametrize("psd", [None, "each"])
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_both_solvers_agree_where_there_is_one_minimum(labeled, structure, psd):
    # With a penalty that outweighs the curvature of the sigmoids the cost is convex, and steps of
    # 1/t along its mean gradient suffice.
    X, y = labeled
    options = {"beta": 3.0, "regularization": 40.0, "structure": structure, "psd": psd}
    one = SRBS(solver="gradient", tol=1e-8, max_iter=4000, **options).fit(X, y)
    other = SRBS(solver="lbfgs", tol=1e-7, **options).fit(X, y)
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-8)
    np.testing.assert_allclose(one.metric_.matrix, other.metric_.matrix, atol=2e-5)


@pytest.mark.parametrize("psd", [None, "each"])
def test_the_minimum_is_stationary_and_no_higher_than_the_schedule(labeled, psd):
    X, y = labeled
    options = {"beta": 20.0, "regularization": 0.05, "psd": psd}
    lowest = SRBS(solver="lbfgs", tol=1e-6, max_iter=2000, **options).fit(X, y)
    schedule = SRBS(solver="gradient", **options).fit(X, y)
    assert lowest.loss_ < schedule.loss_ < 60 + 0.05 * 5
    assert np.all(np.diff(lowest.history_["loss"]) <= 1e-9)
    told = SRBS(**options)._contrasts(X, y)
    G = MarginCost(told.rows, told.directions, 20.0, 0.05, False)(lowest.metric_.matrix)[1]
    if psd:
        # First-order conditions of A ⪰ 0: GA = 0 for the symmetric part.
        G = (G + G.T) / 2 @ lowest.metric_.matrix
    assert np.abs(G).max() < 1e-3


def test_for_large_beta_the_cost_counts_negative_margins(labeled):
    X, y = labeled
    told = SRBS()._contrasts(X, y)
    cost = MarginCost(told.rows, told.directions, 1e8, 0.0, False)
    assert cost(np.eye(5))[0] == np.sum(cost.margins(np.eye(5)) < 0)


def test_srbs_leaves_fewer_negative_margins_than_rbs(labeled):
    X, y = labeled
    wrong = {
        name: np.sum(learner.fit(X, y).margins(X, y) < 0)
        for name, learner in {
            "rbs": RBS(),
            "srbs": SRBS(beta=30.0, regularization=1e-3, solver="lbfgs", tol=1e-2),
        }.items()
    }
    assert wrong["srbs"] < wrong["rbs"]
