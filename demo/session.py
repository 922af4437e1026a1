"""The session of the demo: teach, be sabotaged, forget the saboteurs; measured in between."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from demo.people import SABOTEURS, People, Taught
from demo.shelves import Shelf
from samewise import Client

LISTS, SABOTAGE = 1000, 150
"""Judged lists of honest users, and of saboteurs, for each collection; fewer in a hurry."""
LEAST = 300, 50
"""However slow the machine is: with fewer there is nothing to see."""


@dataclass
class Course:
    """What happened to a collection.

    Attributes
    ----------
    measured : dict
        By moment and form: "start", "served, taught", "live, sabotaged" and so on.
    """

    shelf: Shelf
    honest: Taught
    sabotage: Taught
    measured: dict[str, dict[str, float]]
    guard: dict[str, Any]
    curve: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def fill(client: Client, shelf: Shelf) -> None:
    """Make the collection and start it."""
    client.make(shelf.encoder)
    client.put(shelf.ids, shelf.vectors, shelf.payloads)
    client.start()


def run(url: str, shelf: Shelf, seed: int, seconds: float, say: Any) -> Course:
    """The whole session of one collection, within a time."""
    began = time.monotonic()
    with Client(url, shelf.name, timeout=120.0) as client:
        people = People(client, shelf, seed)
        # What is measured asks as often as users do: the first measure says how long it takes.
        measured = {"start": people.measure("start")}
        end = began + seconds - 6 * (time.monotonic() - began)
        honest = people.teach(LISTS, began + 0.75 * (end - began), least=LEAST[0])
        say(f"{shelf.about}: {honest.lists} judged lists, {_promotions(honest.history)}")
        _measure(people, measured, "taught")
        sabotage = people.teach(SABOTAGE, end, honest=False, least=LEAST[1])
        _measure(people, measured, "sabotaged")
        for n in range(SABOTEURS):
            client.forget(f"saboteur-{n + 1}")
        measured["live, forgotten"] = people.measure("live")
        say(f"{shelf.about}: {sabotage.lists} lists of saboteurs, who are forgotten again")
        course = Course(shelf, honest, sabotage, measured, client.guard(), curve(url, shelf))
    course.seconds = time.monotonic() - began
    return course


def curve(url: str, shelf: Shelf) -> dict[str, Any]:
    """What the page shows of how learning went."""
    path = f"{url}/collections/{shelf.name}/watch?follow=false"
    said = httpx.get(path, trust_env=False, timeout=30).text
    found: dict[str, Any] = json.loads(said.partition("data: ")[2])
    return {"columns": found["curve"], "marks": found["marks"]}


def _measure(people: People, measured: dict[str, dict[str, float]], when: str) -> None:
    for which in ("served", "live"):
        measured[f"{which}, {when}"] = people.measure(which)


def _promotions(history: list[dict[str, Any]]) -> str:
    events = [change["event"] for change in history if change["why"] == "promote"]
    if not events:
        return "nothing is promoted yet"
    return f"{len(events)} promotions, the first after {events[0]} lists"
