"""The nearest of the same class and of other classes, for every example."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.kernels.neighbors import top_k

Blocks = Callable[[Indices, Indices], Iterator[tuple[slice, Array]]]
"""blocks(asked, order): closeness of rows `asked` to rows `order`, as `Form.blocks` gives it."""


def hits_and_misses(
    blocks: Blocks,
    labels: Indices,
    k: int,
    *,
    queries: Indices | None = None,
    each_class: bool = False,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The k closest hits (same class, not itself) and misses (other classes) of each example.

    Parameters
    ----------
    blocks : callable (asked, order) → iterator of (slice, array)
        Closeness of the rows `asked` to all rows in `order`, larger is closer, block by block;
        the slice counts in `asked`. The arrays are written on.
    labels : array of shape (n,)
        Class numbers 0 … n_classes − 1.
    k : int
    queries : array of row numbers, default=None
        The examples whose neighbors are wanted; all by default.
    each_class : bool, default=False
        k misses from each other class, instead of k from all of them.

    Returns
    -------
    hits : array of shape (n_queries, k)
        Row numbers, closest first; −1 where there are fewer.
    misses : array of shape (n_queries, k), or (n_queries, n_classes, k) with each_class
        With each_class, the lists of the own class are empty, all −1.

    Notes
    -----
    Where closeness is equal the smaller class comes first, then the smaller row number.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis
    >>> X, form = np.array([[0.0], [1.0], [3.0], [7.0]]), Mahalanobis.identity(1)
    >>> hits_and_misses(lambda a, b: form.blocks(X[a], X[b]), np.array([0, 0, 1, 1]), 1)
    (array([[1],
           [0],
           [3],
           [2]]), array([[2],
           [2],
           [1],
           [1]]))
    """
    n, sizes = len(labels), np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    members = [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    queries = np.arange(n) if queries is None else queries
    asked = order[np.isin(order, queries)]
    hits = np.full((len(asked), k), -1, dtype=np.intp)
    misses = np.full((len(asked), len(sizes) if each_class else 1, k), -1, dtype=np.intp)
    starts = np.searchsorted(labels[asked], np.arange(len(sizes) + 1))

    def fill(out: NDArray[np.intp], C: Array, columns: slice, n_found: int) -> None:
        if n_found > 0:
            out[:, :n_found] = order[columns.start + top_k(C[:, columns], n_found)]

    for rows, C in blocks(asked, order):
        for c in range(labels[asked[rows.start]], labels[asked[rows.stop - 1]] + 1):
            first, last = max(rows.start, starts[c]), min(rows.stop, starts[c + 1])
            if first >= last:
                continue
            part, own = C[first - rows.start : last - rows.start], members[c]
            part[np.arange(last - first), place[asked[first:last]]] = -np.inf
            fill(hits[first:last], part, own, min(k, int(sizes[c]) - 1))
            if each_class:
                for other, columns in enumerate(members):
                    if other != c:
                        fill(misses[first:last, other], part, columns, min(k, int(sizes[other])))
            else:
                part[:, own] = -np.inf
                fill(misses[first:last, 0], part, slice(0, n), min(k, n - int(sizes[c])))
    at = np.empty(n, dtype=np.intp)
    at[asked] = np.arange(len(asked))
    hits, misses = hits[at[queries]], misses[at[queries]]
    return hits, misses if each_class else misses[:, 0]
