"""A client of `samewise serve`: the same verbs, with retries that do nothing twice."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from samewise.exceptions import InvalidInputError, SamewiseError

_AGAIN = (429, 502, 503, 504)


class ServiceError(SamewiseError):
    """The service refused a request, or could not be reached.

    Parameters
    ----------
    message : str
        What it said.
    status : int, default=0
        The HTTP status; 0 if there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A collection of a running `samewise serve`.

    Requests that failed on the way, or that the service was too busy for, are sent again. Feedback
    carries an id for each event, so that nothing is learned twice. Promotions, rollbacks and resets
    are sent once.

    Parameters
    ----------
    url : str
        Where the service listens, such as "http://127.0.0.1:8350".
    collection : str
        The name of the collection.
    token : str or None, default=None
        The token, where the service was started with one.
    timeout : float, default=30.0
        Seconds to wait for an answer.
    retries : int, default=4
        How often to try again.

    See Also
    --------
    LiveAdapter : What learns in the service.

    Examples
    --------
    >>> from samewise import Client
    >>> client = Client("http://127.0.0.1:8350", "books")
    >>> client
    Client('http://127.0.0.1:8350', 'books')
    >>> client.close()
    """

    def __init__(
        self,
        url: str,
        collection: str,
        token: str | None = None,
        timeout: float = 30.0,
        retries: int = 4,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ImportError("The client needs pip install 'samewise[serve]'.") from error
        self.url, self.collection, self._retries = url, collection, retries
        self._errors = httpx.TransportError
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._base = f"{url.rstrip('/')}/collections/{quote(collection, safe='')}"
        # Loopback is not to go through a proxy of the environment.
        self._http = httpx.Client(headers=headers, timeout=timeout, trust_env=False)

    def __repr__(self) -> str:
        return f"Client({self.url!r}, {self.collection!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # Items

    def make(self, encoder: str = "given", **settings: Any) -> bool:
        """Make the collection, if it is not there.

        Parameters
        ----------
        encoder : {"given", "text", "callable"}, default="given"
            Where vectors come from: the client, the built-in encoder of texts, or the function that
            the service was started with.
        **settings
            `text_field`, `index_from`, and `guard`, `margin`, `memory` and `half_life` of the
            `LiveAdapter`.

        Returns
        -------
        bool
            False if there was one with these settings.
        """
        return bool(self._json("PUT", "", {"encoder": encoder, **settings})["new"])

    def put(
        self,
        ids: Sequence[str],
        vectors: Any = None,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> int:
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
        return int(self._json("PUT", "/items", {"items": items})["seq"])

    def delete(self, ids: Sequence[str]) -> int:
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
        return int(self._json("DELETE", "/items", {"ids": list(ids)})["count"])

    # Search and feedback

    def search(self, query: Any, k: int = 10, **options: Any) -> dict[str, Any]:
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
        return dict(self._json("POST", "/search", asked))

    def feedback(self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
        return dict(self._json("POST", "/feedback", {"events": named}))

    # What is served

    def start(self, again: bool = False) -> int:
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
        return int(self._json("POST", "/start", {"again": again})["seq"])

    def describe(self) -> dict[str, Any]:
        """Settings of the collection, and numbers about it.

        Returns
        -------
        dict
            Among others "settings", "items", "events" and "seq".
        """
        return dict(self._json("GET", ""))

    def versions(self) -> dict[str, Any]:
        """The frozen copies of the live form.

        Returns
        -------
        dict
            "versions" that are kept, and which is "served".
        """
        return dict(self._json("GET", "/versions"))

    def guard(self) -> dict[str, Any]:
        """What the guard knows.

        Returns
        -------
        dict
            "wealth", "needed", "expected_events", "served", "history" and more.
        """
        return dict(self._json("GET", "/guard"))

    def explain(self, impression: str, item: str) -> dict[str, Any]:
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
            "nearest_lists".
        """
        asked = {"impression": impression, "item": item}
        return dict(self._json("GET", "/explain", params=asked))

    def promote(self, version: int | None = None) -> int:
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
        done = self._json("POST", "/promote", {"version": version}, once=True)
        return int(done["version"])

    def rollback(self) -> int:
        """Serve the version before the newest that is served.

        Returns
        -------
        int
            The version that is served, 0 for the start.
        """
        return int(self._json("POST", "/rollback", once=True)["version"])

    def reset(self) -> None:
        """Forget all that was learned."""
        self._json("POST", "/reset", once=True)

    def forget(self, user: str) -> int:
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
        return int(self._json("DELETE", "/events", params={"user": user})["count"])

    # In and out

    def events(self, after: int = 0, follow: bool = False) -> Iterator[dict[str, Any]]:
        """Read the log.

        Parameters
        ----------
        after : int, default=0
            The sequence number after which to begin.
        follow : bool, default=False
            Whether to wait for more at the end.

        Yields
        ------
        dict
            A record, with its "kind".
        """
        params: dict[str, Any] = {"after": after, "follow": str(follow).lower()}
        url, timeout = f"{self._base}/events", None if follow else self._http.timeout
        with self._http.stream("GET", url, params=params, timeout=timeout) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _refusal(answer)
            kind = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield {"kind": kind, **json.loads(line.removeprefix("data: "))}

    def log(self) -> list[dict[str, Any]]:
        """The feedback so far, as `feedback` of another collection takes it.

        Returns
        -------
        list of dict
            Events.
        """
        return [json.loads(line) for line in self._send("GET", "/log").text.splitlines()]

    def adapter(self) -> bytes:
        """The adapter.

        Returns
        -------
        bytes
            A file for `samewise.load`.
        """
        return bytes(self._send("GET", "/adapter").content)

    def put_adapter(self, content: bytes) -> int:
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
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._send("PUT", "/adapter", content=content, headers=headers)
        return int(answer.json()["seq"])

    # Sending

    def _json(
        self, method: str, path: str, body: Any = None, once: bool = False, params: Any = None
    ) -> Any:
        more = {} if body is None else {"json": body}
        return self._send(method, path, once, params=params, **more).json()

    def _send(self, method: str, path: str, once: bool = False, **more: Any) -> Any:
        for trial in range(1 + self._retries):
            last = trial == self._retries
            pause = 0.1 * 2**trial
            try:
                answer = self._http.request(method, self._base + path, **more)
            except self._errors as error:
                if last or once:
                    message = f"{self.url} gave no answer: {type(error).__name__} {error}"
                    raise ServiceError(f"{message.rstrip('.')}.") from error
            else:
                if answer.status_code == 200:
                    return answer
                if answer.status_code not in _AGAIN or last or once:
                    raise _refusal(answer)
                asked = answer.headers.get("Retry-After", "")
                pause = min(float(asked), 30.0) if asked.isdigit() else pause
            time.sleep(pause)
        raise AssertionError("The last trial returns or raises.")


def _refusal(answer: Any) -> ServiceError:
    try:
        said = answer.json()
        places = [f"{'.'.join(one['where'])}: {one['what']}." for one in said.get("places", [])]
        text = " ".join([said["error"], *places])
    except (ValueError, KeyError, TypeError):
        text = f"The service answered with the status {answer.status_code}."
    return ServiceError(text, answer.status_code)
