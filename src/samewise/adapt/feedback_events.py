"""What users say: judged lists, clicks, thumbs, same or different, ranked lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError
from samewise.supervision.supervision_checks import parameter_array


@dataclass(frozen=True, eq=False)
class Judged:
    """A list of items of which each was liked, disliked or not judged.

    Parameters
    ----------
    query : array of shape (d,)
        The query.
    shown : array of shape (n, d) or sequence of ids
        The items that were shown.
    y : array of shape (n,)
        +1 for liked, −1 for disliked, 0 for not judged.
    candidate : int, default=None
        The place, from 0, of an item that is in the list because the live form chose it
        (`LiveAdapter.slots`). It counts in the comparison of first places only: a form's own choice
        flatters other forms wherever it is wrong.

    Examples
    --------
    >>> from samewise.adapt import Judged
    >>> Judged([1.0, 0.0], ["a", "b"], [1, -1]).y
    [1, -1]
    """

    query: Any
    shown: Any
    y: Any
    candidate: int | None = None


@dataclass(frozen=True, eq=False)
class RankedList:
    """Items in the order in which a user prefers them, the best first.

    Parameters
    ----------
    query : array of shape (d,)
        The query.
    ranking : array of shape (n, d) or sequence of ids
        The items, the best first.

    Examples
    --------
    >>> from samewise.adapt import RankedList
    >>> RankedList([1.0, 0.0], ["best", "second", "last"]).ranking[0]
    'best'
    """

    query: Any
    ranking: Any


@dataclass(frozen=True, eq=False)
class Click:
    """Clicks in a list: an item that was clicked is liked more than those above it that were not.

    What is below the last click was perhaps not looked at, and counts as not judged. Since clicks
    depend on what was served, they are learned from but say nothing about which form is better,
    except where the list was interleaved (`LiveAdapter.interleave`).

    Parameters
    ----------
    query : array of shape (d,)
        The query.
    shown : array of shape (n, d) or sequence of ids
        The items in the order in which they were shown.
    clicked : sequence of int
        The places of the clicked items, from 0.
    teams : array of shape (n,), default=None
        Of an interleaved list: which form each item came from, 0 for served and 1 for live.

    Examples
    --------
    >>> from samewise.adapt import Click
    >>> Click([1.0, 0.0], ["a", "b", "c"], clicked=[1]).clicked
    [1]
    """

    query: Any
    shown: Any
    clicked: Any
    teams: Any = None


@dataclass(frozen=True, eq=False)
class Thumb:
    """One item that was liked or disliked.

    A single item says nothing about an order. Without `against`, a liked item is set against five
    items sampled from ranks 100 to 1000 of the live ranking, and a disliked one below the seven
    best: most of what is learned so is the live form's own opinion. Show lists where you can.

    Parameters
    ----------
    query : array of shape (d,)
        The query.
    item : array of shape (d,) or id
        The item.
    up : bool, default=True
        Whether it was liked.
    against : array of shape (n, d) or sequence of ids, default=None
        Items of which the opposite holds.

    Examples
    --------
    >>> from samewise.adapt import Thumb
    >>> Thumb([1.0, 0.0], "a", up=False, against=["b"]).up
    False
    """

    query: Any
    item: Any
    up: bool = True
    against: Any = None


def Same(query: Any, item: Any, against: Any = None) -> Thumb:
    """The item is the same as the query, for who judges: a liked item.

    Parameters
    ----------
    query : array of shape (d,)
        The query.
    item : array of shape (d,) or id
        The item.
    against : array of shape (n, d) or sequence of ids, default=None
        Items that are not the same.

    Returns
    -------
    Thumb
        The event.

    Examples
    --------
    >>> from samewise.adapt import Same
    >>> Same([1.0, 0.0], "a").up
    True
    """
    return Thumb(query, item, True, against)


def Different(query: Any, item: Any, against: Any = None) -> Thumb:
    """The item is not the same as the query, for who judges: a disliked item.

    Parameters
    ----------
    query : array of shape (d,)
        The query.
    item : array of shape (d,) or id
        The item.
    against : array of shape (n, d) or sequence of ids, default=None
        Items that are the same.

    Returns
    -------
    Thumb
        The event.

    Examples
    --------
    >>> from samewise.adapt import Different
    >>> Different([1.0, 0.0], "a").up
    False
    """
    return Thumb(query, item, False, against)


Event = Judged | RankedList | Click | Thumb


def answers(y: Any, n: int) -> NDArray[Any]:
    """The answers to a judged list: one for each of n items. What they are is looked at later."""
    given = parameter_array(y, "y")
    if given.shape != (n,) or given.dtype.kind not in "iuf":
        raise InvalidInputError(
            f"y must have an answer for each of the {n} shown items: +1 (liked), -1 (disliked) or "
            f"0 (not judged). Got an array of shape {given.shape} and type {given.dtype}."
        )
    # Unsigned ones would wrap.
    return given.astype(np.int64 if given.dtype.kind == "i" else np.float64)


def wrong_answers(y: NDArray[Any]) -> InvalidInputError:
    """What to raise where answers are not +1, −1 or 0."""
    return InvalidInputError(
        "y must be +1 (liked), -1 (disliked) or 0 (not judged) for each shown item. Got "
        f"{list(dict.fromkeys(y.tolist()))[:5]}."
    )


def candidate_place(candidate: Any, n: int) -> int:
    """The place of the live form's candidate in a list of n; −1 for none."""
    if candidate is None:
        return -1
    if not isinstance(candidate, int | np.integer) or not 0 <= candidate < n:
        raise InvalidInputError(
            f"candidate must be a place in the list, an integer from 0 to {n - 1}. "
            f"Got {candidate!r}."
        )
    return int(candidate)


def ranked_grades(n: int) -> NDArray[np.int64]:
    """The grades of a ranked list: the best has the highest, and none is 0."""
    return np.arange(n, 0, -1, dtype=np.int64)


def clicked_grades(clicked: Any, n: int) -> NDArray[np.int64]:
    """Clicked +1; above the last click and not clicked −1; below it 0."""
    places = parameter_array(clicked, "clicked")
    if places.size == 0:
        return np.zeros(n, dtype=np.int64)
    right = places.ndim == 1 and places.dtype.kind in "iu"
    if not right or places.min() < 0 or places.max() >= n:
        raise InvalidInputError(
            f"clicked must be places in the list, integers from 0 to {n - 1}. Got {clicked!r}."
        )
    grades = np.zeros(n, dtype=np.int64)
    grades[: places.max()] = -1
    grades[places] = 1
    return grades


def team_lead(clicked: Any, teams: Any, n: int) -> float:
    """Of an interleaved list: +1, 0 or −1 as more clicks went to live, as many, or fewer."""
    given = parameter_array(teams, "teams")
    if given.shape != (n,) or not np.isin(given, (0, 1)).all():
        raise InvalidInputError(
            f"teams must be 0 (served) or 1 (live) for each of the {n} shown items, as interleave "
            f"returned them. Got {teams!r}."
        )
    places = np.unique(np.asarray(clicked, dtype=np.int64))
    return float(np.sign((2 * given[places].astype(np.int64) - 1).sum()))
