"""Retrieval: how high the relevant items stand when each query ranks all items.

Items are ranked by falling score. Items of equal score have no order of their own: a score is the
mean over all their orders (`ties="expected"`), so that equal scores are worth as much as chance.
`ties="index"` takes them in the order of their columns. A query without any relevant item has no
score: its value is NaN, and means leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.scores.tied_rankings import (
    Ranking,
    Ties,
    average_precision_of,
    first_gains,
    ranking_of,
    reciprocal_rank_of,
    where_relevant,
)

_Floats = NDArray[np.float64]

# Rows are ranked so many values at a time: little memory beside the block, and much of it cached.
_CHUNK = 2**18


@dataclass(frozen=True, eq=False)
class RetrievalScores:
    """Result of `retrieval_scores`.

    Attributes
    ----------
    per_query : dict of str to ndarray of shape (n_queries,)
        "precision@k", "recall@k" and "ndcg@k" for each k, "map" (the average precision) and
        "mrr" (the reciprocal rank); NaN for a query without relevant items.
    """

    per_query: dict[str, _Floats]

    @property
    def means(self) -> dict[str, float]:
        """Mean of each score over the queries that have a relevant item."""
        return {name: float(np.nanmean(values)) for name, values in self.per_query.items()}

    @property
    def n_skipped(self) -> int:
        """How many queries have no relevant item."""
        return int(np.isnan(self.per_query["map"]).sum())


def precision_at_k(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, ties: Ties = "expected"
) -> _Floats:
    """Fraction of the first k items that are relevant: |relevant ∩ first k| / k.

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
    >>> from samewise.scores import precision_at_k
    >>> precision_at_k([[0.9, 0.1, 0.5], [0.2, 0.3, 0.1]], [[1, 1, 0], [0, 1, 0]], k=2)
    array([0.5, 0.5])
    """
    hits, n_relevant = _first_hits(scores, relevant, k, ties)
    return where_relevant(hits.mean(axis=1), n_relevant)


def recall_at_k(
    scores: ArrayLike, relevant: ArrayLike, k: int, *, ties: Ties = "expected"
) -> _Floats:
    """Fraction of the relevant items that are among the first k: |relevant ∩ first k| / |relevant|.

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
    >>> from samewise.scores import recall_at_k
    >>> recall_at_k([[0.9, 0.1, 0.5], [0.2, 0.3, 0.1]], [[1, 1, 0], [0, 1, 0]], k=2)
    array([0.5, 1. ])
    """
    hits, n_relevant = _first_hits(scores, relevant, k, ties)
    return where_relevant(hits.sum(axis=1) / np.maximum(n_relevant, 1), n_relevant)


def average_precision(
    scores: ArrayLike, relevant: ArrayLike, *, ties: Ties = "expected"
) -> _Floats:
    """Mean, over the relevant items, of the precision at the rank of each.

    AP = 1/|relevant| · Σ over relevant items of (relevant items up to its rank) / (its rank); its
    mean over queries is mAP.

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
    >>> from samewise.scores import average_precision
    >>> average_precision([[4.0, 3.0, 2.0, 1.0]], [[True, False, False, True]])
    array([0.75])
    """
    return np.concatenate([average_precision_of(r) for r in rankings(scores, relevant, ties)])


def reciprocal_rank(scores: ArrayLike, relevant: ArrayLike, *, ties: Ties = "expected") -> _Floats:
    """One over the rank of the first relevant item; its mean over queries is MRR.

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
    >>> from samewise.scores import reciprocal_rank
    >>> reciprocal_rank([[4.0, 3.0, 2.0], [4.0, 3.0, 2.0]], [[0, 1, 1], [0, 0, 0]])
    array([0.5, nan])
    """
    return np.concatenate([reciprocal_rank_of(r) for r in rankings(scores, relevant, ties)])


def ndcg(
    scores: ArrayLike, gains: ArrayLike, k: int | None = None, *, ties: Ties = "expected"
) -> _Floats:
    """Discounted gain of the first k items, as a fraction of the best possible.

    DCG = Σ over ranks r = 1 … k of gain(r) / log₂(1 + r), divided by the DCG of the items in the
    order of their gains.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    gains : array-like of shape (n_queries, n_items)
        What each item is worth, ≥ 0.
    k : int, default=None
        1 ≤ k ≤ n_items; all items by default.
    ties : {"expected", "index"}, default="expected"
        Items of equal score: the mean over all their orders, or the order of their columns.

    Returns
    -------
    ndarray of shape (n_queries,)
        NaN for a query without gains.

    Examples
    --------
    >>> from samewise.scores import ndcg
    >>> ndcg([[3.0, 2.0, 1.0]], [[2, 0, 1]]).round(4)
    array([0.9502])
    """
    C, G = _checked(scores, gains, ties)
    k = C.shape[1] if k is None else checked_k(k, C.shape[1])
    reached = first_gains(C, G, k, ties) @ _discounts(k)
    ideal = np.sort(G, axis=1)[:, : -k - 1 : -1] @ _discounts(k)
    return where_relevant(reached / np.where(ideal > 0, ideal, 1.0), ideal)


def retrieval_scores(
    blocks: Iterable[tuple[slice, Array]],
    labels_of_queries: ArrayLike,
    labels_of_items: ArrayLike,
    ks: Iterable[int] = (1, 10),
    exclude_self: bool = False,
    *,
    ties: Ties = "expected",
) -> RetrievalScores:
    """Retrieval scores, block by block, where items of the query's label are relevant.

    No array of n_queries × n_items is needed: each block is ranked and forgotten.

    Parameters
    ----------
    blocks : iterable of (slice, ndarray)
        Rows of the queries, and their closeness to all items, as `form.blocks(Q, P)` yields them.
        Each query comes exactly once.
    labels_of_queries : array-like of shape (n_queries,)
        Label of each query.
    labels_of_items : array-like of shape (n_items,)
        Label of each item.
    ks : iterable of int, default=(1, 10)
        Cutoffs of precision, recall and nDCG.
    exclude_self : bool, default=False
        True if queries and items are the same examples: query i does not rank item i.
    ties : {"expected", "index"}, default="expected"
        Items of equal score: the mean over all their orders, or the order of their columns.

    Returns
    -------
    RetrievalScores
        `means` is a dict of the means over queries, `per_query` holds the single values.

    Examples
    --------
    >>> from samewise import Mahalanobis
    >>> from samewise.scores import retrieval_scores
    >>> X, y = [[0.0], [1.0], [3.0], [7.0]], ["a", "a", "b", "b"]
    >>> blocks = Mahalanobis.identity(1).blocks(X, X)
    >>> result = retrieval_scores(blocks, y, y, ks=(1, 2), exclude_self=True)
    >>> result.means["precision@1"], result.means["recall@2"]
    (0.75, 0.75)
    >>> result.per_query["map"].round(3)
    array([1.   , 1.   , 0.333, 1.   ])
    """
    queries, items = _label_codes(labels_of_queries, labels_of_items)
    if exclude_self and not queries.size == items.size > 1:
        raise InvalidInputError(
            "exclude_self needs the same examples as queries and as items, at least two. "
            f"Got {queries.size} queries and {items.size} items."
        )
    cutoffs = [checked_k(k, items.size - bool(exclude_self)) for k in ks]
    _check_ties(ties)
    per_query: dict[str, _Floats] = {}
    for rows, C in _checked_blocks(blocks, queries.size, items.size):
        for part in _chunks(C.shape):
            here = rows[part]
            hits = items == queries[here, None]
            ranking = ranking_of(C[part], hits, ties, here if exclude_self else None)
            for name, values in _measures(ranking, cutoffs).items():
                per_query.setdefault(name, np.empty(queries.size))[here] = values
    if np.all(np.isnan(per_query["map"])):
        raise DegenerateInputError(
            "No query has a relevant item: no label of the queries is one of the items. "
            "Check that both use the same labels."
        )
    return RetrievalScores(per_query)


def _measures(ranking: Ranking, ks: list[int]) -> dict[str, _Floats]:
    """Every score of rows of full rankings."""
    n_relevant = ranking.n_relevant
    chance = ranking.chance(max(ks, default=0))
    found = {k: chance[:, :k].sum(axis=1) for k in ks}
    values = {f"precision@{k}": found[k] / k for k in ks}
    values |= {f"recall@{k}": found[k] / np.maximum(n_relevant, 1) for k in ks}
    for k in ks:
        best = _discounts(k)
        ideal = np.cumsum(best)[np.clip(n_relevant, 1, k) - 1]
        values[f"ndcg@{k}"] = chance[:, :k] @ best / ideal
    values |= {"map": average_precision_of(ranking), "mrr": reciprocal_rank_of(ranking)}
    return {name: where_relevant(v, n_relevant) for name, v in values.items()}


def _discounts(k: int) -> _Floats:
    return 1.0 / np.log2(np.arange(2, k + 2))


def _first_hits(
    scores: ArrayLike, relevant: ArrayLike, k: int, ties: Ties
) -> tuple[NDArray[Any], Indices]:
    """Relevance of the first k items in ranked order, and the number of relevant items."""
    C, gains = _checked(scores, relevant, ties)
    hits = gains > 0
    return first_gains(C, hits, checked_k(k, C.shape[1]), ties), hits.sum(axis=1)


def rankings(scores: ArrayLike, relevant: ArrayLike, ties: Ties) -> Iterator[Ranking]:
    """Relevance in ranked order, some rows at a time."""
    C, gains = _checked(scores, relevant, ties)
    for rows in _chunks(C.shape):
        yield ranking_of(C[rows], gains[rows] > 0, ties)


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    n_rows = max(1, _CHUNK // shape[1])
    return (slice(start, start + n_rows) for start in range(0, shape[0], n_rows))


def _checked(scores: ArrayLike, gains: ArrayLike, ties: str) -> tuple[Array, NDArray[Any]]:
    _check_ties(ties)
    C, G = _checked_scores(scores, "scores"), np.asarray(gains)
    if not C.size or G.shape != C.shape:
        raise InvalidInputError(
            "scores and relevance must have the same shape (n_queries, n_items), not empty. "
            f"Got {C.shape} and {G.shape}."
        )
    if G.dtype.kind not in "bfiu" or not np.all(np.isfinite(G)) or np.any(G < 0):
        raise InvalidInputError(
            "Relevance must be booleans or finite gains ≥ 0. Give items that do not count 0."
        )
    return C, G


def _check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise InvalidInputError(f"ties must be 'expected' or 'index'. Got {ties!r} instead.")


def _checked_scores(scores: ArrayLike, name: str) -> Array:
    C = np.asarray(scores)
    if C.ndim != 2 or C.dtype.kind not in "bfiu":
        raise InvalidInputError(
            f"{name} must be a dense array of real numbers of shape (n_queries, n_items). "
            f"Got {C.ndim} dimension(s) of {C.dtype}; one query is scores[None, :]."
        )
    C = C.astype(np.float32 if C.dtype in (np.float16, np.float32) else np.float64, copy=False)
    if np.any(np.isnan(C)):
        raise InvalidInputError(f"{name} must not contain NaN, which has no rank.")
    return C


def checked_k(k: int, n_items: int) -> int:
    """The number of ranks, checked."""
    if not isinstance(k, Integral) or not 1 <= k <= n_items:
        raise InvalidInputError(
            f"k must be an integer from 1 to {n_items}, the items ranked. Got {k!r} instead."
        )
    return int(k)


def _checked_blocks(
    blocks: Iterable[tuple[slice, Array]], n_queries: int, n_items: int
) -> Iterator[tuple[Indices, Array]]:
    if isinstance(blocks, np.ndarray):
        raise InvalidInputError(
            "blocks must yield (slice of query rows, closeness block). "
            "Got an array; a whole matrix C is [(slice(0, len(C)), C)]."
        )
    times = np.zeros(n_queries, dtype=np.int64)
    for rows, block in blocks:
        index = np.arange(n_queries)[rows]
        C = _checked_scores(block, "A block")
        if C.shape != (index.size, n_items):
            raise InvalidInputError(
                f"The block of rows {rows} must have shape {(index.size, n_items)}, for "
                f"{n_queries} labels of queries and {n_items} of items. Got {C.shape}."
            )
        times[index] += 1
        yield index, C
    if np.any(times != 1):
        query = int(np.argmax(times != 1))
        raise InvalidInputError(
            f"blocks must hold each of the {n_queries} queries exactly once. "
            f"Query {query} came {times[query]} times."
        )


def _label_codes(queries: ArrayLike, items: ArrayLike) -> tuple[Indices, Indices]:
    """Both lists of labels as numbers, equal where the labels are."""
    # As objects, because side by side in one array 1 and "1" would become the same label.
    q, p = np.asarray(queries).astype(object), np.asarray(items).astype(object)
    if q.ndim != 1 or p.ndim != 1 or not q.size or not p.size:
        raise InvalidInputError(
            "Labels of queries and of items must be one-dimensional and not empty. "
            f"Got shapes {q.shape} and {p.shape}."
        )
    labels = np.concatenate([q, p])
    try:
        codes = np.unique(labels, return_inverse=True)[1]
        unlabeled = bool(np.any(labels != labels))
    except TypeError as error:
        raise InvalidInputError("Labels must be of one kind, all numbers or all text.") from error
    if unlabeled:
        raise InvalidInputError("Labels must not be NaN. Leave out unlabeled examples.")
    return codes[: q.size], codes[q.size :]
