"""samewise serve: search over HTTP that learns from its users."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from samewise.cli.console import Answer, say
from samewise.cli.options import command
from samewise.exceptions import InvalidInputError


@command(interrupted="ended")
def serve(
    folder: Annotated[Path, typer.Argument(help="Where everything is kept.", metavar="DATA_DIR")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8350,
    token: Annotated[
        list[str] | None,
        typer.Option(
            help="SCOPE:TOKEN with the scope read, feedback or admin; several may be given.",
            envvar="SAMEWISE_TOKEN",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="MODULE:FUNCTION that makes vectors of a list of texts."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            help="postgresql://… for the log of collections that are made from now on.",
            envvar="SAMEWISE_EVENTS",
        ),
    ] = None,
    snapshot_every: Annotated[
        int, typer.Option(min=1, help="Events between two snapshots of a model.")
    ] = 5000,
    workers: Annotated[
        int,
        typer.Option(
            min=0, max=64, help="Processes that answer searches beside the one that writes."
        ),
    ] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Answer searches, but let nobody change anything.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Verify DATA_DIR and end.")] = False,
) -> Answer | None:
    """Serve search that learns from its users, over HTTP; nothing acknowledged is lost.

    Example: samewise serve data
    """
    if check:
        return _checked(folder, events)
    try:
        import uvicorn

        from samewise.serve.http_app import make_app
        from samewise.serve.http_guarding import Tokens, is_loopback
    except ModuleNotFoundError as error:
        needed = "samewise serve needs pip install 'samewise[serve]'."
        raise ImportError(needed) from error
    from samewise.serve.reader_process import serve_with_readers
    from samewise.serve.service import Service
    from samewise.serve.text_function import text_function
    from samewise.serve.warming import compile_loops

    tokens = Tokens(token or (), read_only)
    if not tokens and not is_loopback(host):
        raise InvalidInputError(
            f"{host} can be reached by others: give --token, or listen on 127.0.0.1."
        )
    if workers and os.name != "posix":
        raise InvalidInputError("--workers needs a POSIX system; leave it out here.")
    encode = None if encoder is None else text_function(encoder)
    compile_loops()
    service = Service(folder, encode, snapshot_every, events)
    say(f"samewise serves {folder} at http://{host}:{port}")
    sys.stdout.flush()
    if workers:
        serve_with_readers(service, (host, port), list(token or ()), read_only, encoder, workers)
        return None
    uvicorn.run(
        make_app(service, tokens),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,
    )
    return None


def _checked(folder: Path, events: str | None) -> Answer:
    from samewise.serve.checking import check_folder

    counts, problems = check_folder(folder, events)
    if problems:
        raise InvalidInputError(" ".join(problems))

    def show() -> None:
        for name, each in counts.items():
            parts = ", ".join(f"{n} {what}" for what, n in each.items())
            say(f"{name}: {parts}: all right")
        if not counts:
            say(f"{folder} has no collections")

    return Answer({"collections": counts}, show)
