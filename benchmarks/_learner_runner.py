"""Runs one learner of one package on one problem, in a process and an environment of its own.

`python _learner_runner.py PACKAGE METHOD IN.npz OUT.npz`. The input has X, y and what the method
asks for: left, right and sign of pairs, bounds, gamma, chunklets, max_iter; for samewise also the
aim, an objective to stop at, and repeats. Nothing of samewise is imported unless that is what runs.
"""

from __future__ import annotations

import ctypes
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

Fit = Callable[[], np.ndarray]


def memory(field: str) -> float:
    """MiB by Linux; VmRSS is what the process holds, VmHWM the most since it was last set back."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return int(status.read_text().split(f"{field}:")[1].split()[0]) / 1024


def measured(fit: Fit) -> dict[str, object]:
    """L, seconds, and the peak of memory beyond what was held before."""
    if Path("/proc/self/clear_refs").exists():
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    components = fit()
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "mib": memory("VmHWM") - before,
        "components": components,
    }


def metric_learn(method: str, given: dict[str, np.ndarray]) -> Fit:
    import metric_learn as package

    X, limit = given["X"], int(given["max_iter"])
    pairs = np.column_stack([given["left"], given["right"]])
    if method == "RCA":
        return lambda: package.RCA().fit(X, given["chunklets"]).components_
    if method == "NCA":
        return lambda: package.NCA(max_iter=limit).fit(X, given["y"]).components_
    if method == "ITML":
        itml = package.ITML(gamma=float(given["gamma"]), max_iter=limit, preprocessor=X)
        bounds = given["bounds"].copy()
        return lambda: itml.fit(pairs, given["sign"], bounds=bounds).components_
    mmc = package.MMC(max_iter=limit, preprocessor=X)
    return lambda: mmc.fit(pairs, given["sign"]).components_


def scikit_learn(method: str, given: dict[str, np.ndarray]) -> Fit:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    nca = NeighborhoodComponentsAnalysis(max_iter=int(given["max_iter"]), random_state=0)
    return lambda: nca.fit(given["X"], given["y"]).components_


def mlpack(method: str, given: dict[str, np.ndarray]) -> Fit:
    import mlpack as package

    options = {"optimizer": "lbfgs", "max_iterations": int(given["max_iter"]), "seed": 1}
    return lambda: package.nca(given["X"], labels=given["y"], **options)["output"]


def samewise(method: str, given: dict[str, np.ndarray]) -> Fit:
    """Up to the aim, or as far as the learner comes."""
    from samewise import ITML, MMC, NCA, RCA, Pairs

    aim = float(given["aim"])
    X, y = given["X"], given["y"]
    pairs = Pairs(X, given["left"], given["right"], given["sign"])
    if method == "RCA":
        return lambda: RCA().fit(X, chunklets=given["chunklets"]).components_
    if method == "NCA":
        nca = NCA(callback=lambda info: info["loss"] <= aim)
        return lambda: nca.fit(X, y).components_
    if method == "ITML":
        bounds = tuple(given["bounds"])
        itml = ITML(float(given["gamma"]), bounds=bounds, tol=1e-9, max_iter=10**6)
        itml.set_params(callback=lambda info: info["loss"] <= aim)
        return lambda: itml.fit(pairs).components_
    mmc = MMC(tol=1e-7, callback=lambda info: info["objective"] >= aim)
    return lambda: mmc.fit(pairs).components_


def part(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A small problem: compiles, or loads what was compiled before."""
    n = 300
    few = {**given, "X": given["X"][:n], "y": given["y"][:n], "aim": np.array(np.nan)}
    inside = (given["left"] < n) & (given["right"] < n)
    for name in ("left", "right", "sign"):
        few[name] = given[name][inside]
    few["chunklets"] = np.arange(n) // 100
    return few


def main(package: str, method: str, source: str, destination: str) -> None:
    run = {
        "metric-learn": metric_learn,
        "scikit-learn": scikit_learn,
        "mlpack": mlpack,
        "samewise": samewise,
    }[package]
    given = dict(np.load(source))
    warnings.simplefilter("ignore")
    if package == "samewise":
        samewise(method, part(given))()
    fits = [measured(run(method, given)) for _ in range(int(given["repeats"]))]
    found = {name: np.median([fit[name] for fit in fits]) for name in ("seconds", "cpu")}
    # What a first run leaves behind is used again by the next.
    found["mib"] = fits[0]["mib"]
    np.savez(destination, components=fits[-1]["components"], **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
