"""The commands together.

Exit codes: 0 done, 1 something that was given cannot be used, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import typer

from samewise.cli import filter as filter_command

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


app.command("filter")(filter_command.filter_documents)
