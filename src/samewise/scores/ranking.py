"""Retrieval: how high the relevant items stand when each query ranks all items.

Items are ranked by falling score. Items of equal score have no order of their own: a score is the
mean over all their orders (`ties="expected"`), so that equal scores are worth as much as chance.
`ties="index"` takes them in the order of their columns. A query without any relevant item has no
score: its value is NaN, and means leave it out.

The means over orders are closed forms, no samples:

F. McSherry and M. Najork: Computing information retrieval performance measures efficiently in the
presence of tied scores. ECIR 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.kernels.neighbors import top_k

_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]

Ties = Literal["expected", "index"]

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
    return _where_relevant(hits.mean(axis=1), n_relevant)


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
    return _where_relevant(hits.sum(axis=1) / np.maximum(n_relevant, 1), n_relevant)


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
    return np.concatenate([_average_precision(r) for r in _rankings(scores, relevant, ties)])


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
    return np.concatenate([_reciprocal_rank(r) for r in _rankings(scores, relevant, ties)])


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
    k = C.shape[1] if k is None else _checked_k(k, C.shape[1])
    reached = _first_gains(C, G, k, ties) @ _discounts(k)
    ideal = np.sort(G, axis=1)[:, : -k - 1 : -1] @ _discounts(k)
    return _where_relevant(reached / np.where(ideal > 0, ideal, 1.0), ideal)


def retrieval_scores(
    blocks: Iterable[tuple[slice, Array]],
    labels_of_queries: ArrayLike,
    labels_of_items: ArrayLike,
    ks: Iterable[int] = (1, 10),
    exclude_self: bool = False,
    *,
    ties: Ties = "expected",
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
    cutoffs = [_checked_k(k, items.size - bool(exclude_self)) for k in ks]
    _check_ties(ties)
    per_query: dict[str, _Floats] = {}
    for rows, C in _checked_blocks(blocks, queries.size, items.size):
        for part in _chunks(C.shape):
            here = rows[part]
            order, equal = _ranked(C[part])
            if exclude_self:
                kept = order != here[:, None]
                # Who stands behind the query itself is now equal to who stands before it, or not.
                equal[:, 1:] &= kept[:, :-1] | equal[:, :-1]
                order, equal = (a[kept].reshape(here.size, -1) for a in (order, equal))
            ranking = _Ranking(items[order] == queries[here, None], equal, ties)
            for name, values in _measures(ranking, cutoffs).items():
                per_query.setdefault(name, np.empty(queries.size))[here] = values
    if np.all(np.isnan(per_query["map"])):
        raise DegenerateInputError(
            "No query has a relevant item: no label of the queries is one of the items. "
            "Check that both use the same labels."
        )
    return RetrievalScores(per_query)


class _Ranking:
    """Rows of full rankings, with the groups of equal scores whose order is left open.

    Parameters
    ----------
    hits : bool array of shape (n_queries, n_items)
        Relevance, from the first rank to the last.
    equal : bool array of the same shape
        Whether the score is that of the rank before.
    ties : {"expected", "index"}
        Whether the order of equal scores is left open or counts.
    """

    def __init__(self, hits: _Flags, equal: _Flags, ties: Ties) -> None:
        self.hits, self.n_relevant = hits, hits.sum(axis=1)
        # The order matters only where relevant items stand among others of the same score.
        self.tied = ties == "expected" and bool(
            np.any(equal[:, 1:] & (hits[:, 1:] != hits[:, :-1]))
        )
        if self.tied:
            first, size = _groups(equal)
            at = np.flatnonzero(hits)
            earlier = np.searchsorted(at, first)
            relevant = np.searchsorted(at, first + size) - earlier
            mixed = (0 < relevant) & (relevant < size)
            self.first, self.size, self.relevant = first[mixed], size[mixed], relevant[mixed]
            self.row = self.first // hits.shape[1]
            self.earlier = earlier[mixed]
            self.before = self.earlier - (np.cumsum(self.n_relevant) - self.n_relevant)[self.row]

    def chance(self, k: int) -> _Flags | _Floats:
        """That a relevant item stands at each of the first k ranks."""
        if not self.tied:
            return self.hits[:, :k]
        chance = self.hits.astype(np.float64)
        share = self.relevant / self.size
        chance.ravel()[_places(self.first, self.size)] = np.repeat(share, self.size)
        return chance[:, :k]


def _measures(ranking: _Ranking, ks: list[int]) -> dict[str, _Floats]:
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
    values |= {"map": _average_precision(ranking), "mrr": _reciprocal_rank(ranking)}
    return {name: _where_relevant(v, n_relevant) for name, v in values.items()}


def _average_precision(ranking: _Ranking) -> _Floats:
    n_relevant, n_items = ranking.n_relevant, ranking.hits.shape[1]
    rows, places = np.divmod(np.flatnonzero(ranking.hits), n_items)
    found = np.arange(1, rows.size + 1) - (np.cumsum(n_relevant) - n_relevant)[rows]
    terms = found / (places + 1)
    if ranking.tied:
        terms[_places(ranking.earlier, ranking.relevant)] = 0.0
    total = np.bincount(rows, terms, minlength=len(n_relevant))
    if ranking.tied:
        total += np.bincount(ranking.row, _expected_terms(ranking), minlength=len(n_relevant))
    return _where_relevant(total / np.maximum(n_relevant, 1), n_relevant)


def _expected_terms(ranking: _Ranking) -> _Floats:
    """What the relevant items of each group are expected to add to the average precision.

    A relevant item stands at place i = 0, 1, … of its group with the chance relevant/size; each
    of the other relevant ones then stands before it with the chance i/(size − 1).
    """
    size, relevant = ranking.size, ranking.relevant
    opens = np.cumsum(size) - size
    i = np.arange(size.sum()) - np.repeat(opens, size)
    found = np.repeat(ranking.before + 1, size) + i * np.repeat((relevant - 1) / (size - 1), size)
    ranks = np.repeat(ranking.first % ranking.hits.shape[1] + 1, size) + i
    return relevant / size * np.add.reduceat(found / ranks, opens)


def _reciprocal_rank(ranking: _Ranking) -> _Floats:
    values = 1.0 / (1 + ranking.hits.argmax(axis=1))
    if ranking.tied:
        # Only the group that holds the first relevant item of its row matters.
        group = np.flatnonzero(ranking.before == 0)
        size, relevant = ranking.size[group, None], ranking.relevant[group, None]
        i = np.arange(size.max(initial=1))
        # The chance of a relevant item at place i of the group if there is none before it.
        chance = relevant / np.maximum(size - i, relevant)
        none = np.cumprod(1 - chance, axis=1)
        chance[:, 1:] *= none[:, :-1]
        rank = ranking.first[group, None] % ranking.hits.shape[1] + 1 + i
        # One after the other, so that the zeros behind a short group change nothing.
        values[ranking.row[group]] = np.cumsum(chance / rank, axis=1)[:, -1]
    return _where_relevant(values, ranking.n_relevant)


def _discounts(k: int) -> _Floats:
    return 1.0 / np.log2(np.arange(2, k + 2))


def _where_relevant(values: _Floats, n_relevant: NDArray[Any]) -> _Floats:
    return np.where(n_relevant > 0, values, np.nan)


def _first_hits(
    scores: ArrayLike, relevant: ArrayLike, k: int, ties: Ties
) -> tuple[NDArray[Any], Indices]:
    """Relevance of the first k items in ranked order, and the number of relevant items."""
    C, gains = _checked(scores, relevant, ties)
    hits = gains > 0
    return _first_gains(C, hits, _checked_k(k, C.shape[1]), ties), hits.sum(axis=1)


def _first_gains(C: Array, G: NDArray[Any], k: int, ties: Ties) -> NDArray[Any]:
    """Gains of the first k items in ranked order; where no order counts, equal items share."""
    best = top_k(C, k + 1) if k + 1 < C.shape[1] else _ranked(C)[0]
    gains = np.take_along_axis(G, best[:, :k], axis=1)
    if ties == "index":
        return gains
    values = np.take_along_axis(C, best, axis=1)
    equal = _as_before(values)
    if not equal.any():
        return gains
    gains = gains.astype(np.float64)
    first, size = _groups(equal[:, :k])
    at = _places(first, size)
    total = np.bincount(np.repeat(np.arange(size.size), size), gains.ravel()[at])
    gains.ravel()[at] = np.repeat(total / size, size)
    # Where equal items stand on both sides of rank k, all of them share.
    cut = np.flatnonzero(equal[:, k:].any(axis=1))
    last = values[cut, k - 1, None]
    share = np.mean(G[cut], axis=1, where=C[cut] == last, keepdims=True, dtype=np.float64)
    gains[cut] = np.where(values[cut, :k] == last, share, gains[cut])
    return gains


def _rankings(scores: ArrayLike, relevant: ArrayLike, ties: Ties) -> Iterator[_Ranking]:
    """Relevance in ranked order, some rows at a time."""
    C, gains = _checked(scores, relevant, ties)
    for rows in _chunks(C.shape):
        order, equal = _ranked(C[rows])
        yield _Ranking(np.take_along_axis(gains[rows] > 0, order, axis=1), equal, ties)


def _chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    n_rows = max(1, _CHUNK // shape[1])
    return (slice(start, start + n_rows) for start in range(0, shape[0], n_rows))


def _ranked(C: Array) -> tuple[Indices, _Flags]:
    """All columns of each row by falling value, and which values are those of the rank before.

    Equal values stand in the order of their columns.
    """
    # The default sort is several times faster than a stable one; what it does to equal values
    # is put right below, at the cost of those values only.
    order = np.argsort(-C, axis=1)
    equal = _as_before(np.take_along_axis(C, order, axis=1))
    if equal.any():
        first, size = _groups(equal)
        at, columns = _places(first, size), order.ravel()
        keys = np.repeat(np.arange(size.size) * C.shape[1], size) + columns[at]
        columns[at] = np.sort(keys) % C.shape[1]
        order = columns.reshape(C.shape)
    return order, equal


def _as_before(values: Array) -> _Flags:
    equal = np.zeros(values.shape, dtype=np.bool_)
    np.equal(values[:, 1:], values[:, :-1], out=equal[:, 1:])
    return equal


def _groups(equal: _Flags) -> tuple[Indices, Indices]:
    """First place, in the flattened array, and size of each group of equal values."""
    flags = np.append(equal, False)
    edges = np.flatnonzero(flags[1:] != flags[:-1])
    return edges[::2], edges[1::2] - edges[::2] + 1


def _places(first: Indices, size: Indices) -> Indices:
    """All places of all groups."""
    ends = np.cumsum(size)
    return np.repeat(first - (ends - size), size) + np.arange(size.sum())


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
