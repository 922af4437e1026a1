"""Rows into files, whole or not at all: CSV, Parquet, NPZ, JSON lines; or to standard output."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import typer
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.cli.console import printable
from samewise.exceptions import InvalidInputError
from samewise.files.writing import write_atomically
from samewise.kernels.pairwise import row_slices

_WRITTEN = (".csv", ".parquet", ".npz", ".jsonl")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Safe = Annotated[
    bool,
    typer.Option(
        help="In CSV, put an apostrophe before text that a spreadsheet would take for a formula."
    ),
]


def check_output(path: str | os.PathLike[str]) -> None:
    """That a file can be written there; asked before the work, not after it."""
    target = Path(path)
    folder = target.resolve().parent
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder; name a file to write to.")
    if target.exists() and not target.is_file():
        raise InvalidInputError(
            f"{target} is a device or a pipe, which a file would replace; name a file to write to."
        )
    if not folder.is_dir():
        raise InvalidInputError(
            f"There is no folder {folder} to write to; make it, or name another file."
        )
    try:
        # Tried, not asked: the superuser may do everything, and still not write everywhere.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInputError(
            f"Nothing can be written to the folder {folder} ({error.strerror}); name a file in "
            "another one."
        ) from error


def check_ending(path: str) -> str:
    """How to write a file, by its ending; CSV for standard output ("-")."""
    kind = ".csv" if path == "-" else Path(path).suffix.lower()
    if kind not in _WRITTEN:
        raise InvalidInputError(
            f"{path} has none of the endings {', '.join(_WRITTEN)}, which say how to write it."
        )
    return kind


def write_table(
    path: str,
    X: Matrix,
    names: Sequence[str] | None = None,
    *,
    y: NDArray[Any] | None = None,
    label: str | None = None,
    ids: NDArray[Any] | None = None,
    train: NDArray[np.bool_] | None = None,
    safe: bool = True,
) -> None:
    """Write rows to a file by its ending, or as CSV to standard output ("-").

    With `safe`, text in CSV that a spreadsheet would take for a formula gets an apostrophe.
    """
    kind = check_ending(path)
    label = label or "label"
    if kind == ".npz":
        write_atomically(path, [_npz(X, names, y, train)])
        return
    if sp.issparse(X):
        raise InvalidInputError(f"Sparse rows go into an .npz file, not into {path}.")
    if kind == ".jsonl":
        write_atomically(path, _lines(X, y, label, ids))
        return
    named = [f"x{j}" for j in range(X.shape[1])] if names is None else list(names)
    frame = pd.DataFrame(np.asarray(X), columns=named)
    if ids is not None:
        frame.insert(0, "id", ids)
    if y is not None:
        while label in frame.columns:
            label += "_"
        frame[label] = y
    if kind == ".parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        write_atomically(path, [buffer.getbuffer()])
        return
    text = _csv_text(_without_formulas(frame) if safe else frame)
    if path != "-":
        write_atomically(path, (part.encode() for part in text))
        return
    for part in text:
        sys.stdout.write(printable(part) if sys.stdout.isatty() else part)


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.set_axis([_no_formula(name) for name in frame.columns], axis="columns")
    for j, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            changed.isetitem(j, frame.iloc[:, j].map(_no_formula))
    return changed


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _csv_text(frame: pd.DataFrame) -> Iterator[str]:
    for rows in row_slices(len(frame), 32 * frame.shape[1], 2**22):
        yield frame.iloc[rows].to_csv(index=False, header=not rows.start, lineterminator="\n")


def _npz(X: Matrix, names: Any, y: Any, train: Any) -> memoryview:
    if sp.issparse(X):
        content = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    else:
        content = {"X": X}
    optional = {"y": y, "feature_names": names, "train": train}
    content |= {k: np.asarray(v) for k, v in optional.items() if v is not None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **content)
    return buffer.getbuffer()


def _lines(X: Matrix, y: Any, label: str, ids: Any) -> Iterator[bytes]:
    for i in range(len(X)):
        entry: dict[str, Any] = {} if ids is None else {"id": str(ids[i])}
        entry["vector"] = [float(str(v)) for v in X[i]]
        if y is not None:
            entry[label] = y[i].item() if isinstance(y[i], np.generic) else y[i]
        yield (json.dumps(entry, ensure_ascii=False) + "\n").encode()
