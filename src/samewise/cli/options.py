"""Options that several commands have, and what they mean."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from samewise.cli.console import Answer
from samewise.cli.errors import one_sentence
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.loading import load
from samewise.model import Model, as_model


class ScaleChoice(StrEnum):
    """Whether columns are standardized before learning."""

    auto = "auto"
    standard = "standard"
    none = "none"


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
    typer.Argument(
        help="File that samewise fit wrote, or a saved form or learner.", metavar="MODEL"
    ),
]
Neighbors = Annotated[int, typer.Option("-k", min=1, help="Number of neighbors.")]
Seed = Annotated[int, typer.Option(help="Random seed of splits, pairs and learners.")]
Scaled = Annotated[
    ScaleChoice,
    typer.Option(
        help="auto standardizes dense columns if their spreads differ more than tenfold, unless "
        "3-NN is clearly better without."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print results and errors as JSON.")]
Debug = Annotated[bool, typer.Option(help="Show the traceback of an error.")]


CollectionName = Annotated[
    str, typer.Argument(help="A collection of a running service.", metavar="COLLECTION")
]
Url = Annotated[str, typer.Option(help="Where samewise serve listens.", envvar="SAMEWISE_URL")]
ClientToken = Annotated[
    str | None,
    typer.Option(help="The token, where the service has tokens.", envvar="SAMEWISE_CLIENT_TOKEN"),
]
User = Annotated[str | None, typer.Option(help="Who asks or teaches, so that it can be forgotten.")]
HERE = "http://127.0.0.1:8350"


class ImputeChoice(StrEnum):
    """What stands for a missing value."""

    median = "median"
    mean = "mean"


@dataclass(frozen=True)
class Columns:
    """Which columns of DATA hold what."""

    label: Annotated[str | None, typer.Option(help="Column or field that holds the labels.")] = None
    features: Annotated[
        str | None, typer.Option(help="Columns to use, separated by commas; all others by default.")
    ] = None
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = (
        None
    )
    id_column: Annotated[str | None, typer.Option("--id", help="Column that names the rows.")] = (
        None
    )
    vector_field: Annotated[
        str, typer.Option(help="For JSON lines: the field with the vector.")
    ] = "vector"
    sep: Annotated[
        str | None,
        typer.Option(help="Separator of CSV fields: one character, or tab; a comma by default."),
    ] = None
    categorical: Annotated[
        str | None,
        typer.Option(
            help="Columns of categories, separated by commas: each value becomes a column of zeros "
            "and ones. A model remembers its categories."
        ),
    ] = None
    impute: Annotated[
        ImputeChoice | None,
        typer.Option(
            help="Fill in missing values with the median or mean of the training rows. A model "
            "remembers these values."
        ),
    ] = None


def command(
    interrupted: str = "interrupted",
) -> Callable[[Callable[..., Answer | None]], Callable[..., None]]:
    """Make a function a command, whose answer is printed and whose errors are one sentence.

    It gets the options --json and --debug, and the options of `Columns` in place of a parameter
    `columns`.

    Parameters
    ----------
    interrupted : str, default="interrupted"
        What to say after Ctrl-C.
    """

    def decorate(function: Callable[..., Answer | None]) -> Callable[..., None]:
        own = dict(signature(function, eval_str=True).parameters)
        shared = {} if own.pop("columns", None) is None else _parameters(Columns)

        @wraps(function)
        def run(debug: bool, as_json: bool, **given: Any) -> None:
            with one_sentence(debug, as_json, interrupted):
                if shared:
                    given["columns"] = Columns(**{name: given.pop(name) for name in shared})
                answer = function(**given)
                if answer is not None:
                    answer.give(as_json)

        as_json, debug = (
            Parameter(name, Parameter.KEYWORD_ONLY, default=False, annotation=kind)
            for name, kind in (("as_json", Json), ("debug", Debug))
        )
        parameters = {**own, "as_json": as_json, **shared, "debug": debug}
        # By name only: options without defaults may then follow others.
        run.__signature__ = Signature(  # type: ignore[attr-defined]
            [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters.values()]
        )
        run.__annotations__ = {name: p.annotation for name, p in parameters.items()}
        return run

    return decorate


def _parameters(options: type) -> dict[str, Parameter]:
    hints = get_type_hints(options, include_extras=True)
    found = signature(options).parameters
    return {name: p.replace(annotation=hints[name]) for name, p in found.items()}


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
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"--params is no JSON object: {error}.") from error
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
    except (ValueError, RecursionError):
        return text


def numbers_of(text: str) -> list[float]:
    """The numbers of --vector, separated by commas or as a JSON list."""
    try:
        if text.lstrip().startswith("["):
            numbers = [float(v) for v in json.loads(text)]
        else:
            numbers = [float(part) for part in text.replace(",", " ").split()]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(
            f"--vector must be numbers, separated by commas: {error}."
        ) from error
    if not numbers or not all(map(math.isfinite, numbers)):
        raise InvalidInputError(f"--vector must be finite numbers. Got {text!r}.")
    return numbers


_MODEL = "a file that samewise fit wrote, or a saved form or learner"


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
        if "upgrade" in str(error):
            raise
        raise FileFormatError(f"{str(error).rstrip('.')}; {wanted}") from error


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
    try:
        return as_model(found)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{path} holds a {type(found).__name__}, which has no metric; give {_MODEL}."
        ) from error
