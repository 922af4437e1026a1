"""samewise transform: rows in the coordinates of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from samewise.cli.errors import one_sentence
from samewise.cli.exports import check_ending, check_output, write_table
from samewise.cli.options import (
    Data,
    Debug,
    Drop,
    Features,
    Id,
    Json,
    Label,
    ModelFile,
    VectorField,
    listed,
    open_model,
)
from samewise.cli.shown import print_json, working
from samewise.cli.tables import read_table

__all__ = ["transform"]


def transform(
    model_file: ModelFile,
    data: Data,
    out: Annotated[
        str, typer.Option(help="CSV, Parquet, NPZ or JSON lines; - for CSV to standard output.")
    ] = "-",
    label: Label = None,
    features: Features = None,
    drop: Drop = None,
    id_column: Id = None,
    vector_field: VectorField = "vector",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write rows in coordinates where the plain distance (or cosine) is the learned one.

    Example: samewise transform wine.sw wine.csv --out embedded.csv
    """
    with one_sentence(debug, as_json, "interrupted; nothing was written"):
        check_ending(out)
        if out != "-":
            check_output(out)
        model = open_model(model_file)
        with working("reading") as show:
            table = read_table(
                data,
                label=label,
                known_label=model.label,
                features=listed(features),
                drop=listed(drop),
                id_column=id_column,
                vector_field=vector_field,
            )
            show(f"transforming {table.X.shape[0]:,} rows")
            Z = model.transform(table.X, table.names)
            names = [f"z{j}" for j in range(Z.shape[1])]
            write_table(
                out,
                Z,
                names,
                y=table.y,
                label=table.label,
                ids=table.ids,
                train=table.train,
            )
        if out != "-":
            content = {"out": out, "rows": Z.shape[0], "features": table.X.shape[1],
                       "coordinates": Z.shape[1]}  # fmt: skip
            if as_json:
                print_json(content)
            else:
                typer.echo(
                    f"{Z.shape[0]:,} rows of {Z.shape[1]:,} coordinates written to {out}.", err=True
                )
