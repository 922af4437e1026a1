"""Simulated users: they search, judge what they see, and send it, all over HTTP."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from demo.shelves import Shelf
from samewise import Client

NOISE = 0.1
"""How many of the answers of honest users are wrong."""
SHOWN, EXPLORED, TOGETHER = 10, 3, 10
"""Items of a list, how many of them are sampled, and lists in a request."""
USERS, SABOTEURS = 20, 3
MEASURED = 60
"""Questions of each kind that a measurement asks."""


@dataclass
class Taught:
    """What some people did."""

    lists: int = 0
    answers: int = 0
    wrong: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


class People:
    """Users of a collection, who all want the same things.

    Parameters
    ----------
    client : Client
    shelf : Shelf
    seed : int
    """

    def __init__(self, client: Client, shelf: Shelf, seed: int) -> None:
        self._client, self._shelf = client, shelf
        self._random = np.random.RandomState(seed)
        self._about = dict(zip(shelf.ids, shelf.groups.tolist(), strict=True))

    def teach(self, lists: int, until: float, honest: bool = True, least: int = 0) -> Taught:
        """Judge so many lists, or, once there are `least`, until a time of the monotonic clock."""
        began, taught = time.monotonic(), Taught()
        asked = np.flatnonzero(self._shelf.asked)
        while taught.lists < lists and (taught.lists < least or time.monotonic() < until):
            questions = self._random.choice(asked, min(TOGETHER, lists - taught.lists))
            done = self._client.feedback([self._judged(q, honest, taught) for q in questions])
            taught.lists += len(questions)
        if taught.lists:
            # Until all of it is learned.
            self._client.search(self._shelf.questions[0], k=1, min_seq=done["seq"])
        taught.seconds = time.monotonic() - began
        taught.history = self._client.guard()["history"]
        return taught

    def _judged(self, question: int, honest: bool, taught: Taught) -> dict[str, Any]:
        """A list, judged: by honest users with some errors, by saboteurs the wrong way round."""
        n = self._random.randint(USERS if honest else SABOTEURS)
        user = f"{'user' if honest else 'saboteur'}-{n + 1}"
        query = self._shelf.questions[question]
        found = self._client.search(query, k=SHOWN, explore=EXPLORED, user=user)
        wanted = self._shelf.wanted[question]
        liked: dict[bool, list[str]] = {True: [], False: []}
        for result in found["results"]:
            right = self._about[result["id"]] == wanted
            wrong = not honest or self._random.random_sample() < NOISE
            liked[bool(right != wrong)].append(result["id"])
            taught.answers += 1
            taught.wrong += wrong
        body = {"type": "judged", "impression": found["impression"], "user": user}
        return {**body, "liked": liked[True], "disliked": liked[False]}

    def measure(self, which: str) -> dict[str, float]:
        """Precision among ten and first places that are right, of questions asked and not."""
        shelf, found = self._shelf, {}
        for kind, mask in (("asked", shelf.asked), ("unasked", ~shelf.asked)):
            hits, first = [], []
            for question in np.flatnonzero(mask)[:MEASURED]:
                answer = self._client.search(shelf.questions[question], k=10, which=which)
                wanted = shelf.wanted[question]
                right = [self._about[one["id"]] == wanted for one in answer["results"]]
                hits.append(np.mean(right))
                first.append(right[0])
            found[f"{kind} precision"] = float(np.mean(hits))
            found[f"{kind} first"] = float(np.mean(first))
        return found
