"""Files of columns as data frames: CSV and Parquet, and what is wrong with those that are none."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from samewise.exceptions import InvalidInputError


def text_of(read: Callable[[], str], source: str) -> str:
    """Text without a byte-order mark, which must be UTF-8."""
    try:
        # Some programs begin a file with a byte-order mark.
        return read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _not_utf8(source, error) from error


def read_csv(file: Any, source: str, sep: str | None, usual: str) -> pd.DataFrame:
    """The frame of CSV, with the names of columns as they are written.

    Parameters
    ----------
    file : path or StringIO
        What to read.
    source : str
        Its name, for messages.
    sep : str or None
        What separates the fields, if it was said.
    usual : str
        What separates them otherwise.
    """
    separator = _separator(sep or usual)

    def read(**more: Any) -> pd.DataFrame:
        if isinstance(file, io.StringIO):
            file.seek(0)
        return pd.read_csv(file, sep=separator, skipinitialspace=True, low_memory=False, **more)

    try:
        names = read(header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
        frame = _rows_as_long_as_names(read)
    except pd.errors.EmptyDataError as error:
        raise InvalidInputError(
            f"{source} is empty; a line with the names of the columns and a line for each row "
            "were expected."
        ) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(source, error) from error
    except (ValueError, OverflowError) as error:
        what = str(error).split("C error: ")[-1].strip().rstrip(".")
        raise InvalidInputError(
            f"{source} cannot be read as CSV: {what}. Each row needs as many fields as there are "
            "names of columns; text with a separator in it belongs in quotes."
        ) from error
    if sep is None and len(names) == 1:
        _refuse_other_separator(str(names.iloc[0]), source)
    # As they are written: pandas renames a column that has the name of another one.
    frame.columns = [name or given for name, given in zip(names, frame.columns, strict=True)]
    return frame


def _separator(given: str) -> str:
    separator = {"tab": "\t", "\\t": "\t"}.get(given, given)
    if len(separator) != 1 or separator in '"\r\n':
        raise InvalidInputError(f"--sep must be one character, or tab. Got {given!r}.")
    return separator


def _refuse_other_separator(header: str, source: str) -> None:
    for sign, named in ((";", "';'"), ("\t", "tab"), ("|", "'|'")):
        if sign in header:
            raise InvalidInputError(
                f"{source} has one column, whose name has {named} in it: if that is what separates "
                f"the fields, give --sep {named}."
            )


def _rows_as_long_as_names(read: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            # By default, fields without a name would shift all columns.
            return read(index_col=False)
        except pd.errors.ParserWarning:
            # The first row may be longer than the names, but none longer than the first line.
            read(header=None)
            raise


def read_parquet(path: Path, source: str) -> pd.DataFrame:
    """The frame of a Parquet file."""
    try:
        return pd.read_parquet(path)
    except MemoryError:
        raise
    except Exception as error:
        # Damaged bytes or metadata make pyarrow and pandas raise errors of a dozen kinds.
        what = f"{type(error).__name__}: {error}".rstrip(".")
        raise InvalidInputError(
            f"{source} cannot be read as Parquet ({what}). Write the file again."
        ) from error


def _not_utf8(source: str, error: UnicodeDecodeError) -> InvalidInputError:
    return InvalidInputError(
        f"{source} is not text in UTF-8 (byte {error.start}: {error.reason}); save it as UTF-8."
    )
