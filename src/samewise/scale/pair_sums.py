"""MMC and ITML of pairs in parts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array
from samewise.learners.batch.itml import ITML
from samewise.learners.batch.mmc import MMC
from samewise.learners.batch.mmc_problems import (
    PROBLEMS,
    FarPairs,
    FarSquares,
    Sides,
    check_side,
    split_sides,
)
from samewise.learners.batch.pair_differences import Differences
from samewise.learners.learner import Learner
from samewise.scale.cluster import Parts
from samewise.scale.dask_learner import DaskLearner
from samewise.scale.row_blocks import RowBlock, RowBlocks, shape_of, shapes, signs
from samewise.supervision import Pairs


class DaskMMC(DaskLearner[MMC]):
    """`MMC` of pairs in parts: the objective is a sum over pairs.

    Workers hold the differences of dissimilar pairs; an evaluation sends A's factor to each part
    and d² + 1 numbers back. The solver is that of `MMC`, with an objective, a derivative and a
    proof that differ by rounding only.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `MMC`. Those about sampling have no effect.

    Notes
    -----
    X must hold pairs, of shape (n, 2, d), with ±1 in y: to sample near pairs needs all examples.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise import Pairs
    >>> from samewise.scale import DaskMMC
    >>> pairs = Pairs.from_labels(*load_iris(return_X_y=True), n_pairs=400, random_state=0)
    >>> X = da.from_array(pairs.X[[pairs.left, pairs.right]].swapaxes(0, 1), chunks=(200, 2, 4))
    >>> y = da.from_array(pairs.y, chunks=200)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     mmc = DaskMMC(client).fit(X, y).to_local()
    >>> bool(0 <= mmc.gap_ <= 1e-3 * mmc.objective_)
    True
    """

    _plain: ClassVar[type[Learner]] = MMC
    _sides: ClassVar[int] = 2

    def _learn(self, learner: MMC, blocks: RowBlocks) -> None:
        held = blocks.held()
        _, d, dtype = shapes(held.then(shape_of).values())
        learner.n_features_in_ = d
        split = held.then(_split)
        near, far, n_near, n_far = split.total(_scatters)
        for name, n in (("similar", n_near), ("dissimilar", n_far)):
            check_side(name, n)

        def far_sums(kind: type[FarPairs] | type[FarSquares], *arguments: Any) -> FarTotals:
            return FarTotals(split.then(_far_sums, kind, *arguments), kind)

        def calibrate() -> None:
            judged = held.then(_judged, learner.metric_).values()
            closeness, y = (np.concatenate(values) for values in zip(*judged, strict=True))
            learner.threshold_ = learner._chosen(closeness, y)

        before = learner._before("components_")
        if before is not None and before.shape[1] != d:
            before = None
        sides = Sides(near, far, dtype, far_sums)
        learner._learn(PROBLEMS[learner.structure](sides), sides, before, calibrate)


class FarTotals:
    """`FarPairs` or `FarSquares` of all parts.

    Parameters
    ----------
    parts : Parts of these
    kind : type
        Which of the two.
    """

    def __init__(self, parts: Parts, kind: Any) -> None:
        self._parts, self._kind = parts, kind

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kind, name)
        return lambda at: self._parts.total(method, at)


class DaskITML(DaskLearner[ITML]):
    """`ITML` of pairs in parts, which are gathered: its steps cannot be added up.

    One pair after the other is projected on, so that a sum over parts would be another algorithm.
    The pairs, 2·n·d numbers, come to the client, which solves the problem as `ITML` does, to the
    same bits.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `ITML`. Those about sampling have no effect.

    Notes
    -----
    X must hold pairs, of shape (n, 2, d), with ±1 in y.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise import Pairs
    >>> from samewise.scale import DaskITML
    >>> pairs = Pairs.from_labels(*load_iris(return_X_y=True), n_pairs=400, random_state=0)
    >>> X = da.from_array(pairs.X[[pairs.left, pairs.right]].swapaxes(0, 1), chunks=(200, 2, 4))
    >>> y = da.from_array(pairs.y, chunks=200)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskITML(client).fit(X, y).metric_
    Mahalanobis(n_features_in=4, rank=4)
    """

    _plain: ClassVar[type[Learner]] = ITML
    _sides: ClassVar[int] = 2

    def _learn(self, learner: ITML, blocks: RowBlocks) -> None:
        parts = blocks.once(_itself)
        shapes([shape_of(part) for part in parts])
        learner.fit(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _itself(block: RowBlock) -> RowBlock:
    signs(block)
    return block


def _split(block: RowBlock) -> tuple[Differences, Differences]:
    return split_sides(Pairs.from_arrays(block.X, signs(block)))


def _scatters(sides: tuple[Differences, Differences]) -> tuple[Any, ...]:
    near, far = sides
    return near.scatter(), far.scatter(), len(near), len(far)


def _far_sums(sides: tuple[Differences, Differences], kind: Any, *arguments: Any) -> Any:
    return kind(sides[1], *arguments)


def _judged(block: RowBlock, metric: Any) -> tuple[Array, NDArray[Any]]:
    """Minus the squared distances of pairs, and their signs."""
    return -metric.pairs(block.X[:, 0], block.X[:, 1], squared=True), signs(block)
