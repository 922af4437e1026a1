"""samewise backup: a copy of the folder of a service, which may be running."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from samewise.cli.console import Answer, say
from samewise.cli.options import command


@command()
def backup(
    folder: Annotated[
        Path, typer.Argument(help="The folder of samewise serve.", metavar="DATA_DIR")
    ],
    to: Annotated[Path, typer.Argument(help="A folder that does not exist yet.", metavar="TO")],
    events: Annotated[
        str | None,
        typer.Option(
            help="postgresql://… where logs are; the copy has them in its own files.",
            envvar="SAMEWISE_EVENTS",
        ),
    ] = None,
    check: Annotated[bool, typer.Option(help="Verify the copy; this replays its log.")] = True,
) -> Answer:
    """Copy the folder of a service, which may be running, and verify the copy.

    Example: samewise backup data backups/monday
    """
    from samewise.serve.backing_up import back_up

    counts = back_up(folder, to, check, events)

    def show() -> None:
        for name, each in counts.items():
            parts = ", ".join(f"{n} {what}" for what, n in each.items())
            say(f"{name}: {parts}: all right")
        say(f"copied to {to}")

    return Answer({"collections": counts, "to": str(to)}, show)
