"""samewise search: the nearest rows of one, before and after learning."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.cli.console import Answer, number, say, show_table, working
from samewise.cli.options import Columns, Data, ModelFile, command, numbers_of, open_model
from samewise.cli.tables import Table, read_table
from samewise.exceptions import InvalidInputError
from samewise.forms import GeneralizedCosine
from samewise.model import Model
from samewise.search import Index


@command()
def search(
    model_file: ModelFile,
    data: Data,
    columns: Columns,
    row: Annotated[
        int | None, typer.Option(min=0, help="Number of the row to search for, from 0.")
    ] = None,
    vector: Annotated[
        str | None, typer.Option(help='Numbers to search for: "5.1, 3.5, 1.4, 0.2".')
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many neighbors.")] = 5,
) -> Answer:
    """Show the nearest rows of DATA to one row or vector, before and after learning.

    Example: samewise search wine.sw wine.csv --row 17 -k 5
    """
    if (row is None) == (vector is None):
        raise InvalidInputError("Say what to search for: either --row or --vector.")
    model = open_model(model_file)
    with working("searching"):
        table = read_table(data, columns, model.label, model)
        X = model.prepare(table.X, table.names)
        if row is not None and row >= X.shape[0]:
            raise InvalidInputError(
                f"{table.source} has {X.shape[0]} rows, counted from 0; there is no row {row}."
            )
        query = X[[row]] if vector is None else model.prepare([numbers_of(vector)])
        before, found = _neighbors(model, table, X, query, row, k)
    content: dict[str, Any] = {"before": before, "found": found}
    if row is not None:
        content = {"row": table.shown(row), "label": _label(table, row), **content}
    return Answer(content, lambda: _show(content, model))


def _neighbors(
    model: Model, table: Table, X: Matrix, query: Matrix, row: int | None, k: int
) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    form = model.form
    plain = None if form.is_distance else GeneralizedCosine(np.eye(X.shape[1]), "zero")
    indexes = {"before": Index(plain, X), "after": Index(form.bind(X, table.y), X)}
    found = {}
    # The row itself is found too, and left out.
    wanted = min(k + (row is not None), X.shape[0])
    for when, index in indexes.items():
        closeness, rows = index.query(query, wanted)
        near: NDArray[np.bool_] = rows[0] != (-1 if row is None else row)
        found[when] = [
            {
                "row": int(i),
                "id": table.shown(i),
                "label": _label(table, i),
                "value": float(0 - c if form.is_distance else c),
            }
            for c, i in list(zip(closeness[0][near], rows[0][near], strict=True))[:k]
        ]
    return ("euclidean" if plain is None else "cosine"), found


def _label(table: Table, row: int) -> Any:
    return None if table.y is None else table.y[row].item()


def _show(content: dict[str, Any], model: Model) -> None:
    if "row" in content:
        of = "" if content["label"] is None else f" (label {content['label']})"
        say(f"Nearest to row {content['row']}{of}:")
    what = "distance" if model.form.is_distance else "similarity"
    before, after = content["found"]["before"], content["found"]["after"]
    rows = [
        [str(rank), *_cells(one), *_cells(other)]
        for rank, (one, other) in enumerate(zip(before, after, strict=True), start=1)
    ]
    learned = model.learner or type(model.form).__name__
    first, second = f"{content['before']}: row", f"{learned}: row"
    show_table(["", first, "label", what, second, "label", what], rows)


def _cells(neighbor: dict[str, Any]) -> list[str]:
    label = "" if neighbor["label"] is None else str(neighbor["label"])
    return [neighbor["id"], label, number(neighbor["value"])]
