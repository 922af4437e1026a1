"""The commands together.

Exit codes: 0 done, 1 something that was given cannot be used, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer

from samewise.cli.compare import compare_learners
from samewise.cli.datasets import list_datasets
from samewise.cli.evaluate import evaluate_model
from samewise.cli.filter import filter_documents
from samewise.cli.fit import fit
from samewise.cli.inspect import inspect_model
from samewise.cli.report import report_command
from samewise.cli.search import search
from samewise.cli.transform import transform

__all__ = ["app"]

app = typer.Typer(
    name="samewise",
    help="Learn what 'similar' means, and use it.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _commands() -> None:
    """Learn what 'similar' means, and use it."""


def _help(command: Callable[..., None]) -> str:
    """What a command says of itself, each paragraph one line: terminals differ in width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


_COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit,
    "evaluate": evaluate_model,
    "compare": compare_learners,
    "search": search,
    "transform": transform,
    "inspect": inspect_model,
    "datasets": list_datasets,
    "filter": filter_documents,
    "report": report_command,
}
for _name, _command in _COMMANDS.items():
    app.command(_name, help=_help(_command))(_command)
