"""Which list to show: served items, the live form's candidate, explored items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Indices
from samewise.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Slots:
    """A list to show.

    Attributes
    ----------
    rows : array of shape (k,)
        Places among the candidates, in the order to show.
    why : tuple of str
        "served", "live" or "explored", for each.
    propensity : array of shape (k,)
        The probability with which each was shown, given the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import LiveAdapter
    >>> items = np.random.RandomState(0).randn(100, 8)
    >>> adapter = LiveAdapter(random_state=0).fit(items)
    >>> adapter.slots(items[0], items[1:], k=5, explored=1).why
    ('served', 'served', 'served', 'live', 'explored')
    """

    rows: Indices
    why: tuple[str, ...]
    propensity: NDArray[np.float64]

    @property
    def candidate(self) -> int:
        """The place of the live form's candidate."""
        return self.why.index("live")


def fill_slots(
    served: Indices, live: Indices, k: int, explored: int, random: np.random.RandomState
) -> Slots:
    """The best k − explored − 1 served, the best of the live form beyond these, and some others."""
    _check_count("k", k, 2, len(served))
    _check_count("explored", explored, 0, k - 2)
    k, explored = int(k), int(explored)
    head = served[: k - explored - 1]
    candidate = live[~np.isin(live, head)][:1]
    rest = served[~np.isin(served, [*head, *candidate])]
    others = random.choice(rest, explored, replace=False) if explored else rest[:0]
    why = ("served",) * len(head) + ("live",) + ("explored",) * explored
    propensity = np.ones(k)
    propensity[k - explored :] = explored / max(len(rest), 1)
    return Slots(np.concatenate([head, candidate, others]), why, propensity)


def _check_count(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidInputError(
            f"{name} must be an integer from {least} to {most}, so that served items, the live "
            f"form's candidate and explored items have their places. Got {value!r}."
        )


def team_draft(
    served: Sequence[Any], live: Sequence[Any], k: int, random: np.random.RandomState
) -> tuple[list[Any], NDArray[np.int64]]:
    """Team-draft interleaving (Radlinski et al. 2008): the list, and who chose each item.

    In turns the team with fewer items, or at equal numbers a random one, adds its best item that is
    not in the list yet.
    """
    if not isinstance(k, int | np.integer) or k < 1:
        raise InvalidInputError(f"k must be an integer of at least 1. Got {k!r}.")
    for ranking in (served, live):
        if np.ndim(ranking) == 0:
            raise InvalidInputError(f"A ranking must be a sequence of items. Got {ranking!r:.60}.")
    shown: list[Any] = []
    teams: list[int] = []
    rankings = (list(served), list(live))
    while len(shown) < k:
        mine = sum(teams)
        turn = int(random.randint(2)) if 2 * mine == len(teams) else int(2 * mine < len(teams))
        left = [[item for item in ranking if item not in shown] for ranking in rankings]
        if not any(left):
            break
        if not left[turn]:
            turn = 1 - turn
        shown.append(left[turn][0])
        teams.append(turn)
    return shown, np.array(teams, dtype=np.int64)
