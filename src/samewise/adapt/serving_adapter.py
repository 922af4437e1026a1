"""The use of an adapter: its forms, rankings, lists to show, and which version is served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from samewise._rollback import alone
from samewise._typing import Array, Indices
from samewise.adapt.adapter_course import AdapterCourse, Version
from samewise.adapt.event_reading import ItemStore, checked_query
from samewise.adapt.guard import PLACES, GuardReport
from samewise.adapt.headroom import Headroom, measured_headroom
from samewise.adapt.item_units import checked_items, single, within_range
from samewise.adapt.linear_part import matrix_of
from samewise.adapt.query_form import QueryForm
from samewise.adapt.shown_lists import Slots, fill_slots, team_draft
from samewise.exceptions import InvalidInputError
from samewise.files.storable import Storable
from samewise.forms import Bilinear, LowRankBilinear
from samewise.kernels.adapter_event import LARGEST
from samewise.kernels.neighbors import top_k
from samewise.supervision.supervision_checks import parameter_array

EXPANDED = 5
"""Items whose mean is added to a query, with expand=True."""


class ServingAdapter(Storable, storable=False):
    """What an adapter does with what it has learned."""

    expand: bool
    items: Any
    _course: AdapterCourse | None
    _random: np.random.RandomState
    _store: ItemStore
    _W: Array | None

    # What was learned

    @property
    def _fitted(self) -> AdapterCourse:
        if self._course is None:
            raise NotFittedError("This LiveAdapter is not fitted; call fit(items) first.")
        return self._course

    @property
    def n_features_in_(self) -> int:
        """The number of features of items and queries."""
        return self._fitted.units.n_features

    @property
    def n_events_(self) -> int:
        """How many events were taken."""
        return self._fitted.n_events

    @property
    def guard_(self) -> GuardReport:
        """What the guard knows at this time."""
        with alone(self):
            return self._guarded().guard.report()

    @property
    def versions_(self) -> tuple[Version, ...]:
        """The frozen copies that were made and are kept, the oldest first."""
        return tuple(self._fitted.versions.values())

    def _guarded(self) -> Any:
        course = self._fitted
        if course.guard is None:
            raise InvalidInputError(
                "With guard=None the live form is served; there is neither a report nor a version."
            )
        return course

    # Forms

    @property
    def start(self) -> QueryForm:
        """The form before any feedback."""
        return QueryForm(self, "start")

    @property
    def live(self) -> QueryForm:
        """The form that learns."""
        return QueryForm(self, "live")

    @property
    def served(self) -> QueryForm:
        """The form that is served."""
        return QueryForm(self, "served")

    def embed_query(self, Q: Any, place: str = "rest") -> Array:
        """Vectors to search a dot-product index of the items with: what is served.

        Parameters
        ----------
        Q : array of shape (n, d) or (d,)
            Queries.
        place : {"rest", "first"}, default="rest"
            The vector that decides the order, or the one that decides the first place, which is
            guarded apart; `rank` and `rerank` use both.

        Returns
        -------
        array of float32 of shape (n, d) or (d,)
            The mapped queries.
        """
        return self._embed(Q, "served", place)

    def _embed(self, Q: Any, which: str, place: str) -> Array:
        _check_place(place)
        course = self._fitted
        Q = parameter_array(Q, "Q")
        one = Q.ndim == 1
        rows = checked_items(Q[None] if one else Q, course.units.n_features, "Q")
        rows = single(rows)
        with alone(self), np.errstate(over="ignore", invalid="ignore"):
            found = course.embed(rows, self._base(rows), *course.form(which, place))
        found = within_range(found)
        return found[0] if one else found

    def _matrix(self, which: str, place: str) -> tuple[Array, Array]:
        """The linear part of a form as a matrix and a vector."""
        _check_place(place)
        units = self._fitted.units
        with alone(self):
            D = matrix_of(self._fitted.form(which, place)[0]).astype(np.float64)
        added = units.L[:, : len(D)].astype(np.float64) @ D
        start = np.eye(len(added)) if self._W is None else self._W
        bias = -(units.mu.astype(np.float64) @ added)
        return within_range(start + added), within_range(bias)

    def _base(self, Q: Array) -> Array:
        """Queries under the start."""
        return Q if self._W is None else Q @ self._W

    def headroom(self, queries: Any, relevant: Any) -> Headroom:
        """What is to be won with such pairs, before anything is learned.

        The start is compared with a linear map that is learned from the pairs in closed form, on
        queries it was not learned from (cross-validation). Nothing is changed.

        Parameters
        ----------
        queries : array of shape (n, d)
            Queries, at least 20.
        relevant : array of shape (n, d) or sequence of ids
            The relevant item of each query. It is ranked among the items of the store, of which
            20 000 evenly spaced ones are taken if there are more, and all other relevant items.

        Returns
        -------
        Headroom
            The values of the start and of the map, and a sentence about them.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from samewise import LiveAdapter
        >>> X, y = load_digits(return_X_y=True)
        >>> X = X / np.linalg.norm(X, axis=1, keepdims=True)
        >>> items, queries = X[:100], X[100:]
        >>> relevant = [np.flatnonzero(y[:100] == label)[0] for label in y[100:]]
        >>> adapter = LiveAdapter(items=items, random_state=0).fit(items)
        >>> found = adapter.headroom(queries, relevant)
        >>> round(found.start["auc"], 2), round(found.attainable["auc"], 2)
        (0.85, 0.98)
        >>> found.sentence[:28]
        'An adapter is likely to help'
        """
        course = self._fitted
        return measured_headroom(queries, relevant, self._W, course.units, self._items())

    def rank(self, query: Any, items: Any = None, k: int = 10) -> Indices:
        """The k best items for a query, under what is served.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        items : array of shape (n, d) or sequence of ids, default=None
            What to rank; the item store by default.
        k : int, default=10
            How many; fewer where there are fewer items.

        Returns
        -------
        array of shape (k,)
            Places in `items`, the best first.
        """
        return self._rank(query, items, k, "served")

    def rerank(self, query: Any, candidates: Any) -> Indices:
        """All candidates in the order of what is served.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        candidates : array of shape (n, d) or sequence of ids
            Items, such as the best of an approximate index.

        Returns
        -------
        array of shape (n,)
            Places in `candidates`, the best first.
        """
        return self._rank(query, candidates, None, "served")

    def _rank(self, query: Any, items: Any, k: int | None, which: str) -> Indices:
        if k is not None and (not isinstance(k, int | np.integer) or k < 1):
            raise InvalidInputError(f"k must be an integer of at least 1. Got {k!r}.")
        q = checked_query(query, self.n_features_in_)
        rows = self._rows(items)
        k = len(rows) if k is None else min(int(k), len(rows))
        with alone(self):
            rest = self._embed(q, which, "rest")
            pinned = which == "served" and (self.expand or self._parted)
            first = self._embed(q, which, "first") if pinned else rest
        best = int(np.argmax(_scores(rows, first))) if pinned else -1
        scores = _scores(rows, rest)
        if which == "served" and self.expand:
            near = top_k(scores[None], min(EXPANDED, len(rows)))[0]
            scores = _scores(rows, rest + rows[near].mean(axis=0, dtype=np.float32))
        if pinned:
            scores[best] = np.inf
        return top_k(scores[None], k)[0]

    @property
    def _parted(self) -> bool:
        """Whether the order and the first place are served by different versions."""
        guard = self._fitted.guard
        return guard is not None and len(set(guard.served.values())) > 1

    def _rows(self, items: Any) -> NDArray[Any]:
        if items is None:
            return self._items().array
        given = parameter_array(items, "items")
        if given.ndim == 1 and given.size:
            return self._items().vectors(given.tolist())
        return checked_items(given, self.n_features_in_)

    def _items(self) -> ItemStore:
        """The item store, which may have been set since fit."""
        if self._store.given is not self.items:
            self._store = ItemStore(self.items, self.n_features_in_)
        return self._store

    def slots(self, query: Any, candidates: Any = None, k: int = 10, explored: int = 3) -> Slots:
        """The list to show so that the answers teach and test most.

        The best of what is served; then the best item of the live form that is not among them,
        without which first places are not compared; then items sampled from the rest of the 100
        best, without which what lies below the tenth place is never learned.

        Parameters
        ----------
        query : array of shape (d,)
            The query.
        candidates : array of shape (n, d) or sequence of ids, default=None
            Items to choose from; the item store by default.
        k : int, default=10
            How many items.
        explored : int, default=3
            How many of them are sampled.

        Returns
        -------
        Slots
            Places among the candidates, why each is shown, and with which probability.
        """
        rows = self._rows(candidates)
        served = self._rank(query, rows, 100, "served")
        live = self._rank(query, rows, 100, "live")
        return fill_slots(served, live, k, explored, self._random)

    def interleave(
        self, a: Sequence[Any], b: Sequence[Any], k: int = 10
    ) -> tuple[list[Any], NDArray[np.int64]]:
        """One list of two rankings, whose clicks say which ranking is better.

        Parameters
        ----------
        a, b : sequences
            Rankings of ids, the best first: that of what is served, and that of the live form.
        k : int, default=10
            How many items.

        Returns
        -------
        shown : list
            The items.
        teams : array of shape (k,)
            0 for an item that came from a, 1 for b; to be passed on with the clicks.

        References
        ----------
        Radlinski, Kurup, Joachims: How does clickthrough data reflect retrieval quality?, CIKM
        2008.
        """
        return team_draft(a, b, k, self._random)

    # What is served

    def promote(self, version: int | None = None) -> int:
        """Serve a version by hand.

        Parameters
        ----------
        version : int, default=None
            Its number, 0 for the start; by default a new frozen copy of the live form.

        Returns
        -------
        int
            The number of the version.
        """
        with alone(self):
            course = self._guarded()
            kept = [0, *course.versions]
            if version is not None and version not in kept:
                raise InvalidInputError(f"version must be one of {kept}. Got {version!r}.")
            number = course.freeze() if version is None else int(version)
            course.serve(PLACES, number, "by hand")
            return number

    def rollback(self) -> int:
        """Serve for all places the version before the newest that is served.

        Returns
        -------
        int
            Its number, 0 for the start.
        """
        with alone(self):
            course = self._guarded()
            newest = max(course.guard.served.values())
            if newest == 0:
                raise InvalidInputError("The start is served; there is nothing to roll back to.")
            return self.promote(max([0, *(n for n in course.versions if n < newest)]))


def start_matrix(initial: Bilinear | LowRankBilinear | None, d: int) -> Array | None:
    """The matrix of the start; None for the dot product."""
    if initial is None:
        return None
    W = np.asarray(initial.matrix)
    if W.shape != (d, d):
        raise InvalidInputError(
            f"initial must be a form of {d} features, as the items have, for queries and items "
            f"alike. Got one of {W.shape[0]} and {W.shape[1]}."
        )
    if np.abs(W).max() > LARGEST:
        raise InvalidInputError(
            f"initial must have values of at most {LARGEST:g} in size. Got {np.abs(W).max():.3g}."
        )
    return W.astype(np.float32)


def _check_place(place: str) -> None:
    if place not in PLACES:
        raise InvalidInputError(f"place must be 'rest' or 'first'. Got {place!r}.")


def _scores(rows: NDArray[Any], embedded: Array) -> Array:
    """Products of items with an embedded query, all of them finite."""
    # What overflows is refused here; NumPy need not warn of it.
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Array = rows @ embedded
    finite = np.isfinite(scores)
    if not finite.all():
        raise InvalidInputError(
            "Items must be finite, and so small that their products with a query are. "
            f"{np.count_nonzero(~finite)} of {len(rows)} have others."
        )
    return scores
