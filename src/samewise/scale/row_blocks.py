"""Data in parts: Dask arrays and dataframes, and folders of files, as blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.learners.dense_rows import check_scale
from samewise.scale.cluster import Parts, connected, dask

KINDS = (
    "Give a Dask array, a Dask dataframe, or a folder of .parquet or .npy files; "
    "dask.array.from_array makes a Dask array of one in memory."
)


class RowBlock(NamedTuple):
    """Some of the rows, or pairs of them, and their labels, if there are any."""

    X: Array
    y: NDArray[Any] | None


class Shape(NamedTuple):
    """How large a block is, and the type of its values."""

    n: int
    n_features: int
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class RowBlocks:
    """Blocks of rows in their order, as tasks that have not run.

    Attributes
    ----------
    client : distributed.Client
    tasks : list of dask.delayed.Delayed
        Each makes a `RowBlock`.
    names : list of str or None
        Those of the features.
    """

    client: Any
    tasks: list[Any]
    names: list[str] | None

    def once(
        self, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """function(block, *arguments) of each, in their order, without keeping the blocks.

        With `each`, its next entry is one more argument.
        """
        make = dask().delayed(function, pure=False)
        own = [()] * len(self.tasks) if each is None else [(one,) for one in each]
        tasks = zip(self.tasks, own, strict=True)
        results = [make(task, *arguments, *more) for task, more in tasks]
        return self.client.gather(self.client.compute(results))

    def held(self) -> Parts:
        """The blocks, held by the workers from now on."""
        return Parts(self.client, self.client.compute(self.tasks))


def row_blocks(X: Any, y: Any, client: Any, *, sides: int = 0, labeled: bool = True) -> RowBlocks:
    """The data given to `fit`, as blocks of rows.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame, str or path
    y : the same kind, or the name of a column of Parquet files, or None
    client : distributed.Client or None
    sides : int, default=0
        2 for pairs of rows, in arrays of shape (n, 2, d).
    labeled : bool, default=True
        Whether y is needed.
    """
    client = connected(client)
    if y is None and labeled:
        raise InvalidInputError("y is needed: labels in as many blocks as X has. Got None.")
    if isinstance(X, str | os.PathLike):
        raw, names = _files(Path(X), y)
    else:
        raw, names = _collections(X, y)
    if not raw:
        raise InvalidInputError("X has no blocks of rows. Got nothing to learn from.")
    make = dask().delayed(_checked, pure=False)
    return RowBlocks(client, [make(x, labels, sides) for x, labels in raw], names)


def shapes(blocks: list[Shape]) -> tuple[list[int], int, np.dtype[Any]]:
    """The sizes of the blocks, and the features and type that all have in common."""
    first = blocks[0]
    for number, shape in enumerate(blocks):
        if shape.n_features != first.n_features:
            raise InvalidInputError(
                f"Every block of X must have as many features as the first, {first.n_features}. "
                f"RowBlock {number} has {shape.n_features}."
            )
    return [shape.n for shape in blocks], first.n_features, max(shape.dtype for shape in blocks)


def shape_of(block: RowBlock) -> Shape:
    """How large a block is."""
    return Shape(len(block.X), block.X.shape[-1], block.X.dtype)


def signs(block: RowBlock) -> NDArray[Any]:
    """The ±1 of pairs."""
    y = block.y
    if y is None or not np.isin(y, (-1, 1)).all():
        raise InvalidInputError(
            "y must hold +1 (similar) or -1 (dissimilar) for each pair. Got "
            f"{'nothing' if y is None else np.unique(y)[:5].tolist()}."
        )
    return y


def _collections(X: Any, y: Any) -> tuple[list[tuple[Any, Any]], list[str] | None]:
    """Blocks of Dask's arrays and dataframes."""
    if not _is_dask(X):
        raise InvalidInputError(f"X is a {type(X).__name__}. {KINDS}")
    names = None
    if hasattr(X, "columns"):
        columns = list(X.columns)
        names = columns if all(isinstance(name, str) for name in columns) else None
    elif X.ndim not in (2, 3):
        raise InvalidInputError(f"X must have rows and features. Got {X.ndim} dimensions.")
    else:
        X = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
    rows = list(np.ravel(X.to_delayed()))
    if y is None:
        return [(block, None) for block in rows], names
    if not _is_dask(y):
        raise InvalidInputError(
            f"y must be in blocks as X is. Got a {type(y).__name__}; give a Dask array or series."
        )
    if _sizes_known(X) and _sizes_known(y):
        if X.shape[0] != y.shape[0]:
            raise InvalidInputError(
                f"X and y must have as many rows. Got {X.shape[0]} and {y.shape[0]}."
            )
        y = y.rechunk({0: X.chunks[0]})
    labels = list(np.ravel(y.to_delayed()))
    if len(labels) != len(rows):
        raise InvalidInputError(
            f"X and y must have as many blocks. Got {len(rows)} and {len(labels)}."
        )
    return list(zip(rows, labels, strict=True)), names


def _sizes_known(values: Any) -> bool:
    """Whether the sizes of the blocks are; those of a dataframe are not."""
    return hasattr(values, "chunks") and not np.isnan(values.chunks[0]).any()


def _is_dask(values: Any) -> bool:
    return dask().is_dask_collection(values) and hasattr(values, "to_delayed")


def _files(folder: Path, y: Any) -> tuple[list[tuple[Any, Any]], list[str] | None]:
    """Blocks of a folder, one for each file, in the order of their names."""
    read = dask().delayed(pure=False)
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder. {KINDS}")
    tables = sorted(folder.glob("*.parquet"))
    if tables:
        import pyarrow.parquet

        columns = pyarrow.parquet.read_schema(tables[0]).names
        if y is not None and y not in columns:
            raise InvalidInputError(
                f"y must be a column of the Parquet files, {', '.join(columns[:20])}. Got {y!r}."
            )
        features = [name for name in columns if name != y]
        raw = [
            (
                read(_read_columns)(path, features),
                None if y is None else read(_read_column)(path, y),
            )
            for path in tables
        ]
        return raw, features
    arrays = sorted(folder.glob("*.npy"))
    if y is None:
        return [(read(_read_array)(path), None) for path in arrays], None
    labels = sorted(Path(y).glob("*.npy")) if isinstance(y, str | os.PathLike) else []
    if len(labels) != len(arrays):
        raise InvalidInputError(
            f"Beside a folder of {len(arrays)} .npy files y must be a folder of as many, each with "
            f"the labels of one. Got {len(labels)} files of {y!r}."
        )
    pairs = zip(arrays, labels, strict=True)
    return [(read(_read_array)(path), read(_read_array)(known)) for path, known in pairs], None


def _read_array(path: Path) -> NDArray[Any]:
    # A copy: mapped pages count in the memory that Dask watches.
    return np.load(path, allow_pickle=False)


def _read_columns(path: Path, names: list[str]) -> NDArray[Any]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path, columns=names, memory_map=False)
    return np.column_stack([table.column(name).to_numpy() for name in names])


def _read_column(path: Path, name: str) -> NDArray[Any]:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, columns=[name]).column(name).to_numpy()


def _checked(X: Any, y: Any, sides: int) -> RowBlock:
    """A block whose values are finite and whose labels fit."""
    X = check_array(
        np.asarray(X), dtype=[np.float64, np.float32], allow_nd=bool(sides), input_name="X"
    )
    if sides and (X.ndim != 3 or X.shape[1] != sides):
        raise InvalidInputError(
            f"Pairs must be an array of shape (n, {sides}, d), with +1 or -1 in y. Got blocks of "
            f"shape {X.shape}; sample pairs of labeled examples with Pairs.from_labels."
        )
    check_scale(X.reshape(-1, X.shape[-1]))
    if y is not None:
        y = column_or_1d(np.asarray(y))
        if len(y) != len(X):
            raise InvalidInputError(
                f"A block of y must have as many rows as that of X, {len(X)}. Got {len(y)}."
            )
    return RowBlock(X, y)
