"""NCA and MCML, whose losses are sums over points: each worker has all of them, and sums over some.

The points are copied to every worker once, n·d numbers; what follows is L to each part and a loss
and a gradient back, 2·r·d numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from samewise._typing import Array, Indices
from samewise.learners.batch.mcml import MCML
from samewise.learners.batch.nca import NCA
from samewise.learners.batch.points_by_class import Classes
from samewise.learners.batch.soft_neighbors import PointsOf, Rule, SoftNeighbors, Sorted
from samewise.learners.learner import Learner
from samewise.scale.cluster import Parts
from samewise.scale.dask_learner import DaskLearner, P
from samewise.scale.row_blocks import RowBlock, RowBlocks
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.workers import Workers

CoordinatesOf = Callable[[Array, Classes], Sorted]


class SharedPoints(SoftNeighbors):
    """Points that every worker has, and a sum over spans of them.

    Parameters
    ----------
    X, classes, workers
        Those of `SoftNeighbors`.
    parts : Parts of SoftNeighbors
        Each with a span of its own; together, all rows.
    """

    def __init__(self, X: Array, classes: Classes, workers: Workers, parts: Parts) -> None:
        super().__init__(X, classes, workers)
        self._parts = parts

    def sum(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over all rows, and ∂/∂L."""
        loss, gradient = self._parts.total(SoftNeighbors.sum, L, rule)
        return loss, gradient

    def scatter(self, L: Matrix64, rule: Rule) -> tuple[float, Matrix64]:
        """The sum over all rows, and ∂/∂M, M = LᵀL."""
        loss, gradient = self._parts.total(SoftNeighbors.scatter, L, rule)
        return loss, gradient


class DaskSoftNeighbors(DaskLearner[P]):
    """A learner whose points all workers have."""

    def _learn(self, learner: P, blocks: RowBlocks) -> None:
        client = blocks.client
        whole = client.submit(_together, *blocks.held().futures, pure=False)
        n_parts = len(blocks.tasks)

        def points_of(where: Sorted, classes: Classes, team: Workers) -> SoftNeighbors:
            cuts = [len(where.rows) * i // n_parts for i in range(n_parts + 1)]
            futures = [
                client.submit(_span, points, *cuts[i : i + 2], pure=False)
                for points in [client.submit(_points, whole, type(where), pure=False)]
                for i in range(n_parts)
            ]
            return SharedPoints(where.rows, classes, team, Parts(client, futures))

        block = whole.result()
        self._fit_plain(learner, block.X, block.y, points_of)

    @abstractmethod
    def _fit_plain(self, learner: P, X: Array, y: NDArray[Any], points_of: PointsOf) -> None:
        """Fit the plain learner, with sums that workers share."""


class DaskNCA(DaskSoftNeighbors[NCA]):
    """`NCA` with the sum over points shared by workers.

    Every worker has all points, so they must fit in its memory; the work of an iteration, which
    grows with n², is cut into as many parts as X has blocks. The solver is that of `NCA`, with a
    loss and a gradient that differ by rounding only.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `NCA`; validation_fraction must be None.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise.scale import DaskNCA
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(75, 4)), da.from_array(y, chunks=75)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     nca = DaskNCA(client, n_components=2).fit(X, y).to_local()
    >>> nca.loss_ < 5
    True
    """

    _plain: ClassVar[type[Learner]] = NCA
    _refused: ClassVar[dict[str, tuple[Any, str]]] = {
        "validation_fraction": (None, "workers have all points, none held out")
    }

    def _fit_plain(self, learner: NCA, X: Array, y: NDArray[Any], points_of: PointsOf) -> None:
        learner._fitted(X, y, points_of)


class DaskMCML(DaskSoftNeighbors[MCML]):
    """`MCML` with the sum over points shared by workers.

    Every worker has all points, so they must fit in its memory; the work of an iteration, which
    grows with n², is cut into as many parts as X has blocks. The solver is that of `MCML`, with a
    loss, a gradient and a proof that differ by rounding only.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `MCML`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise.scale import DaskMCML
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(75, 4)), da.from_array(y, chunks=75)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     mcml = DaskMCML(client).fit(X, y).to_local()
    >>> bool(mcml.gap_ <= 1e-3 * mcml.loss_)
    True
    """

    _plain: ClassVar[type[Learner]] = MCML

    def _fit_plain(self, learner: MCML, X: Array, y: NDArray[Any], points_of: PointsOf) -> None:
        learner._fitted(X, y, points_of)


def _together(*blocks: RowBlock) -> RowBlock:
    """All rows, and their labels."""
    y = [block.y for block in blocks if block.y is not None]
    return RowBlock(np.concatenate([block.X for block in blocks]), np.concatenate(y))


def _points(whole: RowBlock, coordinates: CoordinatesOf) -> SoftNeighbors:
    """All points, sorted by class, in coordinates that are those of the client to the bit."""
    labels: Indices
    known, labels = np.unique(whole.y, return_inverse=True)  # type: ignore[call-overload]
    classes = Classes(labels, len(known))
    where = coordinates(whole.X, classes)
    return SoftNeighbors(where.rows, classes, Workers(1, None))


def _span(points: SoftNeighbors, first: int, end: int) -> SoftNeighbors:
    """The same points, and some of the rows to sum over."""
    return SoftNeighbors(points.X, points.classes, points.workers, (first, end))
