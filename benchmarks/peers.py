"""LMNN against metric-learn and PyLMNN at equal loss, each in an environment that it works in.

Neither package works with present releases of scikit-learn and SciPy, so that `environment` makes
one of its own, with pinned versions, under build/. A peer learns first; its exact loss at the end
is what samewise has to reach, from the same targets and with the search of targets in its time.
Each has as many threads as there are processors, and seconds are those of the clock: the machine
must be quiet. The ratio of CPU seconds of all threads is beside.
metric-learn minimizes the same loss as LMNN, PyLMNN the one with squared hinges. pyDML does not
install (`python -m benchmarks comparison` says why).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.lmnn import deskewed, prepared
from samewise import datasets
from samewise.exceptions import DatasetNotFoundError

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "peers-venv"
RUNNER = Path(__file__).with_name("_peer_runner.py")

PINNED = [
    ["numpy==2.1.3", "scipy==1.14.1", "scikit-learn==1.5.2", "metric-learn==0.7.0", "six==1.16.0"],
    ["pylmnn==1.6.4"],
]
OPTIONAL = {"mlpack": "mlpack==4.8.0", "dml": "pyDML==0.1.0"}
"""Not every Python has a wheel of these; of pyDML there is none, and its source does not say what
its build asks for."""

K, MU = 3, 0.5
REPEATS = 5

# data, peer, its evaluations at most and its learning rate, prototype's ratio, wanted ratio
CASES = [
    ("letter 14000 × 16", "metric-learn", 99, 1e-5, 170, 150),
    ("mnist 3500 × 50", "metric-learn", 845, 1e-7, 126, 10),
    ("mnist 3500 × 164", "metric-learn", 402, 1e-5, 124, ""),
    ("letter 14000 × 16", "pylmnn", 0, 0, 19, 25),
    ("mnist 3500 × 50", "pylmnn", 0, 0, 9, 10),
    ("mnist 3500 × 164", "pylmnn", 0, 0, 18, ""),
    ("mnist 20000 × 50", "pylmnn", 0, 0, 29, 25),
]


def environment() -> Path | None:
    """The interpreter of the peers' environment, which is made if need be; None if it fails."""
    python = HOME / "bin" / "python"
    if (HOME / "complete").exists():
        return python
    print(f"Installing the peers in {HOME.relative_to(ROOT)}")
    commands = [[sys.executable, "-m", "venv", "--clear", str(HOME)]]
    commands += [[str(python), "-m", "pip", "install", "--quiet", *what] for what in PINNED]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reasons = [line.strip() for line in lines if "Error" in line or "ERROR" in line]
            print(f"The peers cannot be installed by `{' '.join(command[1:])}`: {reasons or lines}")
            return None
    (HOME / "complete").touch()
    return python


def lacking(python: Path) -> dict[str, str]:
    """Which of the optional peers cannot be had, and why; the others are installed if need be."""
    missing = {}
    for name, pinned in OPTIONAL.items():
        if subprocess.run([str(python), "-c", f"import {name}"], capture_output=True).returncode:
            command = [str(python), "-m", "pip", "install", "--quiet", pinned, *PINNED[0]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                lines = done.stderr.strip().splitlines()
                missing[name] = next(
                    (line.strip() for line in lines if "Error:" in line), lines[-1]
                )
    return missing


def points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Training points: letters, or principal components of the first deskewed digits."""
    data, n, _, d = name.split()
    if data == "letter":
        X, y, _, _ = prepared(data)
    else:
        digits = datasets.load(data, dtype=np.float32)
        X, y = deskewed(digits.data[digits.train][: int(n)] / 255), digits.target[: int(n)]
        X = X - X.mean(axis=0)
        X = X @ np.linalg.eigh(X.T @ X)[1][:, ::-1][:, : int(d)]
    return X.astype(np.float64), np.unique(y, return_inverse=True)[1]


def exact_loss(
    L: np.ndarray, X: np.ndarray, y: np.ndarray, targets: np.ndarray, squared: bool
) -> float:
    """LMNN's loss over all triplets, in float64."""
    Z = X @ L.T
    squares, total = (Z**2).sum(axis=1), 0.0
    for start in range(0, len(Z), 500):
        rows = slice(start, start + 500)
        D = squares[rows, None] + squares - 2 * Z[rows] @ Z.T
        D[y[rows, None] == y] = np.inf
        for near in targets[rows].T:
            pull = ((Z[rows] - Z[near]) ** 2).sum(axis=1)
            h = np.maximum(0, 1 + pull[:, None] - D)
            total += (1 - MU) * pull.sum() + MU * (h**2 if squared else h).sum()
    return float(total)


def ran(python: Path, package: str, folder: Path, **given: object) -> dict[str, np.ndarray]:
    """What the runner says, with a thread for each processor."""
    np.savez(folder / "in.npz", **given)
    threads = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]
    env = {**os.environ, **dict.fromkeys(threads, str(os.cpu_count()))}
    command = [str(python), str(RUNNER), package, str(folder / "in.npz"), str(folder / "out.npz")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return dict(np.load(folder / "out.npz"))


def run(cases: list[tuple[object, ...]] | None = None) -> list[dict[str, object]]:
    """Wall seconds, their ratio, that of CPU seconds, and peak memory.

    Memory is what the fit takes beyond the peak of the imports and the data before it.
    """
    python = environment()
    if python is None:
        return [{"peers": "not installed"}]
    rows = []
    for name, peer, evaluations, rate, prototype, wanted in cases or CASES:
        try:
            X, y = points(name)
        except DatasetNotFoundError as missing:
            print(missing)
            continue
        hinge = "squared" if peer == "pylmnn" else "linear"
        row = {"data": name, "peer": peer + (f", rate {rate:g}" if rate else ""), "hinge": hinge}
        with tempfile.TemporaryDirectory() as folder:
            given = {"X": X, "y": y, "k": K, "mu": MU}
            try:
                theirs = ran(
                    python,
                    peer,
                    Path(folder),
                    max_evaluations=evaluations,
                    learn_rate=rate,
                    **given,
                )
            except RuntimeError as failed:
                rows.append({**row, "loss": f"failed: {failed}"})
                continue
            loss = exact_loss(
                theirs["components"], X, y, theirs["targets"], squared=hinge == "squared"
            )
            ours = ran(
                Path(sys.executable),
                "samewise",
                Path(folder),
                targets=theirs["targets"],
                target_loss=loss,
                hinge=hinge,
                repeats=REPEATS,
                **given,
            )
        their_wall, their_cpu = float(theirs["seconds"][0]), float(theirs["cpu"][0])
        rows.append(
            {
                **row,
                "loss": round(loss, 1),
                "evaluations": int(theirs["evaluations"]),
                "finished": bool(theirs["finished"]),
                "peer s": round(their_wall, 2),
                "samewise s": round(float(np.median(ours["seconds"])), 3),
                "range": f"{min(ours['seconds']):.2f}–{max(ours['seconds']):.2f}",
                "ratio": round(their_wall / float(np.median(ours["seconds"])), 1),
                "CPU ratio": round(their_cpu / float(np.median(ours["cpu"])), 1),
                "wanted": wanted,
                "prototype": prototype,
                "peer MiB": f"{float(theirs['mib']):.0f}",
                "samewise MiB": f"{float(ours['mib']):.0f}",
            }
        )
        print(f"{name}, {peer}: {rows[-1]['ratio']} times", file=sys.stderr, flush=True)
    return rows
