"""The commands together.

Exit codes: 0 done, 1 something that was given cannot be used, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import gc
import inspect
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from samewise.cli.deferring import defer

_COMMANDS = {
    "fit": "Learn a metric from labeled rows.",
    "evaluate": "Compare a model with the Euclidean distance and the cosine, on rows it was not "
    "trained on.",
    "compare": "Compare learners by k-NN error on held-out rows, with significance, time and "
    "memory.",
    "search": "Show the nearest rows of DATA to one row or vector, before and after learning.",
    "transform": "Write rows in coordinates where the plain distance (or cosine) is the learned "
    "one.",
    "inspect": "Show the contents of a model: weights, spectrum, threshold, and how it was "
    "trained.",
    "datasets": "List the data sets that can be named in place of a file; describe, export or "
    "fetch one.",
    "filter": "Route documents to the topics they are relevant to, one JSON line for each "
    "decision.",
    "adapt": "Replay a log of feedback through a live adapter, and report what it would have "
    "gained.",
    "serve": "Serve search that learns from its users, over HTTP; nothing acknowledged is lost.",
    "ask": "Search a collection of a running service; samewise teach sends feedback on the answer.",
    "teach": "Send feedback on an answer of a running service; it is on its disk when this "
    "returns.",
    "backup": "Copy the folder of a service, which may be running, and verify the copy.",
    "learners": "List the learners: what they learn from, and what they give.",
    "warm-up": "Compile everything in advance, once, so that no command or service does it later.",
    "report": "Write an HTML report about a model: what it gains, plots, and hard cases.",
}
"""What each command does: a function of that name, in a module of that name; - is written _."""


class _Commands(TyperGroup):
    """Loads a command when it is called: to list them takes no library."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = {name: TyperCommand(name, help=what) for name, what in _COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command itself."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else _loaded(str(name)), rest


def _loaded(name: str) -> Any:
    module = name.replace("-", "_")
    # What is imported stays: there is nothing to collect.
    gc.disable()
    defer("scipy.stats")
    try:
        command = getattr(import_module(f"samewise.cli.{module}"), module)
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "pandas", "pyarrow"):
            raise
        sys.exit("error: the command samewise needs pip install 'samewise[cli]'")
    except KeyboardInterrupt:
        # The libraries take a while to load.
        raise typer.Exit(130) from None
    finally:
        gc.freeze()
        gc.enable()
    # Each paragraph one line: terminals differ in width.
    paragraphs = inspect.cleandoc(command.__doc__).split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, help=text)(command)
    return typer.main.get_command(alone)


app = typer.Typer(
    name="samewise",
    cls=_Commands,
    help="Learn what 'similar' means, and use it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from samewise import __version__

        typer.echo(f"samewise {__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Learn what 'similar' means, and use it."""
