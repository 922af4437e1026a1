"""LMNN on a million points: digits and deformed digits, learned from a sample of anchors.

K. Weinberger and L. Saul, "Distance metric learning for large margin nearest neighbor
classification" (JMLR 10, 2009) leave "millions or more training examples" to the future. Here are
10⁶ × 50: the 60 000 training digits of MNIST, deskewed, and 940 000 deformations of them. Each is
rotated, sheared, shifted and bent a little (`deformed`); the principal components are those of the
60 000. The 10 000 test digits are deskewed and left as they are.

LMNN learns from the 60 000 alone, and from the million with `max_anchors`: the loss of a sample of
points, whose targets and impostors are searched for among all. Errors are of 3-NN among the 60 000
or among the million. The loss over the million is estimated for both maps on the same points, drawn
by lot once more.

Decided before any run: the strength of the deformations, the number of anchors and the number of
components. `times.csv` has seconds and memory, which change from run to run; all else does not.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numba import njit

from benchmarks.lmnn import deskewed
from experiments._common import markdown, write_csv
from samewise._typing import Array, Indices
from samewise.datasets import load
from samewise.decide import vote
from samewise.learners import LMNN
from samewise.learners.batch.lmnn.anchors import Anchors
from samewise.learners.batch.lmnn.objective import LINEAR
from samewise.learners.batch.lmnn.problem import LMNNProblem
from samewise.learners.batch.points_by_class import Classes, nearest_rows, nearest_targets
from samewise.solvers.workers import workers

SEED = 0
N, N_ANCHORS, N_CHECKED = 1_000_000, 30_000, 10_000
N_COMPONENTS, K = 50, 3
SIZE = 28
BLOCK = 4000
"""Images that are deformed at once."""

TURN, SHEAR, SHIFT, BEND = np.deg2rad(7.5), 0.1, 1.0, 0.7
"""Largest angle, shear and shift (pixels), and the standard deviation of a bend (pixels)."""

GRID = 5
"""Bends are drawn at so many × so many points, and interpolated between."""

Labeled = tuple[Array, Indices]


def run(out: Path, *, quick: bool, jobs: int) -> None:
    """Learn, compare, and write the tables to `out`."""
    n, m, n_checked = (20_000, 2_000, 2_000) if quick else (N, N_ANCHORS, N_CHECKED)
    clock = Clock()
    few, million, test = digits(n, 4_000 if quick else None, jobs)
    clock("make the digits")
    plain = LMNN(K).fit(*few)
    clock(f"LMNN on {len(few[0]):,}", plain)
    tracemalloc.start()
    sampled = LMNN(K, max_anchors=m, random_state=SEED).fit(*million)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    clock(f"LMNN on {n:,}, {m:,} anchors", sampled, peak)

    maps = {"Euclidean": None, few_name(few): plain, f"LMNN on {n:,}": sampled}
    wrong, errors = {}, []
    for name, lmnn in maps.items():
        for among in (few, million):
            wrong[name, len(among[0])] = missed = misses(lmnn, among, test)
            rate = missed.mean()
            errors.append(
                {
                    "map": name,
                    "neighbors among": len(among[0]),
                    "error %": 100 * rate,
                    "± %": 100 * np.sqrt(rate * (1 - rate) / len(missed)),
                }
            )
            clock(f"3-NN among {len(among[0]):,}, {name}")
    checked = check(million, (plain, sampled), n_checked)
    clock("check of the loss")
    write(out, plain, sampled, wrong, errors, checked, clock, few, n)


def few_name(few: Labeled) -> str:
    """The name of the map that was learned from the undeformed digits."""
    return f"LMNN on {len(few[0]):,}"


class Clock:
    """Seconds since the last look, step by step."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._last = time.perf_counter(), time.process_time()

    def __call__(self, step: str, lmnn: LMNN | None = None, peak: int | None = None) -> None:
        now = time.perf_counter(), time.process_time()
        self.rows.append(
            {
                "step": step,
                "wall s": now[0] - self._last[0],
                "cpu s": now[1] - self._last[1],
                "iterations": None if lmnn is None else lmnn.n_iter_,
                "peak MiB beyond X": None if peak is None else peak / 2**20,
            }
        )
        print(f"{step}: {self.rows[-1]['wall s']:.1f} s", flush=True)
        self._last = now


def digits(n: int, n_few: int | None, jobs: int) -> tuple[Labeled, Labeled, Labeled]:
    """The training digits, n of them and their deformations, and the test digits; reduced."""
    data = load("mnist", dtype=np.float32)
    images, y = deskewed(data.data / 255), data.target
    A, a = images[data.train][:n_few], y[data.train][:n_few]
    B, b = images[~data.train][:n_few], y[~data.train][:n_few]
    mean = A.mean(axis=0)
    V = np.linalg.eigh(np.cov((A - mean).T))[1][:, ::-1][:, :N_COMPONENTS].astype(np.float32)
    X = np.empty((n, N_COMPONENTS), dtype=np.float32)
    X[: len(A)] = (A - mean) @ V
    # Each digit as often as any other, up to once.
    source = np.arange(n) % len(A)

    def fill(start: int) -> None:
        rows = slice(start, min(start + BLOCK, n))
        rng = np.random.default_rng([SEED, start])
        X[rows] = (deformed(A, source[rows], rng) - mean) @ V

    starts = range(len(A), n, BLOCK)
    Parallel(n_jobs=jobs, prefer="threads")(delayed(fill)(start) for start in starts)
    return (X[: len(A)], a), (X, a[source]), ((B - mean) @ V, b)


def deformed(images: Array, which: Indices, rng: np.random.Generator) -> Array:
    """Copies of some images, each turned, sheared, shifted and bent by lot, about its middle."""
    n = len(which)
    turn, shear = rng.uniform(-TURN, TURN, n), rng.uniform(-SHEAR, SHEAR, n)
    at = np.arange(SIZE) - (SIZE - 1) / 2
    y, x = (grid.ravel() for grid in np.meshgrid(at, at, indexing="ij"))
    cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
    shift = rng.uniform(-SHIFT, SHIFT, (2, n, 1))
    bend = rng.normal(scale=BEND, size=(2, n, GRID * GRID)) @ between()
    down = cos * y - sin * x + shift[0] + bend[0] + (SIZE - 1) / 2
    right = sin * y + cos * x + shear[:, None] * y + shift[1] + bend[1] + (SIZE - 1) / 2
    out = np.empty((n, SIZE * SIZE), dtype=np.float32)
    resample(images, which, down.astype(np.float32), right.astype(np.float32), out)
    return out


def between() -> Array:
    """Values at the pixels from values at GRID × GRID points, linear in between."""
    at = np.linspace(0, GRID - 1, SIZE)
    W = np.maximum(0, 1 - abs(np.arange(GRID)[:, None] - at))
    return np.kron(W, W)


@njit(nogil=True)
def resample(images: Array, which: Indices, down: Array, right: Array, out: Array) -> None:
    """out_i = image which_i at the places (down_i, right_i), linear between its pixels."""
    for i in range(len(which)):
        image = images[which[i]].reshape(SIZE, SIZE)
        for p in range(SIZE * SIZE):
            top, left = int(np.floor(down[i, p])), int(np.floor(right[i, p]))
            value = np.float32(0)
            for row in (top, top + 1):
                for column in (left, left + 1):
                    if 0 <= row < SIZE and 0 <= column < SIZE:
                        share = (1 - abs(down[i, p] - row)) * (1 - abs(right[i, p] - column))
                        value += share * image[row, column]
            out[i, p] = value


def misses(lmnn: LMNN | None, train: Labeled, test: Labeled) -> Array:
    """Which of the test points k-NN gets wrong."""
    (A, a), (B, b) = train, test
    if lmnn is not None:
        A, B = lmnn.transform(A), lmnn.transform(B)
    with workers() as team:
        found = nearest_rows(B, A, K, team)
    return vote(a[found], int(a.max()) + 1)[0] != b


def check(million: Labeled, maps: tuple[LMNN, LMNN], m: int) -> dict[str, float]:
    """The loss of two maps over all points, estimated on the same fresh points, per point."""
    X, y = million
    classes = Classes(y, int(y.max()) + 1)
    anchors = Anchors(classes, None, m, np.random.RandomState(SEED + 1)).chosen
    with workers() as team:
        targets = nearest_targets(X, classes, K, team, anchors)
        problem = LMNNProblem(X, classes, targets, maps[0].push_weight, LINEAR, np.float32, team)
        first, second = (
            problem.losses(problem.coordinates(lmnn.components_), targets) for lmnn in maps
        )
    n, root = len(X), np.sqrt(m)
    return {
        "first": n * float(first.mean()),
        "first error": n * float(first.std(ddof=1)) / root,
        "second": n * float(second.mean()),
        "second error": n * float(second.std(ddof=1)) / root,
        "difference": n * float((first - second).mean()),
        "difference error": n * float((first - second).std(ddof=1)) / root,
    }


def write(
    out: Path,
    plain: LMNN,
    sampled: LMNN,
    wrong: dict[tuple[str, int], Array],
    errors: list[dict[str, Any]],
    checked: dict[str, float],
    clock: Clock,
    few: Labeled,
    n: int,
) -> None:
    """All tables, and what they say."""
    a, c = few_name(few), f"LMNN on {n:,}"
    m = sampled.max_anchors
    losses = [
        {"what": f"{a}: its own loss", "loss": plain.loss_, "±": plain.loss_std_},
        {"what": f"{c}: over its {m:,} anchors, scaled", "loss": sampled.anchor_loss_, "±": None},
        {"what": f"{c}: loss_, with {m:,} others", "loss": sampled.loss_, "±": sampled.loss_std_},
        {
            "what": f"{a}: over {n:,}, fresh points",
            "loss": checked["first"],
            "±": checked["first error"],
        },
        {
            "what": f"{c}: over {n:,}, the same points",
            "loss": checked["second"],
            "±": checked["second error"],
        },
        {
            "what": "difference of the last two",
            "loss": checked["difference"],
            "±": checked["difference error"],
        },
    ]
    steps = [
        compared("more points to search in", wrong, (a, len(few[0])), (a, n)),
        compared("more points to learn from", wrong, (a, n), (c, n)),
        compared("learning at all, among all", wrong, ("Euclidean", n), (c, n)),
    ]
    write_csv(out / "errors.csv", errors)
    write_csv(out / "losses.csv", losses)
    write_csv(out / "steps.csv", steps)
    write_csv(out / "times.csv", clock.rows)
    fitted = 100 * (1 - sampled.anchor_loss_ / sampled.loss_)
    lower = 100 * checked["difference"] / checked["first"]
    text = (
        f"# LMNN on {n:,} points\n\n"
        "Made by `python -m experiments lmnn_million`; how is said in "
        "`experiments/lmnn_million.py`. Seconds and memory are in `times.csv`.\n\n"
        f"## 3-NN error on {len(next(iter(wrong.values()))):,} test digits\n\n"
        f"{markdown(errors, 2)}\n\n"
        "Step by step, with how many test digits only one of the two gets wrong, and the "
        "difference of errors in its standard errors, √(only first + only second):\n\n"
        f"{markdown(steps, 2)}\n\n"
        f"## Loss\n\n{markdown(losses, 0)}\n\n"
        f"The sampled fit took {sampled.n_iter_} iterations and has "
        f"{'' if sampled.converged_ else 'not '}converged. Its loss over the anchors it learned "
        f"from is {abs(fitted):.1f} % {'below' if fitted > 0 else 'above'} the estimate over all "
        f"points (± {100 * sampled.loss_std_ / sampled.loss_:.1f}): fitted to the sample, or by "
        f"chance. Over all {n:,} points its loss is {abs(lower):.1f} % "
        f"{'below' if lower > 0 else 'above'} that of the map learned from {len(few[0]):,} "
        f"(± {100 * checked['difference error'] / checked['first']:.1f}).\n"
    )
    (out / "summary.md").write_text(text, encoding="utf-8")


def compared(
    name: str,
    wrong: dict[tuple[str, int], Array],
    first: tuple[str, int],
    second: tuple[str, int],
) -> dict[str, Any]:
    """How many of the test points only one of two gets wrong."""
    only_first = int(np.count_nonzero(wrong[first] & ~wrong[second]))
    only_second = int(np.count_nonzero(wrong[second] & ~wrong[first]))
    return {
        "step": name,
        "from": f"{first[0]}, among {first[1]:,}",
        "to": f"{second[0]}, among {second[1]:,}",
        "only first wrong": only_first,
        "only second wrong": only_second,
        "standard errors better": (only_first - only_second)
        / np.sqrt(only_first + only_second or 1),
    }
