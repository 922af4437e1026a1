"""Full rankings in which items of equal score have no order, and what is expected of them.

The expectations over all orders of equal items are those of F. McSherry and M. Najork: Computing
information retrieval performance measures efficiently in the presence of tied scores. ECIR 2008.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.neighbors import top_k
from samewise.kernels.sorted_hits import mark_hits

_Flags = NDArray[np.bool_]
_Floats = NDArray[np.float64]

Ties = Literal["expected", "index"]


class Ranking:
    """Rows of full rankings, with the groups of equal scores whose order is left open.

    Parameters
    ----------
    hits : bool array of shape (n_queries, n_items)
        Relevance, from the first rank to the last.
    equal : bool array of the same shape, or None
        Whether the score is that of the rank before; None where the order of equal scores counts.
    """

    def __init__(self, hits: _Flags, equal: _Flags | None) -> None:
        self.hits, self.n_relevant = hits, hits.sum(axis=1)
        self.tied = False
        # The order matters only where relevant items stand among others of the same score.
        if equal is not None and np.any(equal[:, 1:] & (hits[:, 1:] != hits[:, :-1])):
            self.tied = True
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


def average_precision_of(ranking: Ranking, *, up_to_r: bool = False) -> _Floats:
    """The average precision of each row; NaN without relevant items.

    With `up_to_r`, of a row with R relevant items only the first R ranks count.
    """
    n_relevant, n_items = ranking.n_relevant, ranking.hits.shape[1]
    rows, places = np.divmod(np.flatnonzero(ranking.hits), n_items)
    found = np.arange(1, rows.size + 1) - (np.cumsum(n_relevant) - n_relevant)[rows]
    terms = found / (places + 1)
    if up_to_r:
        terms[places >= n_relevant[rows]] = 0.0
    if ranking.tied:
        terms[_places(ranking.earlier, ranking.relevant)] = 0.0
    total = np.bincount(rows, terms, minlength=len(n_relevant))
    if ranking.tied:
        total += np.bincount(
            ranking.row, _expected_terms(ranking, up_to_r), minlength=len(n_relevant)
        )
    return where_relevant(total / np.maximum(n_relevant, 1), n_relevant)


def _expected_terms(ranking: Ranking, up_to_r: bool) -> _Floats:
    """What the relevant items of each group are expected to add to the average precision.

    A relevant item stands at place i = 0, 1, … of its group with the chance relevant/size; each
    of the other relevant ones then stands before it with the chance i/(size − 1).
    """
    size, relevant = ranking.size, ranking.relevant
    opens = np.cumsum(size) - size
    i = np.arange(size.sum()) - np.repeat(opens, size)
    found = np.repeat(ranking.before + 1, size) + i * np.repeat((relevant - 1) / (size - 1), size)
    ranks = np.repeat(ranking.first % ranking.hits.shape[1] + 1, size) + i
    terms = found / ranks
    if up_to_r:
        terms[ranks > np.repeat(ranking.n_relevant[ranking.row], size)] = 0.0
    return relevant / size * np.add.reduceat(terms, opens)


def precision_at_r_of(ranking: Ranking) -> _Floats:
    """The precision among the first R ranks of each row with R relevant items."""
    n_relevant, n_items = ranking.n_relevant, ranking.hits.shape[1]
    counted = np.arange(n_items) < n_relevant[:, None]
    found = np.sum(ranking.chance(n_items), axis=1, where=counted)
    return where_relevant(found / np.maximum(n_relevant, 1), n_relevant)


def hit_of(ranking: Ranking, k: int) -> _Floats:
    """The chance that one of the first k ranks of each row is relevant."""
    values: _Floats = np.asarray(ranking.hits[:, :k].any(axis=1), dtype=np.float64)
    if ranking.tied:
        # Only the group that holds the first relevant item of its row matters.
        group = np.flatnonzero(ranking.before == 0)
        size, relevant = ranking.size[group, None], ranking.relevant[group, None]
        i = np.arange(k)
        inside = i < k - ranking.first[group, None] % ranking.hits.shape[1]
        # That place i of the group is none if all before are none.
        none = 1 - relevant / np.maximum(size - i, relevant)
        values[ranking.row[group]] = 1 - np.prod(none, axis=1, where=inside)
    return where_relevant(values, ranking.n_relevant)


def reciprocal_rank_of(ranking: Ranking) -> _Floats:
    """1 / rank of the first relevant item of each row; NaN without relevant items."""
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
    return where_relevant(values, ranking.n_relevant)


def where_relevant(values: _Floats, n_relevant: NDArray[Any]) -> _Floats:
    """Values of rows with relevant items, NaN for the others."""
    return np.where(n_relevant > 0, values, np.nan)


def first_gains(C: Array, G: NDArray[Any], k: int, ties: Ties) -> NDArray[Any]:
    """Gains of the first k items in ranked order; where no order counts, equal items share."""
    best = top_k(C, k + 1) if k + 1 < C.shape[1] else ranked(C)[0]
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


def ranking_of(C: Array, hits: _Flags, ties: Ties, left_out: Indices | None = None) -> Ranking:
    """The relevance of each row by falling value.

    Parameters
    ----------
    C : array of shape (n_queries, n_items)
    hits : bool array of the same shape
    ties : {"expected", "index"}
    left_out : array of shape (n_queries,), default=None
        An item of each row that is not ranked.
    """
    if ties == "index":
        order = ranked(C)[0]
        hits = np.take_along_axis(hits, order, axis=1)
        if left_out is not None:
            hits = hits[order != left_out[:, None]].reshape(len(C), -1)
        return Ranking(hits, None)
    # To sort values takes a fraction of the time in which their order is found.
    values = -C
    if left_out is not None:
        rows = np.arange(len(C))
        hits = hits.copy()
        values[rows, left_out], hits[rows, left_out] = np.inf, False
    ordered, found = np.sort(values, axis=1), np.zeros_like(hits)
    relevant = np.sort(np.where(hits, values, np.inf), axis=1)
    mark_hits(ordered, relevant, hits.sum(axis=1), found)
    if left_out is not None:
        # It is among the last ones, and relevant items come first among equal ones.
        ordered, found = ordered[:, :-1], np.ascontiguousarray(found[:, :-1])
    return Ranking(found, _as_before(ordered))


def ranked(C: Array) -> tuple[Indices, _Flags]:
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
