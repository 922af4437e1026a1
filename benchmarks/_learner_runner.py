"""Runs one learner of one package on one problem, in a process and an environment of its own.

`python _learner_runner.py PACKAGE METHOD IN.npz OUT.npz`. The input has X, y and what the method
asks for: left, right and sign of pairs, quadruplets, triplets, bounds, gamma, balance, basis,
chunklets, max_iter and repeats; for
samewise also the aim, an objective to stop at. Nothing of samewise is imported unless that is what
runs.
"""

from __future__ import annotations

import ctypes
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

Fit = Callable[[], tuple[np.ndarray, object]]
"""Returns L, and whether the run ended by its own rule; None if that is not known."""


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
    components, finished = fit()
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "mib": memory("VmHWM") - before,
        "components": components,
        "finished": {True: "yes", False: "no", None: ""}[finished],
    }


def metric_learn(method: str, given: dict[str, np.ndarray]) -> Fit:
    import metric_learn as package

    limit = int(given["max_iter"])
    if method == "RCA":
        return lambda: (package.RCA().fit(given["X"], given["chunklets"]).components_, True)
    if method == "Covariance":
        return lambda: (package.Covariance().fit(given["X"]).components_, True)
    if method == "LFDA":
        lfda = package.LFDA(n_components=given["X"].shape[1] // 2)
        return lambda: (lfda.fit(given["X"], given["y"]).components_, True)
    if method == "SDML":
        told = np.column_stack([given["left"], given["right"]]), given["sign"]
        mended(package)
        sdml = package.SDML(balance_param=float(given["balance"]), preprocessor=given["X"])
        return lambda: (sdml.fit(*told).components_, True)
    if method == "SCML":
        scml = scml_of_a_basis(package, given, limit)
        return lambda: (scml.fit(given["triplets"].T).components_, False)
    if method == "LSML":
        told, more = (given["quadruplets"].T,), {}
        learner = package.LSML(max_iter=limit, preprocessor=given["X"])
    elif method in ("NCA", "MLKR"):
        told, more = (given["X"], given["y"]), {}
        learner = getattr(package, method)(max_iter=limit)
    else:
        told = np.column_stack([given["left"], given["right"]]), given["sign"]
        more = {"bounds": given["bounds"].copy()} if method == "ITML" else {}
        options = {"gamma": float(given["gamma"])} if method == "ITML" else {}
        learner = getattr(package, method)(max_iter=limit, preprocessor=given["X"], **options)

    def fit() -> tuple[np.ndarray, object]:
        learner.fit(*told, **more)
        return learner.components_, bool(learner.n_iter_ < limit - 1)

    return fit


def mended(package) -> None:
    """metric-learn's SDML gives a start that scikit-learn no longer takes since 1.5: without it."""
    from sklearn.covariance import graphical_lasso

    package.sdml.graphical_lasso = lambda *args, cov_init=None, **options: graphical_lasso(
        *args, **options
    )


def scml_of_a_basis(package, given: dict[str, np.ndarray], limit: int):
    """metric-learn's SCML over a given basis, for which it has a parameter that does not work."""

    class Given(package.SCML):
        def _initialize_basis(self, triplets, X):
            return self.basis, len(self.basis)

    return Given(basis=given["basis"], max_iter=limit, preprocessor=given["X"], random_state=0)


def scikit_learn(method: str, given: dict[str, np.ndarray]) -> Fit:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    if method == "LDA":
        lda = LinearDiscriminantAnalysis()
        return lambda: (lda.fit(given["X"], given["y"]).scalings_.T, True)
    limit = int(given["max_iter"])
    nca = NeighborhoodComponentsAnalysis(max_iter=limit, random_state=0)

    def fit() -> tuple[np.ndarray, object]:
        nca.fit(given["X"], given["y"])
        return nca.components_, bool(nca.n_iter_ < limit)

    return fit


def mlpack(method: str, given: dict[str, np.ndarray]) -> Fit:
    import mlpack as package

    options = {"optimizer": "lbfgs", "max_iterations": int(given["max_iter"]), "seed": 1}
    return lambda: (package.nca(given["X"], labels=given["y"], **options)["output"], None)


def samewise(method: str, given: dict[str, np.ndarray]) -> Fit:
    """Up to the aim; without one (NaN), as far as the defaults go."""
    from samewise import (
        ITML,
        LDA,
        LFDA,
        LSML,
        MLKR,
        MMC,
        NCA,
        RCA,
        SCML,
        SDML,
        Covariance,
        Pairs,
        Quadruplets,
        Triplets,
    )

    X, aim = given["X"], float(given["aim"])
    if method == "RCA":
        return lambda: (RCA().fit(X, chunklets=given["chunklets"]).components_, True)
    if method == "Covariance":
        # metric-learn divides by n − 1.
        unit = np.sqrt(1 - 1 / len(X))
        return lambda: (unit * Covariance().fit(X).components_, True)
    if method == "LDA":
        return lambda: (LDA().fit(X, given["y"]).components_, True)
    if method == "LFDA":
        k = max(1, min(7, X.shape[1] - 1))
        lfda = LFDA(X.shape[1] // 2, n_neighbors=k)
        return lambda: (lfda.fit(X, given["y"]).components_, True)
    if method in ("NCA", "MLKR"):
        # MLKR has many minima: from where metric-learn starts.
        told, learner = (X, given["y"]), NCA() if method == "NCA" else MLKR(init="identity")
    elif method == "LSML":
        told, learner = (Quadruplets(X, *given["quadruplets"]),), LSML(1.0)
    elif method == "SCML":
        told, learner = (Triplets(X, *given["triplets"]),), SCML(basis=given["basis"])
    elif method == "SDML":
        told = (Pairs(X, given["left"], given["right"], given["sign"]),)
        learner = SDML(float(given["balance"]))
    else:
        told = (Pairs(X, given["left"], given["right"], given["sign"]),)
        bounds = tuple(given["bounds"])
        # What MMC's default shrinks is no longer the solution of the problem.
        paper = MMC(shrinkage=0.0)
        learner = ITML(float(given["gamma"]), bounds=bounds) if method == "ITML" else paper
    if not np.isnan(aim):
        learner.set_params(
            callback=lambda info: (
                info["objective"] >= aim if method == "MMC" else info["loss"] <= aim
            )
        )
        learner.set_params(tol=1e-10 if method == "MLKR" else 1e-7, max_iter=10**5)
    return lambda: (learner.fit(*told).components_, True)


def part(method: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A small problem: compiles, or loads what was compiled before."""
    names = ("X", "y") if method in ("NCA", "MLKR", "LFDA", "LDA") else ("left", "right", "sign")
    some = {name: given[name][:300] for name in names}
    some |= {name: given[name][:, :300] for name in ("quadruplets", "triplets") if name in given}
    return {**given, "aim": np.array(np.nan), **some}


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
        samewise(method, part(method, given))()
    fits = [measured(run(method, given)) for _ in range(int(given["repeats"]))]
    found = {name: np.median([fit[name] for fit in fits]) for name in ("seconds", "cpu")}
    # What a first run leaves behind is used again by the next.
    found["mib"] = fits[0]["mib"]
    if package == "samewise":
        found["whole"] = measured(run(method, given | {"aim": np.array(np.nan)}))["cpu"]
    last = {name: fits[-1][name] for name in ("components", "finished")}
    np.savez(destination, **last, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
