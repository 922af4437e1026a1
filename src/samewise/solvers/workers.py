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
"""More threads would need more accumulators of the size of the data."""


class Workers:
    """Calls a function on parts of the work, at the same time.

    The parts depend on `n` only in how rows are cut, so results are the same up to the order in
    which parts are added up.
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
        """Rows 0 … n_rows in as many ranges as there are workers."""
        cuts = [n_rows * i // self.n for i in range(self.n + 1)]
        return list(pairwise(cuts))


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
