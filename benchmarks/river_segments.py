"""Progressive accuracy on river's ImageSegments: each example is predicted, then learned from.

River's k-NN and plain k-NN among the latest 1000 examples beside `MetricKNN` over the same, all
after river's `StandardScaler`. Nothing was chosen on this stream: all have their defaults, except
that plain k-NN is `MetricKNN` that never learns.
"""

from __future__ import annotations

import time
from importlib.util import find_spec


def run() -> list[dict[str, object]]:
    """Accuracy in percent, and seconds for the 2310 examples."""
    if find_spec("river") is None:
        print("river is not installed")
        return []
    from river import datasets, evaluate, metrics, neighbors, preprocessing

    from samewise.compat.river import MetricKNN

    rows = []
    for name, model in (
        ("river's KNNClassifier", neighbors.KNNClassifier()),
        ("plain k-NN", MetricKNN(every=10**9)),
        ("MetricKNN", MetricKNN()),
    ):
        start, scaled = time.process_time(), preprocessing.StandardScaler() | model
        found = evaluate.progressive_val_score(datasets.ImageSegments(), scaled, metrics.Accuracy())
        seconds = time.process_time() - start
        rows.append({"model": name, "accuracy": f"{100 * found.get():.2f}", "s": f"{seconds:.1f}"})
    return rows
