"""CPU time of one thread, medians of interleaved repeats."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def interleaved(methods: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median CPU seconds of each method; every repeat runs all of them, one after the other."""
    for run in methods.values():
        run()  # compile, load, warm the caches
    spent: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(repeats):
        for name, run in methods.items():
            start = time.thread_time()
            run()
            spent[name].append(time.thread_time() - start)
    return {name: float(np.median(seconds)) for name, seconds in spent.items()}


def gemm_speed(dtype: type, n: int = 1000, repeats: int = 9) -> float:
    """Flops a second of a square matrix product."""
    A = np.ones((n, n), dtype=dtype)
    seconds = interleaved({"gemm": lambda: A @ A}, repeats)["gemm"]
    return 2.0 * n**3 / seconds
