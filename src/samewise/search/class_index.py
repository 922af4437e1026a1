"""Exact nearest members of every class."""

from __future__ import annotations

import numpy as np

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.search.distance_search import (
    BLOCK_BYTES,
    DistanceSearch,
    embedding,
    items_of,
    queries_of,
)
from samewise.search.grouped_search import GroupedSearch
from samewise.supervision.supervision_checks import parameter_array


class ClassIndex:
    """Stored, labeled rows that can be asked for the k closest members of each class.

    Parameters
    ----------
    form : Form or None
        What close means. None is the plain Euclidean distance. A form with a metric for each class
        must be bound to X: `form.bind(X, y)`.
    X : array-like or CSR matrix of shape (n, d)
    labels : ndarray of shape (n,)
        Class numbers 0 … n_classes − 1; every class has a member.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise.search import ClassIndex
    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> index = ClassIndex(None, X, np.array([0, 0, 1, 1]))
    >>> index.query([[2.0]], k=2)
    array([[[-1., -2.],
            [-3., -5.]]])
    """

    def __init__(self, form: Form | None, X: Matrix, labels: Indices) -> None:
        X = items_of(form, X)
        labels, n = parameter_array(labels, "labels"), X.shape[0]
        right = labels.shape == (n,) and labels.dtype.kind in "iu" and np.all(labels < n)
        if not right or labels.min(initial=0) < 0 or not np.bincount(labels).all():
            raise InvalidInputError(
                f"labels must be class numbers 0, 1, …, one for each of the {n} rows, and every "
                f"class must have a member. Got {labels.dtype} of shape {labels.shape}; make them "
                "with np.unique(y, return_inverse=True)."
            )
        self.form = form
        self.sizes = np.bincount(labels)
        self._n_features = X.shape[1]
        order = np.argsort(labels, kind="stable")
        cuts = np.cumsum(self.sizes)
        self._members = [slice(b - n, b) for n, b in zip(self.sizes, cuts, strict=True)]
        spaces = () if form is None else form.spaces
        self._embed = embedding(form)
        rows = [order[members] for members in self._members]
        self._searches: list[DistanceSearch] | list[GroupedSearch] = []
        if len(spaces) > 1 and form is not None:
            groups = form.groups_of(X)
            self._searches = [GroupedSearch(spaces, X[at], groups[at], "auto") for at in rows]
        elif form is None or spaces:
            E = self._embed(X)
            self._searches = [DistanceSearch(E[at]) for at in rows]
        else:
            self._rows = X[order]

    def query(self, Q: Matrix, k: int) -> Array:
        """Closeness of the k closest members of each class, descending.

        Parameters
        ----------
        Q : array-like or CSR matrix of shape (n, d)
        k : int
            At most the size of the smallest class.

        Returns
        -------
        ndarray of shape (n, n_classes, k)
        """
        if not isinstance(k, int | np.integer) or not 1 <= k <= self.sizes.min():
            raise InvalidInputError(
                f"k must be an integer from 1 to {self.sizes.min()}, the size of the smallest "
                f"class. Got {k!r} instead."
            )
        Q = queries_of(self.form, Q, self._n_features)
        if not self._searches:
            assert self.form is not None
            return self._by_blocks(self.form, Q, k)
        Q = self._embed(Q)
        return np.stack([search.query(Q, k, False)[0] for search in self._searches], axis=1)

    def _by_blocks(self, form: Form, Q: Matrix, k: int) -> Array:
        # One pass over all stored rows: an asymmetric form maps the queries only once.
        found = []
        for _, C in form.blocks(Q, self._rows, block_bytes=BLOCK_BYTES):
            best = [_largest(C[:, members], k) for members in self._members]
            found.append(np.stack(best, axis=1))
        return np.concatenate(found)


def _largest(C: Array, k: int) -> Array:
    """The k largest values of each row, descending."""
    m = C.shape[1]
    return np.sort(np.partition(C, m - k, axis=1)[:, m - k :], axis=1)[:, ::-1]
