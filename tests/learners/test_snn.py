"""SNN: against the plain network, differences, and odd input."""

from __future__ import annotations

import os
import re
import signal
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import samewise
from samewise import KNNClassifier, Pairs, Triplets
from samewise.exceptions import InvalidInputError
from samewise.forms import NeuralSimilarity
from samewise.learners.batch import snn as module
from samewise.learners.batch.snn import SNN, FeatureScale, NetworkLoss, parts
from samewise.supervision.purposes import sampled_pairs
from tests.reference import snn as reference


@parametrize_with_checks([SNN(2, max_iter=1000, tol=1e-3)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def network(seed, n_hidden=3, d=5):
    return np.random.default_rng(seed).normal(size=2 * n_hidden * d + 2 * n_hidden + 1)


def scaled(pairs):
    Z = (pairs.X - pairs.X.mean(axis=0)) / pairs.X.std(axis=0)
    return list(zip(Z[pairs.left], Z[pairs.right], strict=True)), (pairs.y > 0).astype(float)


@pytest.fixture(scope="module")
def few(pairs):
    weight = np.random.default_rng(3).uniform(0.1, 2, 40)
    return Pairs(pairs.X, pairs.left[:40], pairs.right[:40], pairs.y[:40], weight)


# The network


def test_the_form_is_the_network(seed, labeled):
    X = labeled[0]
    U, V, c, w, b = parts(network(seed), 3)
    form = NeuralSimilarity(U, V, c, w, b[0])
    wanted = [[reference.similarity(x, z, U, V, c, w, b[0]) for z in X[:9]] for x in X[9:16]]
    np.testing.assert_allclose(form.cross(X[9:16], X[:9]), wanted, rtol=1e-10)
    np.testing.assert_allclose(form.pairs(X[9:16], X[:7]), np.diag(wanted), rtol=1e-10)
    assert form.cross(X.astype(np.float32)).dtype == np.float32


def test_the_order_of_two_rows_does_not_matter_at_all(seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, 300, 7)) * 3
    U, V, c, w, b = parts(network(seed, 6, 7), 6)
    form = NeuralSimilarity(U, V, c, w, b[0])
    np.testing.assert_array_equal(form.pairs(X, Y), form.pairs(Y, X))
    S = form.cross(X)
    np.testing.assert_allclose(S, S.T, rtol=1e-12)
    assert 0 < S.min() and S.max() < 1


def test_many_items_are_compared_in_little_memory():
    U, V, c, w, b = parts(network(0, 40, 3), 40)
    form = NeuralSimilarity(U, V, c, w, b[0])
    X = np.random.default_rng(0).normal(size=(600, 3))
    tracemalloc.start()
    S = form.cross(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All hidden activations at once would be 40 times the result.
    assert peak < 4 * S.nbytes


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"right": np.ones((2, 3))}, "must have the same shape"),
        ({"left": np.ones((0, 2)), "right": np.ones((0, 2))}, "with at least one row"),
        ({"bias": np.ones(2)}, r"The bias of NeuralSimilarity must have the shape \(1,\)"),
        ({"output": [np.nan]}, "The output of NeuralSimilarity contains NaN"),
        ({"intercept": np.inf}, "intercept of NeuralSimilarity must be a finite number"),
        ({"intercept": "b"}, "intercept of NeuralSimilarity must be a finite number"),
    ],
)
def test_no_other_arrays_make_a_network(given, text):
    made = {"left": [[1.0, 2.0]], "right": [[0.0, 1.0]], "bias": [0.0], "output": [1.0]}
    with pytest.raises(InvalidInputError, match=text):
        NeuralSimilarity(**{**made, **given})


# The cost


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_cost_and_gradient_are_those_of_the_formulas(few, alpha, kind, seed, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 700)
    given = Pairs(kind(few.X), few.left, few.right, few.y, few.sample_weight)
    theta = network(seed)
    found = NetworkLoss(given, FeatureScale.of(given.X), 3, alpha).value_and_gradient(theta)
    loss, gradient = found.loss, found.gradient
    U, V, c, w, b = parts(theta, 3)
    told = (*scaled(few), few.sample_weight, alpha, U, V, c, w, b[0])
    assert loss == pytest.approx(reference.loss(*told), rel=1e-12)
    wanted = np.concatenate([np.ravel(part) for part in reference.gradient(*told)])
    np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-12)


def test_gradient_by_differences(few, seed):
    cost = NetworkLoss(few, FeatureScale.of(few.X), 3, 0.01)
    theta, v = network(seed), network(seed + 100)
    ahead, behind = (cost.value_and_gradient(theta + t * v).loss for t in (1e-6, -1e-6))
    slope = cost.value_and_gradient(theta).gradient @ v
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_the_form_is_for_rows_as_they_are(few, seed):
    scale, theta = FeatureScale.of(few.X), network(seed)
    U, V, c, w, b = parts(theta, 3)
    inner = [reference.similarity(x, z, U, V, c, w, b[0]) for x, z in scaled(few)[0]]
    form = scale.form(theta, 3)
    np.testing.assert_allclose(form.pairs(few.X[few.left], few.X[few.right]), inner, rtol=1e-9)
    np.testing.assert_allclose(scale.inside(form), theta, rtol=1e-9, atol=1e-12)


# Learning


def test_it_goes_down_to_where_the_gradient_vanishes(few):
    snn = SNN(2, alpha=0.01, tol=0, max_iter=5000, random_state=0).fit(few)
    cost = NetworkLoss(few, FeatureScale.of(few.X), 2, 0.01)
    found = cost.value_and_gradient(cost.scale.inside(snn.metric_))
    loss, gradient = found.loss, found.gradient
    assert snn.converged_
    assert loss == pytest.approx(snn.loss_, rel=1e-9)
    assert np.abs(gradient).max() < 1e-5
    assert np.all(np.diff(snn.history_["loss"]) <= 0)
    assert snn.history_["loss"][-1] == snn.loss_ < snn.history_["loss"][0]


def test_it_learns_what_no_linear_map_can(seed):
    # Similar: of the same length. No distance of Lx tells that.
    rng = np.random.default_rng(seed)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 2))
    X *= ((1 + 2 * y) / np.linalg.norm(X, axis=1))[:, None]
    snn = SNN(random_state=seed, max_iter=300, tol=1e-4, callback=lambda info: info["loss"] < 0.02)
    snn.fit(X[:100], y[:100])
    form = snn.metric_
    accuracy = KNNClassifier(form, n_neighbors=3).fit(X[:100], y[:100]).score(X[100:], y[100:])
    assert accuracy > 0.95
    same = y[:100, None] == y[100:]
    S = form.cross(X[:100], X[100:])
    assert np.mean((S > 0.5) == same) > 0.9


def test_the_scale_and_the_place_of_features_do_not_matter(labeled):
    X, y = labeled
    moved = X * [1e-3, 1e4, 1.0, 10.0, 0.1] + [0.0, -7e4, 3.0, 1.0, 0.0]
    one, other = (SNN(3, max_iter=10, tol=1, random_state=0).fit(given, y) for given in (X, moved))
    np.testing.assert_allclose(one.metric_.cross(X), other.metric_.cross(moved), rtol=1e-6)


def test_float32_and_sparse_rows(labeled):
    X, y = labeled
    given = {"max_iter": 12, "tol": 1, "random_state": 0}
    exact = SNN(3, **given).fit(X, y)
    single = SNN(3, **given).fit(X.astype(np.float32), y)
    assert all(
        getattr(single.metric_, name).dtype == np.float32
        for name in ("left", "right", "bias", "output")
    )
    assert single.loss_ == pytest.approx(exact.loss_, rel=1e-3)
    sparse = SNN(3, **given).fit(sp.csr_array(X), y)
    assert sparse.loss_ == pytest.approx(exact.loss_, rel=1e-6)
    np.testing.assert_allclose(sparse.metric_.cross(X), exact.metric_.cross(X), rtol=1e-4)


def test_labels_are_the_pairs_drawn_from_them_and_seeds_are_kept(labeled):
    one, same, other = (
        SNN(2, n_pairs=50, max_iter=5, tol=1, random_state=seed).fit(*labeled) for seed in (1, 1, 2)
    )
    assert one.metric_ == same.metric_ != other.metric_
    np.testing.assert_array_equal(one.history_["loss"], same.history_["loss"])
    random = np.random.RandomState(1)
    how = {"purpose": "verification", "n_neighbors": 10, "merge_duplicates": False, "n_pairs": 50}
    drawn = sampled_pairs(*labeled, **how, random_state=random).learned
    assert SNN(2, max_iter=5, tol=1, random_state=random).fit(drawn).metric_ == one.metric_


def test_weights_count_as_repetitions(few):
    twice = few[np.repeat(np.arange(40), [2] * 10 + [1] * 20 + [0] * 10)]
    weight = np.repeat([2.0, 1.0, 0.0], [10, 20, 10])
    told = [
        Pairs(few.X, twice.left, twice.right, twice.y),
        Pairs(few.X, few.left, few.right, few.y, weight),
    ]
    one, other = (SNN(2, max_iter=8, tol=1, random_state=0).fit(given) for given in told)
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-9)


def test_it_goes_on_where_it_ended(labeled):
    snn = SNN(2, warm_start=True, random_state=0).fit(*labeled)
    loss, n_iter = snn.loss_, snn.n_iter_
    snn.fit(*labeled)
    assert snn.n_iter_ < n_iter / 4 and snn.loss_ <= loss * (1 + 1e-9)
    with pytest.raises(InvalidInputError, match=r"those of the fit before, \(2, 5\). Got \(3, 5\)"):
        snn.set_params(n_hidden=3).fit(*labeled)


def test_early_stopping_keeps_the_best_network(labeled):
    seen = []
    given = {"alpha": 0.0, "tol": 0, "n_pairs": 60, "validation_fraction": 0.4, "random_state": 0}
    snn = SNN(10, callback=lambda info: seen.append(info), **given).fit(*labeled)
    losses = snn.history_["validation_loss"]
    looks = np.flatnonzero(~np.isnan(losses))
    assert looks.tolist() == list(range(4, snn.n_iter_, 5))
    assert snn.n_iter_ < 500 and not snn.converged_
    assert snn.metric_ == seen[int(np.nanargmin(losses))]["metric"]
    assert snn.metric_ == SNN(10, **given).fit(*labeled).metric_


def test_ctrl_c_keeps_what_was_learned(labeled):
    def interrupt(info):
        if info["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    snn = SNN(2, tol=0, callback=interrupt, random_state=0)
    with pytest.raises(KeyboardInterrupt, match="SNN was interrupted"):
        snn.fit(*labeled)
    assert snn.n_iter_ == 3 and not snn.converged_
    assert snn.loss_ == snn.history_["loss"][-1]


def test_it_says_how_it_goes_and_that_it_did_not_end(labeled, capsys):
    with pytest.warns(ConvergenceWarning, match="SNN has not converged to tol=0 in 2 iter") as said:
        SNN(2, tol=0, max_iter=2, verbose=True, random_state=0).fit(*labeled)
    assert said[0].filename == __file__
    assert re.search(r"SNN: iteration 2, loss \S+, \d+ s", capsys.readouterr().err)


def test_awkward_features(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) * 10.0 ** rng.integers(-3, 4, 6)
    X[:, 1] = 7.0
    snn = SNN(2, max_iter=30, tol=1e-2, random_state=0).fit(X, np.arange(40) % 2)
    assert np.isfinite(snn.metric_.cross(X)).all()
    same = SNN(1, random_state=0).fit(np.ones((6, 2)), np.arange(6) % 2)
    assert np.ptp(same.metric_.cross(np.ones((3, 2)))) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_hidden": 0}, "'n_hidden' parameter of SNN"),
        ({"alpha": -1.0}, "'alpha' parameter of SNN"),
        ({"validation_fraction": 0.001}, "holds out none of 1024 pairs"),
        ({"warm_start": True, "n_hidden": 4}, "With warm_start, n_hidden and the number"),
    ],
)
def test_bad_parameters_are_refused_and_change_nothing(labeled, given, said):
    snn = SNN(2, max_iter=3, tol=1, random_state=0).fit(*labeled)
    if "validation_fraction" in given:
        given = {"validation_fraction": 1 / 1300}
    before = vars(snn.set_params(**given)).copy()
    with pytest.raises(ValueError, match=said):
        snn.fit(*labeled)
    assert vars(snn) == before


def test_bad_input_is_refused(labeled, pairs):
    X, y = labeled
    with pytest.raises(InvalidInputError, match="Got no dissimilar pair; give some"):
        SNN().fit(pairs[pairs.y > 0])
    with pytest.raises(InvalidInputError, match=r"SNN learns from pairs\. Got Triplets"):
        SNN().fit(Triplets.from_labels(X, y, 10, random_state=0))
    with pytest.raises(InvalidInputError, match="SNN needs at least one pair"):
        SNN().fit(pairs[:0])
    with pytest.raises(ValueError, match="requires y to be passed"):
        SNN().fit(X)
    with pytest.raises(InvalidInputError, match="overflow float64; scale the features"):
        SNN().fit(X * 1e200, y)


def test_it_is_saved_and_loaded(labeled, tmp_path):
    snn = SNN(2, max_iter=5, tol=1e-9, warm_start=True, random_state=0)
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        snn.fit(*labeled)
    snn.save(tmp_path / "learner")
    again = samewise.load(tmp_path / "learner")
    assert again.metric_ == snn.metric_
    for learner in (snn, again):
        with pytest.warns(ConvergenceWarning, match="has not converged"):
            learner.fit(*labeled)
    assert again.metric_ == snn.metric_
