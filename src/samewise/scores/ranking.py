"""Retrieval: how high the relevant items stand when each query ranks all items.

Items are ranked by falling score; equal scores stand in the order of their columns. A query
without any relevant item has no score: its value is NaN, and means leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.kernels.neighbors import top_k

_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]

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


def precision_at_k(scores: ArrayLike, relevant: ArrayLike, k: int) -> _Floats:
    """Fraction of the first k items that are relevant: |relevant ∩ first k| / k.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.
    k : int
        1 ≤ k ≤ n_items.

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
    hits, n_relevant = _first_hits(scores, relevant, k)
    return _where_relevant(hits.mean(axis=1), n_relevant)


def recall_at_k(scores: ArrayLike, relevant: ArrayLike, k: int) -> _Floats:
    """Fraction of the relevant items that are among the first k: |relevant ∩ first k| / |relevant|.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.
    k : int
        1 ≤ k ≤ n_items.

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
    hits, n_relevant = _first_hits(scores, relevant, k)
    return _where_relevant(hits.sum(axis=1) / np.maximum(n_relevant, 1), n_relevant)


def average_precision(scores: ArrayLike, relevant: ArrayLike) -> _Floats:
    """Mean, over the relevant items, of the precision at the rank of each.

    AP = 1/|relevant| · Σ over relevant items of (relevant items up to its rank) / (its rank); its
    mean over queries is mAP.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.

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
    return np.concatenate([_average_precision(hits) for hits in _ranked_hits(scores, relevant)])


def reciprocal_rank(scores: ArrayLike, relevant: ArrayLike) -> _Floats:
    """One over the rank of the first relevant item; its mean over queries is MRR.

    Parameters
    ----------
    scores : array-like of shape (n_queries, n_items)
        Larger is better; infinities are allowed.
    relevant : array-like of shape (n_queries, n_items)
        Booleans or gains; an item of gain > 0 is relevant.

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
    return np.concatenate([_reciprocal_rank(hits) for hits in _ranked_hits(scores, relevant)])


def ndcg(scores: ArrayLike, gains: ArrayLike, k: int | None = None) -> _Floats:
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
    C, G = _checked(scores, gains)
    n_items = C.shape[1]
    k = n_items if k is None else _checked_k(k, n_items)
    first = top_k(C, k) if k < n_items else _ranked(C)
    reached = np.take_along_axis(G, first, axis=1) @ _discounts(k)
    ideal = np.sort(G, axis=1)[:, : -k - 1 : -1] @ _discounts(k)
    return _where_relevant(reached / np.where(ideal > 0, ideal, 1.0), ideal)


def retrieval_scores(
    blocks: Iterable[tuple[slice, Array]],
    labels_of_queries: ArrayLike,
    labels_of_items: ArrayLike,
    ks: Iterable[int] = (1, 10),
    exclude_self: bool = False,
) -> RetrievalScores:
    """Every retrieval score, block by block, where items of the query's label are relevant.

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
    cutoffs = [_checked_k(k, items.size - bool(exclude_self)) for k in ks]
    per_query: dict[str, _Floats] = {}
    for rows, C in _checked_blocks(blocks, queries.size, items.size):
        for part in _chunks(C.shape):
            here, order = rows[part], _ranked(C[part])
            if exclude_self:
                order = order[order != here[:, None]].reshape(here.size, -1)
            hits = items[order] == queries[here, None]
            for name, values in _measures(hits, cutoffs).items():
                per_query.setdefault(name, np.empty(queries.size))[here] = values
    if np.all(np.isnan(per_query["map"])):
        raise DegenerateInputError(
            "No query has a relevant item: no label of the queries is one of the items. "
            "Check that both use the same labels."
        )
    return RetrievalScores(per_query)


def _measures(hits: _Flags, ks: list[int]) -> dict[str, _Floats]:
    """Every score of rows of full rankings."""
    n_relevant = hits.sum(axis=1)
    found = {k: hits[:, :k].sum(axis=1) for k in ks}
    values = {f"precision@{k}": found[k] / k for k in ks}
    values |= {f"recall@{k}": found[k] / np.maximum(n_relevant, 1) for k in ks}
    for k in ks:
        best = _discounts(k)
        ideal = np.cumsum(best)[np.clip(n_relevant, 1, k) - 1]
        values[f"ndcg@{k}"] = hits[:, :k] @ best / ideal
    values |= {"map": _average_precision(hits), "mrr": _reciprocal_rank(hits)}
    return {name: _where_relevant(v, n_relevant) for name, v in values.items()}


def _average_precision(hits: _Flags) -> _Floats:
    n_relevant = hits.sum(axis=1)
    rows, places = np.divmod(np.flatnonzero(hits), hits.shape[1])
    before = np.cumsum(n_relevant) - n_relevant
    found = np.arange(1, rows.size + 1) - before[rows]
    total = np.bincount(rows, found / (places + 1), minlength=len(hits))
    return _where_relevant(total / np.maximum(n_relevant, 1), n_relevant)


def _reciprocal_rank(hits: _Flags) -> _Floats:
    return _where_relevant(1.0 / (1 + hits.argmax(axis=1)), hits.sum(axis=1))


def _discounts(k: int) -> _Floats:
    return 1.0 / np.log2(np.arange(2, k + 2))


def _where_relevant(values: _Floats, n_relevant: NDArray[Any]) -> _Floats:
    return np.where(n_relevant > 0, values, np.nan)


def _first_hits(scores: ArrayLike, relevant: ArrayLike, k: int) -> tuple[_Flags, Indices]:
    """Relevance of the first k items in ranked order, and the number of relevant items."""
    C, gains = _checked(scores, relevant)
    first = top_k(C, _checked_k(k, C.shape[1]))
    return np.take_along_axis(gains, first, axis=1) > 0, (gains > 0).sum(axis=1)


def _ranked_hits(scores: ArrayLike, relevant: ArrayLike) -> Iterator[_Flags]:
    """Relevance in ranked order, some rows at a time."""
    C, gains = _checked(scores, relevant)
    for rows in _chunks(C.shape):
        yield np.take_along_axis(gains[rows] > 0, _ranked(C[rows]), axis=1)


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    n_rows = max(1, _CHUNK // shape[1])
    return (slice(start, start + n_rows) for start in range(0, shape[0], n_rows))


def _ranked(C: Array) -> Indices:
    """All columns of each row by falling value, ties by the smaller column."""
    # The default sort is several times faster than a stable one; what it does to equal values
    # is put right below, at the cost of those values only.
    order = np.argsort(-C, axis=1)
    values = np.take_along_axis(C, order, axis=1)
    as_before = np.zeros(C.shape, dtype=np.bool_)
    np.equal(values[:, 1:], values[:, :-1], out=as_before[:, 1:])
    if not as_before.any():
        return order
    tied = as_before.copy()
    tied[:, :-1] |= as_before[:, 1:]
    at = np.flatnonzero(tied)
    run = np.cumsum(~as_before.ravel()[at])
    columns = order.ravel()
    columns[at] = np.sort(run * C.shape[1] + columns[at]) % C.shape[1]
    return columns.reshape(C.shape)


def _checked(scores: ArrayLike, gains: ArrayLike) -> tuple[Array, NDArray[Any]]:
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


def _checked_k(k: int, n_items: int) -> int:
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
