"""samewise datasets: what is there, where it was looked for, and how to get it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from samewise.cli.console import Answer, say, show_table, working
from samewise.cli.exports import Safe, check_ending, check_output, write_table
from samewise.cli.options import Columns, command
from samewise.cli.tables import read_table
from samewise.datasets import KNOWN, available, fetch, load
from samewise.datasets.known import SHIPPED
from samewise.datasets.openml import FETCHED
from samewise.datasets.store import VARIABLE, directory, stored_names
from samewise.exceptions import InvalidInputError


@command()
def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="A data set to describe, or one of the words fetch and export."),
    ] = None,
    chosen: Annotated[
        str | None, typer.Argument(help="After fetch or export: the data set, or fetch all.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Argument(help="After export: the file, CSV, Parquet, NPZ or JSON lines; - is CSV."),
    ] = None,
    safe: Safe = True,
) -> Answer:
    """List the data sets that can be named in place of a file; describe, export or fetch one.

    Example: samewise datasets export wine wine.csv

    Example: samewise datasets fetch all
    """
    if name == "fetch":
        if chosen is None:
            raise InvalidInputError(f"Name the data set to fetch, or all: {', '.join(FETCHED)}.")
        _no_more(out)
        if chosen == "all":
            return _fetch_all()
        with working(f"fetching {chosen}"):
            fetch(chosen)
        return _one(chosen, None, safe)
    if name == "export":
        if chosen is None or out is None:
            raise InvalidInputError(
                "Name a data set and a file to export it to: samewise datasets export wine wine.csv"
                "."
            )
        return _one(chosen, out, safe)
    _no_more(chosen)
    return _list() if name is None else _one(name, None, safe)


def _no_more(word: str | None) -> None:
    if word is not None:
        raise InvalidInputError(
            f"{word!r} is one word too many. Say samewise datasets NAME, samewise datasets fetch "
            "NAME or samewise datasets export NAME FILE."
        )


def _fetch_all() -> Answer:
    """What is there is left alone, so that a run that was interrupted goes on."""
    wanted = sorted({*FETCHED} - {*stored_names()})
    for k, name in enumerate(wanted):
        with working(f"fetching {name}, {k + 1} of {len(wanted)}"):
            fetch(name)
    content = {"directory": str(directory()), "fetched": wanted}
    return Answer(
        content,
        lambda: say(
            f"{len(wanted)} data sets fetched into {directory()}; "
            f"{len(FETCHED) - len(wanted)} were there."
        ),
    )


def _list() -> Answer:
    where = directory()
    chosen = VARIABLE in os.environ and os.environ[VARIABLE] != ""
    names, here = available(), stored_names()
    rows = [_row(name, here) for name in sorted({*names, *KNOWN})]
    content = {
        "directory": str(where),
        "from_variable": chosen,
        "datasets": names,
        "known": {name: known._asdict() for name, known in KNOWN.items()},
    }
    return Answer(content, lambda: _show_list(rows, where, chosen))


def _row(name: str, here: list[str]) -> list[str]:
    place = "scikit-learn" if name in SHIPPED else "fetch" if name in FETCHED else "-"
    place = "here" if name in here else place
    if name not in KNOWN:
        return [name, place, "", "", "", "", ""]
    known = KNOWN[name]
    sizes = [f"{n:,}" if n else "-" for n in (known.rows, known.features, known.classes)]
    return [name, place, known.license, known.source, *sizes]


def _show_list(rows: list[list[str]], where: Path, chosen: bool) -> None:
    origin = f"from {VARIABLE}" if chosen else f"{VARIABLE} is not set"
    missing = "" if where.is_dir() else ", which is not a directory"
    say(f"Looked for in {where} ({origin}){missing}.")
    headers = ["name", "where", "license", "source", "rows", "features", "classes"]
    show_table(headers, rows, n_texts=4)
    say(
        "You can name those that are here, or come with scikit-learn, in place of a file: samewise "
        "fit wine. Download those marked fetch with samewise datasets fetch NAME, or all."
    )
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
