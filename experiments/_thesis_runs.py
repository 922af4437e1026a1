"""The runs of `thesis`, and the records of what was measured."""

from __future__ import annotations

import base64
import csv
import time
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from experiments._common import threads
from experiments._double_cv import double_cross_validation, in_order
from experiments._thesis_data import SETS, examples, n_classes
from experiments._thesis_learners import Once, learner
from samewise.exceptions import SamewiseWarning


class Key(NamedTuple):
    """What one double cross-validation is about."""

    name: str
    method: str
    rule: str
    mode: str


def key(name: str, method: str, rule: str = "knn", mode: str = "binary") -> Key:
    """The run to look at. With two classes, one against the rest is what it is anyway."""
    return Key(name, method, rule, "multiclass" if n_classes(name) == 2 else mode)


class Outcome(NamedTuple):
    """Of one run: accuracies of the folds, chosen candidates, and which decisions were right."""

    accuracies: NDArray[np.float64]
    chosen: list[list[int]]
    correct: NDArray[np.bool_]

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return float(self.accuracies.mean())

    @property
    def std(self) -> float:
        """The standard deviation over the folds."""
        return float(self.accuracies.std(ddof=1))


def measure_all(out: Path, wanted: Sequence[Key]) -> list[tuple[Key, Outcome, float]]:
    """Some runs, one after the other; what is learned for the first serves the others."""
    Once.learned.clear()
    return [measure(out, one) for one in wanted]


def measure(out: Path, wanted: Key) -> tuple[Key, Outcome, float]:
    """One run; what is finished of it is kept in `out` while it lasts."""
    X, y = examples(wanted.name)
    model, grid = learner(wanted.method, wanted.name, X)
    path = out / "unfinished" / ("-".join(wanted).replace(" ", "_") + ".run")
    path.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with warnings.catch_warnings(), threads(1):
        # Classes smaller than k, in some folds; the library says so for each.
        warnings.simplefilter("ignore", SamewiseWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Solver terminated early")
        result = double_cross_validation(
            model,
            X,
            y,
            grid=grid,
            rule=wanted.rule,
            mode=wanted.mode,
            n_folds=SETS[wanted.name].n_folds,
            random_state=0,
            checkpoint=path,
        )
    path.unlink()
    candidates = in_order(grid)
    chosen = [
        [candidates.index(params) for params in (fold if isinstance(fold, list) else [fold])]
        for fold in result.params
    ]
    order = np.argsort(result.folds, kind="stable")
    outcome = Outcome(result.accuracies, chosen, result.correct[order].ravel())
    return wanted, outcome, time.perf_counter() - start


class Records:
    """The files `records/<set>.csv` and `times/<set>.csv` of a folder."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def keep(self, done: Key, outcome: Outcome, seconds: float) -> None:
        """Append a run."""
        packed = zlib.compress(np.packbits(~outcome.correct).tobytes(), 9)
        row = {
            "method": done.method,
            "rule": done.rule,
            "mode": done.mode,
            "accuracies": " ".join(f"{a:.6f}" for a in outcome.accuracies),
            "chosen": "; ".join(" ".join(map(str, fold)) for fold in outcome.chosen),
            "decisions": len(outcome.correct),
            "wrong": base64.b85encode(packed).decode(),
        }
        self._append(self._path("records", done.name), [row])
        taken = {field: row[field] for field in Key._fields[1:]} | {"seconds": f"{seconds:.1f}"}
        self._append(self._path("times", done.name), [taken])

    def all(self, names: Sequence[str]) -> dict[Key, Outcome]:
        """Everything that is kept about these sets."""
        found = {}
        for name in names:
            for row in _read(self._path("records", name)):
                packed = zlib.decompress(base64.b85decode(row["wrong"]))
                wrong = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))
                found[Key(name, row["method"], row["rule"], row["mode"])] = Outcome(
                    np.array(row["accuracies"].split(), dtype=np.float64),
                    [[int(i) for i in fold.split()] for fold in row["chosen"].split(";")],
                    wrong[: int(row["decisions"])] == 0,
                )
        return found

    def forget(self, name: str) -> None:
        """Remove what is known about a set."""
        for kind in ("records", "times"):
            self._path(kind, name).unlink(missing_ok=True)

    def sort(self, name: str) -> None:
        """Rows in the order of their names, not in that in which runs were finished."""
        for kind in ("records", "times"):
            path = self._path(kind, name)
            rows = _read(path)
            if not rows:
                continue
            latest = {tuple(row[field] for field in Key._fields[1:]): row for row in rows}
            new = path.with_suffix(".new")
            new.unlink(missing_ok=True)
            self._append(new, [latest[at] for at in sorted(latest)])
            new.replace(path)

    def _path(self, kind: str, name: str) -> Path:
        return self.out / kind / f"{SETS[name].file}.csv"

    @staticmethod
    def _append(path: Path, rows: list[dict[str, Any]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerows(rows)


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
