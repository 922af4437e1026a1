"""samewise report: one HTML file about a model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from samewise.cli.console import Answer, percent, say, working
from samewise.cli.exports import check_output
from samewise.cli.judged_rows import Test, read_judged_rows
from samewise.cli.options import Columns, Data, ModelFile, Neighbors, Seed, command, open_model
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.loading import load
from samewise.model import Model
from samewise.report import Report, ReportOptions, write_report


@command("interrupted; nothing was written")
def report(
    model_file: ModelFile,
    data: Data,
    columns: Columns,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("report.html"),
    test: Test = None,
    image_shape: Annotated[
        str | None, typer.Option(help="Rows are images of this shape: 28x28, or 32x32x3 in color.")
    ] = None,
    neighbors: Neighbors = 3,
    seed: Seed = 0,
) -> Answer:
    """Write an HTML report about a model: what it gains, plots, and hard cases.

    The rows to evaluate are chosen as by samewise evaluate. The file needs no network.

    Example: samewise report wine.sw wine.csv --out report.html
    """
    check_output(out)
    shape = None if image_shape is None else _shape(image_shape)
    model = open_model(model_file)
    given = {"--out": out, "--test": test, "--image-shape": image_shape, "-k": neighbors}
    with working("reading") as show:
        judged = read_judged_rows(model, data, test, columns, neighbors, seed)
        show("measuring and drawing")
        options = ReportOptions(
            title=f"{model.learner or 'A metric'} on {Path(data).name}",
            about=[
                f"What {model_file.name} makes of {data}, judged by {judged.note}.",
                *([model.kept] if model.kept else []),
            ],
            shown=(judged.items.shown, judged.queries.shown),
            ids=(judged.items.ids, judged.queries.ids),
            feature_names=judged.names,
            image_shape=shape,
            n_neighbors=neighbors,
            parameters=model.params,
            command=_command(model_file, data, given | {"--seed": seed}, columns),
            random_state=seed,
        )
        learned = {f"{model.learner or 'learned'} (model)": _learned(model_file, model)}
        found = write_report(out, learned, *judged.parts, options)
    content = {
        "report": str(out),
        "items": len(judged.items.y),
        "queries": len(judged.queries.y),
        "judged_by": judged.note,
        "measured": [m.as_dict() for m in found.measured],
        "gains": [vars(g) for g in found.gains],
        "seconds": found.seconds,
    }
    return Answer(content, lambda: _show(out, found))


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+x\d+(x3)?", text):
        raise InvalidInputError(
            f"--image-shape must be HEIGHTxWIDTH, such as 28x28, or 32x32x3 in color. Got {text!r}."
        )
    return tuple(int(part) for part in text.split("x"))


def _learned(path: Path, model: Model) -> Any:
    """The learner, if the file holds one: it knows how it learned."""
    found = load(path)
    return found if isinstance(getattr(found, "metric_", None), Form) else model.form


def _command(model_file: Path, data: str, options: dict[str, Any], columns: Columns) -> str:
    named = {"id_column": "--id", "vector_field": "--vector-field"}
    chosen = {named.get(name, f"--{name}"): value for name, value in vars(columns).items()}
    given = [
        str(part) for item in (options | chosen).items() if item[1] is not None for part in item
    ]
    return shlex.join(["samewise", "report", str(model_file), data, *given])


def _show(out: Path, found: Report) -> None:
    for g in found.gains:
        say(f"Against {g.before}: {percent(g.errors[0])} → {percent(g.errors[1])}: {g.verdict}.")
    say(f"Written to {out}.")
