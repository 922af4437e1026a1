"""What users said, as lines of a log: JSON objects that name queries and items by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.adapt import feedback_events as fe
from samewise.exceptions import InvalidInputError

ANSWERS = ("y", "clicked", "ranking", "thumb", "same")
"""Fields of which a line has one: it says what kind of event it is."""


class NamedVectors:
    """Vectors and their ids, which are compared as text; without ids, row numbers.

    Parameters
    ----------
    source : str
        Where they come from, for messages.
    X : array of shape (n, d)
    ids : sequence of str or None
        One for each row.

    Examples
    --------
    >>> import numpy as np
    >>> NamedVectors("items.parquet", np.eye(2), ["a", "7"]).row(7)
    1
    """

    def __init__(self, source: str, X: NDArray[Any], ids: Any = None) -> None:
        self.source, self.X = source, X
        self.ids = None if ids is None else [str(id) for id in ids]
        self._rows = None if self.ids is None else {id: i for i, id in enumerate(self.ids)}
        if self._rows is not None and len(self._rows) < len(X):
            assert self.ids is not None
            twice = next(id for i, id in enumerate(self.ids) if self._rows[id] != i)
            raise InvalidInputError(f"{source} has the id {twice!r} twice; ids must differ.")

    def row(self, id: Any) -> int:
        """The row of an id."""
        if type(id) not in (int, str):
            raise InvalidInputError(f"An id must be an integer or text. Got {id!r:.60}.")
        if self._rows is not None:
            row = self._rows.get(str(id), -1)
        else:
            row = id if type(id) is int and 0 <= id < len(self.X) else -1
        if row < 0:
            known = "" if self._rows is not None else f", whose ids are 0 to {len(self.X) - 1}"
            raise InvalidInputError(f"{id!r:.60} is no id of {self.source}{known}.")
        return row


@dataclass(frozen=True)
class EventReader:
    """Events of lines.

    Attributes
    ----------
    items : NamedVectors
    queries : NamedVectors or None
        What queries are named by; without it, lines have vectors.
    """

    items: NamedVectors
    queries: NamedVectors | None = None

    def event(self, entry: dict[str, Any]) -> fe.Event:
        """The event of a line, items by row numbers."""
        given = [name for name in ANSWERS if entry.get(name) is not None]
        if len(given) != 1:
            raise InvalidInputError(
                f"an event has one of the fields {', '.join(ANSWERS)}. Got "
                f"{' and '.join(given) or 'none of them'}."
            )
        kind, query = given[0], self._query(entry.get("query"))
        if kind == "ranking":
            return fe.RankedList(query, self._shown(entry["ranking"], "ranking"))
        if kind in ("thumb", "same"):
            return self._thumb(query, entry, kind)
        shown = self._shown(entry.get("shown"), "shown")
        if kind == "clicked":
            return fe.Click(query, shown, entry["clicked"], entry.get("teams"))
        return fe.Judged(query, shown, entry["y"], entry.get("candidate"))

    def _query(self, query: Any) -> Any:
        if isinstance(query, list):
            return query
        if query is None:
            raise InvalidInputError("an event has a query: a list of numbers, or an id.")
        if self.queries is None:
            raise InvalidInputError(
                f"the query is the id {query!r:.60}, but there are no queries to look it up in; "
                "give them with --queries."
            )
        return self.queries.X[self.queries.row(query)]

    def _shown(self, shown: Any, name: str) -> Any:
        if not isinstance(shown, list) or not shown:
            raise InvalidInputError(
                f"{name} must be a list of ids, at least one. Got {shown!r:.60}."
            )
        # Vectors in the place of ids are taken as they are.
        return shown if isinstance(shown[0], list) else [self.items.row(id) for id in shown]

    def _thumb(self, query: Any, entry: dict[str, Any], kind: str) -> fe.Thumb:
        up, item = entry[kind], entry.get("item")
        if kind == "thumb" and up in ("up", "down"):
            up = up == "up"
        if type(up) is not bool:
            wanted = "'up', 'down', true or false" if kind == "thumb" else "true or false"
            raise InvalidInputError(f"{kind} must be {wanted}. Got {up!r:.60}.")
        against = entry.get("against")
        if against is not None:
            against = self._shown(against, "against")
        item = np.array(item) if isinstance(item, list) else self.items.row(item)
        return fe.Thumb(query, item, up, against)
