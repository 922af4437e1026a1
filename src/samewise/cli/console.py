"""What people see: tables, JSON, and signs of life while something takes long."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

_WIDE = 120
_LONG_NAME = 30


def _console() -> Console:
    # A pipe has no width of its own, and its reader no use for lines that are cut.
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def say(text: str = "") -> None:
    """A line, broken between words where a terminal ends."""
    _console().print(text, markup=False, highlight=False, soft_wrap=not sys.stdout.isatty())


def show_table(headers: list[str], rows: list[list[str]], title: str | None = None) -> None:
    """A table; all columns but the first are aligned to the right.

    Where a terminal is narrow, headers are broken and lines between columns left out; numbers are
    never cut.
    """
    if title is not None:
        say(title)
    console = _console()
    wide = Table()
    for k, header in enumerate(headers):
        wide.add_column(header, justify="right" if k else "left", no_wrap=k > 0)
    narrow = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for k, header in enumerate(headers):
        longest = max((cell_len(row[k]) for row in rows), default=0)
        words = max((cell_len(word) for word in header.split()), default=0)
        width = max(longest if k else min(longest, _LONG_NAME), words)
        narrow.add_column(header, justify="right" if k else "left", width=width)
    for row in rows:
        wide.add_row(*row)
        narrow.add_row(*row)
    if _width(console, wide) <= console.width:
        console.print(wide, markup=False)
    else:
        # What is wider still is broken by the terminal.
        Console(width=max(console.width, _width(console, narrow))).print(narrow, markup=False)


def _width(console: Console, table: Table) -> int:
    # Asked with room to spare: a measurement never exceeds the width it is asked for.
    return Measurement.get(console, console.options.update(width=10_000), table).maximum


def print_json(content: Any) -> None:
    """One line of JSON; what is not finite is null."""
    typer.echo(json.dumps(_plain(content), ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Answer(NamedTuple):
    """What a command found.

    Attributes
    ----------
    content : dict
        For --json.
    show : callable
        Prints it for people.
    then : exception or None
        Raised when it was printed.
    """

    content: dict[str, Any]
    show: Callable[[], None]
    then: BaseException | None = None

    def give(self, as_json: bool) -> None:
        """Print it, as JSON or for people."""
        if as_json:
            print_json(self.content)
        else:
            self.show()
        if self.then is not None:
            raise self.then


def percent(share: float) -> str:
    """A share in percent."""
    return "" if math.isnan(share) else f"{100 * share:.2f} %"


def number(value: float) -> str:
    """Four digits."""
    return "" if math.isnan(value) else f"{value:.4g}"


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A line that shows what is done and for how long, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=text)
