"""MMC: against the published method, its own proof, and odd input."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import KNNClassifier, Pairs
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.mmc_problems import Stretch, Weights, sides_of
from samewise.solvers.evaluation import LossAndGradient
from samewise.solvers.factored_convex import solve
from samewise.supervision.purposes import sampled_pairs
from tests.reference import peers as reference

STRUCTURES = ["full", "diagonal"]


@parametrize_with_checks([MMC(shrinkage=0.0), MMC("diagonal", shrinkage=0.0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def sides(pairs):
    V = pairs.X[pairs.left] - pairs.X[pairs.right]
    return V[pairs.y > 0], V[pairs.y < 0]


def objective(A, S, D):
    """Σ_D √(vᵀAv) with A scaled to Σ_S vᵀAv = 1."""
    near = np.einsum("ij,jk,ik->", S, A, S)
    return np.sum(np.sqrt(np.einsum("ij,jk,ik->i", D, A, D) / near))


@pytest.fixture(scope="module", params=["labeled", "iris"])
def few(request, labeled):
    X, y = labeled if request.param == "labeled" else load_iris(return_X_y=True)
    return Pairs.from_labels(X, y, 40, random_state=0)


def test_full_is_at_least_as_good_as_the_published_method(few):
    S, D = sides(few)
    A, reached = reference.mmc_full(S, D, n_iter=50)
    mmc = MMC(shrinkage=0.0, tol=1e-6).fit(few)
    assert mmc.converged_
    assert mmc.objective_ == pytest.approx(objective(mmc.metric_.matrix, S, D), rel=1e-8)
    assert np.einsum("ij,jk,ik->", S, mmc.metric_.matrix, S) == pytest.approx(1)
    assert reached == pytest.approx(objective(A, S, D), rel=1e-3)
    assert 0.9 * mmc.objective_ < objective(A, S, D) <= mmc.objective_ + mmc.gap_


def test_diagonal_is_at_least_as_good_as_the_published_method(few):
    S, D = sides(few)
    a, cost = reference.mmc_diagonal(S, D)
    mmc = MMC("diagonal", shrinkage=0.0, tol=1e-8).fit(few)
    assert mmc.converged_
    A = mmc.metric_.matrix
    assert np.count_nonzero(A - np.diag(np.diag(A))) == 0
    # The least of the paper's cost along a ray is where Σ_S = 1/2.
    ours = 0.5 - np.log(np.sqrt(0.5) * mmc.objective_)
    assert ours <= cost + 1e-6
    assert objective(np.diag(a), S, D) <= mmc.objective_ + mmc.gap_ + 1e-9
    assert mmc.objective_ == pytest.approx(objective(A, S, D), rel=1e-8)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_other_metric_is_better_than_the_proof_says(few, structure, seed):
    S, D = sides(few)
    mmc = MMC(structure, shrinkage=0.0, tol=0.05).fit(few)
    rng = np.random.default_rng(seed)
    bound = mmc.objective_ + mmc.gap_
    for _ in range(50):
        B = rng.normal(size=(1 + rng.integers(4), S.shape[1]))
        A = B.T @ B if structure == "full" else np.diag(rng.exponential(size=S.shape[1]) ** 3)
        assert objective(A, S, D) <= bound
    best = MMC(structure, shrinkage=0.0, tol=1e-7).fit(few)
    assert mmc.objective_ <= best.objective_ + best.gap_ <= bound * (1 + 1e-7)


def test_gradients_by_differences(few, seed):
    problem = Stretch(sides_of(few))
    d = problem.B.shape[1]
    L, V = np.random.default_rng(seed).normal(size=(2, d, d))
    ahead, behind = (problem.value_and_gradient(L + t * V).loss for t in (1e-6, -1e-6))
    slope = np.vdot(problem.value_and_gradient(L).gradient, V)
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-5, abs=1e-8)
    weights = Weights(sides_of(few))
    a, v = np.random.default_rng(seed).uniform(0.5, 1, size=(2, d))
    (up, first, _), (down, second, _) = (weights._derivatives(a + t * v) for t in (1e-5, -1e-5))
    _, gradient, hessian = weights._derivatives(a)
    assert (up - down) / 2e-5 == pytest.approx(gradient @ v, rel=1e-5)
    np.testing.assert_allclose((first - second) / 2e-5, hessian @ v, rtol=1e-4)


def test_a_start_that_has_lost_rank_is_left_again():
    """−⟨G, M⟩ + ‖M‖²/2 has its minimum at M = G; over L, L = 0 in a direction is stationary."""
    G = np.diag([2.0, 1.0])

    class Quadratic:
        def value_and_gradient(self, L):
            M = L.T @ L
            return LossAndGradient(-np.vdot(G, M) + 0.5 * np.vdot(M, M), 2 * L @ (M - G))

        def proof(self, L):
            values, vectors = np.linalg.eigh(G - L.T @ L)
            return np.linalg.norm(values), np.maximum(values, 0)[:, None] * vectors.T

    found = solve(
        Quadratic(), np.diag([1.0, 0.0]), max_iter=100, tol=1e-8, look=lambda found: False
    )
    assert found.converged
    np.testing.assert_allclose(found.L.T @ found.L, G, atol=1e-6)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_units_do_not_matter(few, structure):
    scale = np.logspace(-4, 4, few.X.shape[1])
    other = Pairs(few.X * scale, few.left, few.right, few.y)
    one, two = (
        MMC(structure, shrinkage=0.0, tol=1e-6).fit(some).objective_ for some in (few, other)
    )
    assert one == pytest.approx(two, rel=1e-5)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_labels_pairs_arrays_and_sparse_rows_are_one(labeled, structure):
    X, y = labeled
    how = {
        "purpose": "neighbors",
        "n_neighbors": 10,
        "merge_duplicates": False,
        "n_pairs": 200,
        "random_state": 3,
    }
    drawn, held_out = sampled_pairs(X, y, **how)
    wanted = MMC(structure, shrinkage=0.0).fit(drawn).metric_.matrix
    for learner in (
        MMC(structure, shrinkage=0.0, n_pairs=200, random_state=3).fit(X, y),
        MMC(structure, shrinkage=0.0, n_pairs=200, random_state=3).fit(sp.csr_array(X), y),
        MMC(structure, shrinkage=0.0).fit(
            np.stack([X[drawn.left], X[drawn.right]], axis=1), drawn.y
        ),
    ):
        np.testing.assert_allclose(
            learner.metric_.matrix, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max()
        )
    learner = MMC(structure, shrinkage=0.0, n_pairs=200, random_state=3).fit(X, y)
    assert learner.threshold_ == learner._calibrated(held_out)
    single = MMC(structure, shrinkage=0.0, random_state=3).fit(X.astype(np.float32), y)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert KNNClassifier(learner).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize("structure", STRUCTURES)
def test_shrinkage_mixes_the_result_with_the_identity(few, structure):
    plain = MMC(structure, shrinkage=0.0).fit(few)
    mixed, only = (MMC(structure, shrinkage=s).fit(few) for s in (0.4, 1.0))
    A, d = plain.metric_.matrix, few.X.shape[1]
    wanted = 0.6 * A / np.trace(A) + 0.4 * np.eye(d) / d
    V = few.differences()[few.y > 0]
    np.testing.assert_allclose(
        mixed.metric_.matrix, wanted / np.vdot(wanted, V.T @ V), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(only.metric_.matrix, np.eye(d) / np.sum(V * V), atol=1e-12)
    assert mixed.objective_ == plain.objective_ > 0


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_weight_is_so_many_pairs(labeled, structure):
    X, y = labeled
    pairs = Pairs.from_labels(X, y, 100, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, 100)
    rows = np.repeat(np.arange(100), weights)
    weighted = Pairs(X, pairs.left, pairs.right, pairs.y, weights)
    one, two = (
        MMC(structure, shrinkage=0.0, tol=1e-7).fit(some) for some in (weighted, pairs[rows])
    )
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)
    np.testing.assert_allclose(
        one.metric_.matrix, two.metric_.matrix, atol=1e-3 * np.abs(two.metric_.matrix).max()
    )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_it_goes_on_where_it_ended(few, structure):
    mmc = MMC(structure, shrinkage=0.0, tol=1e-5, warm_start=True).fit(few)
    n_iter, reached = mmc.n_iter_, mmc.objective_
    mmc.fit(few)
    assert mmc.n_iter_ <= n_iter
    assert mmc.objective_ == pytest.approx(reached, rel=2e-5)
    # From another optimum too.
    other = MMC(structure, shrinkage=0.0, tol=1e-5, warm_start=True).fit(few[::2]).fit(few)
    assert other.objective_ == pytest.approx(reached, rel=2e-5)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_ctrl_c_keeps_what_was_learned(few, structure):
    def interrupt(info):
        if info["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    mmc = MMC(structure, shrinkage=0.0, tol=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="MMC was interrupted"):
        mmc.fit(few)
    assert mmc.n_iter_ == 2
    assert mmc.objective_ == pytest.approx(objective(mmc.metric_.matrix, *sides(few)), rel=1e-8)


def test_it_says_how_it_goes_and_that_it_did_not_end(few, capsys):
    with pytest.warns(ConvergenceWarning, match="MMC has not converged to tol=0 in 2 iter") as said:
        MMC(shrinkage=0.0, tol=0, max_iter=2, verbose=True).fit(few)
    assert said[0].filename == __file__
    assert re.search(r"MMC: iteration 2, objective \S+, gap \S+, \d+ s", capsys.readouterr().err)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_what_similar_pairs_do_not_differ_in_gets_a_ridge(labeled, structure):
    X, y = labeled
    alike = np.column_stack([X, y])
    with pytest.warns(SamewiseWarning, match=r"singular.*give more") as said:
        mmc = MMC(structure, shrinkage=0.0, random_state=0).fit(alike, y)
    assert said[0].filename == __file__
    D = np.diag(mmc.metric_.matrix) * alike.var(axis=0)
    assert D[5] == D.max()
    # What nobody differs in is left out without a word.
    constant = np.column_stack([X, np.ones(60)])
    mmc = MMC(structure, shrinkage=0.0, random_state=0).fit(constant, y)
    np.testing.assert_allclose(mmc.metric_.matrix[5], 0, atol=1e-12)


def test_more_features_than_pairs(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 40)), np.arange(12) % 2
    with pytest.warns(SamewiseWarning, match="singular"):
        mmc = MMC(shrinkage=0.0, random_state=0).fit(X, y)
    assert np.isfinite(mmc.components_).all()


def test_bad_input_is_refused_and_changes_nothing(few, labeled):
    mmc = MMC(shrinkage=0.0).fit(few)
    before = vars(mmc).copy()
    with pytest.raises(InvalidInputError, match="Got no dissimilar pair"):
        mmc.fit(few[few.y > 0])
    with pytest.raises(InvalidInputError, match="Got no similar pair"):
        mmc.fit(few[few.y < 0])
    with pytest.raises(InvalidInputError, match="at least two classes"):
        mmc.fit(labeled[0], np.zeros(60))
    assert vars(mmc) == before
