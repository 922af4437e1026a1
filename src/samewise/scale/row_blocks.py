"""Data in parts: Dask arrays and dataframes, and folders of files, as blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

from samewise._typing import Array
from samewise.exceptions import InvalidInputError
from samewise.learners.dense_rows import check_scale
from samewise.scale.cluster import Parts, connected, dask, finished
from samewise.supervision.supervision_checks import check_one_kind

KINDS = (
    "Give a Dask array, a Dask dataframe, or a folder of .parquet or .npy files; "
    "dask.array.from_array makes a Dask array of one in memory."
)

SIDES = ("left", "right")
"""Columns of pairs of vectors."""


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

    Those that turn out to have no rows, as partitions of a dataframe may, are dropped.

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
        make = dask().delayed(_unless_empty, pure=False)
        own = [()] * len(self.tasks) if each is None else [(one,) for one in each]
        tasks = zip(self.tasks, own, strict=True)
        results = [make(function, task, *arguments, *more) for task, more in tasks]
        found = finished(self.client, self.client.compute(results))
        self._keep([result is not None for result in found])
        return [result for result in found if result is not None]

    def held(self) -> Parts:
        """The blocks, held by the workers from now on."""
        parts = Parts(self.client, self.client.compute(self.tasks))
        full = parts.then(_has_rows).values()
        self._keep(full)
        return Parts(self.client, list(compress(parts.futures, full)))

    def _keep(self, full: list[bool]) -> None:
        """Drop the blocks without rows."""
        if not any(full):
            raise InvalidInputError("X has no rows. Got nothing to learn from.")
        self.tasks[:] = compress(self.tasks, full)


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
        raw, names, places = _files(Path(X), y, sides)
    else:
        raw, names = _collections(X, y, sides)
        places = [f"block {number} of X" for number in range(len(raw))]
    if not raw:
        raise InvalidInputError("X has no blocks of rows. Got nothing to learn from.")
    make = dask().delayed(_checked, pure=False)
    tasks = [make(*block, sides, place) for block, place in zip(raw, places, strict=True)]
    return RowBlocks(client, tasks, names)


def shapes(blocks: list[Shape]) -> tuple[list[int], int, np.dtype[Any]]:
    """The sizes of the blocks, and the features and type that all have in common."""
    first = blocks[0]
    for number, shape in enumerate(blocks):
        if shape.n_features != first.n_features:
            raise InvalidInputError(
                f"Every block of X must have as many features as the first, {first.n_features}. "
                f"Block {number} has {shape.n_features}."
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


def _collections(X: Any, y: Any, sides: int) -> tuple[list[tuple[Any, Any]], list[str] | None]:
    """Blocks of Dask's arrays and dataframes."""
    if not _is_dask(X):
        raise InvalidInputError(f"X is a {type(X).__name__}. {KINDS}")
    names = None
    if hasattr(X, "columns"):
        columns = list(X.columns)
        if sides:
            check_columns("the dataframe", columns, SIDES)
        else:
            _check_numbers(X.dtypes)
            names = columns if all(isinstance(name, str) for name in columns) else None
    elif X.ndim not in (2, 3):
        raise InvalidInputError(f"X must have rows and features. Got {X.ndim} dimensions.")
    else:
        X = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
    rows = _blocks(X)
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
    labels = _blocks(y)
    if len(labels) != len(rows):
        raise InvalidInputError(
            f"X and y must have as many blocks. Got {len(rows)} and {len(labels)}."
        )
    return list(zip(rows, labels, strict=True)), names


def _blocks(values: Any) -> list[Any]:
    """The blocks; partitions of a dataframe as they are, without small files put together."""
    if hasattr(values, "simplify"):
        # Dask would put more files together the fewer columns are read: other ones for X than y.
        return list(values.simplify().to_delayed(optimize_graph=False))
    return list(np.ravel(values.to_delayed()))


def _sizes_known(values: Any) -> bool:
    """Whether the sizes of the blocks are; those of a dataframe are not."""
    return hasattr(values, "chunks") and not np.isnan(values.chunks[0]).any()


def _is_dask(values: Any) -> bool:
    return dask().is_dask_collection(values) and hasattr(values, "to_delayed")


def _check_numbers(dtypes: Any) -> None:
    """Refuse columns of a dataframe that hold no numbers."""
    for name, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf":
            raise InvalidInputError(
                f"Column {name!r} of X holds {dtype}, not numbers. Leave it out, or make numbers "
                "of it, such as one column for each category."
            )


def check_columns(where: str, columns: Collection[str], wanted: Sequence[str]) -> None:
    """Refuse a table without some columns."""
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InvalidInputError(
            f"In {where}: it must have the columns {', '.join(map(str, wanted))}. It lacks "
            f"{', '.join(map(str, missing))}."
        )


def _files(
    folder: Path, y: Any, sides: int
) -> tuple[list[tuple[Any, Any]], list[str] | None, list[str]]:
    """Blocks of a folder, one for each file, in the order of their names."""
    read = dask().delayed(pure=False)
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a folder. {KINDS}")
    tables = sorted(folder.glob("*.parquet"))
    if tables:
        schema = parquet().read_schema(tables[0])
        columns = schema.names
        if y is not None and (not isinstance(y, str) or y not in columns):
            raise InvalidInputError(
                f"y must be a column of the Parquet files, {', '.join(columns[:20])}. Got {y!r}."
            )
        features = list(SIDES) if sides else [name for name in columns if name != y]
        raw = [
            (
                read(_read_columns)(path, features, bool(sides)),
                None if y is None else read(_read_column)(path, y),
            )
            for path in tables
        ]
        vectors = any(name in columns and _is_list(schema.field(name).type) for name in features)
        return raw, None if vectors else features, list(map(str, tables))
    arrays = sorted(folder.glob("*.npy"))
    where = list(map(str, arrays))
    if y is None:
        return [(read(_read_array)(path), None) for path in arrays], None, where
    labels = sorted(Path(y).glob("*.npy")) if isinstance(y, str | os.PathLike) else []
    if len(labels) != len(arrays):
        raise InvalidInputError(
            f"Beside a folder of {len(arrays)} .npy files y must be a folder of as many, each with "
            f"the labels of one. Got {len(labels)} files of {y!r}."
        )
    pairs = zip(arrays, labels, strict=True)
    return (
        [(read(_read_array)(path), read(_read_array)(known)) for path, known in pairs],
        None,
        where,
    )


def _read_array(path: Path) -> NDArray[Any]:
    # A copy: mapped pages count in the memory that Dask watches.
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidInputError(
            f"{path} cannot be read as an array of numbers or of text of a fixed length: {error}"
        ) from error


def parquet() -> Any:
    """The module, or an error that says what to install."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'samewise[scale]'.") from error
    return pyarrow.parquet


def _table(path: Path, names: list[str]) -> Any:
    """Some columns of a file."""
    try:
        file = parquet().ParquetFile(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read as a Parquet file: {error}") from error
    with file:
        check_columns(str(path), file.schema_arrow.names, names)
        return file.read(columns=names)


def _read_columns(path: Path, names: list[str], as_sides: bool) -> NDArray[Any]:
    """Features of a file, where vectors have a column for each of their numbers; or both sides."""
    table = _table(path, names)
    columns = [
        vectors(table.column(name).combine_chunks(), name, path)
        if _is_list(table.schema.field(name).type)
        else table.column(name).to_numpy()
        for name in names
    ]
    return np.stack(columns, axis=1) if as_sides else np.column_stack(columns)


def _read_column(path: Path, name: str) -> NDArray[Any]:
    return np.asarray(_table(path, [name]).column(name).to_pandas())


def _is_list(kind: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)


def vectors(column: Any, name: str, path: Path) -> Array:
    """A column of lists of numbers as rows."""
    import pyarrow.compute

    lengths = np.unique(pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False))
    if len(column) and (len(lengths) != 1 or not lengths[0] > 0):
        raise InvalidInputError(
            f"Column {name!r} of {path} must hold lists of as many numbers in every row. Got lists "
            f"of {', '.join(f'{length:g}' for length in lengths[:5])} numbers."
        )
    values: Array = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), -1 if len(column) else 1)


def _checked(X: Any, y: Any, sides: int, place: str) -> RowBlock:
    """A block whose values are finite and whose labels fit."""
    try:
        return _block(X, y, sides)
    except ValueError as error:
        raise InvalidInputError(f"In {place}: {error}") from error


def _block(X: Any, y: Any, sides: int) -> RowBlock:
    n = len(X)
    if sides and hasattr(X, "columns"):
        X = [np.stack(X[name].to_list()) for name in SIDES] if n else []
        X = np.stack(X, axis=1) if n else np.empty((0, sides, 1))
    X = check_array(
        np.asarray(X),
        dtype=[np.float64, np.float32],
        allow_nd=bool(sides),
        ensure_min_samples=0,
        input_name="X",
    )
    if sides and (X.ndim != 3 or X.shape[1] != sides):
        raise InvalidInputError(
            f"Pairs must be an array of shape (n, {sides}, d), with +1 or -1 in y. Got blocks of "
            f"shape {X.shape}; sample pairs of labeled examples with Pairs.from_labels."
        )
    if n:
        check_scale(X.reshape(-1, X.shape[-1]))
    if y is not None:
        y = column_or_1d(np.asarray(y))
        if len(y) != n:
            raise InvalidInputError(
                f"A block of y must have as many rows as that of X, {n}. Got {len(y)}."
            )
        assert_all_finite(y, input_name="y")
        check_one_kind(y)
    return RowBlock(X, y)


def _has_rows(block: RowBlock) -> bool:
    return len(block.X) > 0


def _unless_empty(function: Callable[..., Any], block: RowBlock, *arguments: Any) -> Any:
    """function(block, *arguments), or None for a block without rows."""
    return function(block, *arguments) if len(block.X) else None
