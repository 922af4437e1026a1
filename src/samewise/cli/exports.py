"""Rows into files: CSV, Parquet, NPZ, JSON lines, standard output."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from samewise._typing import Matrix
from samewise.exceptions import InvalidInputError

_WRITTEN = (".csv", ".parquet", ".npz", ".jsonl")


def check_output(path: str | os.PathLike[str]) -> None:
    """That a file can be written there; asked before the work, not after it."""
    target = Path(path)
    folder = target.resolve().parent
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder; name a file to write to.")
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
) -> None:
    """Write rows to a file by its ending, or as CSV to standard output ("-")."""
    kind = check_ending(path)
    label = label or "label"
    if kind == ".npz":
        _write_npz(path, X, names, y, train)
        return
    if sp.issparse(X):
        raise InvalidInputError(f"Sparse rows go into an .npz file, not into {path}.")
    if kind == ".jsonl":
        _write_lines(path, X, y, label, ids)
        return
    named = [f"x{j}" for j in range(X.shape[1])] if names is None else list(names)
    frame = pd.DataFrame(np.asarray(X), columns=named)
    if ids is not None:
        frame.insert(0, "id", ids)
    if y is not None:
        frame[label if label not in named else f"{label}_"] = y
    if kind == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(sys.stdout if path == "-" else path, index=False)


def _write_npz(path: str, X: Matrix, names: Any, y: Any, train: Any) -> None:
    if sp.issparse(X):
        content = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    else:
        content = {"X": X}
    optional = {"y": y, "feature_names": names, "train": train}
    content |= {k: np.asarray(v) for k, v in optional.items() if v is not None}
    np.savez_compressed(path, **content)


def _write_lines(path: str, X: Matrix, y: Any, label: str, ids: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for i in range(len(X)):
            entry: dict[str, Any] = {} if ids is None else {"id": str(ids[i])}
            entry["vector"] = [float(str(v)) for v in X[i]]
            if y is not None:
                entry[label] = y[i].item() if isinstance(y[i], np.generic) else y[i]
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
