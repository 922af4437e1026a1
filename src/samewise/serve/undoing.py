"""Taking back a single event: it goes from the log, and the model is built again without it."""

from __future__ import annotations

import time

from samewise.exceptions import InvalidInputError
from samewise.serve.collection import Collection
from samewise.serve.event_store import Record
from samewise.serve.feedback_resolving import NotFoundError

TEACHERS_MAY = 3600.0
"""Seconds within which who gave an event may take it back; an admin always may."""


def event_to_undo(collection: Collection, event: str, admin: bool) -> Record:
    """The record of an event that may be taken back."""
    found = collection.stores.events.find(event)
    if found is None or found.kind != "feedback":
        raise NotFoundError(f"There is no event {event!r}, or no longer.")
    if not admin and time.time() - found.time > TEACHERS_MAY:
        raise InvalidInputError("The event is older than an hour; ask an admin to take it back.")
    return found


def undo(collection: Collection, found: Record) -> int:
    """Remove an event; the number of the record that says so.

    The event's id stays known, so that it is not taken when it is sent once more.
    """

    def remove() -> tuple[int, int]:
        collection.stores.events.remove(found.seq)
        return found.seq, 1

    return collection.removed(remove)[1]


def lessons_again(collection: Collection, seq: int) -> int:
    """How many records are taken again when one goes: those after the snapshot before it."""
    before = [at for at in collection.stores.models.snapshots() if at < seq]
    return collection.stores.events.last() - max(before, default=0)
