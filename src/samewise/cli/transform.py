"""samewise transform: rows in the coordinates of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from samewise.cli.console import Answer, printable, working
from samewise.cli.exports import Safe, check_ending, check_output, write_table
from samewise.cli.options import Columns, Data, ModelFile, command, open_model
from samewise.cli.tables import read_table


@command("interrupted; nothing was written")
def transform(
    model_file: ModelFile,
    data: Data,
    columns: Columns,
    out: Annotated[
        str, typer.Option(help="CSV, Parquet, NPZ or JSON lines; - for CSV to standard output.")
    ] = "-",
    safe: Safe = True,
) -> Answer | None:
    """Write rows in coordinates where the plain distance (or cosine) is the learned one.

    Example: samewise transform wine.sw wine.csv --out embedded.csv
    """
    check_ending(out)
    if out != "-":
        check_output(out)
    model = open_model(model_file)
    with working("reading") as show:
        table = read_table(data, columns, model.label, model)
        show(f"transforming {table.X.shape[0]:,} rows")
        Z = model.transform(table.X, table.names)
        write_table(
            out,
            Z,
            [f"z{j}" for j in range(Z.shape[1])],
            y=table.y,
            label=table.label,
            ids=table.ids,
            train=table.train,
            safe=safe,
        )
    if out == "-":
        return None
    content = {"out": out, "rows": Z.shape[0], "features": table.X.shape[1]}
    text = f"{Z.shape[0]:,} rows of {Z.shape[1]:,} coordinates written to {out}."
    return Answer(
        content | {"coordinates": Z.shape[1]}, lambda: typer.echo(printable(text), err=True)
    )
