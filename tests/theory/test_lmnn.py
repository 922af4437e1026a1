"""What holds for LMNN by theory: descent, convexity, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import KNNClassifier, datasets
from samewise.exceptions import DatasetNotFoundError
from samewise.learners import LMNN
from tests.reference.lmnn import loss_and_gradient, target_neighbors


def test_the_loss_never_rises_between_searches(labeled):
    history = LMNN(tol=1e-6).fit(*labeled).history_
    same = np.diff(history["n_candidates"]) == 0
    assert same.any()
    assert (np.diff(history["loss"])[same] <= 0).all()


def test_the_minimum_is_stationary_and_no_mixture_is_better(labeled, seed):
    X, y = labeled
    best = LMNN(solver="M", tol=1e-5, max_iter=5000).fit(X, y)
    targets = target_neighbors(X, y, 3)
    other = np.random.default_rng(seed).normal(size=(5, 5))
    M, N = best.metric_.matrix, other.T @ other

    def loss(M):
        values, vectors = np.linalg.eigh(M)
        L = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        return loss_and_gradient(L, X, y, targets, 0.5)[0]

    for t in (1e-3, 0.1, 0.5):
        mixed = loss((1 - t) * M + t * N)
        assert mixed <= (1 - t) * loss(M) + t * loss(N) + 1e-9
        assert mixed >= best.loss_ - best.gap_


def test_the_loss_does_not_depend_on_the_unit_of_the_data(labeled):
    X, y = labeled
    losses = [LMNN(tol=1e-7).fit(c * X, y).loss_ for c in (1.0, 1e-6, 1e6)]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-4)


def test_without_push_everything_collapses(labeled):
    lmnn = LMNN(push_weight=0.0).fit(*labeled)
    assert lmnn.loss_ < 1e-6


@pytest.mark.parametrize(
    ("name", "most"), [("letter", 0.045), ("satellite", None), ("segmentation", None)]
)
def test_nearest_neighbors_get_better_on_real_data(name, most):
    try:
        data = datasets.load(name)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    X, y = data.data, data.target
    train = data.get("train")
    if train is None:
        train = np.random.default_rng(0).random(len(X)) < 0.7
    plain = KNNClassifier(n_neighbors=3).fit(X[train], y[train])
    lmnn = LMNN().fit(X[train], y[train])
    learned = KNNClassifier(lmnn, n_neighbors=3).fit(X[train], y[train])
    errors = [1 - knn.score(X[~train], y[~train]) for knn in (plain, learned)]
    assert errors[1] < errors[0]
    assert most is None or errors[1] <= most
