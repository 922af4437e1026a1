"""What a worker does when it starts, and again when it was killed and another takes its place."""

from __future__ import annotations

from typing import Any

from distributed import WorkerPlugin
from threadpoolctl import threadpool_limits

import samewise.scale

assert samewise.scale.__all__


class WarmWorker(WorkerPlugin):
    """Loads the learners once, before the first task, and holds BLAS to one thread.

    Tasks are as many as the worker has threads, and each uses one. Compiled loops come from the
    cache of the machine.
    """

    name = "samewise"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Hold BLAS to one thread, unless the process is the client's, which does other things."""
        if not worker.address.startswith("inproc://"):
            threadpool_limits(1)
