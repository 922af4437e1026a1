"""Clients of `samewise serve`: the same verbs, with retries that do nothing twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self, TypeVar
from urllib.parse import quote

from samewise.exceptions import InvalidInputError, SamewiseError
from samewise.serve.client_verbs import Call, ClientVerbs

_AGAIN = (429, 502, 503, 504)
R = TypeVar("R")


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


class _AnyClient(ClientVerbs):
    """What clients share: where the service is, and when a call is sent again."""

    _transport: str

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
        try:
            scheme = httpx.URL(url).scheme
        except httpx.InvalidURL:
            scheme = ""
        if scheme not in ("http", "https"):
            raise InvalidInputError(
                f"url must be an address such as 'http://127.0.0.1:8350'. Got {url!r}."
            )
        self.url, self.collection, self._retries = url, collection, retries
        self._errors = httpx.TransportError
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._base = f"{url.rstrip('/')}/collections/{quote(collection, safe='')}"
        # Loopback is not to go through a proxy of the environment.
        kind = getattr(httpx, self._transport)
        self._http: Any = kind(headers=headers, timeout=timeout, trust_env=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {self.collection!r})"

    def _log_request(self, after: int, follow: bool) -> dict[str, Any]:
        """What httpx takes to stream the log."""
        params = {"after": after, "follow": str(follow).lower()}
        timeout = None if follow else self._http.timeout
        return {"url": f"{self._base}/events", "params": params, "timeout": timeout}

    def _pause(self, call: Call[Any], trial: int, outcome: Any) -> float | None:
        """Seconds until a call is sent again; None if it was answered."""
        last = call.once or trial == self._retries
        if isinstance(outcome, self._errors):
            if last:
                message = f"{self.url} gave no answer: {type(outcome).__name__} {outcome}"
                raise ServiceError(f"{message.rstrip('.')}.") from outcome
        elif outcome.status_code == 200:
            return None
        elif last or outcome.status_code not in _AGAIN:
            raise _refusal(outcome)
        elif (asked := outcome.headers.get("Retry-After", "")).isdigit():
            return min(float(asked), 30.0)
        return 0.1 * float(2**trial)


class Client(_AnyClient):
    """A collection of a running `samewise serve`.

    Requests that failed on the way, or that the service was too busy for, are sent again. Feedback
    carries an id for each event, so that nothing is learned twice. `promote`, `rollback`, `reset`
    and `undo` are sent once.

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
    AsyncClient : The same, to be awaited.
    LiveAdapter : What learns in the service.

    Examples
    --------
    >>> from samewise import Client
    >>> client = Client("http://127.0.0.1:8350", "books")
    >>> client
    Client('http://127.0.0.1:8350', 'books')
    >>> client.close()
    """

    _transport = "Client"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

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
        with self._http.stream("GET", **self._log_request(after, follow)) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _refusal(answer)
            records = _Records()
            for line in answer.iter_lines():
                yield from records.take(line)

    def _ask(self, call: Call[R]) -> R:
        trial = 0
        while True:
            try:
                outcome = self._http.request(call.method, self._base + call.path, **call.sent)
            except self._errors as error:
                outcome = error
            pause = self._pause(call, trial, outcome)
            if pause is None:
                return call.read(outcome)
            time.sleep(pause)
            trial += 1


class AsyncClient(_AnyClient):
    """A collection of a running `samewise serve`, for programs that await.

    It has the methods of `Client`, to be awaited, with the same retries; `events` is to be iterated
    by ``async for``.

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
    Client : The same, for programs that wait.

    Examples
    --------
    >>> import asyncio
    >>> from samewise import AsyncClient
    >>> async def best(texts):
    ...     async with AsyncClient("http://127.0.0.1:8350", "books") as client:
    ...         found = await asyncio.gather(*(client.search(text, k=1) for text in texts))
    ...     return [answer["results"][0]["id"] for answer in found]
    >>> asyncio.run(best([]))
    []
    """

    _transport = "AsyncClient"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def events(self, after: int = 0, follow: bool = False) -> AsyncIterator[dict[str, Any]]:
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
        async with self._http.stream("GET", **self._log_request(after, follow)) as answer:
            if answer.status_code != 200:
                await answer.aread()
                raise _refusal(answer)
            records = _Records()
            async for line in answer.aiter_lines():
                for record in records.take(line):
                    yield record

    async def _ask(self, call: Call[R]) -> R:
        trial = 0
        while True:
            try:
                outcome = await self._http.request(call.method, self._base + call.path, **call.sent)
            except self._errors as error:
                outcome = error
            pause = self._pause(call, trial, outcome)
            if pause is None:
                return call.read(outcome)
            await asyncio.sleep(pause)
            trial += 1


class _Records:
    """Records of the log out of lines of server-sent events."""

    def __init__(self) -> None:
        self._kind = ""

    def take(self, line: str) -> list[dict[str, Any]]:
        """The record that a line ends, if it does."""
        if line.startswith("event: "):
            self._kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return [{"kind": self._kind, **json.loads(line.removeprefix("data: "))}]
        return []


def _refusal(answer: Any) -> ServiceError:
    try:
        said = answer.json()
        places = [f"{'.'.join(one['where'])}: {one['what']}." for one in said.get("places", [])]
        text = " ".join([said["error"], *places])
    except (ValueError, KeyError, TypeError):
        text = f"The service answered with the status {answer.status_code}."
    return ServiceError(text, answer.status_code)
