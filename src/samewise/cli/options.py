"""Options that several commands have, and what they mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.forms import Form
from samewise.loading import load
from samewise.model import Model

__all__ = [
    "Data",
    "Debug",
    "Drop",
    "Features",
    "Id",
    "Json",
    "Label",
    "ModelFile",
    "Seed",
    "VectorField",
    "check_neighbors",
    "listed",
    "open_model",
    "parsed_params",
    "read_saved",
]

Data = Annotated[
    str,
    typer.Argument(
        help="CSV, Parquet, NPZ or JSON lines; - for CSV or JSON lines from standard input; or "
        "the name of a data set.",
        metavar="DATA",
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(help="What samewise fit wrote, or a saved form or learner.", metavar="MODEL"),
]
Label = Annotated[str | None, typer.Option(help="Column or field with the labels.")]
Features = Annotated[
    str | None, typer.Option(help="Columns to use, separated by commas; all others by default.")
]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
VectorField = Annotated[str, typer.Option(help="For JSON lines: the field with the vector.")]
Seed = Annotated[int, typer.Option(help="For every draw: splits, pairs, learners.")]
Json = Annotated[bool, typer.Option("--json", help="Results and errors as JSON.")]
Debug = Annotated[bool, typer.Option(help="Show the traceback of an error.")]


def listed(names: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def parsed_params(text: str | None) -> dict[str, Any]:
    """Parameters as a JSON object, or as key=value separated by commas."""
    if not text:
        return {}
    if text.lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"--params is no JSON object: {error}") from error
        return found
    params = {}
    for part in listed(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidInputError(
                f"--params must be key=value, separated by commas, or a JSON object. Got {part!r}."
            )
        params[key.strip()] = _value(value.strip())
    return params


def _value(text: str) -> Any:
    try:
        return json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except ValueError:
        return text


_MODEL = "what samewise fit wrote, whole, or a saved form or learner"


def read_saved(path: Path, what: str = _MODEL) -> Any:
    """What samewise wrote to a file; of a file that cannot be read, what to give instead."""
    wanted = f"give {what}."
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; {wanted}")
    if path.is_file() and not path.stat().st_size:
        raise InvalidInputError(f"{path} is empty; {wanted}")
    try:
        return load(path)
    except FileFormatError as error:
        remedy = "" if "upgrade" in str(error) else f"; {wanted}"
        raise FileFormatError(f"{error}{remedy}") from error


def check_neighbors(k: int, n_rows: int) -> None:
    """That there are as many rows to find neighbors among as shall decide."""
    if k > n_rows:
        raise InvalidInputError(
            f"-k {k} asks for more neighbors than there are rows to find them among, {n_rows}; "
            "give a smaller one."
        )


def open_model(path: Path) -> Model:
    """A model, or a form or learner made into one without names and scaling."""
    found = read_saved(path)
    if isinstance(found, Model):
        return found
    if isinstance(found, Form):
        return Model(found)
    form = getattr(found, "metric_", None)
    if not isinstance(form, Form):
        raise InvalidInputError(
            f"{path} holds a {type(found).__name__}, which has no metric; give what samewise fit "
            "wrote, or a saved form or learner."
        )
    threshold = getattr(found, "closeness_threshold_", None)
    return Model(form, learner=type(found).__name__, threshold=threshold)
