"""LMNN: its loss against all triplets, its edge cases, and scikit-learn's contract."""

from __future__ import annotations

import os
import pickle
import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import LMNN, KNNClassifier, datasets
from samewise.exceptions import DatasetNotFoundError, SamewiseWarning, TooLargeError
from samewise.forms import Mahalanobis
from samewise.learners import dense_rows
from samewise.learners.batch.batch_learner import held_out_rows
from samewise.learners.batch.lmnn import estimator as lmnn_estimator
from samewise.learners.batch.lmnn import objective as lmnn_objective
from samewise.learners.batch.lmnn.impostors import Candidates, search
from samewise.learners.batch.lmnn.objective import LINEAR, SQUARED, Hinge, LMNNObjective
from samewise.learners.batch.neighbor_errors import vote
from samewise.learners.batch.points_by_class import Classes, nearest_rows, nearest_targets
from samewise.solvers.workers import Workers, workers
from tests.pairwise import SEEDS, pairwise
from tests.reference.lmnn import loss_and_gradient, target_neighbors


@pytest.mark.filterwarnings("ignore:1 of 3 classes have no more than n_neighbors=3")
@parametrize_with_checks([LMNN(), LMNN(n_target_searches=2, hinge="squared")])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def load(name):
    try:
        data = datasets.load(name)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    X = data.data[:, data.data.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), data.target


def exact_loss(L, X, y, targets, mu=0.5):
    """All triplets, a block of points at a time: quick enough for thousands of points."""
    Z = X.astype(float) @ L.astype(float).T
    total, active = 0.0, 0
    for start in range(0, len(Z), 200):
        rows = slice(start, start + 200)
        D = ((Z[rows, None] - Z[None]) ** 2).sum(axis=2) if Z.shape[1] < 8 else _gram(Z[rows], Z)
        D[y[rows, None] == y] = np.inf
        for j in range(targets.shape[1]):
            pull = ((Z[rows] - Z[targets[rows, j]]) ** 2).sum(axis=1)
            h = np.maximum(0, 1 + pull[:, None] - D)
            total += (1 - mu) * pull.sum() + mu * h.sum()
            active += np.count_nonzero(h)
    return total, active


def _gram(A, B):
    return (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T


# The loss


# Thinned from 24 cases to 6.
@pairwise(
    seed=SEEDS,
    rows=[2, 5],
    dtype=[np.float64, np.float32],
    hinge={"linear": LINEAR, "squared": SQUARED},
)
def test_loss_and_gradients_equal_the_plain_loops(labeled, hinge, dtype, rows, seed):
    X, y = labeled
    L = 0.5 * np.random.default_rng(seed).normal(size=(rows, 5))
    classes = Classes(y, 3)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team)
        objective = LMNNObjective(
            X[classes.order].astype(dtype), targets, classes, 0.3, hinge, team
        )
        objective.search(L)
        value, scatter = objective.value_and_gradient(L), objective.scatter(L)
    wanted = loss_and_gradient(L, X, y, target_neighbors(X, y, 3), 0.3, hinge is SQUARED)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    assert value.loss == pytest.approx(wanted[0], rel=rtol)
    assert scatter.loss == value.loss
    np.testing.assert_allclose(value.gradient, wanted[1], atol=rtol * abs(wanted[1]).max())
    np.testing.assert_allclose(scatter.gradient, wanted[3], atol=rtol * abs(wanted[3]).max())
    if dtype == np.float64:
        assert value.active == wanted[2]


@pytest.mark.parametrize("hinge", [SQUARED, Hinge.smooth(0.5)], ids=["squared", "smooth"])
def test_gradient_by_differences(labeled, hinge, seed):
    X, y = labeled
    rng = np.random.default_rng(seed)
    L, V = rng.normal(size=(2, 4, 5))
    classes = Classes(y, 3)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team)
        objective = LMNNObjective(X[classes.order], targets, classes, 0.5, hinge, team)
        objective.search(L)
        ahead, behind = (objective.value_and_gradient(L + t * V).loss for t in (1e-6, -1e-6))
        slope = np.vdot(objective.value_and_gradient(L).gradient, V)
    assert (ahead - behind) / 2e-6 == pytest.approx(slope, rel=1e-6)


def test_what_is_missing_comes_to_light_wherever_it_is(labeled, monkeypatch):
    """A sample of anchors is looked at, and another one the next time."""
    monkeypatch.setattr(lmnn_objective, "SAMPLE", 15)
    X, y = labeled
    classes = Classes(y, 3)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team)
        objective = LMNNObjective(X[classes.order], targets, classes, 0.5, LINEAR, team)
        objective.search(np.eye(5))
        objective.value_and_gradient(np.eye(5))
        assert [objective.missing() for _ in range(10)] == [0] * 10
        # Of five samples one is looked at next; pairs that have no member in it go.
        pairs = objective.candidates
        rows = np.repeat(np.arange(60), np.diff(pairs.indptr))
        kept = (rows % 5 == 1) | (pairs.columns % 5 == 1)
        indptr = np.searchsorted(rows[kept], np.arange(61))
        objective.candidates = Candidates(indptr, pairs.columns[kept])
        objective.value_and_gradient(np.eye(5))
        missing = [objective.missing() for _ in range(5)]
    assert missing[0] == 0
    assert min(missing[1:]) > 0


def test_smooth_hinge_is_below_the_hinge_by_half_sigma(labeled):
    X, y = labeled
    classes = Classes(y, 3)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team)
        objective = LMNNObjective(X[classes.order], targets, classes, 0.5, LINEAR, team)
        objective.search(np.eye(5))
        exact = objective.value_and_gradient(np.eye(5))
        objective.hinge = Hinge.smooth(1e-3)
        smooth = objective.value_and_gradient(np.eye(5))
    assert exact.loss - 0.5 * exact.active * 5e-4 - 1e-9 <= smooth.loss < exact.loss


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_search_finds_all_pairs_in_reach(n_threads, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(700, 40)) * np.linspace(3, 0.1, 40)
    classes = Classes(np.sort(rng.integers(0, 5, 700)), 5)
    reach = rng.uniform(1, 60, 700)
    reach[rng.random(700) < 0.3] = -np.inf
    with workers() as team:
        found = search(Z, reach, classes, Workers(n_threads, team._pool))
    rows = np.repeat(np.arange(700), np.diff(found.indptr))
    D = _gram(Z, Z)
    wanted = (np.maximum(reach[:, None], reach) > D) & (classes.ends[:, None] <= np.arange(700))
    np.testing.assert_array_equal(
        np.column_stack([rows, found.columns]), np.argwhere(wanted), strict=False
    )


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_are_the_nearest_of_the_class(dtype, scale, seed):
    rng = np.random.default_rng(seed)
    # Few values: many ties and duplicates.
    X = rng.integers(0, 3, size=(300, 4)).astype(dtype)
    y = rng.integers(0, 4, 300)
    y[:2] = 7, 8
    classes = Classes(y, 9)
    with workers() as team:
        found = classes.order[nearest_targets(X * dtype(scale), classes, 3, team)]
    wanted = target_neighbors(X, y, 3)
    for i, row in zip(classes.order, found, strict=True):
        assert list(row[: len(wanted[i])]) == wanted[i]


def test_neighbors_and_their_vote(seed):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(400, 6)), rng.normal(size=(70, 6))
    y = rng.integers(0, 3, 400)
    with workers() as team:
        found = nearest_rows(Q, X, 4, team)
    np.testing.assert_array_equal(found, np.argsort(_gram(Q, X), axis=1)[:, :4])
    knn = KNNClassifier(n_neighbors=4).fit(X, y)
    np.testing.assert_array_equal(vote(y[found]), knn.predict(Q))


def test_returned_loss_is_that_of_all_triplets():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, 5000)
    X = rng.normal(size=(5000, 20))
    X[:, :5] += 1.5 * rng.normal(size=(5, 5))[y]
    for X_ in (X, X.astype(np.float32)):
        lmnn = LMNN(max_iter=12, tol=0, callback=lambda info: info["iteration"] == 12).fit(X_, y)
        classes = Classes(y, 5)
        targets = np.empty((5000, 3), dtype=int)
        with workers() as team:
            sorted_targets = nearest_targets(X_, classes, 3, team)
        targets[classes.order] = classes.order[sorted_targets]
        loss, active = exact_loss(lmnn.components_, X_, y, targets)
        assert lmnn.loss_ == pytest.approx(loss, rel=1e-6)
        assert abs(lmnn.n_active_ - active) <= 1e-4 * active


def test_work_in_float32_gives_the_same_loss(labeled, monkeypatch):
    X, y = labeled
    exact = LMNN(tol=1e-6).fit(X, y)
    monkeypatch.setattr(lmnn_estimator, "SMALL", 0)
    rough = LMNN(tol=1e-6).fit(X, y)
    assert rough.loss_ == pytest.approx(exact.loss_, rel=1e-4)
    assert rough.loss_ != exact.loss_


# The solvers


@pytest.mark.parametrize("name", ["iris", "wine", "balance_scale"])
@pytest.mark.parametrize("hinge", ["linear", "squared"])
def test_both_solvers_reach_the_same_minimum(name, hinge):
    X, y = load(name)
    convex = LMNN(solver="M", tol=1e-5, hinge=hinge, max_iter=5000).fit(X, y)
    assert convex.converged_
    assert 0 <= convex.gap_ <= 1e-5 * convex.loss_
    for init in ("auto", "pca", np.random.default_rng(0).normal(size=(X.shape[1],) * 2)):
        lmnn = LMNN(tol=1e-7, init=init, hinge=hinge, max_iter=2000).fit(X, y)
        assert convex.loss_ - convex.gap_ <= lmnn.loss_ <= (1 + 2e-4) * convex.loss_


def test_gap_is_a_bound_even_when_the_run_is_cut_short(labeled):
    X, y = labeled
    with pytest.warns(
        ConvergenceWarning, match=r"not converged to tol=0.0002 in 3 iterations; the gap is"
    ):
        short = LMNN(solver="M", max_iter=3).fit(X, y)
    best = LMNN(solver="M", tol=1e-5, max_iter=5000).fit(X, y)
    assert not short.converged_ and best.converged_
    assert short.gap_ > 1e-3 * short.loss_
    assert short.loss_ - short.gap_ <= best.loss_ <= short.loss_
    assert not hasattr(short.set_params(solver="L", max_iter=200).fit(X, y), "gap_")


def test_low_rank_is_above_the_square_solution_and_below_its_truncation(labeled):
    X, y = labeled
    square = LMNN(tol=1e-6).fit(X, y)
    learned = LMNN(n_components=2, tol=1e-6).fit(X, y)
    assert learned.components_.shape == (2, 5)
    assert learned.transform(X).shape == (60, 2)
    truncated = square.metric_.reduce(2).components
    cut = LMNN(init=truncated, n_components=2, max_iter=1, callback=lambda info: True).fit(X, y)
    assert square.loss_ < learned.loss_ < cut.loss_


def test_deterministic(labeled):
    X, y = labeled
    first, again = (LMNN(validation_fraction=0.3, random_state=1).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.components_, again.components_)
    assert first.loss_ == again.loss_
    np.testing.assert_array_equal(first.history_["loss"], again.history_["loss"])


def test_history_and_callback(labeled):
    X, y = labeled
    seen = []
    lmnn = LMNN(callback=seen.append, n_target_searches=2).fit(X, y)
    assert [info["iteration"] for info in seen] == list(range(1, lmnn.n_iter_ + 1))
    for name, values in lmnn.history_.items():
        np.testing.assert_array_equal(values, [info[name] for info in seen])
    assert set(lmnn.history_["stage"]) == {1, 2}
    stopped = LMNN(callback=lambda info: info["iteration"] == 3).fit(X, y)
    assert stopped.n_iter_ == 3 and not stopped.converged_


def test_passes_rederive_the_targets(labeled):
    X, y = labeled
    once = LMNN(tol=1e-6).fit(X, y)
    twice = LMNN(tol=1e-6, n_target_searches=2).fit(X, y)
    targets = target_neighbors(X @ once.components_.T, y, 3)
    loss = loss_and_gradient(twice.components_, X, y, targets, 0.5)[0]
    assert twice.loss_ == pytest.approx(loss, rel=1e-9)
    assert loss < loss_and_gradient(once.components_, X, y, targets, 0.5)[0]


def test_given_targets(labeled):
    X, y = labeled
    targets = np.array(target_neighbors(X, y, 3))
    given = LMNN(n_neighbors=1, targets=targets).fit(X, y)
    assert given.loss_ == LMNN().fit(X, y).loss_
    targets[:, 2] = -1
    assert LMNN(targets=targets).fit(X, y).loss_ == pytest.approx(LMNN(2).fit(X, y).loss_)


def test_warm_start_and_init(labeled):
    X, y = labeled
    lmnn = LMNN(warm_start=True).fit(X, y)
    before = lmnn.loss_
    assert lmnn.fit(X, y).n_iter_ < LMNN().fit(X, y).n_iter_
    assert lmnn.loss_ <= before
    seen = []
    LMNN(init="identity", max_iter=1, callback=lambda info: seen.append(info) or True).fit(X, y)
    start = loss_and_gradient(np.eye(5), X, y, target_neighbors(X, y, 3), 0.5)[0]
    assert seen[0]["loss"] < start


def test_held_out_points_are_not_learned_from_and_the_best_map_is_kept(labeled):
    X, y = labeled
    errors, maps = [], []

    def look(info):
        errors.append(info["validation_error"])
        maps.append(info["components"])

    lmnn = LMNN(validation_fraction=0.3, random_state=0, callback=look).fit(X, y)
    looked = np.flatnonzero(~np.isnan(errors))
    assert len(looked) and (looked % 5 == 4).all()
    np.testing.assert_array_equal(lmnn.history_["validation_error"], errors)
    lowest = looked[np.argmin(np.array(errors)[looked])]
    final = lmnn.components_
    assert np.array_equal(final, maps[lowest]) or lmnn.converged_
    _, held = held_out_rows(np.asarray(y), 0.3, np.random.RandomState(0))
    assert np.bincount(y[held]).tolist() == [6, 6, 6]


def test_ctrl_c_keeps_what_was_learned(labeled):
    X, y = labeled

    def interrupt(info):
        if info["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    lmnn = LMNN(callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
        lmnn.fit(X, y)
    assert lmnn.n_iter_ in (2, 3) and not lmnn.converged_
    targets = target_neighbors(X, y, 3)
    assert lmnn.loss_ == pytest.approx(loss_and_gradient(lmnn.components_, X, y, targets, 0.5)[0])


def test_verbose_says_where_it_is(labeled, capsys):
    LMNN(verbose=True).fit(*labeled)
    said = capsys.readouterr().err
    assert re.search(
        r"LMNN: iteration \d+, stage 1, loss \S+, active [\d,]+, candidates [\d,]+, 0 s", said
    )


# Edge cases


def test_no_impostors_at_all():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 4, axis=0)
    lmnn = LMNN(init="identity").fit(X, np.repeat([0, 1, 2], 4))
    assert lmnn.loss_ == 0 and lmnn.n_active_ == 0 and lmnn.converged_
    np.testing.assert_allclose(lmnn.metric_.matrix, np.eye(2))


def test_well_separated_classes_shrink_to_the_margin(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    X[20:] += 1e3
    lmnn = LMNN().fit(X, np.repeat(["a", "b"], 20))
    assert 0 < lmnn.loss_ < 1


def test_small_classes_use_the_targets_there_are(labeled):
    X, y = labeled[0][:12], np.array([0] * 6 + [1] * 3 + [2] * 2 + [3])
    with pytest.warns(SamewiseWarning, match="3 of 4 classes have no more than n_neighbors=3"):
        lmnn = LMNN().fit(X, y)
    loss, _, active, _ = loss_and_gradient(lmnn.components_, X, y, target_neighbors(X, y, 3), 0.5)
    assert lmnn.loss_ == pytest.approx(loss, rel=1e-9)
    assert lmnn.n_active_ == active


def test_duplicates_constant_features_and_float32(labeled):
    X = np.column_stack([labeled[0], np.full(60, 7.0)])
    X = np.repeat(X, 2, axis=0).astype(np.float32)
    y = np.repeat(labeled[1], 2)
    lmnn = LMNN(tol=1e-6).fit(X, y)
    assert lmnn.components_.dtype == lmnn.transform(X).dtype == np.float32
    loss = loss_and_gradient(
        lmnn.components_.astype(float), X.astype(float), y, target_neighbors(X, y, 3), 0.5
    )[0]
    assert lmnn.loss_ == pytest.approx(loss, rel=1e-5)


def test_more_features_than_points(labeled):
    X, y = labeled
    rng = np.random.default_rng(0)
    wide = X @ np.linalg.qr(rng.normal(size=(200, 5)))[0].T + rng.normal(size=200)
    lmnn = LMNN(tol=1e-6, init="identity").fit(wide, y)
    assert lmnn.components_.shape == (5, 200)
    narrow = LMNN(tol=1e-6, init="identity").fit(X, y)
    assert lmnn.loss_ == pytest.approx(narrow.loss_, rel=1e-4)
    padded = LMNN(n_components=8).fit(wide, y)
    assert padded.components_.shape == (8, 200)
    assert np.array_equal(padded.components_[5:], np.zeros((3, 200)))


def test_a_thousand_classes(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(1000), 3)
    X = rng.normal(size=(1000, 6))[y] + 0.1 * rng.normal(size=(3000, 6))
    lmnn = LMNN(2, max_iter=20, tol=1e-3).fit(X, y)
    Z = lmnn.transform(X)
    loss = exact_loss(
        np.eye(6), Z, y, np.array([np.delete(np.arange(i - i % 3, i - i % 3 + 3), i % 3)
                                   for i in range(3000)])
    )[0]  # fmt: skip
    assert lmnn.loss_ == pytest.approx(loss, rel=1e-6)


def test_string_labels_and_order_do_not_matter(labeled):
    X, y = labeled
    named = LMNN().fit(X, np.array(["z", "ä", "long name"])[y])
    assert list(named.classes_) == ["long name", "z", "ä"]
    assert named.loss_ == pytest.approx(LMNN().fit(X, y).loss_, rel=1e-3)


def test_sparse_rows_are_made_dense_up_to_a_size(labeled, monkeypatch):
    X, y = labeled
    lmnn = LMNN().fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(lmnn.components_, LMNN().fit(X, y).components_)
    np.testing.assert_allclose(lmnn.transform(sp.csr_array(X)), lmnn.transform(X))
    monkeypatch.setattr(dense_rows, "MOST_SPARSE", 299)
    with pytest.raises(TooLargeError, match=re.escape("60 × 5 values, more than 299. Reduce")):
        lmnn.fit(sp.csr_array(X), y)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4))
Y = np.repeat([0, 1], 5)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: LMNN().fit(X, np.zeros(10)), "LMNN needs labels of at least two classes"),
        (lambda: LMNN().fit(X, np.arange(10)), "Got 10 classes of one example each"),
        (lambda: LMNN().fit(X, X[:, 0]), "Unknown label type"),
        (lambda: LMNN().fit(X, None), "requires y to be passed"),
        (lambda: LMNN(0).fit(X, Y), "The 'n_neighbors' parameter of LMNN must be"),
        (lambda: LMNN(push_weight=1.1).fit(X, Y), "The 'push_weight' parameter of LMNN must be"),
        (lambda: LMNN(n_components=5).fit(X, Y), "at most the number of features, 4. Got 5"),
        (lambda: LMNN(n_components=2, solver="M").fit(X, Y), "metric_.reduce(2)"),
        (lambda: LMNN(init="zero").fit(X, Y), "The 'init' parameter of LMNN must be"),
        (lambda: LMNN(init=np.eye(3)).fit(X, Y), "init must be a finite array of shape (3, 4)"),
        (lambda: LMNN(init=np.eye(4), n_components=2).fit(X, Y), "of shape (2, 4)"),
        (lambda: LMNN(targets=[[1]]).fit(X, Y), "an integer array of shape (10, n_targets)"),
        (lambda: LMNN(targets=np.full((10, 1), 10)).fit(X, Y), "row numbers from 0 to 9"),
        (lambda: LMNN(targets=np.full((10, 1), 1)).fit(X, Y), "same class, but row 1 names row 1"),
        (
            lambda: LMNN(targets=np.full((10, 1), -1), validation_fraction=0.5).fit(X, Y),
            "use only one of the two",
        ),
        (lambda: LMNN(validation_fraction=0.1).fit(X, Y), "holds out no point of any class"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call()


def test_refused_input_changes_nothing(labeled):
    lmnn = LMNN().fit(*labeled)
    before = vars(lmnn).copy()
    for bad in [(X, np.zeros(10)), (X, np.arange(10)), (np.full((10, 5), np.nan), Y)]:
        with pytest.raises(ValueError, match=r"classes|NaN"):
            lmnn.fit(*bad)
        assert vars(lmnn) == before


def test_unfitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        LMNN().transform(X)


def test_form_and_pickle(labeled):
    X, y = labeled
    lmnn = LMNN().fit(X, y)
    assert isinstance(lmnn.metric_, Mahalanobis)
    np.testing.assert_array_equal(lmnn.metric_.components, lmnn.components_)
    np.testing.assert_array_equal(lmnn.metric_.embed(X), lmnn.transform(X))
    again = pickle.loads(pickle.dumps(lmnn))
    np.testing.assert_array_equal(again.transform(X), lmnn.transform(X))
    assert KNNClassifier(lmnn).fit(X, y).score(X, y) > 0.8
    assert not hasattr(clone(lmnn), "components_")
