"""When to serve what was learned: bets against the hypothesis that it is no better.

Each judged list is first ranked by the start, by what is served and by the live form, and then
learned from. For each of two comparisons x ∈ {−1, 0, 1} (is the live form better or worse than what
is served: by the AUC of the judged items, and by whether the best one is liked) there is a wealth

    W_t = Π (1 + x_s/10),

which, while the live form is no better (E[x | past] ≤ 0), is a supermartingale: by Ville's
inequality it ever reaches 1/ε with probability at most ε. The same share is bet on each list: an
estimate of the best share would come from lists when the live form was still worse. The k-th
promotion needs W ≥ π²k²/(6ε), and Σ 6/(π²k²) = 1: all false promotions together have probability
at most ε, whenever one looks. Of the level the order has four fifths, the first place the rest.
For the way back, is the start better than what is served, λ_s = clip(m/v, 0, ½) of the values
before s: nothing is lost to this bet while what is served is better.
The order is promoted only if its AUC is not lower in the mean either: many small gains do not pay
for a few large losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from samewise.files.state import Saved, State
from samewise.kernels.adapter_event import CREDIBLE, FALL_FIRST, FALL_REST, FIRST, GAIN, REST

PLACES: tuple[str, str] = ("rest", "first")
"""What is tested apart: the order of the judged items (AUC), and whether the best one is liked."""
LEVEL = {"rest": 0.8, "first": 0.2}
"""The shares of the level: the first place of a good start is seldom improved."""
CREDIBILITY = math.log(20.0)
RECENT = 200
"""Lists of which the agreement with the start must be positive."""
_BETS = {("rest", True): REST, ("first", True): FIRST}
_BETS |= {("rest", False): FALL_REST, ("first", False): FALL_FIRST}


@dataclass(frozen=True)
class GuardReport:
    """What the guard knows at this time.

    Attributes
    ----------
    wealth : dict of str to float
        For "rest" (the order of the judged items) and "first" (the first place): the wealth of the
        bet that the live form is better than what is served on more lists than it is worse.
    needed : dict of str to float
        The wealth at which the live form is promoted.
    expected_events : dict of str to float
        How many more lists that takes if they are like those so far; infinite where the live form
        was not better so far.
    fallback : dict of str to float
        The wealth of the bet that the start is better than what is served, as a share of what is
        needed to fall back to the start.
    credible : bool
        Whether the answers agree with the start better than chance, as a promotion requires.
    agreement : float
        2 AUC − 1 of the start on the last 200 lists, in the mean.
    served : dict of str to int
        The version that is served, 0 for the start.
    history : tuple of dict
        Every change of what is served: event, place, version, and why.
    """

    wealth: dict[str, float]
    needed: dict[str, float]
    expected_events: dict[str, float]
    fallback: dict[str, float]
    credible: bool
    agreement: float
    served: dict[str, int]
    history: tuple[dict[str, Any], ...] = field(repr=False)


class Guard:
    """The bets on judged lists, and what follows from them.

    Parameters
    ----------
    level : float
        The probability of a false promotion, over all time.
    """

    def __init__(self, level: float) -> None:
        self.level = level
        self.bets = np.zeros((GAIN + 1, 4))
        self.recent = np.zeros(RECENT)
        self.reached = {(place, up): 0 for place in PLACES for up in (True, False)}
        self.served = dict.fromkeys(PLACES, 0)
        self.history: list[dict[str, Any]] = []

    def needed(self, place: str, up: bool) -> float:
        """The logarithm of the wealth that the next promotion, or fallback, needs."""
        k = self.reached[place, up] + 1
        return math.log(math.pi**2 * k * k / (6 * self.level * LEVEL[place]))

    def log_wealth(self, place: str, up: bool) -> float:
        """The logarithm of the wealth for a promotion, or for a fallback."""
        return float(self.bets[_BETS[place, up], 0])

    @property
    def credible(self) -> bool:
        """Whether the answers agree with the start better than chance."""
        return bool(self.bets[CREDIBLE, 0] >= CREDIBILITY and self.recent.sum() > 0)

    @property
    def gains(self) -> bool:
        """Whether the AUC of the order is not lower in the mean."""
        return bool(self.bets[GAIN, 2] >= 0)

    def limits(self) -> NDArray[np.float64]:
        """For each bet the log wealth at which something may be due; the start cannot fall back."""
        limits = np.full(len(self.bets), math.inf)
        for (place, up), row in _BETS.items():
            if up or self.served[place]:
                limits[row] = self.needed(place, up)
        return limits

    def due(self, place: str) -> str:
        """What is due: "promote", "fall back" or nothing."""
        gains = place != "rest" or self.gains
        wealth = self.bets[_BETS[place, True], 0]
        if wealth >= self.needed(place, True) and self.credible and gains:
            return "promote"
        falls = self.bets[_BETS[place, False], 0] >= self.needed(place, False)
        return "fall back" if falls and self.served[place] else ""

    def serve(self, place: str, version: int, event: int, why: str) -> None:
        """What is served has changed: bets on this place start anew."""
        self.served[place] = version
        self.history.append({"event": event, "place": place, "version": version, "why": why})
        if why in ("promote", "fall back"):
            self.reached[place, why == "promote"] += 1
        self.bets[_BETS[place, True]] = self.bets[_BETS[place, False]] = 0.0
        if place == "rest":
            self.bets[GAIN] = 0.0
        # A promotion asks for an agreement of its own.
        if why != "fall back":
            self.bets[CREDIBLE] = 0.0
            self.recent[:] = 0.0

    def report(self) -> GuardReport:
        """What is known at this time."""
        wealth = {place: self.bets[_BETS[place, True]] for place in PLACES}
        needed = {place: self.needed(place, True) for place in PLACES}
        falls = {
            place: _exp(self.bets[_BETS[place, False], 0] - self.needed(place, False))
            for place in PLACES
        }
        n = min(int(self.bets[CREDIBLE, 1]), RECENT)
        return GuardReport(
            {place: _exp(bet[0]) for place, bet in wealth.items()},
            {place: _exp(value) for place, value in needed.items()},
            {place: _delay(wealth[place], needed[place]) for place in PLACES},
            falls,
            self.credible,
            float(self.recent.sum() / n) if n else 0.0,
            dict(self.served),
            tuple(dict(change) for change in self.history),
        )

    def state(self) -> State:
        """All that the next list meets."""
        values = {
            "level": self.level,
            "reached": list(self.reached.values()),
            "served": list(self.served.values()),
            "history": [list(change.values()) for change in self.history],
        }
        return State({"bets": self.bets, "recent": self.recent}, values)

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The guard of that state."""
        guard = cls(saved.positive("level"))
        bets = saved.array("bets", None, 4, dtypes=["float64"])
        # Earlier files are without the gain.
        saved.check(len(bets) in (GAIN, GAIN + 1), "bets must be five or six")
        guard.bets[: len(bets)] = bets
        guard.recent = saved.array("recent", RECENT, dtypes=["float64"])
        reached = _numbers(saved, "reached", len(guard.reached))
        guard.reached = dict(zip(guard.reached, reached, strict=True))
        served = _numbers(saved, "served", len(PLACES))
        guard.served = dict(zip(PLACES, served, strict=True))
        for change in saved.value("history"):
            right = isinstance(change, list) and [type(v) for v in change] == [int, str, int, str]
            saved.check(right, "history must be changes of what is served")
            names = ("event", "place", "version", "why")
            guard.history.append(dict(zip(names, change, strict=True)))
        return guard


def _exp(value: float) -> float:
    """Wealth that is not used, since answers are not credible, may grow beyond all numbers."""
    return math.exp(value) if value < 700 else math.inf


def _numbers(saved: Saved, name: str, n: int) -> list[int]:
    values = saved.value(name)
    right = isinstance(values, list) and len(values) == n
    right = right and all(type(value) is int and value >= 0 for value in values)
    saved.check(right, f"{name} must be numbers")
    return list(values)


def _delay(bet: NDArray[np.float64], needed: float) -> float:
    """Lists until the wealth is reached, if it grows as it did so far."""
    if bet[0] >= needed:
        return 0.0
    return float((needed - bet[0]) * bet[1] / bet[0]) if bet[0] > 0 else math.inf
