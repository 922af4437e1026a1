"""samewise report: one HTML file about a model."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.cli.errors import one_sentence
from samewise.cli.evaluate import query_and_items
from samewise.cli.exports import check_output
from samewise.cli.options import (
    Data,
    Debug,
    Drop,
    Features,
    Id,
    Json,
    Label,
    ModelFile,
    Seed,
    VectorField,
    check_neighbors,
    listed,
    open_model,
)
from samewise.cli.shown import p_value, percent, print_json, say, verdict, working
from samewise.cli.tables import Table, check_classes, read_table
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.loading import load
from samewise.model import Model
from samewise.report import Report, write_report

__all__ = ["report_command"]


def report_command(
    model_file: ModelFile,
    data: Data,
    label: Label = None,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("report.html"),
    test: Annotated[
        str | None,
        typer.Option(help="Rows to judge by; DATA are then the rows they are compared with."),
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(help="Rows are images of this shape: 28x28, or 32x32x3 in color."),
    ] = None,
    neighbors: Annotated[int, typer.Option("-k", min=1, help="Neighbors that decide.")] = 3,
    seed: Seed = 0,
    features: Features = None,
    drop: Drop = None,
    id_column: Id = None,
    vector_field: VectorField = "vector",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write one HTML file about a model: what it gains, pictures, and hard cases.

    Rows to judge by are found as samewise evaluate finds them. The file needs no network.

    Example: samewise report wine.sw wine.csv --out report.html
    """
    with one_sentence(debug, as_json, "interrupted; nothing was written"):
        check_output(out)
        shape = None if image_shape is None else _shape(image_shape)
        model = open_model(model_file)

        def read(source: str) -> Table:
            return read_table(
                source,
                label=label,
                known_label=model.label,
                features=listed(features),
                drop=listed(drop),
                id_column=id_column,
                vector_field=vector_field,
            )

        options = {
            "--label": label,
            "--out": out,
            "--test": test,
            "--image-shape": image_shape,
            "-k": neighbors,
            "--seed": seed,
            "--features": features,
            "--drop": drop,
            "--id": id_column,
            "--vector-field": vector_field,
        }
        with working("reading") as show:
            table = read(data)
            y = check_classes(table)
            if test is None:
                queries, note = query_and_items(model, table, seed)
                stored = _part(model, table, y, np.flatnonzero(~queries))
                asked = _part(model, table, y, np.flatnonzero(queries))
            else:
                other = read(test)
                wanted = check_classes(other)
                stored = _part(model, table, y, np.arange(len(y)))
                asked = _part(model, other, wanted, np.arange(len(wanted)))
                note = f"the rows of {test}"
                seen = int(model.has_seen(other.X, other.names).sum())
                if seen:
                    note += f"; the model was learned from {seen} of them, which flatters it"
            check_neighbors(neighbors, len(stored.y))
            show("measuring and drawing")
            report = write_report(
                out,
                {f"{model.learner or 'learned'} (model)": _learned(model_file, model)},
                stored.X,
                stored.y,
                asked.X,
                asked.y,
                title=f"{model.learner or 'A metric'} on {Path(data).name}",
                about=[f"What {model_file.name} makes of {data}, judged by {note}."],
                shown=(stored.shown, asked.shown),
                ids=(stored.ids, asked.ids),
                feature_names=model.feature_names or table.names,
                image_shape=shape,
                n_neighbors=neighbors,
                parameters=model.params,
                command=_command(model_file, data, options),
                random_state=seed,
            )
        if as_json:
            print_json(_content(out, stored, asked, note, report))
        else:
            _show(out, report)


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+x\d+(x3)?", text):
        raise InvalidInputError(
            f"--image-shape must be HEIGHTxWIDTH, such as 28x28, or 32x32x3 in color. Got {text!r}."
        )
    return tuple(int(part) for part in text.split("x"))


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows as the model takes them and as they were, their labels and names."""

    X: Matrix
    shown: Matrix
    y: NDArray[Any]
    ids: list[str]


def _part(model: Model, table: Table, y: NDArray[Any], rows: NDArray[np.intp]) -> _Part:
    X, unscaled = table.X[rows], replace(model, mean=None, scale=None)
    before = "row " if table.ids is None else ""
    return _Part(
        model.prepare(X, table.names),
        unscaled.prepare(X, table.names),
        y[rows],
        [before + table.shown(int(row)) for row in rows],
    )


def _learned(path: Path, model: Model) -> Any:
    """The learner, if the file holds one: it knows how it learned."""
    found = load(path)
    return found if isinstance(getattr(found, "metric_", None), Form) else model.form


def _command(model_file: Path, data: str, options: dict[str, Any]) -> str:
    given = [str(part) for item in options.items() if item[1] is not None for part in item]
    return shlex.join(["samewise", "report", str(model_file), data, *given])


def _content(out: Path, stored: _Part, asked: _Part, note: str, report: Report) -> dict[str, Any]:
    per_example = ("correct", "average_precision")
    return {
        "report": str(out),
        "items": len(stored.y),
        "queries": len(asked.y),
        "judged_by": note,
        "measured": [
            {name: value for name, value in vars(m).items() if name not in per_example}
            for m in report.measured
        ],
        "gains": [vars(g) for g in report.gains],
        "seconds": report.seconds,
    }


def _show(out: Path, report: Report) -> None:
    for g in report.gains:
        say(
            f"Against {g.before}: {percent(g.errors[0])} → {percent(g.errors[1])}, {g.mark} "
            f"({p_value(g.p_value)}): {verdict(g.mark)}."
        )
    say(f"Written to {out}.")
