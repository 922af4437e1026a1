"""Learners in closed form, whose formulas need only sums over rows: one pass over the data."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip

from samewise._typing import Array, Indices
from samewise.exceptions import InvalidInputError
from samewise.learners.class_checks import numbered
from samewise.learners.closed.classical import (
    LDA,
    PCA,
    Covariance,
    check_differ,
    check_separable,
    warn_if_singular,
)
from samewise.learners.closed.closed_form import whitening
from samewise.learners.closed.discriminants import discriminants, shrunk_discriminants
from samewise.learners.closed.rca import RCA, relevant_directions
from samewise.learners.constraints import check_at_most
from samewise.learners.learner import Learner
from samewise.scale.dask_learner import DaskLearner
from samewise.scale.moments import Moments, label_moments, merged, moments, without
from samewise.scale.row_blocks import RowBlock, RowBlocks


class DaskCovariance(DaskLearner[Covariance]):
    """`Covariance` of data in parts, in one pass.

    Each part gives the sum and the scatter of its rows, d² + d numbers, and these add up exactly:
    S = Σ_p (S_p + n_p (m_p − m)(m_p − m)ᵀ).

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `Covariance`.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise.scale import DaskCovariance
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     learner = DaskCovariance(client).fit(da.from_array(X, chunks=(2, 2)))
    >>> learner.to_local().metric_.matrix.round(12)
    array([[0.5, 0. ],
           [0. , 2. ]])
    """

    _plain: ClassVar[type[Learner]] = Covariance
    _labeled: ClassVar[bool] = False

    def _learn(self, learner: Covariance, blocks: RowBlocks) -> None:
        known = _known(learner, blocks.once(moments, None))
        S, dtype = known.covariance(), known.shape.dtype
        learner._keep(whitening(S, S, learner.shrinkage, dtype, "covariance", stacklevel=3), dtype)


class DaskPCA(DaskLearner[PCA]):
    """`PCA` of data in parts, in one pass.

    The eigenvectors of the covariance, which is the sum of d² numbers of each part.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `PCA`.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from samewise.scale import DaskPCA
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     learner = DaskPCA(client, n_components=1).fit(da.from_array(X, chunks=(2, 2)))
    >>> learner.to_local().metric_.pairs([[0.0, 0.0]], [[3.0, 4.0]])
    array([3.])
    """

    _plain: ClassVar[type[Learner]] = PCA
    _labeled: ClassVar[bool] = False

    def _learn(self, learner: PCA, blocks: RowBlocks) -> None:
        known = _known(learner, blocks.once(moments, None))
        n = known.shape.n
        r = learner._n_directions(n, known.shape.n_features)
        S = known.covariance() * (n / (n - 1))
        check_differ(S)
        values, axes = np.linalg.eigh(S)
        _, V = svd_flip(u=None, v=axes[:, ::-1].T, u_based_decision=False)
        variances = np.maximum(values[::-1], 0)
        learner._keep_directions(V[:r], variances[:r], known.shape.dtype)


class DaskLDA(DaskLearner[LDA]):
    """`LDA` of data in parts, in one pass.

    Each part gives the scatter within its classes, d² numbers, and the sizes and means of the
    classes. shrinkage="auto" is refused: it needs more than these sums.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `LDA`.

    Notes
    -----
    Rows of L have a sign that the formula leaves open, and which may differ from that of `LDA`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise.scale import DaskLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskLDA(client).fit(X, y).metric_
    Mahalanobis(n_features_in=4, rank=2)
    """

    _plain: ClassVar[type[Learner]] = LDA

    def _learn(self, learner: LDA, blocks: RowBlocks) -> None:
        if isinstance(learner.shrinkage, str):
            raise InvalidInputError(
                "DaskLDA takes a number as shrinkage: 'auto' needs more than sums of squares. Got "
                f"{learner.shrinkage!r}; choose it on a sample with LDA."
            )
        known = _known(learner, blocks.once(label_moments))
        learner.classes_, _ = numbered(np.repeat(known.keys, np.minimum(known.counts, 2)), "LDA")
        most = learner._n_discriminants(known.shape.n_features)
        n = known.shape.n
        # Where differences are not larger, there is nothing but rounding.
        still = known.still | (np.diagonal(known.within) <= n * known.rounding**2)
        Sw = without(still, known.within / n)
        means = np.where(known.still, 0.0, known.means - known.mean)
        check_separable(Sw, np.where(np.abs(means).max(axis=0) > known.rounding, means, 0.0))
        weights = known.counts / n
        if learner.shrinkage == 0:
            L, rank = discriminants(Sw, means, weights)
            warn_if_singular(rank, len(Sw), stacklevel=4)
        else:
            try:
                L = shrunk_discriminants(Sw, known.covariance(), learner.shrinkage)
            except np.linalg.LinAlgError as error:
                raise learner._too_singular() from error
        learner._keep(L[:most], known.shape.dtype)


class DaskRCA(DaskLearner[RCA]):
    """`RCA` of labeled data in parts, in two passes.

    The first gathers the labels, because `chunklets_` has a number for each row. In the second,
    each part gives the scatter within its chunklets, d² numbers, and the sizes and means of the
    chunklets.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster to work on; by default the client in use.
    **parameters : dict
        Those of `RCA`.

    Notes
    -----
    Rows of L have a sign that the formula leaves open, and which may differ from that of `RCA`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from samewise.scale import DaskRCA
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     DaskRCA(client, n_components=2).fit(X, y).metric_
    Mahalanobis(n_features_in=4, rank=2)
    """

    _plain: ClassVar[type[Learner]] = RCA

    def _learn(self, learner: RCA, blocks: RowBlocks) -> None:
        labels = blocks.once(_labels)
        random = check_random_state(learner.random_state)
        learner.chunklets_ = learner._chunklets_of_labels(np.concatenate(labels), random)
        groups = np.split(learner.chunklets_, np.cumsum([len(part) for part in labels])[:-1])
        parts = blocks.once(_with_chunklets, each=groups)
        known = _known(learner, [part[0] for part in parts])
        d, dtype = known.shape.n_features, known.shape.dtype
        check_at_most("n_components", learner.n_components, d, "the number of features")
        Cw = _mean_within([part[1] for part in parts if part[1] is not None], known.rounding)
        L = relevant_directions(known.covariance(), Cw, learner.shrinkage, dtype, "RCA")
        learner._keep(L[: learner.n_components], dtype)


def _known(learner: Learner, parts: list[Moments]) -> Moments:
    """The moments of all parts; the learner has as many features."""
    known = merged(parts)
    learner.n_features_in_ = known.shape.n_features
    return known


def _labels(block: RowBlock) -> NDArray[Any]:
    assert block.y is not None
    return block.y


def _with_chunklets(block: RowBlock, chunklets: Indices) -> tuple[Moments, Moments | None]:
    """The moments of all rows, and of those in chunklets."""
    rows = np.flatnonzero(chunklets >= 0)
    inside = moments(RowBlock(block.X[rows], None), chunklets[rows]) if len(rows) else None
    return moments(block, None), inside


def _mean_within(parts: list[Moments], rounding: Array) -> Array | None:
    """The covariance within chunklets of two points or more; None if there are none."""
    if not parts:
        return None
    known = merged(parts)
    n = known.counts[known.counts > 1].sum()
    if not n:
        return None
    S = known.within / n
    return without(np.diagonal(S) <= rounding**2, S)
