"""Dask, and the few ways in which it is used: pure tasks, whose results can be made again.

What a worker holds is the result of a task, never data that were sent to it, so that a worker that
dies loses nothing. Sums are added up in the order of the parts, so that the result has the same
bits whichever worker made a part, and however often.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from samewise.engine.progress_line import ProgressLine
from samewise.exceptions import InvalidInputError

_WARM: WeakSet[Any] = WeakSet()
"""Clients whose workers know `WarmWorker`."""

_SHOWN = ContextVar("shown", default=False)

NEEDED = "samewise.scale needs Dask: pip install 'samewise[scale]'."


def dask() -> Any:
    """The module, or an error that says what to install."""
    try:
        import dask.delayed
        import distributed
    except ImportError as error:
        raise ImportError(NEEDED) from error
    assert distributed
    return dask


def connected(client: Any) -> Any:
    """The client given, or the one in use."""
    dask()
    from distributed import Client, default_client

    if client is None:
        try:
            return default_client()
        except ValueError as error:
            raise InvalidInputError(
                "There is no Dask client. Start one, such as distributed.Client(n_workers=2, "
                "threads_per_worker=1), or give client."
            ) from error
    if not isinstance(client, Client):
        raise InvalidInputError(
            f"client must be a distributed.Client or None. Got {client!r}; such as "
            "distributed.Client('tcp://scheduler:8786')."
        )
    if client.status != "running":
        raise InvalidInputError(
            f"The Dask client is {client.status}. Give one that is connected; to_local gives what "
            "was learned, without any."
        )
    if client not in _WARM:
        from samewise.scale.warm_worker import WarmWorker

        client.register_plugin(WarmWorker())
        _WARM.add(client)
    return client


@contextmanager
def quiet() -> Iterator[None]:
    """Without Dask's advice on large arguments, which here are part of what is repeated."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        yield


def finished(client: Any, futures: list[Any]) -> list[Any]:
    """Their results. After an error, or Ctrl-C, none of them is worked on any more."""
    try:
        if _SHOWN.get():
            _watch(futures)
        return list(client.gather(futures))
    except BaseException:
        client.cancel(futures)
        raise


@contextmanager
def progress() -> Iterator[None]:
    """Show how many parts are done, on standard error, while parts take longer than a second.

    In a terminal or a notebook it is a bar. What iterates, such as `DaskLMNN`, says more with its
    own `verbose`.

    Yields
    ------
    None
        Within, whatever works on parts is shown.

    Examples
    --------
    >>> from distributed import Client
    >>> import dask.array as da
    >>> from samewise.scale import DaskPCA, progress
    >>> X = da.random.default_rng(0).normal(size=(200, 3), chunks=(50, 3))
    >>> with Client(processes=False, dashboard_address=":0") as client, progress():
    ...     DaskPCA(client).fit(X).n_features_in_
    3
    """
    before = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(before)


def _watch(futures: list[Any]) -> None:
    from distributed import as_completed

    start, n = time.monotonic(), len(futures)
    line = ProgressLine(n, start)
    for done, _ in enumerate(as_completed(futures), start=1):
        now = time.monotonic()
        if line.due(now):
            line.say(f"{done} of {n} parts, {now - start:.0f} s", done)
    line.close()


class Parts:
    """Objects that workers hold, one for each part of the data, and sums over them.

    Parameters
    ----------
    client : distributed.Client
    futures : list of futures
        Results of tasks that can be repeated. They are not changed.
    """

    def __init__(self, client: Any, futures: Sequence[Any]) -> None:
        self.client, self.futures = client, list(futures)

    def __len__(self) -> int:
        return len(self.futures)

    def then(self, function: Callable[..., Any], *arguments: Any) -> Parts:
        """function(part, *arguments) of each part, held by the workers."""
        submit = self.client.submit
        return Parts(
            self.client,
            [submit(function, part, *arguments, pure=False) for part in self.futures],
        )

    def values(self) -> list[Any]:
        """The parts, in their order."""
        return finished(self.client, self.futures)

    def total(self, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """The sums of what function(part, *arguments) returns, added up in the order of parts."""
        return tuple(map(sum, zip(*self.then(function, *arguments).values(), strict=True)))
