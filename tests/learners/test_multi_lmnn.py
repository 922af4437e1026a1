"""Multi-metric LMNN: its loss against all triplets, its edge cases, and scikit-learn's contract."""

from __future__ import annotations

import os
import pickle
import re
import signal
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import LMNN, KNNClassifier, load
from samewise.exceptions import SamewiseWarning, TooLargeError
from samewise.forms import MultiMetric
from samewise.learners.batch.batch_learner import held_out_rows
from samewise.learners.batch.lmnn import multi_metric_lmnn as multi_module
from samewise.learners.batch.lmnn import multi_objective as objective_module
from samewise.learners.batch.lmnn.multi_errors import MultiNeighborErrors
from samewise.learners.batch.lmnn.multi_metric_lmnn import MultiMetricLMNN
from samewise.learners.batch.lmnn.multi_objective import GroupPairs, MultiCandidates, MultiObjective
from samewise.learners.batch.neighbor_errors import vote
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.search import Index
from samewise.solvers.workers import Workers, workers
from tests.pairwise import SEEDS, pairwise
from tests.reference.lmnn import loss_and_gradient, target_neighbors
from tests.reference.lmnn_multi import loss_and_gradients


@parametrize_with_checks([MultiMetricLMNN(), MultiMetricLMNN(n_clusters=2)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def everything(**given):
    """Learns from all points."""
    return MultiMetricLMNN(validation_fraction=None, random_state=0, **given)


def exact_loss(lmnn, X, y):
    """Over all triplets, in blocks: quick enough for thousands of points."""
    groups = lmnn.metric_.groups_of(X, y)
    classes = Classes(np.unique(y, return_inverse=True)[1], len(np.unique(y)))
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team)
    T = np.empty_like(targets)
    T[classes.order] = classes.order[targets]
    total, active = 0.0, 0
    form = MultiMetric(lmnn.components_.astype(float), classes=range(len(lmnn.components_)))
    X = X.astype(float)
    for start in range(0, len(X), 500):
        rows = slice(start, start + 500)
        D = form.bind(X, groups).cross(X[rows], X, squared=True)
        D[y[rows, None] == y] = np.inf
        for j in range(T.shape[1]):
            at = T[rows, j]
            pull = form.bind(X[at], groups[at]).pairs(X[rows], X[at], squared=True)
            h = np.maximum(0, 1 + pull[:, None] - D)
            total += 0.5 * pull.sum() + 0.5 * h.sum()
            active += np.count_nonzero(h)
    return total, active


def rings(n_angles=24, gap=0.25):
    """Two rings, one close around the other: the nearest point is always of the other class."""
    angles = np.repeat(2 * np.pi / n_angles * np.arange(n_angles), 2)
    y = np.arange(2 * n_angles) % 2
    radius = 1 + gap * y
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles)]), y


def left_out_error(metric, X, y):
    found = KNNClassifier(metric, 1).fit(X, y).kneighbors(return_distance=False)
    return float(np.mean(y[found[:, 0]] != y))


# The loss


# Thinned from 36 cases to 9.
@pairwise(seed=SEEDS, by=["class", "cluster"], dtype=[np.float64, np.float32], n_threads=[1, 2, 3])
def test_loss_and_gradients_equal_the_plain_loops(labeled, by, dtype, n_threads, seed):
    X, y = labeled
    rng = np.random.default_rng(seed)
    # A fifth group without members.
    groups = y if by == "class" else rng.integers(0, 4, 60)
    L = 0.5 * rng.normal(size=(5, 3, 5))
    classes = Classes(y, 3)
    with workers() as team:
        team = Workers(n_threads, team._pool)
        targets = nearest_targets(X, classes, 3, team)
        S = X[classes.order].astype(dtype)
        objective = MultiObjective(
            S, targets, classes, groups[classes.order], 5, 0.3, S.T @ S, team
        )
        objective.search(L)
        value = objective.value_and_gradient(L)
        assert objective.missing() == 0
    wanted = loss_and_gradients(L, X, y, groups, target_neighbors(X, y, 3), 0.3)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    assert value.loss == pytest.approx(wanted[0], rel=rtol)
    np.testing.assert_allclose(value.gradient, wanted[1], atol=rtol * abs(wanted[1]).max())
    if dtype == np.float64:
        assert value.active == wanted[2]


@pytest.mark.parametrize("by", ["class", "cluster"])
def test_search_finds_all_pairs_in_reach(by, monkeypatch, seed):
    # Little room at first, and distances that the first columns decide.
    monkeypatch.setattr(objective_module, "ROOM", 0)
    monkeypatch.setattr(objective_module, "BLOCK", 16)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 40)) * np.linspace(3, 0.1, 40)
    y = np.sort(rng.integers(0, 5, 700))
    groups = y if by == "class" else rng.integers(0, 6, 700)
    classes = Classes(y, 5)
    L = 0.4 * (np.eye(40) + 0.02 * rng.normal(size=(6, 40, 40)))
    with workers() as team:
        targets = nearest_targets(X, classes, 2, team)
        targets[rng.random(700) < 0.3] = -1
        objective = MultiObjective(X, targets, classes, groups, 6, 0.5, X.T @ X, team)
        objective.search(L)
    form = MultiMetric(L, classes=range(6))
    D = form.bind(X, groups).cross(X, X, squared=True)
    reach = np.where(targets >= 0, 1 + np.take_along_axis(D, targets, axis=1), -np.inf).max(axis=1)
    wanted = (D < 1.15 * reach[:, None]) & (y[:, None] != y)
    keys = np.concatenate([pairs.keys(700) for pairs in objective.candidates.groups])
    np.testing.assert_array_equal(np.sort(keys), np.flatnonzero(wanted))
    assert len(objective.candidates) == wanted.sum() > 1000


def test_candidates_are_united():
    one = MultiCandidates(9, [GroupPairs.of(np.array([1, 4]), np.array([2, 2]), 9)])
    two = MultiCandidates(9, [GroupPairs.of(np.array([8, 4]), np.array([0, 2]), 9)])
    both = one.union(two)
    [pairs] = both.groups
    assert pairs.rows[pairs.firsts].tolist() == [1, 4, 8]
    assert pairs.rows[pairs.seconds].tolist() == [2, 2, 0]


@pytest.mark.parametrize("n_clusters", [None, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_returned_loss_is_that_of_all_triplets(n_clusters, dtype):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, 3000)
    X = rng.normal(size=(3000, 12))
    X[:, :5] += 1.5 * rng.normal(size=(5, 5))[y]
    X = X.astype(dtype)
    lmnn = everything(
        n_clusters=n_clusters, callback=lambda info: info["iteration"] == 25, tol=1e-9
    ).fit(X, y)
    loss, active = exact_loss(lmnn, X, y)
    assert lmnn.loss_ == pytest.approx(loss, rel=1e-6)
    assert abs(lmnn.n_active_ - active) <= 1e-4 * active
    assert lmnn.components_.dtype == dtype


def test_work_in_float32_gives_the_same_loss(labeled, monkeypatch):
    exact = everything(tol=1e-6).fit(*labeled)
    monkeypatch.setattr(multi_module, "SMALL", 0)
    rough = everything(tol=1e-6).fit(*labeled)
    assert rough.loss_ == pytest.approx(exact.loss_, rel=1e-3)
    assert rough.loss_ != exact.loss_


# The solution


def test_one_group_is_lmnn(labeled):
    X, y = labeled
    one, many = LMNN(tol=1e-7).fit(X, y), everything(n_clusters=1, tol=1e-7).fit(X, y)
    assert many.loss_ == pytest.approx(one.loss_, rel=1e-4)
    targets = target_neighbors(X, y, 3)
    [L] = many.components_
    assert many.loss_ == pytest.approx(loss_and_gradient(L, X, y, targets, 0.5)[0], rel=1e-9)


@pytest.mark.parametrize("n_clusters", [None, 3])
def test_starts_end_at_comparable_losses_below_the_single_metric(labeled, n_clusters):
    X, y = labeled
    single = LMNN(tol=1e-6).fit(X, y)
    starts = [
        "auto",
        single,
        LMNN(tol=1e-3),
        np.eye(5),
        np.random.default_rng(0).normal(size=(5,) * 2),
    ]
    losses = [
        everything(n_clusters=n_clusters, init=init, tol=1e-6).fit(X, y).loss_ for init in starts
    ]
    assert max(losses) < single.loss_
    assert max(losses) <= 1.02 * min(losses)


def test_rings_need_several_metrics():
    # As in the paper's figure 7, one metric has all points wrong.
    X, y = rings()
    errors, losses = [], []
    for c in (1, 2, 3, 4):
        lmnn = MultiMetricLMNN(
            1, n_clusters=c, validation_fraction=None, random_state=0, tol=1e-5
        ).fit(X, y)
        errors.append(left_out_error(lmnn, X, y))
        losses.append(lmnn.loss_)
    assert errors[0] == 1.0
    assert errors[2] <= 0.5 and errors[3] <= 0.4
    assert losses == sorted(losses, reverse=True)


def test_a_start_on_a_kink_is_left(monkeypatch):
    # At the best single metric of these points no step of one of the maps looks better.
    X, y = rings(15, 0.2)
    kwargs = dict(n_clusters=3, validation_fraction=None, random_state=0, tol=1e-5)
    left = MultiMetricLMNN(1, **kwargs).fit(X, y)
    monkeypatch.setattr(multi_module, "ASIDE", 1.0)
    stuck = MultiMetricLMNN(1, **kwargs).fit(X, y)
    assert left.loss_ < 0.9 * stuck.loss_


def test_the_loss_falls_from_step_to_step_on_the_same_candidates(labeled):
    lmnn = everything(tol=1e-6).fit(*labeled)
    h = lmnn.history_
    second = h["loss"][h["stage"] == 2]
    assert set(h["stage"]) == {1, 2} and len(second) > 5
    assert second[-1] < second[0] < h["loss"][h["stage"] == 1][-1]
    assert lmnn.n_iter_ == len(h["loss"]) and lmnn.converged_


def test_low_rank_and_more_features_than_points(labeled):
    X, y = labeled
    low = everything(n_components=2).fit(X, y)
    assert low.components_.shape == (3, 2, 5)
    assert everything().fit(X, y).loss_ < low.loss_
    rng = np.random.default_rng(0)
    wide = np.hstack([X[:12], rng.normal(size=(12, 40))])
    lmnn = everything(n_neighbors=1).fit(wide, np.arange(12) % 3)
    assert lmnn.components_.shape[0] == 3 and lmnn.components_.shape[1] <= 12
    padded = everything(n_neighbors=1, n_components=20).fit(wide, np.arange(12) % 3)
    assert padded.components_.shape == (3, 20, 45)
    assert padded.loss_ == pytest.approx(lmnn.loss_, rel=1e-2)


def test_deterministic(labeled):
    for n_clusters in (None, 3):
        made = MultiMetricLMNN(n_clusters=n_clusters, random_state=1)
        first, again = made.fit(*labeled), clone(made).fit(*labeled)
        np.testing.assert_array_equal(first.components_, again.components_)
        assert first.metric_ == again.metric_ and first.loss_ == again.loss_


# Held-out points


def test_held_out_points_are_not_learned_from_and_the_best_maps_are_kept(labeled):
    X, y = labeled
    errors, maps = [], []

    def look(info):
        if info["stage"] == 2:
            errors.append(info["validation_error"])
            maps.append(info["components"])

    lmnn = MultiMetricLMNN(random_state=0, callback=look, tol=1e-6).fit(X, y)
    errors = np.array(errors)
    looked = np.flatnonzero(~np.isnan(errors))
    assert len(looked) >= 3 and set(np.diff(looked)) == {5}
    kept, held = held_out_rows(np.asarray(y), 0.3, np.random.RandomState(0))
    assert np.bincount(y[held]).tolist() == [6, 6, 6]
    train, test = (X[kept], y[kept]), (X[held], y[held])

    def error(components):
        form = MultiMetric(components, classes=range(3))
        return 1 - KNNClassifier(form).fit(*train).score(*test)

    for at in looked:
        assert errors[at] == pytest.approx(error(maps[at]))
    best = error(lmnn.components_)
    single = LMNN().fit(*train).components_
    assert best <= errors[looked].min() + 1e-12 and best <= error([single] * 3) + 1e-12
    groups = y[kept]
    wanted = loss_and_gradients(lmnn.components_, *train, groups, target_neighbors(*train, 3), 0.5)
    assert lmnn.loss_ == pytest.approx(wanted[0], rel=1e-9)
    assert lmnn.n_active_ == wanted[2]


def test_held_out_error_with_ties_and_small_groups(seed):
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(3, size=(2, 40, 2)).astype(float)
    y, yq = rng.integers(3, size=(2, 40))
    groups = np.repeat([0, 1, 3], [37, 2, 1])
    looks = rng.integers(-1, 3, size=(3, 4, 2, 2)).astype(float)
    looks[1] = 0
    with workers() as team:
        held_out = MultiNeighborErrors(X, y, groups, Q, yq, 3, team)
        for L in looks:
            error = held_out(L)
            form = MultiMetric(L, classes=range(4)).bind(X, groups)
            D = form.cross(Q, X, squared=True)
            found = np.lexsort((np.broadcast_to(np.arange(40), D.shape), D.round(6)), axis=1)
            # Turned coordinates may order equal distances otherwise.
            got = np.take_along_axis(D, held_out._nearest, axis=1)
            np.testing.assert_allclose(got, np.take_along_axis(D, found[:, :3], axis=1), atol=1e-9)
    assert 0 < error < 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_held_out_neighbors_are_the_nearest(dtype, seed):
    rng = np.random.default_rng(seed)
    X, Q = (100 + rng.normal(size=(2, 400, 6)) * [5, 3, 1, 1, 0.5, 0.2]).astype(dtype)
    y, yq, groups = rng.integers(4, size=(3, 400))
    with workers() as team:
        held_out = MultiNeighborErrors(X, y, groups, Q, yq, 3, team)
        for _ in range(3):
            L = rng.normal(size=(4, 5, 6))
            form = MultiMetric(L, classes=range(4))
            error = held_out(L)
            _, found = Index(form.bind(X, groups), X.astype(float)).query(Q.astype(float), 3)
            assert np.mean(held_out._nearest != found) <= (0 if dtype == np.float64 else 2e-3)
            assert error == pytest.approx(np.mean(vote(y[found]) != yq), abs=5e-3)


# Around a run


def test_history_callback_and_stops(labeled, capsys):
    seen = []
    lmnn = everything(callback=seen.append, verbose=True).fit(*labeled)
    assert [info["iteration"] for info in seen] == list(range(1, lmnn.n_iter_ + 1))
    for name, values in lmnn.history_.items():
        np.testing.assert_array_equal(values, [info[name] for info in seen])
    assert seen[0]["components"].shape == (5, 5) and seen[-1]["components"].shape == (3, 5, 5)
    assert re.search(
        r"iteration \d+, stage 2, loss \S+, active [\d,]+, candidates", capsys.readouterr().err
    )
    with pytest.warns(ConvergenceWarning, match="has not converged to tol=1e-09 in 3 iterations"):
        short = everything(max_iter=3, tol=1e-9).fit(*labeled)
    assert not short.converged_ and short.n_iter_ == 6


@pytest.mark.parametrize("stage", [1, 2])
def test_ctrl_c_keeps_what_was_learned(labeled, stage):
    X, y = labeled
    at = 0

    def interrupt(info):
        nonlocal at
        if info["stage"] == stage and not at:
            at = info["iteration"]
            os.kill(os.getpid(), signal.SIGINT)

    lmnn = everything(callback=interrupt, tol=1e-6)
    with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
        lmnn.fit(X, y)
    assert lmnn.n_iter_ in (at, at + 1) and not lmnn.converged_
    wanted = loss_and_gradients(lmnn.components_, X, y, y, target_neighbors(X, y, 3), 0.5)
    assert lmnn.loss_ == pytest.approx(wanted[0], rel=1e-9)
    same = all(np.array_equal(L, lmnn.components_[0]) for L in lmnn.components_)
    assert same == (stage == 1)


def test_warm_start(labeled):
    X, y = labeled
    for n_clusters in (None, 3):
        lmnn = everything(n_clusters=n_clusters, warm_start=True).fit(X, y)
        loss, steps, metric = lmnn.loss_, lmnn.n_iter_, lmnn.metric_
        lmnn.set_params(random_state=5).fit(X, y)
        assert lmnn.n_iter_ < steps and lmnn.loss_ <= loss and set(lmnn.history_["stage"]) == {2}
        if n_clusters:
            np.testing.assert_array_equal(lmnn.metric_.centers, metric.centers)
    with pytest.raises(ValueError, match="the groups of the fit before, which were others"):
        lmnn.set_params(n_clusters=4).fit(X, y)
    with pytest.raises(ValueError, match="Set warm_start=False"):
        everything(warm_start=True).fit(X, y).fit(X, y + 1)


def test_form_files_pickles_and_decisions(labeled, tmp_path):
    X, y = labeled
    names = np.array(["one", "two", "three"])[y]
    lmnn = MultiMetricLMNN(random_state=0).fit(X, names)
    assert lmnn.metric_.classes.tolist() == lmnn.classes_.tolist() == ["one", "three", "two"]
    np.testing.assert_array_equal(lmnn.metric_.components, lmnn.components_)
    assert lmnn.n_features_in_ == 5 and not hasattr(lmnn, "transform")
    lmnn.metric_.save(tmp_path / "form")
    assert load(tmp_path / "form") == lmnn.metric_
    assert pickle.loads(pickle.dumps(lmnn)).metric_ == lmnn.metric_
    for rule in ("knn", "sknn", "energy", "energy_printed"):
        model = KNNClassifier(lmnn, rule=rule).fit(X, names)
        assert model.score(X, names) > 0.7
        again = KNNClassifier(load(tmp_path / "form"), rule=rule).fit(X, names)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    by_place = KNNClassifier(MultiMetricLMNN(n_clusters=2, random_state=0), rule="energy")
    assert cross_val_score(by_place, X, names, cv=3, error_score="raise").mean() > 0.5


# Edge cases


def test_tiny_classes_duplicates_and_constant_features(labeled):
    X, y = labeled
    rare = np.concatenate([y, [3, 4, 4]])
    X_rare = np.vstack([X, X[:3] + 0.1])
    with pytest.warns(SamewiseWarning, match="2 of 5 classes have no more than n_neighbors=3"):
        lmnn = everything().fit(X_rare, rare)
    wanted = loss_and_gradients(
        lmnn.components_, X_rare, rare, rare, target_neighbors(X_rare, rare, 3), 0.5
    )
    assert lmnn.loss_ == pytest.approx(wanted[0], rel=1e-9)
    twice = np.column_stack([np.repeat(X, 2, axis=0), np.ones(120)])
    assert np.isfinite(everything().fit(twice, np.repeat(y, 2)).components_).all()
    assert np.isfinite(
        everything(n_clusters=5)
        .fit(np.repeat(X[:4], 5, axis=0), np.repeat([0, 1, 0, 1], 5))
        .components_
    ).all()


def test_no_impostors_at_all():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 4, axis=0)
    lmnn = everything(init=np.eye(2)).fit(X, np.repeat([0, 1, 2], 4))
    assert lmnn.loss_ == 0 and lmnn.n_active_ == 0 and lmnn.converged_


def test_a_thousand_classes_in_bounded_memory():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1000), 4)
    X = (rng.normal(size=(1000, 8))[y] + 0.2 * rng.normal(size=(4000, 8))).astype(np.float32)
    everything(max_iter=1, callback=lambda info: True).fit(X[:60], y[:60])
    tracemalloc.start()
    lmnn = everything(n_neighbors=2, init=np.eye(8), callback=lambda info: info["iteration"] == 3)
    lmnn.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lmnn.components_.shape == (1000, 8, 8)
    # All points under all maps would be 256 MB.
    assert peak < 60e6
    assert KNNClassifier(lmnn, 1).fit(X[::2], y[::2]).score(X[1::50], y[1::50]) > 0.8


def test_sparse_rows(labeled):
    X, y = labeled
    dense = MultiMetricLMNN(random_state=0).fit(X, y)
    sparse = MultiMetricLMNN(random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(sparse.components_, dense.components_)


X = np.random.default_rng(0).normal(size=(10, 4))
Y = np.repeat([0, 1], 5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: everything().fit(X, np.zeros(10)), "at least two classes"),
        (lambda: everything().fit(X, np.arange(10)), "Got 10 classes of one example each"),
        (lambda: everything().fit(X, None), "requires y to be passed"),
        (
            lambda: everything(n_clusters=11).fit(X, Y),
            "n_clusters=11 is more than there are points",
        ),
        (lambda: everything(n_clusters=0).fit(X, Y), "'n_clusters' parameter of MultiMetricLMNN"),
        (lambda: everything(n_components=5).fit(X, Y), "at most the number of features, 4. Got 5"),
        (lambda: everything(init="pca").fit(X, Y), "'init' parameter of MultiMetricLMNN must be"),
        (lambda: everything(init=np.eye(3)).fit(X, Y), "init must be a finite array of shape"),
        (
            lambda: everything(init=np.ones((3, 4, 4))).fit(X, Y),
            "one for each of the 2. Got 3 maps",
        ),
        (
            lambda: everything(init=LMNN().fit(X, Y), n_components=2).fit(X, Y),
            "components_ of init must be a finite array of shape (2, 4)",
        ),
        (
            lambda: MultiMetricLMNN(validation_fraction=0.1).fit(X, Y),
            "holds out no point of any class",
        ),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_too_many_maps_are_refused(monkeypatch):
    monkeypatch.setattr(multi_module, "MOST_VALUES", 31)
    with pytest.raises(TooLargeError, match="2 maps of 4 × 4 values are more than"):
        everything().fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        everything(n_components=3, max_iter=1, tol=0).fit(X, Y)


def test_refused_input_changes_nothing(labeled):
    lmnn = everything().fit(*labeled)
    before = vars(lmnn).copy()
    for bad in [(X, np.zeros(10)), (X, np.arange(10)), (np.full((10, 5), np.nan), Y)]:
        with pytest.raises(ValueError, match=r"classes|NaN"):
            lmnn.fit(*bad)
        assert vars(lmnn) == before
