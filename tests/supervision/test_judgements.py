"""Judged lists, and the directions they propose."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import Judgements, LiveAdapter
from samewise.engine.directions import list_ranking
from samewise.engine.rank_one_mover import RankOneMover
from samewise.engine.stores import Full
from samewise.exceptions import InvalidInputError
from samewise.kernels.adapter_loops import settle
from samewise.kernels.steps import Step


def lists(n=30, seed=0):
    random = np.random.RandomState(seed)
    X = random.randn(60, 7)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    shown = np.array([random.choice(60, 6, replace=False) for _ in range(n)])
    y = random.choice([-1, 0, 1], shown.shape)
    y[:, :2] = [1, -1]
    return Judgements(X, random.randint(60, size=n), shown, y)


def test_triplets_are_the_pairs_of_each_list():
    judged = lists()
    found = judged[:3].triplets()
    wanted = [
        (judged.query[i], judged.shown[i, a], judged.shown[i, b])
        for i in range(3)
        for a in range(6)
        for b in range(6)
        if judged.y[i, a] > 0 > judged.y[i, b]
    ]
    assert wanted == list(zip(found.anchor, found.positive, found.negative, strict=True))
    np.testing.assert_allclose(np.sum(found.sample_weight), 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [[1, 2]]}, "must be \\+1"),
        ({"y": [[1]]}, "as many answers"),
        ({"shown": [[1, 1]]}, "twice"),
        ({"shown": [[1, 9]]}, "from 0 to 2"),
        ({"query": [3]}, "from 0 to 2"),
        ({"shown": [[]], "y": [[]]}, "as many answers"),
        ({"sample_weight": [-1.0]}, "not negative"),
    ],
)
def test_wrong_lists_are_refused(change, message):
    right = {"query": [0], "shown": [[1, 2]], "y": [[1, -1]]}
    with pytest.raises(InvalidInputError, match=message):
        Judgements(np.eye(3), **(right | change))


@pytest.mark.parametrize("path", ["plain", "compiled"])
def test_the_adapters_linear_part_is_a_mover_over_list_directions(path):
    judged = lists()
    adapter = LiveAdapter(memory=0, random_state=0).fit(judged.X)
    units = adapter._fitted.units
    phi = (judged.X - units.mu) @ units.L
    by_phi = Judgements(phi, judged.query, judged.shown, judged.y, judged.X)
    store = Full(np.zeros((phi.shape[1], 7)))
    mover = RankOneMover(store, 0.0, Step(relax=0.5), path, psd=None)
    moved = 0
    for i in range(len(judged)):
        q, shown = judged.query[i], judged.shown[i]
        base = judged.X[q]
        scores = judged.X[shown] @ (base + phi[q] @ mover.store.matrix)
        direction = list_ranking(by_phi[[i]], 0.3 * units.gap, scores[None], base[None])
        moved += len(mover.advance(direction, 0, False).updates)
        adapter.feedback(base, judged.X[shown], judged.y[i])
        linear = adapter._fitted.linear.compiled
        settle(linear)
        np.testing.assert_allclose(linear[2][0] * linear[0], mover.store.matrix, atol=1e-4)
    assert moved > 20
