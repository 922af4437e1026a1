"""The rows that a model is judged by, and those that neighbors are found among."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.cli.options import Columns, check_neighbors
from samewise.cli.tables import Table, check_classes, read_table
from samewise.model import Model
from samewise.protocols import rows_to_judge_by
from samewise.protocols.model_evaluation import learned_from

Test = Annotated[
    str | None,
    typer.Option(help="Rows to evaluate; their neighbors are then searched among DATA."),
]


@dataclass(frozen=True, eq=False)
class RowsOfModel:
    """Rows as the model takes them and as they were, their labels and names."""

    X: Matrix
    shown: Matrix
    y: NDArray[Any]
    ids: list[str]


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows that neighbors are found among, rows to judge by, and how these were found."""

    items: RowsOfModel
    queries: RowsOfModel
    note: str
    names: tuple[str, ...] | None

    @property
    def parts(self) -> tuple[Matrix, NDArray[Any], Matrix, NDArray[Any]]:
        """X, y, X_test and y_test."""
        return self.items.X, self.items.y, self.queries.X, self.queries.y


def read_judged_rows(
    model: Model, data: str, test: str | None, columns: Columns, neighbors: int, seed: int
) -> JudgedRows:
    """Read DATA, and the rows of --test if there are any."""
    table = read_table(data, columns, model.label, model, labeled=True)
    y = check_classes(table)
    if test is None:
        if table.train is not None:
            queries, note = ~table.train, f"the test part of {table.source}"
        else:
            queries, note = rows_to_judge_by(model, table.X, y, table.names, seed)
        parts = _part(model, table, y, ~queries), _part(model, table, y, queries)
    else:
        other = read_table(test, columns, model.label, model, labeled=True)
        wanted = check_classes(other)
        note = f"the rows of {test}, compared with those of {data}"
        note += learned_from(model, other.X, other.names)
        every = [np.ones(len(labels), dtype=bool) for labels in (y, wanted)]
        parts = _part(model, table, y, every[0]), _part(model, other, wanted, every[1])
    check_neighbors(neighbors, len(parts[0].y))
    return JudgedRows(*parts, note, model.feature_names or table.names)


def _part(model: Model, table: Table, y: NDArray[Any], chosen: NDArray[np.bool_]) -> RowsOfModel:
    rows = np.flatnonzero(chosen)
    X, unscaled = table.X[rows], replace(model, mean=None, scale=None)
    before = "row " if table.ids is None else ""
    return RowsOfModel(
        model.prepare(X, table.names),
        unscaled.prepare(X, table.names),
        y[rows],
        [before + table.shown(int(row)) for row in rows],
    )
