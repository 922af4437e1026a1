"""A few threads that share the rows of a problem, each with one BLAS thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import TypeVar

from numba import config
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

MOST = 8
"""Threads at most."""

SPANS = 4
"""Ranges of rows whose sums are added up, one after the other, whatever the number of threads. More
would need more accumulators of the size of the data."""

SHARED = 400
"""Rows from which there are as many; fewer are one range, which takes less time than to share."""


class Workers:
    """Calls a function on parts of the work, at the same time.

    Neither the ranges in which rows are cut nor the order in which their sums are added up depends
    on `n`: results have the same bits for any number of threads.
    """

    def __init__(self, n: int, pool: ThreadPoolExecutor | None) -> None:
        self.n, self._pool = n, pool

    def map(self, function: Callable[..., T], *parts: Iterable[object]) -> list[T]:
        """The results, in the order of the parts."""
        given = list(zip(*parts, strict=True))
        if self._pool is None or len(given) == 1:
            return [function(*part) for part in given]
        return list(self._pool.map(function, *parts))

    def cut(self, n_rows: int) -> list[tuple[int, int]]:
        """Rows 0 … n_rows in as many ranges as `spans` says."""
        n = spans(n_rows)
        return list(pairwise(n_rows * i // n for i in range(n + 1)))


def spans(n_rows: int) -> int:
    """How many ranges so many rows are cut in."""
    return SPANS if n_rows >= SHARED else 1


@contextmanager
def workers() -> Iterator[Workers]:
    """As many workers as numba may use threads (NUMBA_NUM_THREADS), up to `MOST`."""
    n = min(int(vars(config)["NUMBA_NUM_THREADS"]), MOST)
    with _pools().limit(limits=1, user_api="blas"):
        if n == 1:
            yield Workers(1, None)
            return
        with ThreadPoolExecutor(n, "samewise") as pool:
            yield Workers(n, pool)


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
