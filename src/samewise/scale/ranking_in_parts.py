"""Neighbors and rankings among items in parts, without a sort of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices
from samewise.decide import vote
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Form
from samewise.kernels.neighbors import top_k
from samewise.scale.cluster import Parts
from samewise.scale.row_blocks import RowBlock, row_blocks, shape_of, shapes, signs
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
    held, starts, n = _items(X, None, client)
    k = checked_k(k, n)
    parts = zip(held.then(_nearest, form, np.asarray(Q), k).values(), starts, strict=True)
    return _closest([(C, rows + start) for (C, rows), start in parts], k)


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
    held, _, n = _items(X, y, client)
    k = checked_k(n_neighbors, n)
    parts = held.then(_nearest_labels, form, np.asarray(Q), k).values()
    classes, labels = np.unique(_closest(parts, k)[1], return_inverse=True)
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
    them, and the sums of these counts are ranks. So nothing is sorted beyond a part.
    P·Q·R numbers travel, for R relevant items.

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
    held, _, n = _items(X, y, client)
    cutoffs = [checked_k(k, n) for k in ks]
    own = held.then(_relevant, form, Q, labels).values()
    if not sum(len(found.queries) for found in own):
        raise DegenerateInputError(
            "No query has a relevant item: no label of the queries is one of the items. "
            "Check that both use the same labels."
        )
    queries = np.concatenate([found.queries for found in own])
    thresholds = np.concatenate([found.closeness for found in own])
    ranks = np.concatenate([found.ranks for found in own])
    ends = list(accumulate(len(found.queries) for found in own))
    submit = held.client.submit
    counts = [
        submit(_before, part, form, Q, (queries, thresholds), (end - size, end), pure=False)
        for part, end, size in zip(
            held.futures, ends, (len(found.queries) for found in own), strict=True
        )
    ]
    ranks = ranks + np.sum(held.client.gather(counts), axis=0)
    return RetrievalScores(_measures(queries, ranks, len(Q), cutoffs))


class Relevant(NamedTuple):
    """Relevant items of a part: their queries, how close they are, and their ranks in the part."""

    queries: Indices
    closeness: Array
    ranks: Indices


def _items(X: Any, y: Any, client: Any) -> tuple[Parts, list[int], int]:
    """The parts, the number of the first item of each, and how many items there are."""
    held = row_blocks(X, y, client, labeled=y is not None).held()
    sizes, _, _ = shapes(held.then(shape_of).values())
    ends = list(accumulate(sizes))
    return held, [end - size for end, size in zip(ends, sizes, strict=True)], ends[-1]


def _closest(parts: list[tuple[Array, NDArray[Any]]], k: int) -> tuple[Array, NDArray[Any]]:
    """The k closest of those that parts have found, and what parts say of them."""
    # Parts come in the order of their items, and so do the equally close ones of each.
    C, what = (np.concatenate(both, axis=1) for both in zip(*parts, strict=True))
    best = top_k(C, k)
    return np.take_along_axis(C, best, axis=1), np.take_along_axis(what, best, axis=1)


def _nearest_labels(
    block: RowBlock, form: Form | None, Q: Array, k: int
) -> tuple[Array, NDArray[Any]]:
    closeness, rows = _nearest(block, form, Q, k)
    assert block.y is not None
    return closeness, block.y[rows]


def _pair_closeness(block: RowBlock, form: Form) -> tuple[Array, NDArray[Any]]:
    return form.pair_closeness(block.X[:, 0], block.X[:, 1]), signs(block)


def _nearest(block: RowBlock, form: Form | None, Q: Array, k: int) -> tuple[Array, Indices]:
    return Index(form, block.X).query(Q, min(k, len(block.X)))


def _relevant(block: RowBlock, form: Form, Q: Array, labels: NDArray[Any]) -> Relevant:
    """Those of a part, from the first rank (1) to the last for each query."""
    found = []
    for rows, C in form.blocks(Q, block.X, block_bytes=BLOCK_BYTES):
        order = np.argsort(-C, axis=1, kind="stable")
        assert block.y is not None
        hits = block.y[order] == labels[rows, None]
        at, ranks = np.nonzero(hits)
        closeness = np.take_along_axis(C, order, axis=1)[at, ranks]
        found.append((np.arange(len(Q))[rows][at], closeness, ranks + 1))
    return Relevant(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _before(
    block: RowBlock,
    form: Form,
    Q: Array,
    relevant: tuple[Indices, Array],
    own: tuple[int, int],
) -> Indices:
    """How many items of a part come before each relevant item of other parts.

    Those that are equally close do if their part comes first: `own` are the places of the part's
    own relevant items.
    """
    queries, thresholds = relevant
    counts = np.zeros(len(queries), dtype=np.int64)
    earlier = np.arange(len(queries)) < own[0]
    order = np.argsort(queries, kind="stable")
    ends = np.searchsorted(queries[order], np.arange(len(Q) + 1))
    for rows, C in form.blocks(Q, block.X, block_bytes=BLOCK_BYTES):
        rising = np.sort(C, axis=1)
        for i, query in enumerate(np.arange(len(Q))[rows]):
            mine = order[ends[query] : ends[query + 1]]
            below, up_to = (
                np.searchsorted(rising[i], thresholds[mine], side=side)
                for side in ("left", "right")
            )
            counts[mine] = rising.shape[1] - np.where(earlier[mine], up_to, below)
    counts[slice(*own)] = 0
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
