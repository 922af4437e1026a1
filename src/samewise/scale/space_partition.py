"""Rows cut into parts that are near in space, so that parts need few rows of each other."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError
from samewise.scale.row_blocks import RowBlock, row_blocks, shape_of, shapes

SAMPLE = 20_000
"""Rows that the cells are made of."""


@dataclass(frozen=True)
class Cells:
    """A tree that cuts along principal directions, with leaves of as many rows each.

    A node sends a row x to the left if aᵀx is below its threshold.

    Parameters
    ----------
    directions : array of shape (n_nodes, d)
        The a of each inner node; its children are the nodes 2i + 1 and 2i + 2.
    thresholds : array of shape (n_nodes,)

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [9.0, 0.0], [1.0, 0.0], [8.0, 1.0]])
    >>> Cells.of(X, 2).cells(X)
    array([0, 1, 0, 1])
    """

    directions: NDArray[np.float64]
    thresholds: NDArray[np.float64]

    @classmethod
    def of(cls, X: Array, n_cells: int) -> Cells:
        """The tree of some rows; n_cells is a power of 2."""
        d = X.shape[1]
        directions, thresholds = np.zeros((n_cells - 1, d)), np.zeros(n_cells - 1)
        rows = {0: np.arange(len(X))}
        for node in range(n_cells - 1):
            mine = rows.pop(node)
            Z = X[mine].astype(np.float64)
            Z -= Z.mean(axis=0)
            a = np.linalg.eigh(Z.T @ Z)[1][:, -1]
            # Eigenvectors leave the sign open.
            a *= np.sign(a[np.abs(a).argmax()])
            along = X[mine] @ a
            directions[node], thresholds[node] = a, np.median(along)
            left = along < thresholds[node]
            rows[2 * node + 1], rows[2 * node + 2] = mine[left], mine[~left]
        return cls(directions, thresholds)

    def cells(self, X: Array) -> NDArray[np.intp]:
        """The cell of each row, from 0."""
        node = np.zeros(len(X), dtype=np.intp)
        n_inner = len(self.thresholds)
        for _ in range((n_inner + 1).bit_length() - 1):
            for inner in np.unique(node):
                here = np.flatnonzero(node == inner)
                right = X[here] @ self.directions[inner] >= self.thresholds[inner]
                node[here] = 2 * inner + 1 + right
        return node - n_inner


def partition(
    X: Any,
    y: Any,
    n_parts: int,
    *,
    client: Any = None,
    random_state: Any = None,
) -> tuple[Any, Any]:
    """Cut rows anew, into parts of about the same size whose rows are near each other.

    Cells of a tree of principal directions, made from a sample of 20 000 rows at most; each cut
    halves a cell. `DaskLMNN` then copies fewer rows between parts.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame, str or path
        Rows, as a learner on Dask takes them.
    y : dask.array.Array, dask.dataframe.Series, str or path
        Their labels.
    n_parts : int
        Number of parts, a power of 2.
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Returns
    -------
    X : dask.array.Array
        The rows, one part in each block; sorted by part, then as they were.
    y : dask.array.Array
        Their labels.

    Notes
    -----
    All rows travel once. Parts are results of tasks that workers hold until they are needed; keep
    the arrays in the place of X and y, so that nothing is cut twice.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise.scale import partition
    >>> X = da.from_array(np.array([[0.0], [9.0], [1.0], [8.0]]), chunks=(2, 1))
    >>> y = da.from_array(np.array([0, 1, 0, 1]), chunks=2)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     near, labels = partition(X, y, 2, client=client)
    ...     near.ravel().compute(), labels.compute()
    (array([0., 1., 9., 8.]), array([0, 0, 1, 1]))
    """
    if not isinstance(n_parts, Integral) or n_parts < 1 or n_parts & (n_parts - 1):
        raise InvalidInputError(f"n_parts must be a power of 2, such as 16. Got {n_parts!r}.")
    random = check_random_state(random_state)
    blocks = row_blocks(X, y, client)
    held = blocks.held()
    sizes, d, dtype = shapes(held.then(shape_of).values())
    n = sum(sizes)
    most = min(n, SAMPLE)
    if most < 2 * n_parts:
        raise InvalidInputError(f"{n_parts} parts need {2 * n_parts} rows or more. Got {n}.")
    chosen = np.sort(random.choice(n, most, replace=False))
    ends = np.cumsum(sizes)
    submit = held.client.submit
    sample = [
        submit(_rows, block, chosen[(chosen >= end - size) & (chosen < end)] - (end - size))
        for block, size, end in zip(held.futures, sizes, ends, strict=True)
    ]
    cells = Cells.of(np.concatenate(held.client.gather(sample)), n_parts)
    cut = held.then(_cut, cells, n_parts)
    parts = [submit(_joined, cut.futures, part, pure=False) for part in range(n_parts)]
    kinds = held.client.gather([submit(_kind, part, pure=False) for part in parts])
    return _as_arrays(parts, kinds, d, dtype)


def _as_arrays(
    parts: list[Any], kinds: list[tuple[int, np.dtype[Any]]], d: int, dtype: np.dtype[Any]
) -> tuple[Any, Any]:
    """Dask arrays of the parts."""
    import dask.array as da
    from dask.delayed import delayed

    X = [
        da.from_delayed(delayed(_X)(part), (n, d), dtype=dtype)
        for part, (n, _) in zip(parts, kinds, strict=True)
    ]
    y = [
        da.from_delayed(delayed(_y)(part), (n,), dtype=labels)
        for part, (n, labels) in zip(parts, kinds, strict=True)
    ]
    return da.concatenate(X), da.concatenate(y)


def _rows(block: RowBlock, rows: Indices) -> Array:
    return block.X[rows]


def _cut(block: RowBlock, cells: Cells, n_parts: int) -> list[RowBlock]:
    """The rows of a block that are in each cell."""
    assert block.y is not None
    found = cells.cells(block.X)
    rows = [np.flatnonzero(found == cell) for cell in range(n_parts)]
    return [RowBlock(block.X[some], block.y[some]) for some in rows]


def _joined(blocks: list[list[RowBlock]], part: int) -> RowBlock:
    """The rows of a cell, of all blocks."""
    X, y = zip(*(block[part] for block in blocks), strict=True)
    return RowBlock(np.concatenate(X), np.concatenate(y))


def _kind(block: RowBlock) -> tuple[int, np.dtype[Any]]:
    """The number of rows, and the type of their labels."""
    assert block.y is not None
    return len(block.X), block.y.dtype


def _X(block: RowBlock) -> Array:
    return block.X


def _y(block: RowBlock) -> Any:
    return block.y
