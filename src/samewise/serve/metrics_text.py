"""Counters in the text format that Prometheus reads."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper ends of the classes of durations, in seconds."""
_GAUGES = {
    "items": "Items that can be found.",
    "rows": "Rows of vectors, with those of deleted items.",
    "indexed": "Rows that the graph covers; 0 where search is exact.",
    "seq": "The record up to which was learned.",
    "committed": "The newest record.",
    "events": "Feedback events that the model has taken.",
}


class Metrics:
    """Requests by route and status, with their durations; `also` is called with each."""

    def __init__(self) -> None:
        self.also: Callable[[str, str, int, float], None] | None = None
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._classes: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._classes[route, bisect_left(BOUNDS, seconds)] += 1
            # In microseconds, since a Counter holds integers.
            self._seconds[route] += int(seconds * 1e6)
            if self.also is not None:
                self.also(method, route, status, seconds)

    def text(self, collections: Mapping[str, Mapping[str, Any]]) -> str:
        """All of them, and gauges of each collection from its facts."""
        with self._lock:
            lines = [*self._request_lines()]
        for name, about in _GAUGES.items():
            lines += [f"# HELP samewise_{name} {about}", f"# TYPE samewise_{name} gauge"]
            for collection, facts in collections.items():
                lines.append(f'samewise_{name}{{collection="{collection}"}} {facts[name]}')
        return "\n".join([*lines, ""])

    def _request_lines(self) -> Iterator[str]:
        yield "# HELP samewise_requests_total Requests."
        yield "# TYPE samewise_requests_total counter"
        for (method, route, status), n in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"samewise_requests_total{{{labels}}} {n}"
        yield "# HELP samewise_request_seconds How long requests took."
        yield "# TYPE samewise_request_seconds histogram"
        for route in sorted(self._seconds):
            total = 0
            for place, bound in enumerate([*BOUNDS, "+Inf"]):
                total += self._classes[route, place]
                labels = f'route="{route}",le="{bound}"'
                yield f"samewise_request_seconds_bucket{{{labels}}} {total}"
            yield f'samewise_request_seconds_sum{{route="{route}"}} {self._seconds[route] / 1e6}'
            yield f'samewise_request_seconds_count{{route="{route}"}} {total}'
