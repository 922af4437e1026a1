"""samewise warm-up: compile everything in advance."""

from __future__ import annotations

from samewise.cli.console import Answer, say, working
from samewise.cli.options import command
from samewise.kernels.compile_clock import CLOCK


@command()
def warm_up() -> Answer:
    """Compile everything in advance, once, so that no command or service does it later.

    The compiled code is kept in the user's cache directory, or below NUMBA_CACHE_DIR.

    Example: samewise warm-up
    """
    from samewise.kernels.compiling import code_directory
    from samewise.protocols.compiling_ahead import warm_up as compile_all

    CLOCK.announce = lambda: say("Compiling, once: about a minute.")
    with working("compiling") as show:
        seconds = compile_all(lambda what: show(f"compiling: {what}"))
    found = {"seconds": seconds, "directory": str(code_directory())}
    return Answer(found, lambda: _show(seconds, found["directory"]))


def _show(seconds: float, directory: object) -> None:
    done = f"Compiled in {seconds:.0f} s" if seconds else "All is compiled already"
    say(f"{done}; it is kept in {directory}.")
