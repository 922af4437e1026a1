"""The command `samewise`: one file for each of its commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command."""
    try:
        from samewise.cli.app import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit("error: the command samewise needs pip install 'samewise[cli]'")
    except KeyboardInterrupt:
        # The libraries take a while to load.
        sys.exit(130)
    app(prog_name="samewise")
