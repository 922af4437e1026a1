"""Runs one LMNN package on one data set, in a process and an environment of its own.

`python _peer_runner.py PACKAGE IN.npz OUT.npz`. The input has X, y, k and mu; for metric-learn
also max_evaluations and learn_rate, for samewise target_loss, targets, hinge and repeats. Nothing
of samewise is imported unless that is what runs: the peers need older libraries.
"""

from __future__ import annotations

import sys
import time
import types
from pathlib import Path

import numpy as np


class EnoughError(Exception):
    """The evaluations that were allowed are used up."""


def peak_mib() -> float:
    """Linux only. What getrusage says may be the peak of the process that started this one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024


def measured(fit):
    """Wall and CPU seconds of a call, and its peak memory beyond what there was before."""
    start, cpu, before = time.perf_counter(), time.process_time(), peak_mib()
    fit()
    return {
        "seconds": [time.perf_counter() - start],
        "cpu": [time.process_time() - cpu],
        "mib": peak_mib() - before,
    }


def metric_learn(given):
    import metric_learn.lmnn as package

    seen = {"evaluations": 0, "loss": np.inf}

    class Watched(package.LMNN):
        def _select_targets(self, X, labels):
            seen["targets"] = super()._select_targets(X, labels)
            return seen["targets"]

        def _loss_grad(self, X, L, *args):
            if seen["evaluations"] == int(given["max_evaluations"]):
                raise EnoughError
            result = super()._loss_grad(X, L, *args)
            seen["evaluations"] += 1
            if result[1] < seen["loss"]:
                seen["loss"], seen["components"] = result[1], L
            return result

    learner = Watched(
        init="identity",
        n_neighbors=int(given["k"]),
        regularization=1 - float(given["mu"]),
        learn_rate=float(given["learn_rate"]),
        max_iter=10**6,
    )

    def fit():
        try:
            learner.fit(given["X"], given["y"])
            seen["finished"] = True
        except EnoughError:
            seen["finished"] = False

    return measured(fit) | seen


def pylmnn(given):
    # pylmnn imports GPyOpt for a function that is not used here, and hands a matrix as the
    # starting point to scipy's optimizer, which asks for a vector since 1.11.
    stub = types.ModuleType("GPyOpt.methods")
    stub.BayesianOptimization = None
    sys.modules["GPyOpt"] = types.ModuleType("GPyOpt")
    sys.modules["GPyOpt.methods"] = stub
    import pylmnn.lmnn as package
    from scipy.optimize import minimize

    seen = {}

    def flattened(*, x0, **rest):
        result = minimize(x0=x0.ravel(), **rest)
        seen["evaluations"], seen["finished"] = result.nfev, result.success
        return result

    class Watched(package.LargeMarginNearestNeighbor):
        def _select_target_neighbors_wrapper(self, *args):
            seen["targets"] = super()._select_target_neighbors_wrapper(*args)
            return seen["targets"]

    package.minimize = flattened
    learner = Watched(
        n_neighbors=int(given["k"]),
        init="identity",
        weight_push_loss=float(given["mu"]),
        max_iter=1000,
        random_state=0,
    )
    cost = measured(lambda: learner.fit(given["X"], given["y"]))
    return cost | seen | {"components": learner.components_}


def samewise(given):
    """The exact loss at the end decides; what counts is a whole fit that reaches it."""
    from samewise.learners import LMNN
    from samewise.learners.batch.points_by_class import Classes, nearest_targets
    from samewise.solvers.workers import workers

    X, y, wanted = given["X"], given["y"], float(given["target_loss"])
    numbers = np.unique(y, return_inverse=True)[1]

    def search_targets():
        with workers() as team:
            nearest_targets(X, Classes(numbers, numbers.max() + 1), int(given["k"]), team)

    def learn(aim):
        lmnn = LMNN(
            push_weight=float(given["mu"]),
            targets=given["targets"],
            hinge=str(given["hinge"]),
            tol=1e-7,
            max_iter=2000,
            callback=lambda info: info["loss"] <= aim,
        )
        return lmnn.fit(X, y)

    def run(aim):
        search_targets()
        return learn(aim)

    # A small problem first: compiles, or loads what was compiled before.
    few = np.flatnonzero(numbers < 2)[:400]
    LMNN(hinge=str(given["hinge"]), max_iter=5, tol=1.0).fit(X[few], y[few])
    aim, cost, fits = wanted, {"mib": 0.0}, []

    def fit():
        fits.append(run(aim))

    while not fits or fits[-1].loss_ > wanted:
        if fits:
            if fits[-1].converged_:
                raise SystemExit(f"samewise ends at {fits[-1].loss_}, and not at {wanted}")
            # The loss on the way was that of candidates, and a little too low.
            aim -= 2 * (fits[-1].loss_ - wanted)
        more = measured(fit)
        cost["mib"] = max(cost["mib"], more["mib"])
    repeats = [measured(fit) for _ in range(int(given["repeats"]))]
    cost["seconds"] = [repeat["seconds"][0] for repeat in repeats]
    cost["cpu"] = [repeat["cpu"][0] for repeat in repeats]
    return cost | {"loss": fits[-1].loss_, "evaluations": fits[-1].n_iter_}


def main(package: str, source: str, destination: str) -> None:
    run = {"metric-learn": metric_learn, "pylmnn": pylmnn, "samewise": samewise}[package]
    np.savez(destination, **run(dict(np.load(source))))


if __name__ == "__main__":
    main(*sys.argv[1:])
