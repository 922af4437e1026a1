"""Retrieval to the depth that a query has relevant items, and whether there is any hit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.scores.ranking import checked_k, rankings
from samewise.scores.tied_rankings import (
    Ties,
    average_precision_of,
    hit_of,
    precision_at_r_of,
)

_Floats = NDArray[np.float64]


def r_precision(scores: ArrayLike, relevant: ArrayLike, *, ties: Ties = "expected") -> _Floats:
    """Precision among the first R items, R being the number of relevant items of the query.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.
    ties : {"expected", "index"}, default="expected"
        Items of equal score: the mean over all their orders, or the order of their columns.

    Returns
    -------
    ndarray of shape (n_queries,)
        NaN for a query without relevant items.

    Examples
    --------
    >>> from samewise.scores import r_precision
    >>> r_precision([[4.0, 3.0, 2.0, 1.0]], [[1, 0, 1, 0]])
    array([0.5])
    """
    return np.concatenate([precision_at_r_of(r) for r in rankings(scores, relevant, ties)])


def average_precision_at_r(
    scores: ArrayLike, relevant: ArrayLike, *, ties: Ties = "expected"
) -> _Floats:
    """Average precision among the first R items of a query with R relevant ones; its mean is MAP@R.

    1/R · Σ over ranks r = 1 … R with a relevant item of the precision among the first r. It is at
    most the R-precision, and 1 if the relevant items come first.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.
    ties : {"expected", "index"}, default="expected"
        Items of equal score: the mean over all their orders, or the order of their columns.

    Returns
    -------
    ndarray of shape (n_queries,)
        NaN for a query without relevant items.

    References
    ----------
    K. Musgrave, S. Belongie, S.-N. Lim: A metric learning reality check. ECCV 2020.

    Examples
    --------
    >>> from samewise.scores import average_precision_at_r
    >>> average_precision_at_r([[4.0, 3.0, 2.0, 1.0]], [[0, 1, 1, 1]]).round(4)
    array([0.3889])
    """
    return np.concatenate(
        [average_precision_of(r, up_to_r=True) for r in rankings(scores, relevant, ties)]
    )


def hit_rate_at_k(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, ties: Ties = "expected"
) -> _Floats:
    """Whether one of the first k items is relevant, 0 or 1; its mean is also called recall@k.

    Where items of equal score stand on both sides of rank k, it is the chance of a hit.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.
    k : int
        1 ≤ k ≤ n_items.
    ties : {"expected", "index"}, default="expected"
        Items of equal score: the mean over all their orders, or the order of their columns.

    Returns
    -------
    ndarray of shape (n_queries,)
        NaN for a query without relevant items.

    Examples
    --------
    >>> from samewise.scores import hit_rate_at_k
    >>> hit_rate_at_k([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]], [[0, 1, 0], [0, 1, 0]], k=1)
    array([0.        , 0.33333333])
    """
    parts = rankings(scores, relevant, ties)
    return np.concatenate([hit_of(r, checked_k(k, r.hits.shape[1])) for r in parts])
