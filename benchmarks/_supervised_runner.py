"""Fits metric-learn's learners of labels to many splits, in an environment that it works in.

`python _supervised_runner.py METHOD IN.npz OUT.npz`. The input has X0, y0, X1, y1, …; the output
the map and the CPU seconds of each that was learned, and why the others were not.
"""

from __future__ import annotations

import sys
import time
import warnings

import metric_learn
import numpy as np
from _learner_runner import mended


def main(method: str, source: str, destination: str) -> None:
    given, found = dict(np.load(source)), {}
    cls = getattr(metric_learn, f"{method}_Supervised", None) or getattr(metric_learn, method)
    warnings.simplefilter("ignore")
    mended(metric_learn)
    for k in range(len(given) // 2):
        learner, start = cls(), time.process_time()
        if "random_state" in learner.get_params():
            learner.set_params(random_state=k)
        try:
            learner.fit(given[f"X{k}"], given[f"y{k}"])
        except (ValueError, RuntimeError, FloatingPointError, np.linalg.LinAlgError) as error:
            found[f"failed{k}"] = np.array(f"{type(error).__name__}: {error}")
            continue
        if np.iscomplexobj(learner.components_) or not np.isfinite(learner.components_).all():
            found[f"failed{k}"] = np.array("the map is not finite")
            continue
        found[f"seconds{k}"] = np.array(time.process_time() - start)
        found[f"L{k}"] = learner.components_
    np.savez(destination, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
