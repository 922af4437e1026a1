"""Columns of a table as columns of numbers: numbers as they are, categories as zeros and ones."""

from __future__ import annotations

import re
import reprlib
import warnings
from collections.abc import Sequence
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from samewise.exceptions import InvalidInputError

MOST_CATEGORIES = 1000
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_TIME = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?"
    rf"|(\d{{1,2}}[ .-]*)?\b{_MONTH}\b[ .,-]*\d{{1,4}}.*"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[ap]m)?",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_WITH_SIGNS = re.compile(r"[-+(]?\s*[$€£¥]?\s*[-+]?\d[\d,. '’]*\s*[%$€£¥]?\)?")
_FEWEST_NUMBERED = 10


class Reader:
    """Makes numbers of the columns of one source.

    Parameters
    ----------
    source : str
        What is read, for messages.
    first : int
        The line of the file that the first row stands in; 0 if rows have no lines.
    gaps : bool, default=False
        Whether missing values stay NaN, to be filled in later.
    """

    def __init__(self, source: str, first: int, gaps: bool = False) -> None:
        self.source, self.first, self.gaps = source, first, gaps
        self.where = "line" if first else "row"

    def features(
        self, frame: Any, used: Sequence[str], categories: dict[str, list[str] | None]
    ) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """The matrix of columns, and their names; a category is named ``column=value``.

        Parameters
        ----------
        frame : DataFrame
            The table.
        used : sequence of str
            Columns of features.
        categories : dict of str to list of str or None
            Columns that hold categories, with those that are known; None for those that are there.
        """
        values, names = [], []
        for name in used:
            if name not in categories:
                values.append(self.numbers(frame[name], name)[:, None])
                names.append(name)
                continue
            text = self._texts(frame[name], name)
            known = categories[name]
            chosen = self._found(text, name) if known is None else known
            values.append((text[:, None] == np.array(chosen, dtype=object)).astype(np.float64))
            names += [f"{name}={value}" for value in chosen]
        return np.hstack(values), tuple(names)

    def numbers(self, column: Any, name: str) -> NDArray[np.float64]:
        """A column of finite numbers."""
        check_no_times(column, name, self.source)
        try:
            numbers = _floats(column)
        except OverflowError:
            # Whole numbers of hundreds of digits; read as text they are infinite.
            numbers = _floats(column.astype(str))
        text = np.isnan(numbers) & column.notna().to_numpy()
        if text.any():
            row = int(text.argmax())
            self._refuse_text(column, row, name, 1 - text.mean())
        bad = np.isinf(numbers) if self.gaps else ~np.isfinite(numbers)
        if bad.any():
            self._refuse_missing(bad, name, numbers)
        return numbers

    def _texts(self, column: Any, name: str) -> NDArray[Any]:
        """The categories of a column as text, None where one is missing."""
        check_no_times(column, name, self.source)
        missing = column.isna().to_numpy()
        if missing.any() and not self.gaps:
            self._refuse_missing(missing, name)
        values = column.tolist()
        found = np.full(len(values), None, dtype=object)
        for i in np.flatnonzero(~missing):
            value = values[i]
            # Whole numbers beside a missing one are read as fractions.
            whole = isinstance(value, float) and value.is_integer()
            found[i] = str(int(value) if whole else value)
        return found

    def _found(self, text: NDArray[Any], name: str) -> list[str]:
        found = sorted({value for value in text if value is not None})
        if not 0 < len(found) <= MOST_CATEGORIES:
            raise InvalidInputError(
                f"The column {name!r} of {self.source} has {len(found):,} different values; from 1 "
                f"to {MOST_CATEGORIES:,} can be categories. Leave it out with --drop {quote(name)}."
            )
        return found

    def _refuse_text(self, column: Any, row: int, name: str, share_of_numbers: float) -> None:
        value = str(column.iloc[row])
        text = value.strip()
        remedy = (
            f"If it holds categories, name it with --categorical {quote(name)}. Leave it out with "
            f"--drop {quote(name)}, name it with --label if it holds the labels, or choose columns "
            "with --features."
        )
        if _TIME.fullmatch(text):
            remedy = (
                "These look like dates or times: make numbers of them, such as the days since the "
                f"first or the month, or leave the column out with --drop {quote(name)}."
            )
        elif _DECIMAL_COMMA.fullmatch(text):
            remedy = "Write decimal points, not commas."
        elif _WITH_SIGNS.fullmatch(text):
            remedy = (
                "Write plain numbers, such as 1234.5: without signs of units and without commas "
                "between thousands."
            )
        elif share_of_numbers > 0.5:
            remedy = (
                "Most of its values are numbers: if this one stands for a missing value, leave the "
                "field empty and add --impute median; otherwise correct it, or leave the column "
                f"out with --drop {quote(name)}."
            )
        raise InvalidInputError(
            f"The column {name!r} of {self.source} holds text, where numbers are needed: "
            f"{reprlib.repr(value)} in {self.where} {row + self.first}. {remedy}"
        )

    def _refuse_missing(
        self, bad: NDArray[np.bool_], name: str, numbers: NDArray[np.float64] | None = None
    ) -> None:
        row = int(bad.argmax())
        infinite = numbers is not None and np.isinf(numbers[row])
        raise InvalidInputError(
            f"The column {name!r} of {self.source} has {int(bad.sum())} missing or infinite "
            f"values, the first ({'infinite' if infinite else 'missing'}) in {self.where} "
            f"{row + self.first}. Fill them in{'' if infinite else ' (--impute median)'}, remove "
            f"those rows, or leave the column out with --drop {quote(name)}."
        )


def is_number(text: str) -> bool:
    """Whether a name of a column reads as a number.

    Examples
    --------
    >>> is_number("5.1"), is_number("width")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def warn_of_row_numbers(X: NDArray[np.float64], names: Sequence[str], source: str) -> None:
    """Warn of columns that count the rows, as indexes of data frames do: they are no features."""
    if len(X) < _FEWEST_NUMBERED:
        return
    for name, column in zip(names, X.T, strict=True):
        if np.array_equal(np.diff(column), np.ones(len(X) - 1)):
            warnings.warn(
                f"The column {name!r} of {source} counts the rows, from {column[0]:g} to "
                f"{column[-1]:g}, and is taken for a feature. If it only numbers them, leave it "
                f"out with --drop {quote(name)}, or use it to name them with --id {quote(name)}.",
                stacklevel=2,
            )


def check_no_times(column: Any, name: str, source: str) -> None:
    """Refuse times, which pandas would count in microseconds."""
    dtype = getattr(column.dtype, "categories", column).dtype
    if dtype.kind in "Mm" or isinstance(dtype, pd.PeriodDtype):
        raise InvalidInputError(
            f"The column {name!r} of {source} holds times ({dtype}), which are neither numbers nor "
            "classes. Make numbers of them, such as the days since the first or the month, or "
            f"leave the column out with --drop {quote(name)}."
        )


def _floats(column: Any) -> NDArray[np.float64]:
    return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def known_categories(
    wanted: Sequence[str], names: Sequence[str], known: Sequence[str] | None
) -> dict[str, list[str] | None]:
    """The columns that hold categories: those that are named, and those of a model.

    Examples
    --------
    >>> known_categories(["color"], ["color", "size"], None)
    {'color': None}
    >>> known_categories([], ["color", "size"], ["color=blue", "color=red", "size"])
    {'color': ['blue', 'red']}
    """
    found: dict[str, list[str] | None] = dict.fromkeys(wanted)
    for name in names:
        if known is not None and name not in known:
            values = [k.removeprefix(f"{name}=") for k in known if k.startswith(f"{name}=")]
            if values:
                found[name] = values
    return found


def fill_values(
    X: NDArray[np.float64], names: Sequence[str], how: str, source: str
) -> NDArray[np.float64]:
    """What stands for a missing value of each column: the median or mean of those that are there.

    Examples
    --------
    >>> X = np.array([[1.0, np.nan], [2.0, 4.0], [6.0, 8.0]])
    >>> fill_values(X, ["a", "b"], "median", "t.csv"), fill_values(X, ["a", "b"], "mean", "t.csv")
    (array([2., 6.]), array([3., 6.]))
    """
    empty = np.isnan(X).all(axis=0)
    if empty.any():
        name = names[int(empty.argmax())]
        raise InvalidInputError(
            f"The column {name!r} of {source} has no values in the rows to learn from, so there is "
            f"nothing to fill in. Leave it out with --drop {quote(name)}."
        )
    return np.nanmedian(X, axis=0) if how == "median" else np.nanmean(X, axis=0)
