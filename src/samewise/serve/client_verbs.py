"""The verbs of a client of `samewise serve`: what each sends, and what it reads of the answer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)
from urllib.parse import quote

import numpy as np

from samewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from samewise.serve.client import AsyncClient, Client

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Call(Generic[R_co]):
    """A request, and how its answer is read.

    Attributes
    ----------
    method, path : str
        The path within the collection.
    read : callable
        What the answer says.
    body : object
        Sent as JSON, if it is not None.
    params : dict or None
        Of the query string.
    content : bytes or None
        Sent as it is.
    once : bool
        Whether it would be something else to send it again.
    """

    method: str
    path: str
    read: Callable[[Any], R_co]
    body: Any = None
    params: dict[str, Any] | None = None
    content: bytes | None = None
    once: bool = False

    @property
    def sent(self) -> dict[str, Any]:
        """What httpx takes."""
        if self.content is None:
            return {"params": self.params, **({} if self.body is None else {"json": self.body})}
        return {"content": self.content, "headers": {"Content-Type": "application/octet-stream"}}


class Verb(Protocol[P, R_co]):
    """A method that answers in a `Client`, and is awaited in an `AsyncClient`."""

    @overload
    def __get__(self, of: None, owner: Any) -> Callable[..., Any]: ...
    @overload
    def __get__(self, of: Client, owner: Any) -> Callable[P, R_co]: ...
    @overload
    def __get__(self, of: AsyncClient, owner: Any) -> Callable[P, Awaitable[R_co]]: ...


def verb(called: Callable[Concatenate[Any, P], Call[R_co]]) -> Verb[P, R_co]:
    """The method that sends a call; `called` says which."""

    @wraps(called)
    def method(client: Any, *args: P.args, **more: P.kwargs) -> Any:
        return client._ask(called(client, *args, **more))

    return cast("Verb[P, R_co]", method)


def _body(answer: Any) -> dict[str, Any]:
    return dict(answer.json())


def _field(name: str, kind: Callable[[Any], R_co]) -> Callable[[Any], R_co]:
    return lambda answer: kind(answer.json()[name])


class ClientVerbs:
    """What can be asked of a collection of a running service."""

    # Items

    @verb
    def make(self, /, encoder: str = "given", **settings: Any) -> Call[bool]:
        """Make the collection, if it is not there.

        Parameters
        ----------
        encoder : {"given", "text", "callable"}, default="given"
            Where vectors come from: the client, the built-in encoder of texts, or the function that
            the service was started with.
        **settings
            `text_field`, `index_from`, `personal`, and `guard`, `margin`, `memory` and `half_life`
            of the `LiveAdapter`.

        Returns
        -------
        bool
            False if there was one with these settings.
        """
        settings = {"encoder": encoder, **settings}
        return Call("PUT", "", _field("new", bool), settings)

    @verb
    def put(
        self,
        ids: Sequence[str],
        vectors: Any = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> Call[int]:
        """Add or replace items.

        Parameters
        ----------
        ids : sequence of str
            Their names.
        vectors : array of shape (n, d), default=None
            Their vectors, for a collection with the encoder "given".
        payloads : sequence of mappings, default=None
            What else is known of each; where vectors are made of texts, with the text.

        Returns
        -------
        int
            The sequence number of the commit.
        """
        rows = None if vectors is None else np.asarray(vectors, dtype=np.float32).tolist()
        for what, given in (("vectors", rows), ("payloads", payloads)):
            if given is not None and len(given) != len(ids):
                raise InvalidInputError(
                    f"There must be as many {what} as ids, {len(ids)}. Got {len(given)}."
                )
        items = [{"id": id} for id in ids]
        for i, item in enumerate(items):
            if rows is not None:
                item["vector"] = rows[i]
            if payloads is not None:
                item["payload"] = dict(payloads[i])  # type: ignore[assignment]
        return Call("PUT", "/items", _field("seq", int), {"items": items})

    @verb
    def delete(self, ids: Sequence[str]) -> Call[int]:
        """Remove items.

        Parameters
        ----------
        ids : sequence of str
            Their names.

        Returns
        -------
        int
            How many there were.
        """
        return Call("DELETE", "/items", _field("count", int), {"ids": list(ids)})

    # Search and feedback

    @verb
    def search(self, /, query: Any, k: int = 10, **options: Any) -> Call[dict[str, Any]]:
        """Search the items nearest to a query.

        Parameters
        ----------
        query : str or array of shape (d,)
            A text or a vector.
        k : int, default=10
            How many items.
        **options
            `which` ("served", "start" or "live"), `filters`, `explore`, `user` and `min_seq`.

        Returns
        -------
        dict
            "impression", "seq", and "results" with "position", "id", "score", "why" and "payload".
        """
        asked: dict[str, Any] = {"k": k, **options}
        if isinstance(query, str):
            asked["text"] = query
        else:
            asked["vector"] = np.asarray(query, dtype=np.float64).tolist()
        return Call("POST", "/search", _body, asked)

    @verb
    def feedback(
        self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> Call[dict[str, Any]]:
        """Teach. When this returns, the events are on the service's disk.

        Parameters
        ----------
        events : mapping or sequence of mappings
            Each has a "type" and an "impression"; see the guide. Events without an "event", their
            id, are given one.

        Returns
        -------
        dict
            "seq" of the newest, how many were "new", and "events", the number of each.
        """
        listed = [events] if isinstance(events, Mapping) else list(events)
        named = [{"event": uuid.uuid4().hex, **event} for event in listed]
        return Call("POST", "/feedback", _body, {"events": named})

    # What is served

    @verb
    def start(self, again: bool = False) -> Call[int]:
        """Fit encoder and adapter to the items as they are now.

        Parameters
        ----------
        again : bool, default=False
            Whether to leave behind what was learned, where the collection was started before.

        Returns
        -------
        int
            The sequence number of the commit.
        """
        return Call("POST", "/start", _field("seq", int), {"again": again})

    @verb
    def describe(self) -> Call[dict[str, Any]]:
        """Settings of the collection, and numbers about it.

        Returns
        -------
        dict
            Among others "settings", "items", "events" and "seq".
        """
        return Call("GET", "", _body)

    @verb
    def versions(self) -> Call[dict[str, Any]]:
        """The frozen copies of the live form.

        Returns
        -------
        dict
            "versions" that are kept, and which is "served".
        """
        return Call("GET", "/versions", _body)

    @verb
    def guard(self) -> Call[dict[str, Any]]:
        """What the guard knows.

        Returns
        -------
        dict
            "wealth", "needed", "expected_events", "served", "history" and more.
        """
        return Call("GET", "/guard", _body)

    @verb
    def explain(self, impression: str, item: str) -> Call[dict[str, Any]]:
        """Say why an item is where it is.

        Parameters
        ----------
        impression : str
            The answer it is about.
        item : str
            The item.

        Returns
        -------
        dict
            "scores" under each form, with what the linear part and remembered lists add, and
            "nearest_lists": records ("seq") whose queries are nearest, with their "similarity"
            and how far each pulls the item up ("pull").
        """
        asked = {"impression": impression, "item": item}
        return Call("GET", "/explain", _body, params=asked)

    @verb
    def promote(self, version: int | None = None) -> Call[int]:
        """Serve a version by hand.

        Parameters
        ----------
        version : int, default=None
            Its number; by default a new copy of the live form.

        Returns
        -------
        int
            The version that is served.
        """
        asked = {"version": version}
        return Call("POST", "/promote", _field("version", int), asked, once=True)

    @verb
    def rollback(self) -> Call[int]:
        """Serve the version before the newest that is served.

        Returns
        -------
        int
            The version that is served, 0 for the start.
        """
        return Call("POST", "/rollback", _field("version", int), once=True)

    @verb
    def reset(self) -> Call[None]:
        """Forget all that was learned.

        Returns
        -------
        None
            When it is forgotten.
        """
        return Call("POST", "/reset", lambda answer: None, once=True)

    @verb
    def forget(self, user: str) -> Call[int]:
        """Forget a person: events go, and the model is built again without them.

        Parameters
        ----------
        user : str
            Who.

        Returns
        -------
        int
            How many events there were.
        """
        return Call("DELETE", "/events", _field("count", int), params={"user": user})

    @verb
    def undo(self, event: str) -> Call[int]:
        """Take back one event: the model is built again without it.

        Parameters
        ----------
        event : str
            Its id, which `feedback` was given.

        Returns
        -------
        int
            The sequence number of the commit.
        """
        path = f"/events/{quote(event, safe='')}"
        return Call("DELETE", path, _field("seq", int), once=True)

    # In and out

    @verb
    def log(self) -> Call[list[dict[str, Any]]]:
        """The feedback so far, as `feedback` of another collection takes it.

        Returns
        -------
        list of dict
            Events.
        """
        return Call("GET", "/log", lambda answer: [*map(json.loads, answer.text.splitlines())])

    @verb
    def adapter(self) -> Call[bytes]:
        """The adapter.

        Returns
        -------
        bytes
            A file for `samewise.load`.
        """
        return Call("GET", "/adapter", lambda answer: bytes(answer.content))

    @verb
    def put_adapter(self, content: bytes) -> Call[int]:
        """Go on from another adapter.

        Parameters
        ----------
        content : bytes
            What `LiveAdapter.save` wrote.

        Returns
        -------
        int
            The sequence number of the commit.
        """
        return Call("PUT", "/adapter", _field("seq", int), content=content)
