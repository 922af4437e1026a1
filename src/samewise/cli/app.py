"""The commands together.

Exit codes: 0 done, 1 something that was given cannot be used, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import typer

from samewise.cli.compare import compare_learners
from samewise.cli.datasets import list_datasets
from samewise.cli.evaluate import evaluate_model
from samewise.cli.filter import filter_documents
from samewise.cli.fit import fit
from samewise.cli.inspect import inspect
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


app.command("fit")(fit)
app.command("evaluate")(evaluate_model)
app.command("compare")(compare_learners)
app.command("search")(search)
app.command("transform")(transform)
app.command("inspect")(inspect)
app.command("datasets")(list_datasets)
app.command("filter")(filter_documents)
app.command("report")(report_command)
