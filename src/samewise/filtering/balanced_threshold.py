"""The threshold of least balanced error on margins that were judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samewise.files.state import Saved, State

# With fewer relevant ones the threshold stays at 0.
_LEAST = 5
_EVERY = 32


class BalancedThreshold:
    """Follows judged margins: every 32 judgments the threshold is the best for those so far.

    Examples
    --------
    >>> threshold = BalancedThreshold(most=100)
    >>> for k in range(32):
    ...     threshold.add(k / 10, relevant=k >= 20)
    >>> round(threshold.value, 6)
    1.95
    """

    def __init__(self, most: int) -> None:
        self.value, self.n = 0.0, 0
        self.judged: deque[tuple[float, bool]] = deque(maxlen=most)

    def add(self, margin: float, relevant: bool) -> None:
        """Take in a judgment; the oldest is forgotten when there are too many."""
        self.judged.append((margin, relevant))
        self.n += 1
        if self.n % _EVERY == 0:
            margins, labels = zip(*self.judged, strict=True)
            self.value = least_balanced_error(np.array(margins), np.array(labels))


def least_balanced_error(margins: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """Between which margins the mean of false-positive and false-negative rate is the least.

    Of several such places the highest; 0 where fewer than five are relevant, or all.
    """
    if not _LEAST <= relevant.sum() < len(relevant):
        return 0.0
    order = np.argsort(-margins, kind="stable")
    above = margins[order]
    hits, misses = np.cumsum(relevant[order]), np.cumsum(~relevant[order])
    error = misses / misses[-1] - hits / hits[-1]
    # Equal margins cannot be parted.
    last = np.append(above[:-1] > above[1:], True)
    k = int(np.argmin(np.where(last, error, np.inf)))
    below = above[k + 1] if k + 1 < len(above) else above[k] - 1.0
    return float((above[k] + below) / 2)


def thresholds_state(thresholds: Sequence[BalancedThreshold]) -> State:
    """Those of all topics, one after the other."""
    judged = [pair for each in thresholds for pair in each.judged]
    values = np.array(judged, dtype=np.float64).reshape(-1, 2)
    return State(
        {
            "values": np.array([each.value for each in thresholds]),
            "counts": np.array([each.n for each in thresholds], dtype=np.int64),
            "margins": values[:, 0].copy(),
            "relevant": values[:, 1] > 0,
        }
    )


def restore_thresholds(saved: Saved, thresholds: Sequence[BalancedThreshold]) -> None:
    """Give thresholds without judgments those that `thresholds_state` describes."""
    n = len(thresholds)
    values = saved.array("values", n, dtypes=["float64"])
    counts = saved.array("counts", n, dtypes=["int64"])
    saved.check(bool(np.all(counts >= 0)), "counts must not be negative")
    sizes = [
        min(int(count), each.judged.maxlen or 0)
        for count, each in zip(counts, thresholds, strict=True)
    ]
    margins = saved.array("margins", sum(sizes), dtypes=["float64"], empty=True)
    relevant = saved.array("relevant", sum(sizes), dtypes=["bool"], empty=True)
    pairs: Any = iter(zip(margins.tolist(), relevant.tolist(), strict=True))
    for each, value, count, size in zip(thresholds, values, counts, sizes, strict=True):
        each.value, each.n = float(value), int(count)
        each.judged.extend(next(pairs) for _ in range(size))
