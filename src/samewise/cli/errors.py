"""One sentence for each error, with the remedy; the traceback only when asked for."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from samewise.exceptions import SamewiseError


@contextmanager
def one_sentence(
    debug: bool,
    as_json: bool = False,
    interrupted: str = "interrupted; with --state, the same command goes on from here",
) -> Iterator[None]:
    """Turn what is wrong with the input into a sentence on standard error and the exit code 1."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = _warning(as_json)
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
        _say(interrupted, as_json)
        raise typer.Exit(130) from None
    # A parameter out of its range is a ValueError of scikit-learn's; so are the package's own.
    except (SamewiseError, OSError, ImportError, ValueError, MemoryError) as error:
        if debug:
            raise
        _say(_sentence(error), as_json)
        raise typer.Exit(1) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"there is no file {error.filename}; check the path"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) and not isinstance(error, SamewiseError):
        return f"there is not enough memory ({text or 'it is full'}); give fewer rows or columns"
    return text or type(error).__name__


def _say(sentence: str, as_json: bool, kind: str = "error") -> None:
    text = json.dumps({kind: sentence}, ensure_ascii=False) if as_json else f"{kind}: {sentence}"
    typer.echo(text, err=True)


def _warning(as_json: bool) -> Callable[..., None]:
    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        _say(" ".join(str(message).split()), as_json, "warning")

    return show
