"""Vectors and their ids: .npy, .npz, Parquet, and whatever else holds rows of numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from samewise.adapt.event_lines import NamedVectors
from samewise.adapt.item_units import checked_items
from samewise.cli.frames import read_parquet
from samewise.cli.options import Columns
from samewise.cli.tables import read_table
from samewise.exceptions import InvalidInputError


def read_vectors(source: str, id_column: str | None, vector_field: str) -> NamedVectors:
    """The vectors of a file, with the ids of a column, or by row number.

    Parameters
    ----------
    source : str
        An .npy file of a matrix; Parquet with a column of lists, or a column for each number; or
        what `read_table` reads.
    id_column : str or None
        The column of the ids; by default "id", if there is such a column.
    vector_field : str
        The column of lists.
    """
    path = Path(source)
    if path.suffix.lower() == ".npy" and path.exists():
        X, ids = _npy(path), None
    elif path.suffix.lower() == ".parquet" and path.is_file():
        X, ids = _from_frame(read_parquet(path, source), source, id_column, vector_field)
    else:
        table = read_table(source, Columns(id_column=id_column, vector_field=vector_field))
        X, ids = table.X, table.ids
    return NamedVectors(source, checked_items(X, name=f"The vectors of {source}"), ids)


def digest(vectors: NamedVectors | None) -> str:
    """A hash of vectors and ids."""
    if vectors is None:
        return ""
    found = hashlib.sha256(repr((vectors.X.shape, vectors.X.dtype.str, vectors.ids)).encode())
    found.update(np.ascontiguousarray(vectors.X).data)
    return found.hexdigest()


def _npy(path: Path) -> NDArray[Any]:
    try:
        # As it lies in the file: an item store may be larger than what a replay needs of it.
        X: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidInputError(
            f"{path} is no .npy file of a plain array ({str(error).rstrip('.')}). Write it with "
            "numpy.save(file, X); pickled objects are never loaded."
        ) from error
    return X if X.dtype.kind == "f" else np.asarray(X, dtype=np.float64)


def _from_frame(
    frame: pd.DataFrame, source: str, id_column: str | None, vector_field: str
) -> tuple[NDArray[Any], Any]:
    names = [str(name) for name in frame.columns]
    frame.columns = pd.Index(names)
    for wanted in {id_column, *names} - {None}:
        if names.count(str(wanted)) != 1:
            what = "two columns" if wanted in names else "no column"
            raise InvalidInputError(f"{source} has {what} {wanted!r}; name the ids with --id.")
    chosen = "id" if id_column is None and "id" in names else id_column
    ids = None if chosen is None else frame[chosen].tolist()
    if vector_field in names:
        rows = frame[vector_field].tolist()
    else:
        rows = frame.drop(columns=[] if chosen is None else [chosen]).to_numpy()
    try:
        X = np.stack(rows) if vector_field in names else rows
        return X if X.dtype.kind == "f" else X.astype(np.float64), ids
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{source} has no rows of numbers of one length, in a column {vector_field!r} of "
            f"lists or a column for each number ({str(error).rstrip('.')}). Name the column of "
            "lists with --vector-field."
        ) from error
