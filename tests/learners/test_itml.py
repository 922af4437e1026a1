"""ITML and LEGO: against the loops, against their own conditions, and with odd input."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import samewise
from samewise import KNNClassifier, Mahalanobis, Pairs, Triplets
from samewise.engine import logdet_mover
from samewise.exceptions import DegenerateInputError, InvalidInputError, SamewiseWarning
from samewise.kernels import logdet_loop as logdet
from samewise.learners.batch.itml import ITML
from samewise.learners.online.lego import LEGO
from samewise.supervision.purposes import sampled_pairs
from tests.reference import peers as reference
from tests.reference.pairs import Run
from tests.reference.pairs import average as mean_of


@parametrize_with_checks([ITML(), LEGO()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def differences(pairs):
    return pairs.X[pairs.left] - pairs.X[pairs.right], pairs.y.astype(float)


@pytest.fixture(scope="module")
def few(pairs):
    return pairs[:60]


# ITML


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("prior", ["identity", "array"])
def test_itml_goes_through_the_cycles_of_the_loop(few, gamma, prior):
    V, y = differences(few)
    A0 = np.eye(5) if prior == "identity" else np.cov(few.X.T) + np.eye(5)
    given = prior if prior == "identity" else Mahalanobis(A0)
    seen = []
    ITML(
        gamma,
        prior=given,
        bounds=(1.0, 6.0),
        tol=0.0,
        callback=lambda info: seen.append(info["components"]) or info["iteration"] == 4,
    ).fit(few)
    for L, (A, _, _) in zip(seen, reference.itml(V, y, gamma, 1.0, 6.0, A0, 4), strict=True):
        np.testing.assert_allclose(L.T @ L, A, rtol=1e-9, atol=1e-10)


def test_itml_satisfies_its_kkt_conditions(few, seed):
    pairs = few[np.random.default_rng(seed).permutation(60)[:40]]
    V, y = differences(pairs)
    gamma, A0 = 0.5, np.eye(5)
    itml = ITML(gamma, tol=1e-11, max_iter=20000).fit(pairs)
    assert itml.converged_
    u, low = itml.bounds_
    A, lam = itml.metric_.matrix, itml.duals_
    xi0 = np.where(y > 0, u, low)
    xi = 1 / (1 / xi0 - y * lam / gamma)
    D = np.einsum("ij,jk,ik->i", V, A, V)
    # Stationary in A, feasible, multipliers of the right sign, and complementary.
    precision = np.linalg.inv(A0) + (V.T * (y * lam)) @ V
    np.testing.assert_allclose(np.linalg.inv(A), precision, rtol=1e-8, atol=1e-9)
    assert np.all(lam >= 0)
    assert np.all(xi > 0)
    assert np.all(y * (D - xi) <= 1e-4 * xi)
    np.testing.assert_allclose((lam * (D - xi))[lam > 0], 0, atol=1e-3)
    assert np.any(lam > 0)
    assert itml.loss_ == pytest.approx(reference.itml_loss(A, V, y, gamma, u, low, A0), rel=1e-9)


def test_no_other_metric_has_a_loss_below_the_bound(few, seed):
    V, y = differences(few)
    itml = ITML(1.0, tol=1e-3, max_iter=5000).fit(few)
    assert 0 <= itml.gap_ <= 1e-3 * itml.loss_
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-2, 0.1):
        B = itml.components_ @ (np.eye(5) + size * rng.normal(size=(5, 5)))
        other = reference.itml_loss(B.T @ B, V, y, 1.0, *itml.bounds_, np.eye(5))
        assert other >= itml.loss_ - itml.gap_
    bounds = itml.history_["loss"] - itml.history_["gap"]
    assert np.all(np.diff(bounds) >= -1e-9 * itml.loss_)


@pytest.mark.parametrize("y", [1.0, -1.0])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 1e12])
def test_one_projection_meets_its_constraint_with_equality(y, gamma, seed):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(1, 4))
    B = rng.normal(size=(4, 4))
    A = B @ B.T + np.eye(4)
    p = float(v[0] @ A @ v[0])
    bound = np.array([0.4 * p if y > 0 else 2.5 * p])
    lam = np.zeros(1)
    before, xi0 = A.copy(), bound.copy()
    logdet.cycle(A, v, np.array([y]), np.array([gamma]), lam, bound)
    assert v[0] @ A @ v[0] == pytest.approx(bound[0], rel=1e-10)
    if gamma == 1e12:
        assert bound[0] == pytest.approx(xi0[0], rel=1e-9)
    np.testing.assert_allclose(
        np.linalg.inv(A), np.linalg.inv(before) + y * lam * v.T @ v, rtol=1e-7, atol=1e-9
    )
    # A pair within its bound moves nothing.
    still = A.copy()
    logdet.cycle(A, v, np.array([y]), np.array([gamma]), np.zeros(1), bound * (2 if y > 0 else 0.5))
    np.testing.assert_array_equal(A, still)


def test_a_covariance_prior_is_its_inverse_and_scale_does_not_matter(labeled):
    X, y = labeled
    pairs = Pairs.from_labels(X, y, 100, random_state=0)
    itml = ITML(prior="covariance").fit(pairs)
    scaled = Pairs(X * np.array([1.0, 100.0, 1e-3, 7.0, 1.0]), pairs.left, pairs.right, pairs.y)
    again = ITML(prior="covariance").fit(scaled)
    np.testing.assert_allclose(
        again.metric_.pairs(scaled.X[:20], scaled.X[20:40]),
        itml.metric_.pairs(X[:20], X[20:40]),
        rtol=1e-6,
    )
    loose = ITML(prior="covariance", bounds=(1e9, 1e9), gamma=1e-9).fit(pairs[pairs.y > 0])
    np.testing.assert_allclose(loose.metric_.matrix, np.linalg.inv(np.cov(X.T)), rtol=1e-8)
    assert loose.loss_ == pytest.approx(0, abs=1e-9)


def test_labels_pairs_arrays_and_sparse_rows_are_one(labeled):
    X, y = labeled
    how = {
        "purpose": "neighbors",
        "n_neighbors": 10,
        "merge_duplicates": False,
        "n_pairs": 10_000,
        "random_state": 3,
    }
    drawn, held_out = sampled_pairs(X, y, **how)
    wanted = ITML().fit(drawn).metric_.matrix
    as_array = np.stack([X[drawn.left], X[drawn.right]], axis=1)
    bounds = ITML().fit(drawn).bounds_
    for learner in (
        ITML(random_state=3).fit(X, y),
        ITML(random_state=3).fit(sp.csr_array(X), y),
        ITML(bounds=bounds).fit(as_array, drawn.y),
    ):
        np.testing.assert_allclose(learner.metric_.matrix, wanted, rtol=1e-8, atol=1e-10)
    learner = ITML(random_state=3).fit(X, y)
    assert learner.threshold_ == learner._calibrated(held_out)
    paper = ITML(purpose="verification", random_state=3).fit(X, y)
    assert len(paper.duals_) < len(learner.duals_) and len(paper.duals_) <= 180
    single = ITML(random_state=3).fit(X.astype(np.float32), y)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert KNNClassifier(learner).fit(X, y).score(X, y) > 0.5


def test_weights_multiply_gamma_and_identical_rows_are_passed_over(few):
    weights = np.where(np.arange(60) < 40, 2.0, 0.0)
    same = np.zeros(5, dtype=int)
    more = Pairs(
        few.X,
        np.r_[few.left, same],
        np.r_[few.right, same],
        np.r_[few.y, [1, -1, 1, -1, 1]],
        np.r_[weights, np.ones(5)],
    )
    given = {"bounds": (1.0, 6.0), "tol": 1e-8, "max_iter": 20000}
    weighted, plain = ITML(0.5, **given).fit(more), ITML(1.0, **given).fit(few[:40])
    np.testing.assert_allclose(weighted.metric_.matrix, plain.metric_.matrix, rtol=1e-6)
    np.testing.assert_array_equal(weighted.duals_[40:], 0)


def test_pairs_of_weight_zero_have_no_say_in_the_bounds(few):
    X = np.vstack([few.X, np.full((1, few.X.shape[1]), 1e3)])
    weights = np.r_[np.ones(60), 0.0]
    more = Pairs(X, np.r_[few.left, 60], np.r_[few.right, 0], np.r_[few.y, -1], weights)
    weighted, plain = (ITML(max_iter=5, tol=1.0).fit(pairs) for pairs in (more, few))
    assert weighted.bounds_ == plain.bounds_
    assert (
        weighted.bounds_[1]
        < ITML(max_iter=5, tol=1.0).fit(Pairs(X, more.left, more.right, more.y)).bounds_[1]
    )


def test_itml_goes_on_where_it_ended(few):
    itml = ITML(1.0, warm_start=True, tol=1e-9, max_iter=20000).fit(few)
    n_iter, A = itml.n_iter_, itml.metric_.matrix
    itml.fit(few)
    assert itml.n_iter_ <= 1 < n_iter
    np.testing.assert_allclose(itml.metric_.matrix, A, rtol=1e-4)
    # What does not fit is not taken over.
    again = itml.fit(few[:30]).metric_.matrix
    fresh = ITML(1.0, tol=1e-9, max_iter=20000).fit(few[:30])
    np.testing.assert_array_equal(again, fresh.metric_.matrix)
    itml.duals_ = np.full(30, 1e9)
    np.testing.assert_array_equal(itml.fit(few[:30]).metric_.matrix, again)


def test_ctrl_c_keeps_what_was_learned(few):
    def interrupt(info):
        if info["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    itml = ITML(tol=0.0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="ITML was interrupted"):
        itml.fit(few)
    assert itml.n_iter_ == 3
    assert not itml.converged_
    assert len(itml.history_["loss"]) == 3


def test_itml_says_how_it_goes_and_that_it_did_not_end(few, capsys):
    with pytest.warns(ConvergenceWarning, match="ITML has not converged to tol=1e-12 in 2") as said:
        ITML(tol=1e-12, max_iter=2, verbose=True).fit(few)
    assert said[0].filename == __file__
    assert re.search(r"ITML: iteration 2, loss \S+, gap \S+, \d+ s", capsys.readouterr().err)


def test_a_singular_covariance_is_regularized_with_a_warning(labeled):
    X, y = labeled
    rng = np.random.default_rng(0)
    for awkward in (np.column_stack([X, np.ones(60)]), rng.normal(size=(60, 100))):
        with pytest.warns(SamewiseWarning, match=r"singular.*remove such features") as said:
            itml = ITML(prior="covariance", random_state=0).fit(awkward, y)
        assert said[0].filename == __file__
        assert np.isfinite(itml.metric_.matrix).all()
        # With the identity there is nothing to warn of.
        assert np.isfinite(ITML(random_state=0).fit(awkward, y).metric_.matrix).all()


def test_similar_pairs_alone_are_enough_for_itml(few):
    for sign in (1, -1):
        part = few[few.y == sign]
        itml = ITML().fit(part)
        before, after = (
            np.mean(form.pairs(part.X[part.left], part.X[part.right]))
            for form in (Mahalanobis.identity(5), itml.metric_)
        )
        assert sign * (before - after) > 0


@pytest.mark.parametrize(
    "given, said",
    [
        ({"prior": np.eye(3)}, "prior has 3 features, but the data have 5"),
        ({"prior": np.zeros((5, 5))}, "positive definite.*add a small multiple of the identity"),
        ({"prior": -np.eye(5)}, "'prior' parameter is not a metric"),
        ({"bounds": (3.0, 1.0)}, "0 < u ≤ l"),
        ({"bounds": (0.0, 1.0)}, "0 < u ≤ l"),
        ({"bounds": [1.0]}, "two finite numbers"),
        ({"gamma": 0.0}, "'gamma' parameter of ITML"),
        ({"prior": "pca"}, "'prior' parameter of ITML"),
    ],
)
def test_bad_parameters_are_refused_and_change_nothing(few, given, said):
    itml = ITML().fit(few)
    before = vars(itml.set_params(**given)).copy()
    with pytest.raises(ValueError, match=said):
        itml.fit(few)
    assert vars(itml) == before


def test_bad_input_is_refused(labeled):
    X, _ = labeled
    for learner in (ITML(), LEGO()):
        with pytest.raises(InvalidInputError, match="at least two classes"):
            learner.fit(X, np.zeros(60))
        with pytest.raises(InvalidInputError, match="learns from pairs"):
            learner.fit(Triplets(X, [0], [1], [2]))
        with pytest.raises(InvalidInputError, match="requires y"):
            learner.fit(X)
        with pytest.raises(DegenerateInputError, match="need rows that differ"):
            learner.fit(Pairs(np.ones((3, 2)), [0, 1], [1, 2], [1, -1]))
        with pytest.raises(NotFittedError):
            learner.transform(X)
    with pytest.raises(DegenerateInputError, match="pairs of different rows"):
        ITML().fit(Pairs(X, [0, 1], [0, 1], [1, -1]))


# LEGO


@pytest.mark.parametrize("eta", [1e-3, 0.1, 10.0])
def test_lego_is_the_loop_round_by_round(pairs, eta):
    V, y = differences(pairs)
    learner = LEGO(eta, bounds=(1.0, 6.0), average="last")
    updates, loss, mistakes = 0, 0.0, 0
    A = np.eye(5)
    for i, wanted in enumerate(reference.lego(V, y, eta, 1.0, 6.0, np.eye(5))):
        distance = V[i] @ A @ V[i]
        updates += not np.array_equal(wanted, A)
        loss += max(0.0, y[i] * (distance - (1.0 if y[i] > 0 else 6.0)))
        mistakes += (1 if distance <= 3.5 else -1) != y[i]
        A = wanted
        learner.partial_fit(pairs[i : i + 1])
        if i % 20 == 0:
            np.testing.assert_allclose(learner.metric_.matrix, A, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(learner.metric_.matrix, A, rtol=1e-8, atol=1e-12)
    assert (learner.n_updates_, learner.n_mistakes_) == (updates, mistakes)
    assert learner.loss_ == pytest.approx(loss, rel=1e-8)
    assert learner.threshold_ == 3.5
    assert learner.bounds_ == (1.0, 6.0)
    assert 0 < updates < len(pairs)
    whole = LEGO(eta, bounds=(1.0, 6.0), average="last").fit(pairs)
    np.testing.assert_allclose(whole.metric_.matrix, A, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "average", ["uniform", "survival", ("suffix", 5), ("cutoff", 2), ("decay", 30)]
)
def test_legos_average_is_that_of_all_its_hypotheses(pairs, average, monkeypatch):
    run, A = Run(np.eye(5), 3.5), np.eye(5)
    lived = 0
    for wanted in reference.lego(*differences(pairs), 0.1, 1.0, 6.0, A):
        lived += 1
        if wanted is not A:
            run.hypotheses.append((A, 3.5))
            run.used.append(lived)
            A, lived = wanted, 0
    run.hypotheses.append((A, 3.5))
    run.used.append(lived)
    kind = (average,) if isinstance(average, str) else average
    M, b = mean_of(run, *kind)
    assert np.abs(M - A).max() > 0.01
    for block in (256, 7):
        monkeypatch.setattr(logdet_mover, "BLOCK", block)
        for parts in ([pairs], [pairs[:50], pairs[50:51], pairs[51:]]):
            learner = LEGO(0.1, bounds=(1.0, 6.0), average=average).partial_fit(iter(parts))
            np.testing.assert_allclose(learner.metric_.matrix, M, rtol=1e-8, atol=1e-11)
            assert learner.threshold_ == pytest.approx(b)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 1e9])
def test_a_step_of_lego_is_itmls_first_projection(pairs, gamma):
    """Both move A⁻¹ by a multiple of vvᵀ. From λ = 0, ITML with slack γ ends at the distance
    q = p / (1 + γ/(γ+1) (p/t − 1)); LEGO ends there for η = (1/q − 1/p)/(q − t), and γ → ∞ is
    η → ∞."""
    for v, y in zip(*differences(pairs[:20]), strict=True):
        p, t = v @ v, 1.0 if y > 0 else 6.0
        if y * (p - t) <= 0:
            continue
        q = p / (1 + gamma / (gamma + 1) * (p / t - 1))
        eta = (1 / q - 1 / p) / (q - t)
        one = Pairs(np.array([v, 0 * v]), [0], [1], [y])
        lego = LEGO(eta, bounds=(1.0, 6.0), average="last").fit(one)
        itml, _, _ = next(reference.itml(v[None], np.array([y]), gamma, 1.0, 6.0, np.eye(5), 1))
        np.testing.assert_allclose(lego.metric_.matrix, itml, rtol=1e-6, atol=1e-9)


def test_lego_takes_the_nearest_step(pairs, seed):
    """Of D(A′, A) + η/2 (vᵀA′v − t)², its A′ is the minimum."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=5)
    t = 0.3 * (v @ v)
    one = Pairs(np.array([v, 0 * v]), [0], [1], [1])
    learner = LEGO(2.0, bounds=(t, 10 * t), average="last").fit(one)

    def cost(A):
        return reference.logdet(A, np.eye(5)) + (v @ A @ v - t) ** 2

    A = learner.metric_.matrix
    for _ in range(20):
        B = np.linalg.cholesky(A).T @ (np.eye(5) + 0.01 * rng.normal(size=(5, 5)))
        assert cost(B.T @ B) > cost(A)


def test_lego_is_saved_and_goes_on(pairs, tmp_path):
    for learner in (LEGO(), LEGO(0.1, bounds=(1.0, 6.0), init=2 * np.eye(5), random_state=0)):
        learner.partial_fit(pairs[:100]).save(tmp_path / "learner")
        again = samewise.load(tmp_path / "learner")
        assert again.metric_ == learner.metric_
        assert again.bounds_ == learner.bounds_
        again.partial_fit(pairs[100:])
        learner.partial_fit(pairs[100:])
        assert again.metric_ == learner.metric_
        assert again.loss_ == learner.loss_


def test_lego_in_portions_sparse_weighted_and_single(sparse_pairs):
    dense, sparse = sparse_pairs
    given = {"eta": 0.1, "bounds": (0.5, 4.0), "average": "last"}
    whole = LEGO(**given).fit(dense)
    for parts in ([sparse], [dense[:7], sparse[7:150], dense[150:]]):
        learner = LEGO(**given).partial_fit(iter(parts))
        np.testing.assert_allclose(learner.metric_.matrix, whole.metric_.matrix, rtol=1e-9)
    weights = np.random.default_rng(0).integers(0, 2, len(dense)) * 3.0
    some = Pairs(dense.X, dense.left, dense.right, dense.y, weights)
    kept = dense[weights > 0]
    np.testing.assert_allclose(
        LEGO(0.1, bounds=(0.5, 4.0), average="last").fit(some).metric_.matrix,
        LEGO(0.3, bounds=(0.5, 4.0), average="last").fit(kept).metric_.matrix,
        rtol=1e-9,
    )
    single = LEGO(**given).fit(Pairs(dense.X.astype(np.float32), dense.left, dense.right, dense.y))
    assert single.metric_.matrix.dtype == np.float32
    np.testing.assert_allclose(single.metric_.matrix, whole.metric_.matrix, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("eta", [1e-12, 1e12])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_lego_stays_a_metric_at_any_scale(pairs, eta, scale):
    rows = Pairs(scale * pairs.X, pairs.left, pairs.right, pairs.y)
    for average in ("last", "uniform"):
        A = LEGO(eta / scale**4, average=average).fit(rows).metric_.matrix
        assert np.isfinite(A).all()
        assert np.linalg.eigvalsh(A)[0] > 0


@pytest.mark.parametrize(
    "given, said",
    [
        ({"init": np.zeros((5, 5))}, "'init' parameter must be positive definite"),
        ({"init": "zero"}, "'init' parameter of LEGO"),
        ({"bounds": (2.0, 2.0)}, "lower bound above the upper one"),
        ({"eta": 0.0}, "'eta' parameter of LEGO"),
    ],
)
def test_bad_parameters_of_lego_are_refused(pairs, given, said):
    learner = LEGO(**given)
    with pytest.raises(ValueError, match=said):
        learner.fit(pairs)
    assert not hasattr(learner, "n_features_in_")
