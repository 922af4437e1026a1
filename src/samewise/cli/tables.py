"""Rows from whatever DATA names: CSV, Parquet, NPZ, JSON lines, standard input, a data set."""

from __future__ import annotations

import difflib
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise import datasets
from samewise._typing import Matrix
from samewise.cli.feature_columns import (
    Reader,
    check_no_times,
    fill_values,
    is_number,
    known_categories,
    warn_of_row_numbers,
)
from samewise.cli.frames import read_csv, read_parquet, text_of
from samewise.cli.options import Columns, listed
from samewise.datasets.openml import FETCHED
from samewise.exceptions import InvalidInputError
from samewise.files.container import unique_names
from samewise.files.npz_archive import CSR_PARTS, csr_rows, read_npz
from samewise.model import Model

_READ = (".csv", ".tsv", ".parquet", ".npz", ".jsonl", ".ndjson")
# Labels stand in arrays that have room for the longest one in every row.
_LONGEST_LABEL = 1000


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, and what is known of them.

    Attributes
    ----------
    source : str
        Where they come from, for messages.
    X : array or CSR matrix of shape (n, d)
    names : tuple of str, or None
        Of the columns.
    y : array of shape (n,), or None
        Labels.
    label : str or None
        Name of the column they come from.
    ids : array of str of shape (n,), or None
    train : array of booleans of shape (n,), or None
        The standard split, where there is one.
    """

    source: str
    X: Matrix
    names: tuple[str, ...] | None = None
    y: NDArray[Any] | None = None
    label: str | None = None
    ids: NDArray[Any] | None = None
    train: NDArray[np.bool_] | None = None

    def shown(self, row: int) -> str:
        """How to name a row."""
        return str(row) if self.ids is None else str(self.ids[row])


def read_table(
    source: str,
    columns: Columns,
    known_label: str | None = None,
    model: Model | None = None,
    labeled: bool = False,
) -> Table:
    """Read DATA.

    Parameters
    ----------
    source : str
        A file by its ending, "-" for CSV or JSON lines from standard input, or the name of a data
        set of `samewise.datasets`.
    columns : Columns
        Which columns hold what.
    known_label : str, default=None
        The label that a model was learned with: used if it is there and no other is named.
    model : Model, default=None
        What the rows are for: it knows categories, and may fill in missing values.
    labeled : bool, default=False
        Whether labels are needed: a table in which none are named is refused for that first.

    Returns
    -------
    Table
        The rows.
    """
    name = "standard input" if source == "-" else source
    wanted = _Wanted(name, columns, known_label, model, labeled)
    path = Path(source)
    if source == "-":
        return _from_stdin(wanted)
    # A folder that happens to have the name of a data set holds no rows.
    if not path.exists() or (path.is_dir() and source in datasets.available()):
        return _from_dataset(wanted)
    if path.is_dir():
        raise InvalidInputError(f"{source} is a folder; name a file with rows in it.")
    kind = path.suffix.lower()
    if kind == ".npz":
        return _from_npz(path, wanted)
    if kind in (".jsonl", ".ndjson"):
        return _from_lines(text_of(lambda: path.read_text(encoding="utf-8"), source), wanted)
    if kind == ".parquet":
        return _from_frame(read_parquet(path, source), wanted, 0)
    if kind in (".csv", ".tsv"):
        usual = "\t" if kind == ".tsv" else ","
        return _from_frame(read_csv(path, source, columns.sep, usual), wanted, 2)
    raise InvalidInputError(
        f"{source} has none of the endings {', '.join(_READ)}, which say how to read it. Save a "
        "spreadsheet as CSV; rename what is CSV already, or pass it as - (standard input)."
    )


@dataclass(frozen=True)
class _Wanted:
    """What to take from a source."""

    source: str
    columns: Columns
    known_label: str | None = None
    model: Model | None = None
    labeled: bool = False

    @property
    def gaps(self) -> bool:
        """Whether missing values are filled in later."""
        if self.model is not None:
            return self.model.fill is not None
        return self.columns.impute is not None

    def categories_among(self, used: Sequence[str]) -> dict[str, list[str] | None]:
        """Columns of features that hold categories."""
        wanted = listed(self.columns.categorical)
        self.check(wanted, used)
        known = None if self.model is None else self.model.feature_names
        return known_categories(wanted, used, known)

    def refuse_options_of_columns(self) -> None:
        """Refuse options that only make sense for columns of CSV or Parquet."""
        for name in ("categorical", "impute", "sep"):
            if getattr(self.columns, name) is not None:
                what = "CSV" if name == "sep" else "columns of CSV or Parquet"
                raise InvalidInputError(
                    f"--{name} is for {what}, which {self.source} does not have."
                )

    def label_among(self, names: Sequence[str]) -> str | None:
        if self.columns.label is not None:
            self.check([self.columns.label], names)
            return self.columns.label
        return self.known_label if self.known_label in names else None

    def features_among(self, names: Sequence[str], *others: str | None) -> list[str]:
        """Columns of features, without those for another use."""
        features, drop = listed(self.columns.features), listed(self.columns.drop)
        self.check([*features, *drop], names)
        unused = {*others, *drop}
        used = [name for name in dict.fromkeys(features or names) if name not in unused]
        if not used:
            raise InvalidInputError(f"{self.source} has no columns of features besides the label.")
        count = Counter(names)
        for name in (*used, *others):
            if name is not None and count[name] > 1:
                raise InvalidInputError(
                    f"{self.source} has two columns named {name!r}; rename one."
                )
        return used

    def ids_among(self, names: Sequence[str]) -> str | None:
        """The column that names the rows."""
        if self.columns.id_column is not None:
            self.check([self.columns.id_column], names)
        return self.columns.id_column

    def check(self, wanted: Sequence[str], names: Sequence[str]) -> None:
        for name in wanted:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {_some(names)}."
                if sum(map(is_number, names)) > len(names) / 2:
                    hint += (
                        " If these are values, the line with the names of the columns is missing."
                    )
                raise InvalidInputError(f"{self.source} has no column {name!r}{hint}")


def _from_stdin(wanted: _Wanted) -> Table:
    text = text_of(sys.stdin.read, wanted.source)
    if not text.strip():
        raise InvalidInputError("Standard input is empty; CSV or JSON lines were expected.")
    if text.lstrip().startswith("{"):
        return _from_lines(text, wanted)
    frame = read_csv(io.StringIO(text), wanted.source, wanted.columns.sep, ",")
    return _from_frame(frame, wanted, 2)


def _from_frame(frame: pd.DataFrame, wanted: _Wanted, first: int) -> Table:
    """Columns of numbers; `first` is the line of the file that the first row stands in."""
    if frame.empty:
        raise InvalidInputError(f"{wanted.source} has no rows below the names of its columns.")
    frame.columns = [str(name) for name in frame.columns]
    names = list(frame.columns)
    label, id_column = wanted.label_among(names), wanted.ids_among(names)
    used: Sequence[str] = wanted.features_among(names, label, id_column)
    if label is None and wanted.labeled:
        raise _no_label(wanted.source, names)
    reader = Reader(wanted.source, first, wanted.gaps)
    X, used = reader.features(frame, used, wanted.categories_among(used))
    if wanted.model is None and wanted.labeled:
        warn_of_row_numbers(X, used, wanted.source)
    y = ids = None
    if label is not None:
        check_no_times(frame[label], label, wanted.source)
        y = _labels(frame[label].to_numpy(), label, wanted.source, reader.where, first)
    if id_column is not None:
        ids = _as_text(frame[id_column].astype(str))
    return Table(wanted.source, X, used, y, label, ids)


def _as_text(values: Any) -> NDArray[Any]:
    # As objects: an array of text has room for the longest one in every row.
    return np.array([str(value) for value in values], dtype=object)


def _labels(
    values: NDArray[Any], label: str, source: str, where: str = "row", first: int = 0
) -> NDArray[Any]:
    def refuse(what: str, remedy: str = "Name another column with --label.") -> NoReturn:
        raise InvalidInputError(f"The label column {label!r} of {source} {what}. {remedy}")

    kind = values.dtype.kind
    if values.ndim != 1 or kind in "cmMV":
        refuse(f"holds {values.dtype} of shape {values.shape}, which cannot be classes")
    missing = pd.isna(values)
    if missing.any():
        at = f"first in {where} {int(missing.argmax()) + first}"
        refuse(f"is empty in {int(missing.sum())} rows, {at}", "Remove them or fill them in.")
    if kind == "f":
        if np.any(values != np.round(values)):
            refuse("holds fractions, which cannot be classes")
        largest = np.abs(values).max(initial=0)
        # From 2⁵³ on, different whole numbers are the same float.
        if largest >= 2**53:
            refuse(
                f"holds numbers as large as {largest:g}, too large to be distinguished",
                "Write them as whole numbers or as text, or name another column with --label.",
            )
        return values.astype(np.int64)
    if kind in "iub":
        return values
    if kind == "O" and any(isinstance(v, list | dict | np.ndarray) for v in values):
        refuse("holds lists, which cannot be classes")
    text = [str(v) for v in values]
    lengths = [*map(len, text)]
    longest = max(lengths, default=0)
    if longest > _LONGEST_LABEL:
        at = f"{where} {lengths.index(longest) + first}"
        refuse(f"holds a text of {longest:,} characters in {at}; {_LONGEST_LABEL:,} are the most")
    # Half a character cannot be written, and an array of text drops NUL at the end.
    if re.search("[\\0\ud800-\udfff]", "".join(set(text))):
        refuse("holds text that is no valid Unicode, or has NUL in it")
    return np.array(text)


def _from_lines(text: str, wanted: _Wanted) -> Table:
    wanted.refuse_options_of_columns()
    vector_field = wanted.columns.vector_field
    entries, at = [], []
    # Only \n ends a line: a text in JSON may hold other separators, such as U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line, object_pairs_hook=unique_names)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(
                f"{wanted.source}, line {number}: no JSON ({error})."
            ) from error
        if not isinstance(entry, dict):
            raise InvalidInputError(f"{wanted.source}, line {number}: no JSON object.")
        entries.append(entry)
        at.append(number)
    if not entries:
        raise InvalidInputError(f"{wanted.source} has no rows.")
    if vector_field not in entries[0]:
        fields = ", ".join(map(repr, entries[0]))
        raise InvalidInputError(
            f"{wanted.source} has no field {vector_field!r}, only {fields}. Name the one that "
            "holds the vectors with --vector-field."
        )
    X = _vectors([entry.get(vector_field) for entry in entries], at, wanted.source, vector_field)
    fields_of_first = list(entries[0])
    label = wanted.label_among(fields_of_first)
    y = ids = None
    if label is not None:
        found = [entry.get(label) for entry in entries]
        # Text as it is: an array of pandas for text does not take half a character.
        dtype = object if any(isinstance(value, str) for value in found) else None
        y = _labels(pd.Series(found, dtype=dtype).to_numpy(), label, wanted.source)
    id_field = wanted.ids_among(fields_of_first) or ("id" if "id" in entries[0] else None)
    if id_field is not None:
        ids = _as_text(entry.get(id_field) for entry in entries)
    return Table(wanted.source, X, None, y, label, ids)


def _vectors(vectors: list[Any], at: list[int], source: str, field: str) -> NDArray[np.float64]:
    length = len(vectors[0]) if isinstance(vectors[0], list) else 0
    for vector, line in zip(vectors, at, strict=True):
        if not isinstance(vector, list) or len(vector) != length or not length:
            got = f"{len(vector)} numbers" if isinstance(vector, list) else repr(vector)[:40]
            raise InvalidInputError(
                f"{source}, line {line}: {field!r} must be a list of {length or 'some'} numbers, "
                f"as in line {at[0]}. Got {got}."
            )
    try:
        X = np.array(vectors, dtype=np.float64)
        sound = np.isfinite(X).all(axis=1) if X.ndim == 2 else np.zeros(len(X), dtype=bool)
    except (TypeError, ValueError, OverflowError):
        sound = np.array([all(map(_is_finite, vector)) for vector in vectors])
    if not sound.all():
        line = at[int(sound.argmin())]
        raise InvalidInputError(
            f"{source}, line {line}: {field!r} holds something that is no finite number."
        )
    return X


def _is_finite(value: Any) -> bool:
    # Not math.isfinite, which does not take whole numbers of hundreds of digits.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _from_npz(path: Path, wanted: _Wanted) -> Table:
    wanted.refuse_options_of_columns()
    source = wanted.source
    try:
        arrays = read_npz(path, source)
    except ValueError as error:
        raise InvalidInputError(
            f"{source} is no .npz archive of plain arrays ({error}). Write it with "
            "numpy.savez(file, X=..., y=...); pickled objects are never loaded."
        ) from error
    X = _matrix(arrays, source)
    n = X.shape[0]
    one_each = [k for k, v in arrays.items() if v.shape == (n,) and k not in (*CSR_PARTS, "train")]
    label = wanted.label_among(one_each) or ("y" if "y" in one_each else None)
    y = None if label is None else _by_name(arrays, label, source)
    names = _names(arrays, X.shape[1])
    if names is None and (wanted.columns.features or wanted.columns.drop):
        raise InvalidInputError(f"{source} names no columns; --features and --drop need names.")
    if names is not None:
        used = wanted.features_among(names)
        place = {name: j for j, name in enumerate(names)}
        X, names = X[:, [place[name] for name in used]], used
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise InvalidInputError(f"X of {source} holds missing or infinite values; fill them in.")
    train = arrays.get("train")
    train = train if train is not None and train.shape == (n,) and train.dtype == bool else None
    id_column = wanted.ids_among(one_each)
    ids = None if id_column is None else _as_text(arrays[id_column])
    return Table(source, X, None if names is None else tuple(names), y, label, ids, train)


def _matrix(arrays: dict[str, NDArray[Any]], source: str) -> Matrix:
    """X, or the matrix of the CSR parts, in floats."""
    if "X" in arrays:
        X: Any = arrays["X"]
    elif all(part in arrays for part in CSR_PARTS):
        try:
            X = csr_rows(arrays)
        except (ValueError, IndexError, TypeError) as error:
            raise InvalidInputError(
                f"{source} holds no sound CSR parts: {str(error).rstrip('.')}."
            ) from error
    else:
        raise InvalidInputError(
            f"{source} has neither X nor the CSR parts {', '.join(CSR_PARTS)}; it holds "
            f"{', '.join(sorted(arrays))}."
        )
    if X.ndim != 2 or X.dtype.kind not in "fiub" or not all(X.shape):
        raise InvalidInputError(
            f"X of {source} must be a matrix of numbers, not {X.dtype} {X.shape}."
        )
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _by_name(arrays: dict[str, NDArray[Any]], label: str, source: str) -> NDArray[Any]:
    """Labels; class numbers in y become the names in classes, if there are such."""
    y, classes = arrays[label], arrays.get("classes")
    if label == "y" and classes is not None and classes.ndim == 1 and y.dtype.kind in "iu":
        if 0 <= y.min() and y.max() < len(classes):
            return _labels(classes, "classes", source)[y]
    return _labels(y, label, source)


def _names(arrays: dict[str, NDArray[Any]], d: int) -> list[str] | None:
    for key in ("feature_names", "terms"):
        if key in arrays and arrays[key].shape == (d,):
            return [str(name) for name in arrays[key]]
    return None


def _from_dataset(wanted: _Wanted) -> Table:
    name = wanted.source
    if name not in datasets.available():
        # Something that looks like a path is taken for one.
        if Path(name).suffix or "/" in name:
            raise FileNotFoundError(2, "No such file", name)
        if name in FETCHED:
            raise InvalidInputError(
                f"The data set {name} is not on this machine; samewise datasets fetch {name} "
                "downloads it."
            )
        near = difflib.get_close_matches(name, datasets.available(), n=1)
        hint = (
            f"; did you mean {near[0]!r}?" if near else "; samewise datasets lists what there is."
        )
        raise InvalidInputError(f"There is neither a file nor a data set {name}{hint}")
    wanted.refuse_options_of_columns()
    found = datasets.load(name, dtype=np.float32)
    if isinstance(found.data, list) or "target" not in found:
        raise InvalidInputError(
            f"The data set {name} holds texts, not vectors; samewise filter reads texts."
        )
    names = found.get("feature_names", found.get("terms"))
    named = None if names is None or len(names) != found.data.shape[1] else tuple(map(str, names))
    y = _labels(np.asarray(found.target_names), "class", name)[found.target]
    return Table(name, found.data, named, y, "class", None, found.get("train"))


def filled(
    table: Table, learn: NDArray[np.bool_], how: str | None
) -> tuple[Table, NDArray[np.float64] | None]:
    """The table without missing values, and what stands for them: from the rows to learn from."""
    if how is None:
        return table, None
    fill = fill_values(table.X[learn], table.names or (), how, table.source)
    return replace(table, X=np.where(np.isnan(table.X), fill, table.X)), fill


def check_classes(table: Table) -> NDArray[Any]:
    """The labels, which must be there and of two classes at least."""
    if table.y is None:
        raise _no_label(table.source, table.names)
    classes = np.unique(table.y)
    if len(classes) < 2:
        raise InvalidInputError(
            f"The labels {table.label!r} of {table.source} are all {classes[0]!s}: one class. To "
            "learn what is alike, at least two are needed; check --label."
        )
    if len(classes) == len(table.y) > 2:
        raise InvalidInputError(
            f"The labels {table.label!r} of {table.source} are all different: no two rows are "
            "alike, so there is nothing to learn from; check --label."
        )
    return table.y


def _no_label(source: str, names: Sequence[str] | None) -> InvalidInputError:
    columns = f" Its columns: {_some(names)}." if names else ""
    return InvalidInputError(
        f"Say which column of {source} holds the labels: --label NAME.{columns}"
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
