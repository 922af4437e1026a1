"""NCA: its loss and gradient against the loops, what it reaches, and odd input."""

from __future__ import annotations

import os
import pickle
import re
import signal
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import samewise
from samewise import KNNClassifier, Pairs
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.kernels.soft_loops import LEAST, soften
from samewise.learners import dense_rows
from samewise.learners.batch import soft_neighbors
from samewise.learners.batch.batch_learner import held_out
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.mcml import MCML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.nca import NCA, PENALTY, PenalizedErrors, descend, expected_errors
from samewise.learners.batch.nca_starts import (
    BASES,
    DiscriminantScales,
    GivenScales,
    compared_bases,
)
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.soft_neighbors import Coordinates, SoftNeighbors, spread_over
from samewise.solvers import workers as team_of_workers
from samewise.solvers.workers import Workers, workers
from tests.reference import peers as reference


@parametrize_with_checks([NCA(), NCA(n_components=1, init="pca")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def of(points, X, y, n_classes, team):
    classes = Classes(y, n_classes)
    return points(X[classes.order], classes, team)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("block", [1, 2**20])
def test_loss_and_gradient_equal_the_plain_loops(labeled, dtype, rows, block, monkeypatch, seed):
    monkeypatch.setattr(soft_neighbors, "BLOCK_BYTES", block)
    monkeypatch.setattr(soft_neighbors, "LEAST_ROWS", 7)
    monkeypatch.setattr(team_of_workers, "SHARED", 1)
    X, y = labeled
    # A class of one point, which is always wrong.
    X, y = X[:40], np.where(np.arange(40) == 11, 3, y[:40])
    L = 0.5 * np.random.default_rng(seed).normal(size=(rows, 5))
    with workers() as team:
        points = of(SoftNeighbors, X.astype(dtype), y, 4, Workers(3, team._pool))
        loss, gradient = points.sum(L, expected_errors)
        again, by_M = points.scatter(L, expected_errors)
    wanted = reference.nca(L, X, y)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    assert loss == again == pytest.approx(wanted[0], rel=rtol)
    np.testing.assert_allclose(gradient, wanted[1], atol=rtol * abs(wanted[1]).max())
    np.testing.assert_allclose(2 * L @ by_M, gradient, atol=10 * rtol * abs(wanted[1]).max())


def test_gradient_by_differences(labeled, seed):
    X, y = labeled
    L, V = 0.5 * np.random.default_rng(seed).normal(size=(2, 3, 5))
    points = of(SoftNeighbors, X, y, 3, Workers(1, None))
    ahead, behind = (points.sum(L + t * V, expected_errors)[0] for t in (1e-6, -1e-6))
    slope = np.vdot(points.sum(L, expected_errors)[1], V)
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-6)


def test_gradient_of_the_penalty_by_differences(labeled, seed):
    X, y = labeled
    L, V = 0.5 * np.random.default_rng(seed).normal(size=(2, 3, 5))
    objective = PenalizedErrors(of(SoftNeighbors, X, y, 3, Workers(1, None)), 3.0)
    ahead, behind = (objective.value_and_gradient(L + t * V).loss for t in (1e-6, -1e-6))
    slope = np.vdot(objective.value_and_gradient(L).gradient, V)
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(("rows", "stays"), [(8, True), (2, False)])
def test_the_penalty_stays_where_the_map_could_fit_the_points_by_heart(
    rows, stays, seed, monkeypatch
):
    monkeypatch.setattr("samewise.learners.batch.nca.grown", lambda points, L, *_: L)
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(40, 8)), np.arange(40) % 2
    points, start = of(SoftNeighbors, X, y, 2, Workers(1, None)), 0.5 * np.eye(8)[:rows]
    L, ended, _ = descend(points, start, PENALTY, 1e-8, 2000, lambda *_: False)
    assert ended
    weight = PENALTY * points.sum(start, expected_errors)[0] / np.vdot(start, start)
    pull, gradient = 2 * weight * L, points.sum(L, expected_errors)[1]
    # At the end nothing is left: of the sum with the penalty, or of the loss alone.
    rest = gradient + pull if stays else gradient
    assert np.linalg.norm(rest) < 0.02 * np.linalg.norm(pull)


def test_far_points_do_not_overflow(labeled):
    X, y = labeled
    for scale in (1e-30, 1e5):
        loss, gradient = of(SoftNeighbors, X, y, 3, Workers(1, None)).sum(
            scale * np.eye(5), expected_errors
        )
        assert 0 <= loss <= 60
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("basis", [Coordinates, *BASES])
def test_coordinates_are_a_change_of_basis(labeled, seed, basis):
    X, y = labeled
    L = np.random.default_rng(seed).normal(size=(2, 5))
    classes = Classes(y, 3)
    where = basis(X, classes)
    np.testing.assert_allclose(where.components(where.coordinates(L)), L)
    Z, E = where.rows @ where.coordinates(L).T, X[classes.order] @ L.T
    np.testing.assert_allclose(Z - Z[0], E - E[0], atol=1e-10)


def test_starts_are_compared_on_points_they_were_not_fitted_to(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(120) % 3
    # Weak noise beside what tells classes apart, with as many features as a half has points: unit
    # scatter looks perfect on the points it is fitted to, and is no good for others.
    X = 0.1 * rng.normal(size=(120, 60))
    X[:, :3] = rng.normal(size=(120, 3)) + 2 * np.eye(3)[y]
    assert compared_bases(X, y, 60, expected_errors)[0] is GivenScales
    # Classes along an axis that varies little, beside one that varies much within classes, both
    # turned: no scaling of features tells them apart.
    X = np.column_stack([10 * rng.normal(size=120), y + 0.1 * rng.normal(size=120)])
    X = X @ np.array([[1.0, 1.0], [1.0, -1.0]])
    assert compared_bases(X, y, 2, expected_errors)[0] is DiscriminantScales
    # A feature in the wrong unit, which says nothing.
    X = np.column_stack([1e3 * rng.normal(size=120), y + 0.1 * rng.normal(size=120)])
    assert compared_bases(X, y, 2, expected_errors)[0] is not GivenScales


def test_exponentials_are_exact_to_rounding(seed):
    x = -np.random.default_rng(seed).uniform(0, 280, 1000)
    E, sums = np.vstack([x, x]), np.empty((2, 2))
    starts, ends = np.zeros(1000, dtype=int), np.full(1000, 300)
    soften(E, 5, starts, ends, np.array([0.0, x.max()]), LEAST[E.dtype], sums)
    for row, own, most in zip(E, (5, 6), (0.0, x.max()), strict=True):
        wanted = np.exp(np.maximum(x - most, LEAST[E.dtype]))
        wanted[own] = 0
        np.testing.assert_allclose(row, wanted, rtol=1e-15)
    np.testing.assert_allclose(sums, [E[:, :300].sum(axis=1), E[:, 300:].sum(axis=1)], rtol=1e-13)


@pytest.mark.parametrize("init", ["auto", "identity", "pca"])
def test_the_loss_falls_from_every_start(labeled, init):
    X, y = labeled
    nca = NCA(3, init=init).fit(X, y)
    losses = nca.history_["loss"]
    # With a penalty the loss itself may rise.
    assert init == "auto" or np.all(np.diff(losses) <= 0)
    assert nca.loss_ == losses[-1] == losses.min() < losses[0]
    assert nca.loss_ == pytest.approx(reference.nca(nca.components_, X, y)[0], abs=1e-7)
    assert nca.converged_
    assert nca.components_.shape == (3, 5)
    assert KNNClassifier(nca).fit(X, y).score(X, y) > 0.7


def test_runs_begin_where_probabilities_spread_over_so_many_neighbors(labeled):
    X, _ = labeled
    D = ((X[::7, None] - X) ** 2).sum(axis=2)
    D[np.arange(len(D)), np.arange(60)[::7]] = np.inf
    # A twin at no distance is passed over.
    D = np.column_stack([D, np.zeros(len(D))])
    for wanted in (2.0, 10.0):
        P = np.exp(-spread_over(D, wanted) * D[:, :60])
        P /= P.sum(axis=1, keepdims=True)
        perplexities = [np.exp(-sum(p * np.log(p) for p in row if p > 0)) for row in P]
        assert np.median(perplexities) == pytest.approx(wanted, rel=0.02)
    assert spread_over(np.array([[0.0, np.inf]]), 2.0) == 1.0


def test_of_several_starts_the_best_is_kept(labeled):
    X, y = labeled
    seen = []
    nca = NCA(2, n_init=3, callback=lambda info: seen.append(info))
    nca.fit(X, y)
    ends = [i for i, info in enumerate([*seen, {"iteration": 1}]) if info["iteration"] == 1][1:]
    losses = [seen[end - 1]["loss"] for end in ends]
    assert len(losses) == 3
    assert nca.loss_ == min(losses)
    assert nca.n_iter_ == seen[ends[int(np.argmin(losses))] - 1]["iteration"]
    assert nca.n_iter_ == len(nca.history_["loss"])
    # Whoever stops the first run wants no second one.
    once = NCA(2, callback=lambda info: info["iteration"] == 4).fit(X, y)
    assert once.n_iter_ == 4
    assert once.loss_ == seen[3]["loss"]
    with pytest.raises(ValueError, match="'n_init' parameter of NCA"):
        NCA(n_init=4).fit(X, y)


def test_memory_does_not_grow_with_the_square():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.integers(0, 3, 2000)
    nca = NCA(2, init="pca", callback=lambda info: True).fit(X[:100], y[:100])
    tracemalloc.start()
    try:
        nca.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All probabilities would take 2000² · 8 bytes.
    assert peak < 2000**2 * 8 / 5


def test_float32_and_sparse_give_the_same(labeled):
    X, y = labeled
    exact = NCA(2, max_iter=10, tol=0, callback=lambda info: info["iteration"] == 10)
    wanted = exact.fit(X, y).loss_
    single = exact.fit(X.astype(np.float32), y)
    assert single.components_.dtype == np.float32
    assert single.loss_ == pytest.approx(wanted, rel=0.05)
    assert exact.fit(sp.csr_array(X), y).loss_ == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("learner", [ITML(random_state=0), MMC(random_state=0), NCA(2), MCML()])
def test_what_was_learned_is_saved_and_loaded(learner, labeled, tmp_path):
    learner.fit(*labeled).metric_.save(tmp_path / "form")
    assert samewise.load(tmp_path / "form") == learner.metric_
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.transform(labeled[0]), learner.transform(labeled[0]))
    np.testing.assert_allclose(learner.metric_.embed(labeled[0]), learner.transform(labeled[0]))


def test_it_goes_on_where_it_ended(labeled):
    X, y = labeled
    nca = NCA(2, warm_start=True).fit(X, y)
    n_iter, loss = nca.n_iter_, nca.loss_
    assert nca.fit(X, y).n_iter_ < n_iter
    assert nca.loss_ <= loss + 1e-9
    given = NCA(2, init=nca.components_, tol=1).fit(X, y)
    assert given.loss_ <= nca.loss_ + 1e-9


def test_early_stopping_keeps_the_best_map(labeled):
    X, y = labeled
    seen = []
    nca = NCA(
        n_init=1,
        validation_fraction=0.3,
        tol=0,
        random_state=0,
        callback=lambda info: seen.append(info),
    ).fit(X, y)
    errors = nca.history_["validation_error"]
    looks = ~np.isnan(errors)
    assert np.flatnonzero(looks).tolist() == list(range(4, nca.n_iter_, 5))
    best = int(np.nanargmin(errors))
    assert best == nca.n_iter_ - 16  # three looks before the last
    np.testing.assert_array_equal(nca.components_, seen[best]["components"])
    kept, labels, _ = held_out(X, y, 0.3, np.random.RandomState(0))
    assert nca.loss_ == pytest.approx(reference.nca(nca.components_, kept, labels)[0], rel=1e-9)
    assert nca.loss_ == pytest.approx(nca.history_["loss"][best], rel=1e-9)
    again = NCA(n_init=1, validation_fraction=0.3, tol=0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(nca.components_, again.components_)
    several = NCA(validation_fraction=0.3, tol=0, random_state=0).fit(X, y)
    assert np.nanmin(several.history_["validation_error"]) <= np.nanmin(errors)


@pytest.mark.parametrize("random_state, better", [(16, 0), (20, 1)])
def test_of_several_runs_the_held_out_error_decides_and_not_the_loss(labeled, random_state, better):
    seen = []
    nca = NCA(
        2,
        n_init=2,
        validation_fraction=0.3,
        tol=0,
        random_state=random_state,
        callback=lambda info: seen.append(info),
    ).fit(*labeled)
    second = [info["iteration"] for info in seen].index(1, 1)
    runs = [seen[:second], seen[second:]]
    best = [min(run[4::5], key=lambda info: info["validation_error"]) for run in runs]
    errors, losses = ([info[name] for info in best] for name in ("validation_error", "loss"))
    assert np.argmin(errors) == better != np.argmin(losses)
    np.testing.assert_array_equal(nca.components_, best[better]["components"])
    assert nca.loss_ == pytest.approx(losses[better], rel=1e-9)


def test_ctrl_c_keeps_what_was_learned(labeled):
    def interrupt(info):
        if info["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    nca = NCA(tol=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="NCA was interrupted"):
        nca.fit(*labeled)
    assert nca.n_iter_ == 3
    assert nca.loss_ == pytest.approx(reference.nca(nca.components_, *labeled)[0], rel=1e-9)


def test_it_says_how_it_goes_and_that_it_did_not_end(labeled, capsys):
    with pytest.warns(ConvergenceWarning, match="NCA has not converged to tol=0 in 2 iter") as said:
        NCA(tol=0, max_iter=2, verbose=True).fit(*labeled)
    assert said[0].filename == __file__
    assert re.search(r"NCA: iteration 2, loss \S+, \d+ s", capsys.readouterr().err)


@pytest.mark.parametrize("n, d", [(20, 60), (60, 3)])
def test_awkward_data(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d)
    X[:, 1] = 7.0
    y = np.arange(n) % 3
    X[:, 0] += 3 * y * X[:, 0].std()
    nca = NCA(2).fit(X, y)
    assert np.isfinite(nca.components_).all()
    assert nca.loss_ < 2 / 3 * n
    # Rows that are all the same: nothing to learn, nothing to break.
    same = NCA(1).fit(np.ones((6, 2)), np.arange(6) % 2)
    assert same.loss_ == pytest.approx(6 * 3 / 5)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"n_components": 6}, "n_components must be at most the number of features, 5"),
        ({"init": np.eye(3)}, r"init must be a finite array of shape \(3, 5\)"),
        ({"validation_fraction": 0.01}, "holds out no point"),
        ({"init": "lda"}, "'init' parameter of NCA"),
    ],
)
def test_bad_parameters_are_refused_and_change_nothing(labeled, given, said):
    nca = NCA(max_iter=3, tol=1).fit(*labeled)
    before = vars(nca.set_params(**given)).copy()
    with pytest.raises(ValueError, match=said):
        nca.fit(*labeled)
    assert vars(nca) == before


def test_bad_input_is_refused(labeled, pairs, monkeypatch):
    X, y = labeled
    with pytest.raises(InvalidInputError, match="at least two classes"):
        NCA().fit(X, np.zeros(60))
    with pytest.raises(InvalidInputError, match="at least two examples"):
        NCA().fit(X[:15], np.arange(15))
    with pytest.raises(InvalidInputError, match=r"learns from class labels.*ITML"):
        NCA().fit(pairs, None)
    assert isinstance(pairs, Pairs)
    monkeypatch.setattr(dense_rows, "MOST_SPARSE", 10)
    with pytest.raises(TooLargeError, match="Reduce the features first"):
        NCA().fit(sp.csr_array(X), y)
