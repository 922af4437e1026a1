"""Triplets of clicks: what was clicked above what was skipped."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import OASIS, Triplets
from samewise.exceptions import InvalidInputError
from samewise.supervision import clicks as module


def by_hand(shown, clicked):
    """Every clicked item with every item above it that was not."""
    return [
        (row, items[j], items[i])
        for row, (items, marks) in enumerate(zip(shown, clicked, strict=True))
        for j in range(len(items))
        for i in range(j)
        if marks[j] and not marks[i] and items[i] >= 0
    ]


def lists(seed, n=50, k=7, n_items=30):
    rng = np.random.default_rng(seed)
    shown = np.array([rng.permutation(n_items)[:k] for _ in range(n)])
    clicked = rng.random((n, k)) < 0.3
    for row, length in enumerate(rng.integers(0, k + 1, n)):
        shown[row, length:], clicked[row, length:] = -1, False
    return shown, clicked


@pytest.mark.parametrize("cells", [2**24, 100])
def test_clicked_is_preferred_to_skipped_above(cells, seed, monkeypatch):
    monkeypatch.setattr(module, "CELLS", cells)
    shown, clicked = lists(seed)
    weights = np.arange(50) / 10
    X, items = np.ones((50, 2)), np.ones((30, 3))
    t = Triplets.from_clicks(X, items, shown, clicked.astype(int), weights)
    found = list(zip(t.anchor.tolist(), t.positive.tolist(), t.negative.tolist(), strict=True))
    assert found == by_hand(shown, clicked) and len(found) > 40
    np.testing.assert_array_equal(t.sample_weight, weights[t.anchor])
    assert t.items is not t.X and t.items.shape == (30, 3)


def test_a_click_on_top_and_items_below_the_last_click_say_nothing():
    X, items = np.eye(2), np.eye(4, 2)
    shown = [[0, 1, 2], [3, 1, -1]]
    assert len(Triplets.from_clicks(X, items, shown, [[1, 0, 0], [0, 0, 0]])) == 0
    t = Triplets.from_clicks(X, items, shown, [[1, 0, 1], [0, 1, 0]])
    assert t.anchor.tolist() == [0, 1]
    assert t.positive.tolist() == [2, 1] and t.negative.tolist() == [1, 3]
    assert OASIS(init="zero").fit(t).score(t) == 1.0


@pytest.mark.parametrize(
    ("shown", "clicked", "said"),
    [
        ([[0, 1]], [[0, 1, 0]], r"same shape, .* Got \(1, 2\) and \(1, 3\) for 1 queries\."),
        ([[0, 1], [1, 2]], [[0, 1], [0, 1]], r"Got \(2, 2\) and \(2, 2\) for 1 queries\."),
        ([0, 1], [0, 1], r"shown must have shape \(n_lists, n_places\)\. Got shape \(2,\)\."),
        ([[0, 1], [0]], [[0, 1]], "shown must have a column for each place.*fill shorter ones"),
        ([[0, 4]], [[0, 1]], r"row numbers of items from 0 to 3.*from 0 to 4\."),
        ([[0, -2]], [[0, 1]], r"row numbers of items from 0 to 3.*from -2 to 0\."),
        ([[0.0, 1.0]], [[0, 1]], "Got type float64"),
        ([[0, 1]], [[0, 3]], r"True or False .* pass np\.isin"),
        ([[0, 1]], [["a", "b"]], "True or False"),
        ([[0, -1]], [[0, 1]], "False where shown is -1"),
        ([[0, 2, 0]], [[0, 0, 1]], r"at most once in a list\. Got item 0 twice in list 0\."),
    ],
)
def test_bad_lists_are_refused(shown, clicked, said):
    with pytest.raises(InvalidInputError, match=said):
        Triplets.from_clicks(np.ones((1, 2)), np.eye(4, 2), shown, clicked)


def test_bad_weights_of_lists_are_refused():
    with pytest.raises(InvalidInputError, match="one weight for each of the 1 lists"):
        Triplets.from_clicks(np.ones((1, 2)), np.eye(4, 2), [[0, 1]], [[0, 1]], [1.0, 2.0])
