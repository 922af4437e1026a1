"""What people see: tables, JSON, and signs of life while something takes long."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_WIDE = 120
_LONG_NAME = 30
# Escape sequences of terminals, and marks that turn the direction of writing; half a character
# (a lone surrogate) cannot be printed at all.
_CONTROL = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Text without characters that control a terminal: they are written as escapes.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], text)


def plain_text(text: str) -> Text:
    """Text for rich, in which brackets and colons are nothing but themselves."""
    return Text(printable(text))


def _console() -> Console:
    # A pipe has no width of its own, and its reader no use for lines that are cut.
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def say(text: str = "") -> None:
    """A line, broken between words where a terminal ends."""
    _console().print(plain_text(text), soft_wrap=not sys.stdout.isatty())


def show_table(
    headers: list[str], rows: list[list[str]], title: str | None = None, n_texts: int = 1
) -> None:
    """A table; all columns but the first `n_texts` are aligned to the right.

    Where a terminal is narrow, headers are broken and lines between columns left out; numbers are
    never cut.
    """
    if title is not None:
        say(title)
    console = _console()
    names, lines = [*map(plain_text, headers)], [[*map(plain_text, row)] for row in rows]
    wide = Table()
    for k, name in enumerate(names):
        wide.add_column(name, justify="right" if k >= n_texts else "left", no_wrap=k > 0)
    narrow = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for k, name in enumerate(names):
        longest = max((line[k].cell_len for line in lines), default=0)
        words = max((cell_len(word) for word in name.plain.split()), default=0)
        width = max(longest if k else min(longest, _LONG_NAME), words)
        narrow.add_column(name, justify="right" if k >= n_texts else "left", width=width)
    for line in lines:
        wide.add_row(*line)
        narrow.add_row(*line)
    if _width(console, wide) <= console.width:
        console.print(wide)
    else:
        # What is wider still is broken by the terminal.
        Console(width=max(console.width, _width(console, narrow))).print(narrow)


def _width(console: Console, table: Table) -> int:
    # Asked with room to spare: a measurement never exceeds the width it is asked for.
    return Measurement.get(console, console.options.update(width=10_000), table).maximum


def print_json(content: Any) -> None:
    """One line of JSON; what is not finite is null."""
    typer.echo(json_line(_plain(content)))


def json_line(content: Any) -> str:
    r"""JSON in one line, exact, that a terminal shows as it stands.

    Examples
    --------
    >>> print(json_line("é \x9b"))
    "é \u009b"
    """
    text = json.dumps(content, ensure_ascii=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


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


AS_JSON: ContextVar[bool] = ContextVar("AS_JSON", default=False)
"""Whether the command that runs was given --json."""


def note(text: str, kind: str) -> None:
    """A line on standard error: an object with --json, otherwise text."""
    typer.echo(json_line({kind: text}) if AS_JSON.get() else printable(f"{kind}: {text}"), err=True)


@contextmanager
def working(what: str, in_pipe: bool = False) -> Iterator[Callable[[str], None]]:
    """A line that shows what is done and for how long, on a terminal.

    With `in_pipe`, each text is a line of its own where standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield (lambda text: note(text, "progress")) if in_pipe else (lambda text: None)
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(printable(what), total=None)
        yield lambda text: progress.update(task, description=printable(text))
