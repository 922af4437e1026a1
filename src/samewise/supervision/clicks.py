"""Clicks into row numbers: who was preferred to whom in the lists that were shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError

CELLS = 2**24
"""Pairs of places that are looked at together."""


def checked_lists(
    shown: Any, clicked: Any, n_lists: int, n_items: int
) -> tuple[Indices, NDArray[np.bool_]]:
    """Row numbers of the items shown, −1 where a list has ended, and which were clicked."""
    shown, clicked = (
        _table(given, name) for given, name in ((shown, "shown"), (clicked, "clicked"))
    )
    if shown.shape != clicked.shape or len(shown) != n_lists:
        raise InvalidInputError(
            "shown and clicked must have the same shape, a row for each query and a column for "
            f"each place. Got {shown.shape} and {clicked.shape} for {n_lists} queries."
        )
    if shown.size and (shown.dtype.kind not in "iu" or shown.min() < -1 or shown.max() >= n_items):
        raise InvalidInputError(
            f"shown must hold row numbers of items from 0 to {n_items - 1}, and -1 in the places "
            f"after the end of a shorter list. Got type {shown.dtype}, from {shown.min()} to "
            f"{shown.max()}."
        )
    if clicked.size and (clicked.dtype.kind not in "biuf" or not np.isin(clicked, (0, 1)).all()):
        raise InvalidInputError(
            "clicked must be True or False (1 or 0) for each place. Got other values; if it holds "
            "row numbers, pass np.isin for each list."
        )
    clicked = clicked.astype(bool)
    if np.any(clicked & (shown < 0)):
        raise InvalidInputError("clicked must be False where shown is -1. Got a click there.")
    ordered = np.sort(shown, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = np.argwhere(twice)[0]
        raise InvalidInputError(
            f"An item must be shown at most once in a list. Got item {ordered[row, place]} twice "
            f"in list {row}."
        )
    return shown.astype(np.intp), clicked


def _table(given: Any, name: str) -> NDArray[Any]:
    try:
        table = np.asarray(given)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} must have a column for each place. Got lists of different lengths; fill "
            "shorter ones with -1 in shown and False in clicked."
        ) from error
    if table.ndim != 2:
        raise InvalidInputError(
            f"{name} must have shape (n_lists, n_places). Got shape {table.shape}."
        )
    return table


def skipped_above(shown: Indices, clicked: NDArray[np.bool_]) -> tuple[Indices, Indices, Indices]:
    """List, clicked item and skipped item of each pair, in the order of lists and places."""
    k = shown.shape[1]
    above = np.tri(k, k, -1, dtype=bool)
    skipped = ~clicked & (shown >= 0)
    found = [np.empty((3, 0), dtype=np.intp)]
    size = max(1, CELLS // max(k * k, 1))
    for start in range(0, len(shown), size):
        part = slice(start, start + size)
        pairs = clicked[part, :, None] & skipped[part, None, :] & above
        row, place, passed = np.nonzero(pairs)
        row = row + start
        found.append(np.stack([row, shown[row, place], shown[row, passed]]))
    lists, positive, negative = np.concatenate(found, axis=1)
    return lists, positive, negative
