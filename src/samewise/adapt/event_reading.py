"""From what a user said to a query, vectors and grades, all of it checked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.adapt import feedback_events as fe
from samewise.adapt.event_memory import HEAVIEST
from samewise.adapt.item_units import single
from samewise.exceptions import InvalidInputError
from samewise.kernels.adapter_event import (
    ANSWER,
    LARGEST,
    ONE_KIND,
    SIZE,
    sound,
)
from samewise.supervision.supervision_checks import parameter_array

Contrast = Callable[[Array, bool], Any]
"""Items to set a single one against: of a query, for a liked one or not."""


class ItemStore:
    """Vectors of items by their ids.

    Parameters
    ----------
    items : array of shape (n, d), callable or None
        Row numbers are the ids of an array; a callable is given a list of ids.
    n_features : int
        d.
    """

    def __init__(self, items: Any, n_features: int) -> None:
        self.given = items
        if items is not None and not callable(items):
            items = parameter_array(items, "items")
            if items.ndim != 2 or items.dtype.kind != "f" or items.shape[1] != n_features:
                raise InvalidInputError(
                    f"items must be an array of numbers with {n_features} features in a row for "
                    f"each item, or a callable. Got an array of shape {items.shape} and type "
                    f"{items.dtype}."
                )
        self.items, self.n_features = items, n_features

    @property
    def array(self) -> NDArray[Any]:
        """All items."""
        if self.items is None or callable(self.items):
            raise InvalidInputError(
                "This needs all items: give the adapter items= as an array, or pass the items."
            )
        return self.items

    def vectors(self, ids: list[Any]) -> Array:
        """The vectors of some ids."""
        if self.items is None:
            raise InvalidInputError(
                "Items were named by ids, but the adapter has no item store: give it items=, an "
                "array or a callable, or pass vectors."
            )
        return self._asked(ids) if callable(self.items) else self._rows(ids)

    def _rows(self, ids: list[Any]) -> Array:
        rows = np.asarray(ids)
        n = len(self.items)
        if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
            raise InvalidInputError(
                f"ids must be row numbers of items, integers from 0 to {n - 1}. Got {ids!r}."
            )
        found = self.items[rows]
        # A copy already.
        return np.ascontiguousarray(found) if found.dtype == np.float32 else single(found)

    def _asked(self, ids: list[Any]) -> Array:
        try:
            given = np.asarray(self.items(ids))
            if given.dtype.kind not in "fiu":
                raise TypeError(f"an array of {given.dtype}")
            found = single(given)
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"items gave no vectors for the ids {ids!r}: {type(error).__name__} "
                f"{str(error).rstrip('.')}."
            ) from error
        if found.shape != (len(ids), self.n_features):
            raise InvalidInputError(
                f"items must return an array of shape ({len(ids)}, {self.n_features}) for "
                f"{len(ids)} ids. Got shape {found.shape}."
            )
        return found


def checked_query(query: Any, n_features: int) -> Array:
    """A query as a float32 vector of its own."""
    given = parameter_array(query, "query")
    if given.shape != (n_features,) or given.dtype.kind not in "fiu":
        raise InvalidInputError(
            f"A query must be one vector of {n_features} numbers. Got an array of shape "
            f"{given.shape} and type {given.dtype}."
        )
    return single(given)


def read_items(shown: Any, store: ItemStore) -> tuple[Array, list[Any] | None]:
    """Vectors of shown items, and their ids where they were named by ids."""
    given = shown if isinstance(shown, np.ndarray) else None
    if given is None:
        try:
            given = np.asarray(shown)
        except ValueError:
            # Rows of different lengths.
            given = np.empty(0)
    if given.ndim == 1 and given.size:
        ids = shown.tolist() if isinstance(shown, np.ndarray) else list(shown)
        if not all(type(id) in (int, str) for id in ids):
            ids = [id.item() if isinstance(id, np.generic) else id for id in ids]
        if not all(type(id) in (int, str) for id in ids):
            raise InvalidInputError(
                f"ids of items must be integers or strings. Got {ids[:3]!r}; pass vectors as rows."
            )
        if len(set(ids)) < len(ids):
            raise InvalidInputError(f"Each item may be shown once in a list. Got the ids {ids!r}.")
        return store.vectors(ids), ids
    if given.ndim != 2 or given.dtype.kind not in "fiu" or given.shape[1] != store.n_features:
        raise InvalidInputError(
            f"Shown items must be ids, or rows of {store.n_features} numbers, at least one. Got an "
            f"array of shape {given.shape} and type {given.dtype}."
        )
    if not len(given):
        raise InvalidInputError("A list must have at least one item; it is empty.")
    return single(given), None


def check_sizes(*arrays: Array) -> None:
    """Refuse vectors that are too large to learn from, or not finite."""
    for rows in arrays:
        if not max(rows.max(), -rows.min()) <= LARGEST:
            raise wrong_sizes()


def wrong_sizes() -> InvalidInputError:
    """What to raise where vectors are too large, or not finite."""
    return InvalidInputError(
        f"Queries and items must be finite, and at most {LARGEST:g} in size; scale them to unit "
        "length."
    )


class Reading(NamedTuple):
    """An event, read: `names` are the ids of its items, if it had ids."""

    query: Array
    vectors: Array
    names: list[Any] | None
    grades: NDArray[np.int64]
    tested: bool
    lead: float
    candidate: int
    two_kinds: bool


def read_event(event: fe.Event, store: ItemStore, contrast: Contrast) -> Reading:
    """Check an event and bring it into one form."""
    query = checked_query(event.query, store.n_features)
    tested, lead, largest, candidate = False, 0.0, 1, -1
    if isinstance(event, fe.Thumb):
        vectors, names, y = _thumb(event, query, store, contrast)
    elif isinstance(event, fe.RankedList):
        vectors, names = read_items(event.ranking, store)
        y, tested, largest = fe.ranked_grades(len(vectors)), True, len(vectors)
    elif isinstance(event, fe.Click):
        vectors, names = read_items(event.shown, store)
        y = fe.clicked_grades(event.clicked, len(vectors))
        if event.teams is not None:
            lead = fe.team_lead(event.clicked, event.teams, len(vectors))
    else:
        vectors, names = read_items(event.shown, store)
        y, tested = fe.answers(event.y, len(vectors)), True
        candidate = fe.candidate_place(event.candidate, len(vectors))
    grades = np.empty(len(vectors), dtype=np.int64)
    found = sound(query, vectors, y, largest, grades)
    if found == SIZE:
        raise wrong_sizes()
    if found == ANSWER:
        raise fe.wrong_answers(y)
    return Reading(query, vectors, names, grades, tested, lead, candidate, found != ONE_KIND)


def _thumb(
    event: fe.Thumb, query: Array, store: ItemStore, contrast: Contrast
) -> tuple[Array, list[Any] | None, NDArray[np.int64]]:
    item = parameter_array(event.item, "item")
    one = [event.item] if item.ndim == 0 else item[None]
    vectors, ids = read_items(one, store)
    against = event.against
    if against is None:
        against = contrast(query, bool(event.up))
        if ids is not None:
            against = [row for row in against if row != ids[0]]
    others, other_ids = read_items(against, store)
    if (ids is None) != (other_ids is None):
        # A vector against row numbers of the store: vectors all.
        ids = other_ids = None
    grades = np.full(1 + len(others), -1 if event.up else 1, dtype=np.int64)
    grades[0] = 1 if event.up else -1
    named = None if ids is None or other_ids is None else [*ids, *other_ids]
    return np.concatenate([vectors, others]), named, grades


def names_of(given: Any, what: str) -> set[Any]:
    """Whom, or what, to forget: one name, or several."""
    if isinstance(given, str | int | np.integer) and not isinstance(given, bool):
        given = [given]
    if not isinstance(given, Collection) or isinstance(given, bytes):
        raise InvalidInputError(f"{what} must be names, in a list or set. Got {given!r:.60}.")
    return {checked_name(name) for name in given}


def check_weight(weight: Any) -> None:
    """Refuse what is no weight of an event."""
    kind = type(weight)
    if (
        not (kind is float or kind is int or isinstance(weight, Real))
        or not 0 <= weight <= HEAVIEST
    ):
        raise InvalidInputError(f"weight must be a number from 0 to 1e6. Got {weight!r}.")


def checked_name(name: Any) -> str | int | None:
    """The name of a user or an event; those of NumPy become plain ones, which can be written."""
    if name is None:
        return None
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    raise InvalidInputError(f"Users and events are named by strings or integers. Got {name!r}.")
