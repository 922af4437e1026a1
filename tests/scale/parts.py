"""Data in parts."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

THOROUGH = bool(os.environ.get("SAMEWISE_SCALE"))
"""Whether all is tested: `make scale`."""

N_PARTS = (1, 2, 4, 8)
SOME_PARTS = N_PARTS if THOROUGH else (1, 4)
"""Of learners that take many steps."""


def in_parts(n_parts, *arrays):
    """Dask arrays of so many blocks of rows, of sizes that differ."""
    import dask.array as da

    n = len(arrays[0])
    # The first parts are larger.
    cuts = np.unique((n * np.linspace(0, 1, n_parts + 1) ** 0.8).astype(int))
    sizes = tuple(np.diff(cuts).tolist())
    assert len(sizes) == n_parts and sum(sizes) == n
    return tuple(
        da.from_array(array, chunks=(sizes, *((size,) for size in array.shape[1:])))
        for array in arrays
    )


def kill_a_worker(client):
    """Kill −9 one that holds something, and wait until that is known and another is there."""
    client.wait_for_workers(2)
    holding = max(client.has_what().items(), key=lambda worker: len(worker[1]))[0]
    os.kill(client.run(os.getpid, workers=[holding])[holding], signal.SIGKILL)
    for _ in range(600):
        if holding not in client.has_what():
            return client.wait_for_workers(2)
        time.sleep(0.05)
    raise AssertionError("the worker was not killed")
