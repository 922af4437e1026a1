"""Exact nearest neighbors of queries among stored rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.forms.euclidean import EuclideanForm
from samewise.forms.multi_metric import MultiMetric
from samewise.kernels.neighbors import top_k
from samewise.search._checks import checked_rows
from samewise.search._euclidean import BLOCK_BYTES, Euclidean, Route
from samewise.search._grouped import Grouped

__all__ = ["Index"]


class Index:
    """Stored rows that can be asked for the k closest to a query, exactly.

    Neighbors come by decreasing closeness, and by smaller index where closeness is equal. For a
    distance form closeness is −distance, so the closest has the largest (least negative) value.

    Parameters
    ----------
    form : Form or None
        What close means. None is the plain Euclidean distance.
    X : array-like or CSR matrix of shape (n, d)
        The rows to search in. They are not copied where they can be used as they are, so do not
        change them afterwards.
    route : {"auto", "tree", "blocked"}, default="auto"
        How a distance is searched: with a k-d tree in the form's embedding, or with blocked
        matrix products. Both give the same lists; "auto" takes the one expected to be faster.
        Sparse rows without a form, and similarities, are always searched in blocks.
    groups : array of shape (n,), default=None
        For a `MultiMetric` with classes: the group of each row, from its `groups_of`.

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

    def __init__(
        self,
        form: Form | None,
        X: Matrix,
        *,
        route: Route = "auto",
        groups: ArrayLike | None = None,
    ) -> None:
        if route not in ("auto", "tree", "blocked"):
            raise InvalidInputError(
                f"route must be 'auto', 'tree' or 'blocked'. Got {route!r} instead."
            )
        X = checked_rows(X, None if form is None else form.n_features_items, "X")
        self.form = form
        self.n_rows = X.shape[0]
        self._n_query_features = X.shape[1] if form is None else form.n_features_in
        if form is None:
            self._euclidean = Euclidean(X, route)
        elif isinstance(form, EuclideanForm):
            self._euclidean = Euclidean(form.embed(X), route)
        elif isinstance(form, MultiMetric):
            self._grouped = Grouped(form, X, groups, route)
        else:
            self._rows = X

    @property
    def route(self) -> str:
        """The route that queries take: "tree" or "blocked"."""
        if isinstance(self.form, MultiMetric):
            return self._grouped.route
        by_distance = self.form is None or isinstance(self.form, EuclideanForm)
        return self._euclidean.route if by_distance else "blocked"

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
        Q = checked_rows(Q, self._n_query_features, "Q")
        self._check_k(Q, k, exclude_self)
        if self.form is None:
            return self._euclidean.query(Q, k, exclude_self)
        if isinstance(self.form, EuclideanForm):
            return self._euclidean.query(self.form.embed(Q), k, exclude_self)
        if isinstance(self.form, MultiMetric):
            return self._grouped.query(Q, k, exclude_self)
        return self._by_blocks(self.form, Q, k, exclude_self)

    def _by_blocks(
        self, form: Form, Q: Matrix, k: int, exclude_self: bool
    ) -> tuple[Array, Indices]:
        closeness, indices = [], []
        for rows, C in form.blocks(Q, self._rows, block_bytes=BLOCK_BYTES):
            if exclude_self:
                np.fill_diagonal(C[:, rows], -np.inf)
            best = top_k(C, k)
            closeness.append(np.take_along_axis(C, best, axis=1))
            indices.append(best)
        return np.concatenate(closeness), np.concatenate(indices)

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
