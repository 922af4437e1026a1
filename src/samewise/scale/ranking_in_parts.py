"""Neighbors and rankings among items in parts, without a sort of all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices
from samewise.decide import vote
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Form
from samewise.kernels.neighbors import top_k
from samewise.scale.cluster import quiet
from samewise.scale.row_blocks import RowBlock, RowBlocks, row_blocks, signs
from samewise.scores.ranking import RetrievalScores, checked_k
from samewise.scores.verification import Roc, roc
from samewise.search import Index

BLOCK_BYTES = 2**25
"""Closeness of queries to items that a worker has at once."""

_Floats = NDArray[np.float64]


def nearest(
    form: Form | None, Q: ArrayLike, X: Any, k: int, *, client: Any = None
) -> tuple[Array, Indices]:
    """The k closest of items in parts, for each query: exactly what an `Index` of all would find.

    Each part finds its own k closest, and these are merged by closeness and number:
    P·Q·k·2 numbers travel.

    Parameters
    ----------
    form : Form or None
        What close means. None is the plain Euclidean distance.
    Q : array of shape (n_queries, n_features)
        Queries.
    X : dask.array.Array, dask.dataframe.DataFrame, str or path
        Items, as a learner on Dask takes rows.
    k : int
        How many neighbors.
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.

    Returns
    -------
    closeness : array of shape (n_queries, k)
        Descending.
    numbers : array of shape (n_queries, k)
        Numbers of the items, counted through all parts.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise.scale import nearest
    >>> X = da.from_array(np.array([[0.0], [1.0], [3.0], [1.0]]), chunks=(2, 1))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     nearest(None, [[0.8]], X, 3, client=client)[1]
    array([[1, 3, 0]])
    """
    parts, k = _closest_of_parts(_nearest, form, Q, row_blocks(X, None, client, labeled=False), k)
    starts = accumulate((part.n for part in parts[:-1]), initial=0)
    found = [(part.closeness, part.what + n) for part, n in zip(parts, starts, strict=True)]
    return _closest(found, k)


def classify(
    form: Form | None, Q: ArrayLike, X: Any, y: Any, n_neighbors: int = 3, *, client: Any = None
) -> NDArray[Any]:
    """The class of each query by a vote of its nearest items in parts, as `KNNClassifier` decides.

    P·Q·k·2 numbers travel.

    Parameters
    ----------
    form : Form or None
        What close means. None is the plain Euclidean distance.
    Q : array of shape (n_queries, n_features)
        Queries.
    X : dask.array.Array, dask.dataframe.DataFrame, str or path
        Items, as a learner on Dask takes rows.
    y : dask.array.Array, dask.dataframe.Series, str or path
        Their classes.
    n_neighbors : int, default=3
        Number k of neighbors. On a tie, k shrinks by one until the tie breaks.
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.

    Returns
    -------
    array of shape (n_queries,)
        The class of each query.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise.scale import classify
    >>> X = da.from_array(np.array([[0.0], [1.0], [5.0], [6.0]]), chunks=(2, 1))
    >>> y = da.from_array(np.array(["low", "low", "high", "high"]), chunks=2)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     classify(None, [[0.8], [5.2]], X, y, 1, client=client)
    array(['low', 'high'], dtype='<U4')
    """
    blocks = row_blocks(X, y, client)
    parts, k = _closest_of_parts(_nearest_labels, form, Q, blocks, n_neighbors)
    found = [(part.closeness, part.what) for part in parts]
    classes, labels = np.unique(_closest(found, k)[1], return_inverse=True)
    return classes[vote(labels.reshape(-1, k), len(classes))[0]]


def pair_roc(form: Form, X: Any, y: Any, *, client: Any = None) -> Roc:
    """The trade-off between errors of verification, on pairs in parts.

    The closeness of each pair travels, one number.

    Parameters
    ----------
    form : Form
        What close means.
    X : dask.array.Array, str or path
        Pairs, in blocks of shape (n, 2, d).
    y : dask.array.Array, str or path
        +1 for similar pairs, −1 for dissimilar ones.
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.

    Returns
    -------
    Roc
        What `samewise.scores.roc` returns for all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise import Mahalanobis
    >>> from samewise.scale import pair_roc
    >>> X = da.from_array(np.array([[[0.0], [1.0]], [[0.0], [3.0]]]), chunks=(1, 2, 1))
    >>> y = da.from_array(np.array([1, -1]), chunks=1)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     pair_roc(Mahalanobis.identity(1), X, y, client=client).auc
    1.0
    """
    parts = row_blocks(X, y, client, sides=2).once(_pair_closeness, form)
    return roc(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def ranking_scores(
    form: Form,
    Q: ArrayLike,
    labels: ArrayLike,
    X: Any,
    y: Any,
    ks: Iterable[int] = (1, 10),
    *,
    client: Any = None,
) -> RetrievalScores:
    """Retrieval scores among items in parts, of which those of the query's label are relevant.

    The relevant items of a query are thresholds: each part counts which of its items come before
    them, and the sums of these counts are ranks. So nothing is sorted beyond a part. Items are read
    twice, and need not fit in memory. P·Q·R numbers travel, for R relevant items.

    Parameters
    ----------
    form : Form
        What close means.
    Q : array of shape (n_queries, n_features)
        Queries.
    labels : array of shape (n_queries,)
        Their labels.
    X : dask.array.Array, dask.dataframe.DataFrame, str or path
        Items, as a learner on Dask takes rows.
    y : dask.array.Array, dask.dataframe.Series, str or path
        Their labels.
    ks : iterable of int, default=(1, 10)
        Cutoffs of precision and recall.
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.

    Returns
    -------
    RetrievalScores
        "precision@k", "recall@k", "map" and "mrr", as `retrieval_scores` with ties="index": items
        that are equally close stand in the order of their numbers. Distances come from matrix
        products, whose rounding may decide between equal ones.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise import Mahalanobis
    >>> from samewise.scale import ranking_scores
    >>> X, y = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array(["a", "a", "b", "b"])
    >>> parts = da.from_array(X, chunks=(2, 1)), da.from_array(y, chunks=2)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     scores = ranking_scores(
    ...         Mahalanobis.identity(1), [[2.2]], ["a"], *parts, ks=(1, 2), client=client
    ...     )
    >>> scores.means["precision@1"], scores.means["recall@2"]
    (0.0, 0.5)
    """
    Q, labels = np.asarray(Q), np.asarray(labels)
    if labels.shape != (len(Q),):
        raise InvalidInputError(
            f"labels must hold one label for each of the {len(Q)} queries. Got shape "
            f"{labels.shape}."
        )
    blocks = row_blocks(X, y, client)
    cutoffs = [checked_k(k, sys.maxsize) for k in ks]
    submit = blocks.client.submit
    with quiet():
        queries = submit(_itself, Q, pure=False)
    parts = blocks.once(_relevant, form, queries, labels)
    for k in cutoffs:
        checked_k(k, sum(part.n for part in parts))
    ends = list(accumulate(len(part.queries) for part in parts))
    if not ends[-1]:
        raise DegenerateInputError(
            "No query has a relevant item: no label of the queries is one of the items. "
            "Check that both use the same labels."
        )
    with quiet():
        relevant = submit(_of_all, parts, pure=False)
    own = list(zip([0, *ends[:-1]], ends, strict=True))
    before = np.sum(blocks.once(_before, form, queries, relevant, each=own), axis=0)
    of_queries = np.concatenate([part.queries for part in parts])
    return RetrievalScores(_measures(of_queries, before + 1, len(Q), cutoffs))


class Closest(NamedTuple):
    """The closest items of a part to each query, what is known of them, and how many it has."""

    closeness: Array
    what: NDArray[Any]
    n: int


class Relevant(NamedTuple):
    """Relevant items of a part, or of all: their queries, rows in their part, and closeness.

    n is how many items the part has, of all labels.
    """

    queries: Indices
    rows: Indices
    closeness: Array
    n: int


def _closest_of_parts(
    find: Callable[..., Closest], form: Form | None, Q: ArrayLike, blocks: RowBlocks, k: int
) -> tuple[list[Closest], int]:
    """What find(block, form, Q, k) says of each part, and k."""
    k = checked_k(k, sys.maxsize)
    with quiet():
        queries = blocks.client.submit(_itself, np.asarray(Q), pure=False)
    parts = blocks.once(find, form, queries, k)
    return parts, checked_k(k, sum(part.n for part in parts))


def _itself(Q: Array) -> Array:
    return Q


def _closest(parts: list[tuple[Array, NDArray[Any]]], k: int) -> tuple[Array, NDArray[Any]]:
    """The k closest of those that parts have found, and what parts say of them."""
    # Parts come in the order of their items, and so do the equally close ones of each.
    C, what = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
    best = top_k(C, k)
    return np.take_along_axis(C, best, axis=1), np.take_along_axis(what, best, axis=1)


def _nearest(block: RowBlock, form: Form | None, Q: Array, k: int) -> Closest:
    n = len(block.X)
    return Closest(*Index(form, block.X).query(Q, min(k, n)), n)


def _nearest_labels(block: RowBlock, form: Form | None, Q: Array, k: int) -> Closest:
    found = _nearest(block, form, Q, k)
    assert block.y is not None
    return found._replace(what=block.y[found.what])


def _pair_closeness(block: RowBlock, form: Form) -> tuple[Array, NDArray[Any]]:
    return form.pair_closeness(block.X[:, 0], block.X[:, 1]), signs(block)


def _relevant(block: RowBlock, form: Form, Q: Array, labels: NDArray[Any]) -> Relevant:
    """Those of a part, by query and row."""
    y = block.y
    assert y is not None
    found: list[tuple[Indices, Indices, Array]] = []
    # Text is never a number.
    known = np.unique(labels) if _is_text(labels) == _is_text(y) else labels[:0]
    rows = np.flatnonzero(np.isin(y, known))
    rows = rows[np.argsort(y[rows], kind="stable")]
    firsts, ends = (np.searchsorted(y[rows], known, side=side) for side in ("left", "right"))
    for label, first, end in zip(known, firsts, ends, strict=True):
        mine, queries = rows[first:end], np.flatnonzero(labels == label)
        if len(mine):
            for some, C in form.blocks(Q[queries], block.X[mine], block_bytes=BLOCK_BYTES):
                of = np.repeat(queries[some], len(mine))
                found.append((of, np.tile(mine, len(C)), C.ravel()))
    return _together(found, len(y))


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "OSU"


def _of_all(parts: list[Relevant]) -> Relevant:
    return _together([part[:3] for part in parts], sum(part.n for part in parts))


def _together(found: list[tuple[Indices, Indices, Array]], n: int) -> Relevant:
    if not found:
        none = np.empty(0, dtype=np.int64)
        return Relevant(none, none, np.empty(0), n)
    queries, rows, closeness = zip(*found, strict=True)
    return Relevant(np.concatenate(queries), np.concatenate(rows), np.concatenate(closeness), n)


def _before(
    block: RowBlock, form: Form, Q: Array, relevant: Relevant, own: tuple[int, int]
) -> Indices:
    """How many items of a part come before each relevant item of all parts.

    Of equally close items those of earlier parts come first, and within a part those of earlier
    rows: `own` are the places of the part's own relevant items.
    """
    counts = np.zeros(len(relevant.queries), dtype=np.int64)
    order = np.argsort(relevant.queries, kind="stable")
    ends = np.searchsorted(relevant.queries[order], np.arange(len(Q) + 1))
    for rows, C in form.blocks(Q, block.X, block_bytes=BLOCK_BYTES):
        rising = np.sort(C, axis=1)
        for i, query in enumerate(np.arange(len(Q))[rows]):
            mine = order[ends[query] : ends[query + 1]]
            inside = np.flatnonzero((own[0] <= mine) & (mine < own[1]))
            at = relevant.closeness[mine]
            # As this product rounds it, so that no item comes before itself.
            at[inside] = C[i, relevant.rows[mine[inside]]]
            below, up_to = (np.searchsorted(rising[i], at, side=side) for side in ("left", "right"))
            counts[mine] = C.shape[1] - np.where(mine < own[1], up_to, below)
            for j in inside[up_to[inside] - below[inside] > 1]:
                equal = C[i, : relevant.rows[mine[j]]] == at[j]
                counts[mine[j]] += np.count_nonzero(equal)
    return counts


def _measures(
    queries: Indices, ranks: Indices, n_queries: int, ks: list[int]
) -> dict[str, _Floats]:
    """Every score, from the ranks of the relevant items; NaN for queries without any."""
    order = np.lexsort((ranks, queries))
    queries, ranks = queries[order], ranks[order]
    n_relevant = np.bincount(queries, minlength=n_queries)
    found = np.arange(1, len(ranks) + 1) - (np.cumsum(n_relevant) - n_relevant)[queries]
    known = np.where(n_relevant > 0, n_relevant, np.nan)
    values = {}
    for k in ks:
        hits = np.bincount(queries, ranks <= k, minlength=n_queries)
        values[f"precision@{k}"] = np.where(n_relevant > 0, hits / k, np.nan)
        values[f"recall@{k}"] = hits / known
    values["map"] = np.bincount(queries, found / ranks, minlength=n_queries) / known
    first = np.bincount(queries, np.where(found == 1, 1 / ranks, 0.0), minlength=n_queries)
    values["mrr"] = np.where(n_relevant > 0, first, np.nan)
    return values
