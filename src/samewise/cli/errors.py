"""One sentence for each error, with the remedy; the traceback only when asked for."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from samewise.cli.console import AS_JSON, note
from samewise.exceptions import SamewiseError
from samewise.kernels.compile_clock import CLOCK

_LONGEST = 2000
_COMPILING = "compiling, once; samewise warm-up compiles everything in advance"


@contextmanager
def one_sentence(
    debug: bool,
    as_json: bool = False,
    interrupted: str = "interrupted; with --state, the same command goes on from here",
) -> Iterator[None]:
    """Turn what is wrong with the input into a sentence on standard error and the exit code 1."""
    AS_JSON.set(as_json)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # scikit-learn's, whenever it looks at labels; many small classes are usual here.
            warnings.filterwarnings(
                "ignore", "The number of unique classes is greater", UserWarning
            )
            warnings.showwarning = _once()
            CLOCK.announce = lambda: note(_COMPILING, "note")
            yield
            # What is still in the buffer is written here, where a closed pipe is no accident.
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has enough; Python would complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        if debug:
            raise
        note(interrupted, "error")
        raise typer.Exit(130) from None
    # A parameter out of its range is a ValueError of scikit-learn's; so are the package's own.
    except (SamewiseError, OSError, ImportError, ValueError, MemoryError) as error:
        if debug:
            raise
        note(_sentence(error), "error")
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        # Nobody thought of it: what it says may mean little, so that its kind is named.
        if debug:
            raise
        kind = f"an unexpected {type(error).__name__} ({_text(error) or 'without a message'})"
        note(f"{kind}; run again with --debug for the traceback", "error")
        raise typer.Exit(1) from None


def _text(error: object) -> str:
    """What it says in one line; of a text without end, beginning and end."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


def _sentence(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no file {error.filename}; check the path"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text = _text(error)
    if isinstance(error, MemoryError) and not isinstance(error, SamewiseError):
        return f"there is not enough memory ({text or 'it is full'}); give fewer rows or columns"
    return text or type(error).__name__


def _once() -> Callable[..., None]:
    """Shows a warning, unless the same was shown before."""
    shown: set[str] = set()

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        text = _text(message)
        if text not in shown:
            shown.add(text)
            note(text, "warning")

    return show
