"""Exact neighbors under several metrics: one search for each group of items, merged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.forms.distance_form import EuclideanForm
from samewise.forms.multi_metric import members_of
from samewise.search.distance_search import DistanceSearch, Route, as_closeness


class GroupedSearch:
    """Nearest rows of X by the distance of each row's group; ties by the smaller index."""

    def __init__(
        self, spaces: Sequence[EuclideanForm], X: Matrix, groups: Indices, route: Route
    ) -> None:
        self._n_rows, self._dtype = X.shape[0], X.dtype
        self._parts = [
            (members, spaces[g], DistanceSearch(spaces[g].embed(X[members]), route))
            for g, members in members_of(groups)
        ]

    @property
    def route(self) -> str:
        """The route of the searches: "tree" if all of them have one."""
        trees = all(search.route == "tree" for _, _, search in self._parts)
        return "tree" if trees else "blocked"

    def query(self, Q: Matrix, k: int, exclude_self: bool) -> tuple[Array, Indices]:
        """−distances (n, k), descending, and indices (n, k)."""
        squared: NDArray[np.float64] = np.full((Q.shape[0], k), np.inf)
        indices = np.full((Q.shape[0], k), self._n_rows)
        for members, metric, search in self._parts:
            # One more, since a row may find itself.
            wanted = min(k + exclude_self, len(members))
            D, found = search.squared(metric.embed(Q), wanted, False)
            found = members[found]
            if exclude_self:
                D[found == np.arange(len(found))[:, None]] = np.inf
            squared, indices = np.hstack([squared, D]), np.hstack([indices, found])
            best = np.lexsort((indices, squared), axis=1)[:, :k]
            squared = np.take_along_axis(squared, best, axis=1)
            indices = np.take_along_axis(indices, best, axis=1)
        return as_closeness(squared, np.result_type(Q.dtype, self._dtype)), indices
