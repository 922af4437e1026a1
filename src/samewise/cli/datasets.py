"""samewise datasets: what is there, where it was looked for, and how to get it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from samewise.cli.console import Answer, say, working
from samewise.cli.exports import Safe, check_ending, check_output, write_table
from samewise.cli.options import Columns, command
from samewise.cli.tables import read_table
from samewise.datasets import available, fetch, load
from samewise.datasets.store import OPENML, VARIABLE, directory
from samewise.exceptions import InvalidInputError


@command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="A data set to describe or export; or the word fetch.")
    ] = None,
    fetched: Annotated[
        str | None, typer.Argument(help="After fetch: the data set to get from OpenML.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="Export it: CSV, Parquet, NPZ or JSON lines.")
    ] = None,
    safe: Safe = True,
) -> Answer:
    """List the data sets that can be named as DATA; describe, export or fetch one.

    Example: samewise datasets wine --out wine.csv

    Example: samewise datasets fetch wine
    """
    if name == "fetch":
        if fetched is None:
            raise InvalidInputError(f"Name the data set to fetch: {', '.join(OPENML)}.")
        with working(f"fetching {fetched} from OpenML"):
            fetch(fetched)
        name = fetched
    elif fetched is not None:
        raise InvalidInputError(f"One data set at a time: {name} or {fetched}.")
    if name is not None:
        return _one(name, out, safe)
    if out is not None:
        raise InvalidInputError("--out needs the name of a data set to export.")
    return _list()


def _list() -> Answer:
    names, where = available(), directory()
    chosen = VARIABLE in os.environ and os.environ[VARIABLE] != ""
    content = {"directory": str(where), "from_variable": chosen, "datasets": names}
    return Answer(content, lambda: _show_list(names, where, chosen))


def _show_list(names: list[str], where: Path, chosen: bool) -> None:
    origin = f"from {VARIABLE}" if chosen else f"{VARIABLE} is not set"
    say(f"Looked for in {where} ({origin}).")
    if names:
        say("\n".join(f"  {name}" for name in names))
        say("Any of them can stand for DATA: samewise fit wine")
    else:
        say("There are none." if where.is_dir() else "That is not a directory.")
    say(f"Can be fetched from OpenML: {', '.join(OPENML)}.")
    say(
        f"To add another, put NAME.npz there (X, y, classes; train for a standard split), or point "
        f"{VARIABLE} at a directory that has some; help(samewise.datasets.load) describes files."
    )


def _one(name: str, out: str | None, safe: bool) -> Answer:
    if out is not None:
        check_ending(out)
        if out != "-":
            check_output(out)
    if name not in available():
        # Asked of the store, which says where it looked.
        load(name)
    table = read_table(name, Columns())
    assert table.y is not None
    content = {
        "name": name,
        "rows": table.X.shape[0],
        "features": table.X.shape[1],
        "classes": len(np.unique(table.y)),
        "train": None if table.train is None else int(table.train.sum()),
        "out": out,
    }
    if out is not None:
        write_table(
            out,
            table.X,
            table.names,
            y=table.y,
            label=table.label,
            train=table.train,
            safe=safe,
        )

    def show() -> None:
        if out == "-":
            return
        split = "" if table.train is None else f"; {content['train']:,} rows are its training part"
        say(
            f"{name}: {content['rows']:,} rows, {content['features']:,} features, "
            f"{content['classes']:,} classes{split}."
        )
        if out is not None:
            say(f"Written to {out}; the labels are the column {table.label!r}.")

    return Answer(content, show)
