"""One pair or triplet at a time: what a call of `partial_fit` takes, whole.

The input is checked, what is refused changes nothing, and what was learned can be read after every
event.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from samewise import OASIS, FactoredAROMA, Pairs, PassiveAggressive, Triplets

WARM = 20
# learner, what is read after each event, d, events, µs wanted
CASES: list[tuple[str, Callable[[], object], bool, int, int, object]] = [
    ("OASIS", lambda: OASIS(0.1, 1.0), False, 64, 1000, 80),
    ("f-AROMA", lambda: FactoredAROMA(1.0), False, 384, 200, 250),
    ("f-AROMA", lambda: FactoredAROMA(1.0), False, 1536, 30, 4000),
    ("PA-I", PassiveAggressive, False, 384, 100, ""),
    ("PA-I", PassiveAggressive, True, 384, 100, ""),
    ("PA-I", PassiveAggressive, True, 1536, 20, ""),
]


def events(d: int, n: int, pairs: bool) -> list[object]:
    """Unit-length Gaussian points with random labels: nearly every event moves the matrix."""
    rng = np.random.RandomState(0)
    X, y = rng.randn(2000, d) / np.sqrt(d), rng.randint(0, 10, 2000)
    draw = Pairs.from_labels if pairs else Triplets.from_labels
    stream = draw(X, y, n, random_state=0)
    return [stream[i : i + 1] for i in range(n)]


def microseconds(learner: object, stream: list[object], read: bool) -> list[float]:
    """CPU time of each event after the first ones."""
    spent = []
    for event in stream:
        start = time.thread_time()
        learner.partial_fit(event)
        if read:
            learner.metric_  # noqa: B018
        spent.append(1e6 * (time.thread_time() - start))
    return spent[WARM:]


def run() -> list[dict[str, object]]:
    rows = []
    for name, make, read, d, n, wanted in CASES:
        stream = events(d, n + WARM, name == "PA-I")
        spent = np.concatenate([microseconds(make(), stream, read) for _ in range(3)])
        rows.append(
            {
                "learner": name,
                "d": d,
                "metric_ read": "after each" if read else "",
                "µs, median": round(float(np.median(spent))),
                "best tenth": round(float(np.quantile(spent, 0.1))),
                "wanted": wanted,
            }
        )
    return rows
