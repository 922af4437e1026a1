"""Pairs for a purpose: what a learner samples from labeled examples, and what it holds out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from samewise.supervision import sampling
from samewise.supervision.pairs import Pairs
from samewise.supervision.supervision_checks import checked_matrix

STRATEGIES = {"neighbors": "nearest", "verification": "balanced"}
"""How the pairs to learn from are sampled, for each purpose."""

HELD_OUT = 5_000
"""At most so many pairs of each kind are held out: a threshold is known well enough by then."""

PART = 5
"""At most one in so many pairs of a kind is held out."""


class SampledPairs(NamedTuple):
    """Pairs to learn from, in random order, and random pairs that are none of them."""

    learned: Pairs
    held_out: Pairs


def sampled_pairs(
    X: Any,
    y: ArrayLike,
    *,
    purpose: str,
    n_neighbors: int,
    n_pairs: int | None,
    form: sampling.Nearness | None = None,
    merge_duplicates: bool = True,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> SampledPairs:
    """Pairs sampled from labeled examples.

    Parameters
    ----------
    X, y, merge_duplicates, sample_weight : the arguments of `Pairs.from_labels`
    purpose : {"neighbors", "verification"}
        Nearest pairs, `n_neighbors` of each kind for each example; or random ones, half of them
        similar.
    n_pairs : int or None
        At most so many; None is the number of `Pairs.from_labels`, and at most as many in all.
    form : what has `blocks(X, X)`, optional
        What near means.
    random_state : int, RandomState instance or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> how = {"purpose": "neighbors", "n_neighbors": 2, "n_pairs": None, "random_state": 0}
    >>> sampled_pairs(X, y, **how).held_out
    Pairs(1450 pairs, 725 similar, over 150 rows of 4 features)
    """
    random = check_random_state(random_state)
    X = checked_matrix(X)
    codes, weights, order = sampling.coded(X, y, sample_weight, merge_duplicates)

    def draw(count: int | None, strategy: str) -> Pairs:
        left, right = sampling.draw_pairs(
            X, codes, order, count, strategy, n_neighbors, form, random
        )
        same = np.where(codes[left] == codes[right], 1, -1).astype(np.int8)
        return Pairs(X, left, right, same, sampling.pair_weights(weights, left, right))

    held_out = draw(2 * _held_out_count(codes), "balanced")
    strategy = STRATEGIES[purpose]
    if n_pairs is None and strategy == "nearest":
        n_pairs = sampling.AT_MOST
    learned = draw(n_pairs, strategy)
    learned = learned[random.permutation(len(learned))]
    others = learned[~np.isin(_names(learned), _names(held_out))]
    # Where there are hardly any pairs, a threshold on those learned from is better than none.
    return SampledPairs(others if len(np.unique(others.y)) == 2 else learned, held_out)


def _held_out_count(codes: NDArray[np.intp]) -> int:
    """Pairs of each kind to hold out."""
    sizes = np.bincount(codes[codes >= 0]).astype(np.int64)
    n = int(sizes.sum())
    similar = int((sizes * (sizes - 1) // 2).sum())
    return max(1, min(HELD_OUT, min(similar, n * (n - 1) // 2 - similar) // PART))


def _names(pairs: Pairs) -> NDArray[np.int64]:
    """A number for each pair, the same for either order of its members."""
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    return low.astype(np.int64) * pairs.X.shape[0] + high
