"""samewise compare: several learners on the same data."""

from __future__ import annotations

import math
import os
from typing import Annotated, Any

import typer

from samewise import protocols
from samewise.cli.console import Answer, percent, say, show_table, working
from samewise.cli.options import (
    Columns,
    Data,
    Neighbors,
    ScaleChoice,
    Scaled,
    Seed,
    check_neighbors,
    command,
    listed,
)
from samewise.cli.tables import check_classes, filled, read_table


@command()
def compare(
    data: Data,
    columns: Columns,
    learners: Annotated[
        str, typer.Option(help="Names of learners, separated by commas.")
    ] = "lda,lmnn,gcosla",
    hold: Annotated[
        float,
        typer.Option(
            "--hold-out",
            min=0.01,
            max=0.9,
            help="Fraction of the rows to hold out, to compare learners on.",
        ),
    ] = 0.3,
    neighbors: Neighbors = 3,
    scale: Scaled = ScaleChoice.auto,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many learners to train in parallel; by default as many as there are "
            "processors. With 1, seconds can be compared.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds after which a learner is stopped."),
    ] = None,
    seed: Seed = 0,
) -> Answer:
    """Compare learners by k-NN error on held-out rows, with significance, time and memory.

    Each learner runs in its own process. A data set with a standard split holds out its test part.
    After Ctrl-C, the results so far are shown.

    Example: samewise compare wine.csv --label class --learners lmnn,nca,sila
    """
    table = read_table(data, columns, labeled=True)
    y = check_classes(table)
    held = protocols.hold_out(y, hold, seed) if table.train is None else ~table.train
    table, _ = filled(table, ~held, columns.impute)
    check_neighbors(neighbors, int((~held).sum()))
    with working("comparing", in_pipe=True) as show:
        found = protocols.compare(
            table.X,
            y,
            listed(learners),
            test=held,
            scale=str(scale),
            n_jobs=jobs or os.cpu_count() or 1,
            time_limit=time_limit,
            n_neighbors=neighbors,
            random_state=seed,
            watch=show,
        )
    then = KeyboardInterrupt() if found.interrupted else None
    return Answer(_content(found), lambda: _show(found, neighbors), then)


def _content(found: protocols.Comparison) -> dict[str, Any]:
    return {
        "learned_from": found.n_learned,
        "judged_by": found.n_judged,
        "standardized": found.standardized,
        "kept": found.kept,
        "compared": [
            {
                "learner": line.name,
                "error": line.error,
                "against": line.marks,
                "seconds": line.seconds,
                "peak_memory_bytes": line.memory,
            }
            | ({"refused": line.refused} if line.refused else {})
            for line in found.lines
        ],
    }


def _show(found: protocols.Comparison, neighbors: int) -> None:
    if not found.lines:
        return
    standard = ", standardized" if found.standardized else ""
    title = (
        f"{neighbors}-NN error on {found.n_judged:,} rows; learned from {found.n_learned:,}"
        f"{standard}"
    )
    headers = ["learner", "error", "vs euclidean", "vs cosine", "seconds", "MiB"]
    show_table(headers, [_cells(line) for line in found.lines], title)
    say(
        "≫ and > : better by the s-test at 1 % and 5 %; ≪ and < : worse; = : no difference shown; "
        "not adjusted for the number of learners. Seconds: training time. MiB: peak memory of the "
        "process, with data and libraries."
    )
    for line in found.lines:
        if line.refused:
            say(f"{line.name} refused: {line.refused}")
    say(found.best())


def _cells(line: protocols.Compared) -> list[str]:
    return [
        line.name,
        percent(line.error) or "refused",
        line.marks.get("euclidean", ""),
        line.marks.get("cosine", ""),
        "" if math.isnan(line.seconds) else f"{line.seconds:.2f}",
        "" if line.memory is None else f"{line.memory / 2**20:,.0f}",
    ]
