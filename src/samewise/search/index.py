"""Exact nearest neighbors of queries among stored rows."""

from __future__ import annotations

import numpy as np

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels.neighbors import top_k
from samewise.search.distance_search import (
    BLOCK_BYTES,
    DistanceSearch,
    Route,
    embedding,
    items_of,
    queries_of,
)
from samewise.search.grouped_search import GroupedSearch


class Index:
    """Stored rows that can be asked for the k closest to a query, exactly.

    Neighbors come by decreasing closeness, and by smaller index where closeness is equal. For a
    distance form closeness is −distance, so the closest has the largest (least negative) value.

    Parameters
    ----------
    form : Form or None
        What close means. None is the plain Euclidean distance. A form with a metric for each class
        must be bound to X: `form.bind(X, y)`.
    X : array-like or CSR matrix of shape (n, d)
        The rows to search in. They are not copied where they can be used as they are, so do not
        change them afterwards.
    route : {"auto", "tree", "blocked"}, default="auto"
        How a distance is searched: with a k-d tree in the form's embedding, or with blocked
        matrix products. Both give the same lists; "auto" takes the one expected to be faster.
        Sparse rows without a form, and similarities, are always searched in blocks.

    Notes
    -----
    The distances that are returned come from explicit differences (of the embedded rows, if there
    is a form), added up in float64, so close duplicates keep their true order. Closeness is equal
    where these numbers, or the values of a similarity form, are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Index
    >>> index = Index(None, np.array([[0.0], [1.0], [3.0], [1.0]]))
    >>> closeness, indices = index.query([[0.8]], k=3)
    >>> indices
    array([[1, 3, 0]])
    >>> closeness.round(1)
    array([[-0.2, -0.2, -0.8]])
    """

    def __init__(self, form: Form | None, X: Matrix, *, route: Route = "auto") -> None:
        if route not in ("auto", "tree", "blocked"):
            raise InvalidInputError(
                f"route must be 'auto', 'tree' or 'blocked'. Got {route!r} instead."
            )
        X = items_of(form, X)
        self.form = form
        self.n_rows, self._n_features = X.shape
        self._embed, self._search = embedding(form), _search(form, X, route)

    @property
    def route(self) -> str:
        """The route that queries take: "tree" or "blocked"."""
        return self._search.route

    def query(self, Q: Matrix, k: int, exclude_self: bool = False) -> tuple[Array, Indices]:
        """The k closest stored rows of each query.

        Parameters
        ----------
        Q : array-like or CSR matrix of shape (n, d)
            Queries, one row each.
        k : int
            How many neighbors, at most the number of stored rows.
        exclude_self : bool, default=False
            For Q being the stored rows themselves, in the same order: row i is not offered as
            its own neighbor (leave-one-out).

        Returns
        -------
        closeness : ndarray of shape (n, k)
            Descending.
        indices : ndarray of shape (n, k)
            Row numbers of the neighbors among the stored rows.
        """
        Q = queries_of(self.form, Q, self._n_features)
        self._check_k(Q, k, exclude_self)
        return self._search.query(self._embed(Q), k, exclude_self)

    def _check_k(self, Q: Matrix, k: int, exclude_self: bool) -> None:
        if exclude_self and Q.shape[0] != self.n_rows:
            raise InvalidInputError(
                f"exclude_self needs the {self.n_rows} indexed rows themselves as queries; "
                f"got {Q.shape[0]} rows."
            )
        most = self.n_rows - exclude_self
        if not isinstance(k, int | np.integer) or not 1 <= k <= most:
            raise InvalidInputError(
                f"k must be an integer from 1 to {most}, the number of rows to choose from. "
                f"Got {k!r} instead."
            )


class _BlockedSearch:
    """Rows that are compared with each query, block by block."""

    route = "blocked"

    def __init__(self, form: Form, X: Matrix) -> None:
        self._form, self._rows = form, X

    def query(self, Q: Matrix, k: int, exclude_self: bool) -> tuple[Array, Indices]:
        closeness, indices = [], []
        for rows, C in self._form.blocks(Q, self._rows, block_bytes=BLOCK_BYTES):
            if exclude_self:
                np.fill_diagonal(C[:, rows], -np.inf)
            best = top_k(C, k)
            closeness.append(np.take_along_axis(C, best, axis=1))
            indices.append(best)
        return np.concatenate(closeness), np.concatenate(indices)


def _search(
    form: Form | None, X: Matrix, route: Route
) -> DistanceSearch | GroupedSearch | _BlockedSearch:
    """Distances are searched in their spaces; similarities are compared with all rows."""
    if form is not None and not form.spaces:
        return _BlockedSearch(form, X)
    if form is not None and len(form.spaces) > 1:
        return GroupedSearch(form.spaces, X, form.groups_of(X), route)
    return DistanceSearch(embedding(form)(X), route)
