"""What the experiments share: neighbor errors, processes, tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numba
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from samewise import Form, Index
from samewise._typing import Array
from samewise.decide import vote

Rows = Sequence[Mapping[str, Any]]


def neighbor_errors(form: Form | None, train: Any, test: Any, max_neighbors: int) -> Array:
    """k-NN error on `test` = (X, y) for k = 1, …, max_neighbors, with the neighbors in `train`."""
    (A, a), (B, b) = train, test
    k = min(max_neighbors, len(a))
    labels = a[Index(form, A).query(B, k)[1]]
    n_classes = int(max(a.max(), b.max())) + 1
    return np.array([np.mean(vote(labels[:, : i + 1], n_classes)[0] != b) for i in range(k)])


def in_processes(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], jobs: int) -> list:
    """`function(*task)` for each task, in order, `jobs` at a time, each on one thread."""
    return Parallel(n_jobs=jobs)(delayed(_on_one_thread)(function, task) for task in tasks)


def _on_one_thread(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    with threads(1):
        return function(*task)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """So many threads for all: sums, and so the results, depend on how rows are shared out."""
    with mock.patch.object(numba.config, "NUMBA_NUM_THREADS", n), threadpool_limits(n):
        yield


def write_csv(path: Path, rows: Rows) -> None:
    """The rows under the names of the first, floats with six digits after the point."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([_cell(value, 6) for value in row.values()] for row in rows)


def markdown(rows: Rows, digits: int = 3) -> str:
    """The rows as a Markdown table."""
    lines = [list(rows[0]), ["---"] * len(rows[0])]
    lines += [[_cell(value, digits) for value in row.values()] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float | np.floating) else str(value)


def save_figure(figure: Any, path: Path) -> None:
    """A small PNG without a time stamp."""
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def plots() -> Any:
    """pyplot, drawing to files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
