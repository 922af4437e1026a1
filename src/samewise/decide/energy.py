"""The energy rule: the label under which a test point fits best among the training points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.forms.multi_metric import members_of
from samewise.kernels import energy_loops as loops
from samewise.kernels.pairwise import all_dots, difference, row_slices, squared_norms
from samewise.search import Index

Map = Callable[[Matrix], Matrix]
"""From rows to where squared Euclidean distances are those of a metric."""

# A block of distances of each worker; below so many rows a product is no longer a fast one.
_BLOCK_BYTES = 32 * 2**20
_LEAST_ROWS = 32
_PAIR_BYTES = 16 * 2**20


class Energy:
    """What it costs a test point to belong to each class: the loss of LMNN as a classifier.

    With D the squared distance, and j⇝t the k nearest members of the class c, the energy of t in c
    is the pull to its targets, the push of the impostors within its perimeter, and its own push
    within the perimeters of others:

        (1−μ) Σ_{j⇝t} D(t, j) + μ Σ_{j⇝t} Σ_{l not in c} [D(t, j) − D(t, l)]₊
                              + μ Σ_{i not in c} Σ_{j⇝i} [1 + D(i, j) − D(i, t)]₊ .

    The form printed in the paper (eq. 15) has a unit margin in the second term too, and its j⇝t are
    the nearest by the Euclidean distance of the rows as they are.

    Parameters
    ----------
    maps : sequence of callables
        One for all, or one for each group. With more than one, D(x, x') is measured by the map of
        the group of x'; so the third term by that of the group of t.
    X : array or CSR matrix of shape (n, d)
        Training rows, float32 or float64. Distances are computed in that type, by
        ‖a‖² + ‖b‖² − 2aᵀb with the origin amid the rows; sums are in float64.
    labels : ndarray of shape (n,)
        Class numbers 0 … n_classes − 1; every class has a member.
    targets : ndarray of shape (n, m)
        The j⇝i: row numbers of X, of the same class; −1 for none.
    n_neighbors : int
        k; smaller classes take part with what they have.
    push_weight : float, default=0.5
        μ.
    printed : bool, default=False
        The printed form.
    groups : ndarray of shape (n,), optional
        The group of each training row; its class by default.
    group_of : callable, optional
        Gives the groups of test rows. Without it the group of t, as a member of the class c, is
        that of the members of c, who must have the same group.

    Notes
    -----
    With several maps the training rows are mapped anew at each call, by one map after the other:
    for the third term all rows are needed under each map, which would be too much to hold.

    References
    ----------
    Weinberger and Saul, *Distance Metric Learning for Large Margin Nearest Neighbor
    Classification*, JMLR 10, 2009, section 3.5.

    Examples
    --------
    In class 0 the point 2 is pulled by 1 and pushed by none. In class 1 it is pulled by 4; the
    point 1 is an impostor by 4 − 1; and it is itself one to the point 1, by 1 + 1 − 1.

    >>> import numpy as np
    >>> from samewise.decide.energy import Energy, maps_of
    >>> X, labels = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([0, 0, 1, 1])
    >>> targets = np.array([[1], [0], [3], [2]])
    >>> Energy(maps_of(None), X, labels, targets, 1)(np.array([[2.0]]))
    array([[0.5, 4. ]])
    """

    def __init__(
        self,
        maps: Sequence[Map],
        X: Matrix,
        labels: Indices,
        targets: Indices,
        n_neighbors: int,
        *,
        push_weight: float = 0.5,
        printed: bool = False,
        groups: Indices | None = None,
        group_of: Callable[[Matrix], Indices] | None = None,
    ) -> None:
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        # Of k slots, a smaller class fills as many as it has members.
        self._filled = np.arange(n_neighbors) < sizes[:, None]
        self._push_weight = push_weight
        self._margin = 1.0 if printed else 0.0
        self._dtype = X.dtype
        X = X[order]
        self._inputs = [Index(None, X[c]) for c in self._members()] if printed else None
        places = np.full(len(order) + 1, -1)
        places[order] = np.arange(len(order))
        # The last place is what −1 finds: none.
        targets = places[targets[order]]
        self._several = len(maps) > 1
        if self._several:
            groups = (labels if groups is None else groups)[order]
            self._rows, self._maps, self._group_of = X, maps, group_of
            self._group_of_class = groups[self._starts[:-1]]
        else:
            groups = np.zeros(len(order), dtype=np.intp)
        perimeters = np.full(targets.shape, -np.inf)
        self._tables = []
        for g, members in members_of(groups):
            of_group = (targets >= 0) & (groups[targets] == g)
            E = maps[g](X)
            _measure_perimeters(E, np.where(of_group, targets, -1), perimeters)
            E = E[members] if self._several else E
            self._tables.append((members, _Distances(maps[g], E)))
        self._perimeters = -np.sort(-perimeters, axis=1).astype(X.dtype)
        self._reach = self._perimeters[:, 0].copy()

    def __call__(self, Q: Matrix) -> NDArray[np.float64]:
        """The energy of each row in each class: ndarray of shape (n, n_classes)."""
        Q = Q.astype(self._dtype, copy=False)
        out = np.zeros((Q.shape[0], len(self._filled)))
        if self._several:
            self._add_invading(Q, out)

        def fill(rows: slice) -> None:
            out[rows] = self._of_block(Q[rows], out[rows])

        self._for_blocks(fill, Q.shape[0])
        return out

    def _for_blocks(self, work: Callable[[slice], None], n_rows: int) -> None:
        row_bytes = self._starts[-1] * self._dtype.itemsize
        block_bytes = max(_BLOCK_BYTES, _LEAST_ROWS * row_bytes)
        _for_each(work, list(row_slices(n_rows, row_bytes, block_bytes)))

    def _members(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self._starts[:-1], self._starts[1:], strict=True)]

    def _of_block(self, Q: Matrix, invading: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._several:
            D = np.empty((Q.shape[0], self._starts[-1]), dtype=self._dtype)
            for members, table in self._tables:
                D[:, members] = table(Q)
        else:
            [(_, table)] = self._tables
            D = table(Q)
            invading = self._invading(D)
        own = self._own(Q, D)
        thresholds = np.where(self._filled, own + self._margin, 0).reshape(len(D), -1)
        invaded = np.empty_like(invading)
        order = np.argsort(thresholds, axis=1)
        loops.impostors(D, self._starts, thresholds, order, invaded)
        pull = own.sum(axis=2)
        return (1 - self._push_weight) * pull + self._push_weight * (invaded + invading)

    def _invading(self, D: Array) -> NDArray[np.float64]:
        """The third term, from the distances of training rows to the test rows."""
        paid = np.empty((len(D), len(self._filled)))
        loops.invasions(D, self._starts, self._perimeters, self._reach, paid)
        return paid.sum(axis=1, keepdims=True) - paid

    def _add_invading(self, Q: Matrix, out: NDArray[np.float64]) -> None:
        """The third term, each map in turn for the rows, or the classes, that it measures."""
        everyone = np.arange(Q.shape[0])
        placed = None if self._group_of is None else self._group_of(Q)
        for g in np.unique(self._group_of_class if placed is None else placed):
            table = _Distances(self._maps[g], self._maps[g](self._rows))
            rows = everyone if placed is None else np.flatnonzero(placed == g)
            mine = self._group_of_class == g if placed is None else np.full(out.shape[1], True)
            fill = partial(self._fill_invading, table, Q, rows, np.flatnonzero(mine), out)
            self._for_blocks(fill, len(rows))

    def _fill_invading(
        self,
        table: _Distances,
        Q: Matrix,
        rows: Indices,
        columns: Indices,
        out: NDArray[np.float64],
        part: slice,
    ) -> None:
        at = rows[part]
        out[np.ix_(at, columns)] = self._invading(table(Q[at]))[:, columns]

    def _own(self, Q: Matrix, D: Array) -> NDArray[np.float64]:
        """D(t, j) for the targets j of t in each class, and zero for those it does not have."""
        own = np.zeros((len(D), *self._filled.shape))
        if self._inputs is None:
            loops.nearest(D, self._starts, own)
            own[:, ~self._filled] = 0
            return own
        for c, (index, filled) in enumerate(zip(self._inputs, self._filled, strict=True)):
            found = index.query(Q, int(filled.sum()))[1] + self._starts[c]
            own[:, c, filled] = np.maximum(np.take_along_axis(D, found, axis=1), 0)
        return own


class _Distances:
    """Squared distances of some rows to all stored ones, by one product; possibly just below 0."""

    def __init__(self, embed: Map, E: Matrix) -> None:
        self._embed = embed
        self._center = None
        if sp.issparse(E):
            self._stored, self._squares = E, _squares(E, "X")
            return
        # Digits are lost with the distance from the origin: put it amid the rows. On a row and not
        # on their mean, so that integers stay integers, and equal energies equal.
        self._center = E[_squares(E - E.mean(axis=0), "X").argmin()].copy()
        E = E - self._center
        squares = _squares(E, "X")
        self._stored = np.column_stack([-2 * E, np.ones_like(squares), squares])

    def __call__(self, Q: Matrix) -> Array:
        E = self._embed(Q)
        if self._center is None:
            D = -2 * all_dots(E, self._stored)
            D += _squares(E, "Q")[:, None]
            D += self._squares
            return D
        E = E - self._center
        squares = _squares(E, "Q")
        return np.column_stack([E, squares, np.ones_like(squares)]) @ self._stored.T


def maps_of(form: Form | None) -> list[Map]:
    """The maps under which the squared distances of a form are Euclidean, one for each group.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis
    >>> [embed] = maps_of(Mahalanobis(np.diag([4.0, 0.0])))
    >>> embed([[1.0, 7.0]])
    array([[2.]])
    """
    if form is None:
        return [_itself]
    if not form.spaces:
        raise InvalidInputError(
            f"The energy rule adds up squared distances, but {type(form).__name__} is a "
            "similarity; give a distance, or choose rule='knn' or 'sknn'."
        )
    return [space.embed for space in form.spaces]


def nearest_of_class(X: Matrix, labels: Indices, k: int) -> Indices:
    """The k nearest other rows of the same class, by the Euclidean distance of the rows.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    labels : ndarray of shape (n,)
        Class numbers.
    k : int

    Returns
    -------
    ndarray of shape (n, k)
        Row numbers, nearest first, the smaller one where distances are equal; −1 where a class
        has no further member.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_of_class(np.array([[0.0], [4.0], [1.0], [9.0]]), np.array([0, 0, 0, 1]), 2)
    array([[ 2,  1],
           [ 2,  0],
           [ 0,  1],
           [-1, -1]])
    """
    found = np.full((len(labels), k), -1)
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        m = min(k, len(members) - 1)
        if m:
            rows = X[members]
            _, nearest = Index(None, rows).query(rows, m, exclude_self=True)
            found[members, :m] = members[nearest]
    return found


def _measure_perimeters(E: Matrix, targets: Indices, out: NDArray[np.float64]) -> None:
    """out_ij := 1 + D(i, j) for the targets j of the rows i; as it is for none."""
    for at in row_slices(len(targets), E.shape[1] * 8, _PAIR_BYTES):
        for j, found in enumerate(targets[at].T):
            known = np.flatnonzero(found >= 0)
            here, there = E[at][known].astype(np.float64), E[found[known]].astype(np.float64)
            out[at.start + known, j] = 1 + squared_norms(difference(here, there))


def _squares(E: Matrix, name: str) -> Array:
    """‖e_i‖² of rows none of which is so long that a squared distance overflows."""
    if sp.issparse(E):
        wide = squared_norms(E.astype(np.float64))
    else:
        wide = np.einsum("ij,ij->i", E, E, dtype=np.float64)
    if not wide.max(initial=0) <= np.finfo(E.dtype).max / 16:
        raise InvalidInputError(
            f"{name} has rows of length {np.sqrt(wide.max()):.3g}, whose squared distances "
            f"overflow {E.dtype}; scale the features."
        )
    return wide.astype(E.dtype)


def _for_each(work: Callable[[slice], None], blocks: list[slice]) -> None:
    """Blocks side by side, one BLAS thread each: as many at once as BLAS would have had threads."""
    if len(blocks) < 2:
        for rows in blocks:
            work(rows)
        return
    pools = ThreadpoolController().select(user_api="blas")
    n_workers = max((pool["num_threads"] for pool in pools.info()), default=1)
    with pools.limit(limits=1), ThreadPoolExecutor(n_workers) as workers:
        list(workers.map(work, blocks))


def _itself(X: Matrix) -> Matrix:
    return X
