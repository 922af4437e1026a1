"""What is learned has the same bits whatever the number of threads."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from samewise import LMNN, MCML, MLKR, NCA, MultiMetricLMNN
from samewise.learners.batch.lmnn import estimator
from samewise.learners.batch.lmnn.objective import LINEAR, SQUARED, LMNNObjective
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.solvers import workers as shared
from samewise.solvers.workers import workers
from tests.reference.lmnn import loss_and_gradient, target_neighbors

LEARNERS = {
    "LMNN": LMNN(max_iter=8),
    "LMNN, low rank": LMNN(n_components=3, max_iter=8),
    "LMNN, squared": LMNN(hinge="squared", max_iter=8),
    "LMNN, convex": LMNN(solver="M", max_iter=4),
    "LMNN, anchors": LMNN(max_anchors=150, max_iter=8, random_state=0),
    "LMNN, early stopping": LMNN(validation_fraction=0.1, max_iter=8, random_state=0),
    "LMNN, two searches": LMNN(n_target_searches=2, max_iter=4),
    "several metrics": MultiMetricLMNN(max_iter=5, random_state=0),
    "MCML": MCML(max_iter=4),
    "NCA": NCA(max_iter=5, random_state=0),
    "NCA, low rank": NCA(n_components=2, max_iter=5, random_state=0),
    "MLKR": MLKR(max_iter=5),
}


@pytest.fixture(scope="module")
def hundreds():
    """Four overlapping classes of different sizes, enough rows to be shared."""
    rng = np.random.default_rng(25)
    y = rng.choice(4, size=shared.SHARED + 61, p=[0.5, 0.3, 0.15, 0.05])
    X = rng.normal(size=(len(y), 8)) * np.linspace(1, 3, 8)
    X[:, :4] += 2 * np.eye(4)[y]
    return X, y


def learned(learner, X, y, n_threads, monkeypatch):
    """The state of a fitted learner, as bytes."""
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", n_threads)
    with threadpool_limits(n_threads, user_api="blas"):
        learner.fit(X, y)
    arrays = learner.metric_.state().arrays
    return {name: values.tobytes() for name, values in arrays.items()}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LEARNERS)
def test_any_number_of_threads_gives_the_same_bits(name, dtype, hundreds, monkeypatch):
    X, y = hundreds
    learner = LEARNERS[name]
    one, two, three = (
        learned(learner, X.astype(dtype), y, n_threads, monkeypatch) for n_threads in (1, 2, 3)
    )
    assert one == two == three


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_float32_work_too(hundreds, monkeypatch):
    monkeypatch.setattr(estimator, "SMALL", 0)
    one, two = (learned(LMNN(max_iter=6), *hundreds, n, monkeypatch) for n in (1, 2))
    assert one == two


# Spans share points, and each of them has a place of its own in the sums.


@pytest.mark.parametrize("n_spans", [1, 2, 4, 9])
@pytest.mark.parametrize("hinge", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("n_anchors", [0, 1, 7, 60])
def test_spans_add_up_to_the_plain_loops(n_spans, hinge, n_anchors, labeled, seed, monkeypatch):
    monkeypatch.setattr(shared, "SHARED", 1)
    monkeypatch.setattr(shared, "SPANS", n_spans)
    X, y = labeled
    rng = np.random.default_rng(seed)
    L = 0.5 * rng.normal(size=(4, 5))
    classes = Classes(y, 3)
    anchors = np.sort(rng.choice(60, n_anchors, replace=False)).astype(np.int32)
    with workers() as team:
        targets = nearest_targets(X, classes, 3, team, anchors)
        objective = LMNNObjective(X[classes.order], targets, classes, 0.3, hinge, team)
        objective.search(L)
        # Twice: what the sums held before does not matter.
        objective.value_and_gradient(3 * L)
        value, scatter = objective.value_and_gradient(L), objective.scatter(L)
    near, rows = target_neighbors(X, y, 3), set(classes.order[anchors].tolist())
    near = [near[i] if i in rows else [] for i in range(60)]
    wanted = loss_and_gradient(L, X, y, near, 0.3, hinge is SQUARED)
    assert value.loss == pytest.approx(wanted[0], rel=1e-10)
    assert value.active == wanted[2]
    for found, right in ((value.gradient, wanted[1]), (scatter.gradient, wanted[3])):
        np.testing.assert_allclose(found, right, atol=1e-10 * (abs(right).max() + 1e-300))
