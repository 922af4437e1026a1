"""Who may do what, and how much: tokens, hosts, sizes and rates."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from samewise.exceptions import InvalidInputError, SamewiseError

SCOPES = {"read": 1, "feedback": 2, "admin": 3}
"""What each may do; a larger one may do all that a smaller one may."""
_SPECIFICATION = re.compile(r"(read|feedback|admin)(?:@(\d+(?:\.\d+)?))?:(.*)", re.DOTALL)
SHORTEST = 16
"""Characters of a token, at least."""


@dataclass(frozen=True)
class RequestLimits:
    """How much a request may bring.

    Attributes
    ----------
    body : int
        Bytes.
    items, events : int
        Items and events of a batch.
    k : int
        Results of a search.
    width : int
        Numbers of a vector.
    payload : int
        Bytes of a payload.
    weight : float
        The weight of an event.
    rate : float
        Events a second for each token; twice as many at once. Of a weight above 1, an event counts
        as so many.
    """

    body: int = 64 * 2**20
    items: int = 10_000
    events: int = 1_000
    k: int = 1_000
    width: int = 8_192
    payload: int = 2**16
    weight: float = 10.0
    rate: float = 20_000.0


class TooMuchError(SamewiseError):
    """More than the limits allow in one request."""


class TooOftenError(SamewiseError):
    """More than the limits allow in this time.

    Parameters
    ----------
    message : str
    seconds : int
        After how many seconds to try again.
    """

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True)
class Caller:
    """Who sent a request: a name for the audit log, which does not give the token away.

    Attributes
    ----------
    name : str
    scope : {"read", "feedback", "admin"}
    weight : float
        The largest weight of an event.
    """

    name: str
    scope: str
    weight: float = math.inf

    def may(self, scope: str) -> bool:
        """Whether the token is good for this."""
        return SCOPES[self.scope] >= SCOPES[scope]


class Tokens:
    """The tokens that a service knows; without any, everybody may do everything.

    Parameters
    ----------
    given : sequence of str
        ``scope:token`` with the scope "read", "feedback" or "admin"; ``feedback@2:token`` where no
        event may have more weight than 2; or the token of an admin.
    read_only : bool, default=False
        Whether all of them, and everybody where there are none, may only read.

    Examples
    --------
    >>> tokens = Tokens(["read:a-long-secret-for-readers"])
    >>> tokens.caller("Bearer a-long-secret-for-readers").scope
    'read'
    >>> tokens.caller("Bearer guess") is None
    True
    """

    def __init__(self, given: Sequence[str] = (), read_only: bool = False) -> None:
        self._read_only = read_only
        self._known: list[tuple[bytes, Caller]] = []
        for one in given:
            found = _SPECIFICATION.fullmatch(one)
            scope, weight, secret = found.groups() if found else ("admin", None, one)
            if len(secret) < SHORTEST:
                raise InvalidInputError(f"A token needs at least {SHORTEST} characters.")
            digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
            most = math.inf if weight is None else float(weight)
            self._known.append((digest, Caller(f"{scope}-{digest.hex()[:8]}", scope, most)))

    def __bool__(self) -> bool:
        return bool(self._known)

    def caller(self, header: str | None) -> Caller | None:
        """Who has the token of an Authorization header; None if nobody has."""
        found = self._found(header)
        if found is None or not self._read_only:
            return found
        return Caller(found.name, "read")

    def _found(self, header: str | None) -> Caller | None:
        if not self._known:
            return Caller("local", "admin")
        kind, _, secret = (header or "").partition(" ")
        digest = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
        found = None
        # All are compared, each in constant time: how long it takes says nothing.
        for known, caller in self._known:
            if hmac.compare_digest(known, digest) and kind.lower() == "bearer":
                found = caller
        return found


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The host of a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0]


class Rates:
    """Events a second for each caller: a bucket that fills at that rate and holds twice as much.

    Parameters
    ----------
    rate : float
    clock : callable, default=time.monotonic
    """

    def __init__(self, rate: float, clock: object = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, name: str, n: float) -> None:
        """Take n events from a caller's bucket, or raise TooOftenError."""
        assert callable(self._clock)
        now, most = float(self._clock()), 2 * self._rate
        with self._lock:
            left, then = self._left.get(name, (most, now))
            left = min(left + (now - then) * self._rate, most)
            if n > left:
                self._left[name] = (left, now)
                seconds = max(math.ceil((min(n, most) - left) / self._rate), 1)
                raise TooOftenError(f"At most {self._rate:g} events a second.", seconds)
            self._left[name] = (left - n, now)
