"""Several Mahalanobis distances, one for each group of items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.forms._input_checks import check_finite, check_matrix, check_size, frozen
from samewise.forms.form import _BLOCK_BYTES, MAX_BYTES, Form, unchanged
from samewise.forms.mahalanobis import Mahalanobis
from samewise.kernels.pairwise import dense, row_slices

__all__ = ["MultiMetric", "nearest_centers"]


class MultiMetric(Form):
    """A distance D(x, x') = ‖L_g(x − x')‖ whose map L_g is that of the group g of the item x'.

    It is not symmetric: the query x is measured by the map of the item. What the group of an item
    is, is either its class, which has to be told wherever items are given (`groups`), or the
    nearest of given centers, which the form finds itself.

    Parameters
    ----------
    components : array of shape (n_groups, r, d), or sequence of arrays of shape (r_g, d)
        The L_g. Maps with fewer rows than others get rows of zeros, which change no distance.
    classes : array of shape (n_groups,), default=None
        The label of each group. Give either classes or centers.
    centers : array of shape (n_groups, d), default=None
        A row is of the group whose center is nearest by the Euclidean distance, of the smaller
        number where two are equally near.

    Attributes
    ----------
    components : array of shape (n_groups, r, d)
    classes : array of shape (n_groups,) or None
    centers : array of shape (n_groups, d) or None

    Examples
    --------
    >>> form = MultiMetric([[[1.0]], [[2.0]]], classes=["near", "far"])
    >>> groups = form.groups_of([[0.0], [0.0]], ["far", "near"])
    >>> form.cross([[3.0]], [[0.0], [0.0]], groups)
    array([[6., 3.]])
    >>> MultiMetric([[[1.0]], [[2.0]]], centers=[[0.0], [10.0]]).cross([[3.0]], [[0.0], [9.0]])
    array([[ 3., 12.]])
    """

    is_distance = True
    components: Array
    classes: NDArray[Any] | None
    centers: Array | None

    def __init__(
        self,
        components: Array | Sequence[Array],
        *,
        classes: ArrayLike | None = None,
        centers: ArrayLike | None = None,
    ) -> None:
        L = _maps(components)
        if (classes is None) == (centers is None):
            raise InvalidInputError(
                "MultiMetric must know what the groups of its maps are: give classes, a label for "
                "each, or centers, a point for each, and not both"
            )
        self._set(
            components=L,
            classes=None if classes is None else _labels(classes, len(L)),
            centers=None if centers is None else _points(centers, len(L), L.shape[2]),
        )

    @property
    def n_features_in(self) -> int:
        """Number of features d."""
        return self.components.shape[2]

    def metric_of(self, group: int) -> Mahalanobis:
        """The distance to the items of a group.

        Examples
        --------
        >>> MultiMetric([[[1.0]], [[2.0]]], classes=[0, 1]).metric_of(1).pairs([[0.0]], [[1.0]])
        array([2.])
        """
        return Mahalanobis._of_components(self.components[group])

    def groups_of(self, Y: Matrix, labels: ArrayLike | None = None) -> Indices:
        """The group of each item: that of its label, or of the nearest center.

        Parameters
        ----------
        Y : array or CSR matrix of shape (m, d)
        labels : array of shape (m,), default=None
            The classes of the items; not looked at if the form has centers.

        Returns
        -------
        array of shape (m,)
            Numbers of maps.

        Examples
        --------
        >>> form = MultiMetric([[[1.0]], [[2.0]]], classes=["a", "b"])
        >>> form.groups_of([[0.0], [1.0]], ["b", "a"])
        array([1, 0])
        """
        Y = self._check_rows(Y, "Y", self.n_features_in)
        if self.centers is not None:
            return nearest_centers(Y, self.centers)
        if labels is None:
            raise InvalidInputError(
                "This MultiMetric has a map for each class, so the classes of the items must be "
                "known; give groups=form.groups_of(Y, labels)"
            )
        assert self.classes is not None
        labels = np.asarray(labels)
        if labels.shape != (Y.shape[0],):
            raise InvalidInputError(
                f"labels must have the shape {(Y.shape[0],)}, one for each item, but their shape "
                f"is {labels.shape}"
            )
        order = np.argsort(self.classes)
        known = self.classes[order]
        found, numbers = np.unique(labels, return_inverse=True)
        places = np.searchsorted(known, found).clip(max=len(known) - 1)
        strange = found[known[places] != found]
        if len(strange):
            raise InvalidInputError(
                f"The class {strange[0].item()!r} is not one of the {len(known)} classes that this "
                "MultiMetric has a map for; leave its items out, or learn with it"
            )
        return order[places][numbers]

    def pairs(
        self, X: Matrix, Y: Matrix, groups: ArrayLike | None = None, *, squared: bool = False
    ) -> Array:
        """Distance of row i of X to row i of Y, by explicit differences.

        Parameters
        ----------
        X, Y : array or CSR matrix of shape (n, d)
        groups : array of shape (n,), default=None
            The group of each row of Y, from `groups_of`; not needed if the form has centers.
        squared : bool, default=False
            Give the squared distances.

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> form = MultiMetric([[[1.0]], [[2.0]]], classes=["a", "b"])
        >>> form.pairs([[0.0], [0.0]], [[3.0], [3.0]], [0, 1])
        array([3., 6.])
        """
        X, Y = self._check_pairs(X, Y)
        values = self._pair_values(X, Y, groups)
        return values if squared else _root(values)

    def pair_closeness(self, X: Matrix, Y: Matrix, groups: ArrayLike | None = None) -> Array:
        """−distance of row i of X to row i of Y; see `pairs`."""
        return np.subtract(0, self.pairs(X, Y, groups))

    def cross(
        self,
        X: Matrix,
        Y: Matrix | None = None,
        groups: ArrayLike | None = None,
        *,
        squared: bool = False,
        max_bytes: float = MAX_BYTES,
    ) -> Array:
        """Distance of every row of X to every row of Y, by ‖a‖² + ‖b‖² − 2aᵀb.

        Without Y the diagonal is exactly zero.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        Y : array or CSR matrix of shape (m, d), default=None
            X itself by default.
        groups : array of shape (m,), default=None
            The group of each row of Y, from `groups_of`; not needed if the form has centers.
        squared : bool, default=False
            Give the squared distances.
        max_bytes : float, default=2**32
            The largest result that may be allocated; beyond it, a TooLargeError.

        Returns
        -------
        array of shape (n, m)

        Examples
        --------
        >>> MultiMetric([[[1.0]], [[2.0]]], classes=["a", "b"]).cross([[0.0], [2.0]], None, [0, 1])
        array([[0., 4.],
               [2., 0.]])
        """
        return self._collect("cross", X, Y, groups, max_bytes, unchanged if squared else _root)

    def closeness(
        self,
        X: Matrix,
        Y: Matrix | None = None,
        groups: ArrayLike | None = None,
        *,
        max_bytes: float = MAX_BYTES,
    ) -> Array:
        """−distance of every row of X to every row of Y; see `cross`."""
        return self._collect("closeness", X, Y, groups, max_bytes, self._oriented)

    def blocks(
        self,
        X: Matrix,
        Y: Matrix | None = None,
        groups: ArrayLike | None = None,
        *,
        block_bytes: int = _BLOCK_BYTES,
    ) -> Iterator[tuple[slice, Array]]:
        """Go through `closeness` in blocks of rows, in bounded memory."""
        X, Y = self._check_cross(X, Y)
        numbers = self.checked_groups(X if Y is None else Y, groups)
        values = self._value_blocks(X, Y, block_bytes, numbers)
        return ((rows, self._oriented(block)) for rows, block in values)

    def _collect(
        self,
        what: str,
        X: Matrix,
        Y: Matrix | None,
        groups: ArrayLike | None,
        max_bytes: float,
        finish: Callable[[Array], Array],
    ) -> Array:
        X, Y = self._check_cross(X, Y)
        items = X if Y is None else Y
        check_size(what, X.shape[0], items.shape[0], X.dtype, max_bytes)
        values = np.empty((X.shape[0], items.shape[0]), dtype=X.dtype)
        numbers = self.checked_groups(items, groups)
        for rows, block in self._value_blocks(X, Y, _BLOCK_BYTES, numbers):
            values[rows] = finish(block)
        return values

    def _value_blocks(
        self, X: Matrix, Y: Matrix | None, block_bytes: int, groups: Indices | None = None
    ) -> Iterator[tuple[slice, Array]]:
        items = X if Y is None else Y
        score = self._scorer(items, groups)
        row_bytes = max(items.shape[0], self._width) * X.dtype.itemsize
        for rows in row_slices(X.shape[0], row_bytes, block_bytes):
            values = score(X[rows])
            if Y is None:
                np.fill_diagonal(values[:, rows], 0)
            yield rows, values

    def _scorer(self, Y: Matrix, groups: Indices | None = None) -> Callable[[Matrix], Array]:
        parts = [
            (at, self.metric_of(g)._scorer(Y[at]))
            for g, at in members_of(self.checked_groups(Y, groups))
        ]

        def score(X: Matrix) -> Array:
            values = np.empty((X.shape[0], Y.shape[0]), dtype=X.dtype)
            for at, part in parts:
                values[:, at] = part(X)
            return values

        return score

    def _pair_values(self, X: Matrix, Y: Matrix, groups: ArrayLike | None = None) -> Array:
        values = np.empty(X.shape[0], dtype=X.dtype)
        for g, at in members_of(self.checked_groups(Y, groups)):
            values[at] = self.metric_of(g).pairs(X[at], Y[at], squared=True)
        return values

    def checked_groups(self, Y: Matrix, groups: ArrayLike | None) -> Indices:
        """Group numbers that were handed in, or are found."""
        if groups is None:
            return self.groups_of(Y)
        numbers, n_groups = np.asarray(groups), len(self.components)
        if numbers.shape != (Y.shape[0],) or (numbers.dtype.kind not in "iu" and numbers.size):
            raise InvalidInputError(
                f"groups must be one number for each of the {Y.shape[0]} items; got "
                f"{numbers.dtype} of shape {numbers.shape}. Labels become numbers by groups_of"
            )
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < n_groups:
            raise InvalidInputError(
                f"groups must be numbers from 0 to {n_groups - 1}, but they go from "
                f"{numbers.min()} to {numbers.max()}"
            )
        return numbers.astype(np.intp, copy=False)

    @property
    def _width(self) -> int:
        return max(self.components.shape[1:])

    def _oriented(self, values: Array) -> Array:
        values = _root(values)
        # 0 − D and not −D: a zero distance must not become a negative zero.
        return np.subtract(0, values, out=values)

    def state(self) -> State:
        """All that makes this form."""
        n_groups, _, d = self.components.shape
        arrays = {"components": self.components.reshape(-1, d)}
        if self.centers is not None:
            return State({**arrays, "centers": self.centers}, {"n_groups": n_groups})
        assert self.classes is not None
        return State(arrays, {"n_groups": n_groups, "classes": self.classes.tolist()})

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The form of that state."""
        return cls._of_parts(**saved.everything())

    @classmethod
    def _of_parts(cls, *, components: Array, n_groups: int, **known: Any) -> Self:
        rows, d = components.shape
        if type(n_groups) is not int or n_groups < 1 or rows % n_groups:
            raise InvalidInputError(f"{rows} rows are no {n_groups!r} maps")
        return cls(components.reshape(n_groups, rows // n_groups, d), **known)

    def _summary(self) -> dict[str, Any]:
        n_groups, rank, d = self.components.shape
        by = "by class" if self.centers is None else "by center"
        return {"n_features_in": d, "n_groups": n_groups, "rank": rank, "groups": repr(by)}


def nearest_centers(X: Matrix, centers: Array) -> Indices:
    """The number of the nearest center of each row, the smaller one where distances are equal.

    Distances come from explicit differences in float64, so they do not depend on the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_centers(np.array([[1.0], [2.0], [5.0]]), np.array([[0.0], [4.0]]))
    array([0, 0, 1])
    """
    found = np.empty(X.shape[0], dtype=np.intp)
    for rows in row_slices(len(found), 8 * (X.shape[1] + len(centers)), _BLOCK_BYTES):
        found[rows] = cdist(dense(X[rows]), centers, "sqeuclidean").argmin(axis=1)
    return found


def members_of(groups: Indices) -> list[tuple[int, Indices]]:
    """The groups that occur, each with the places where it does, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> members_of(np.array([2, 0, 2]))
    [(0, array([1])), (2, array([0, 2]))]
    """
    order = np.argsort(groups, kind="stable")
    numbers, starts = np.unique(groups[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(order, starts[1:]), strict=False))


def _maps(components: Any) -> Array:
    """Read-only maps as one array, filled up with rows of zeros."""
    parts = [check_matrix(L, "components", "MultiMetric") for L in components]
    if not parts or any(part.shape[1] != parts[0].shape[1] for part in parts):
        raise InvalidInputError(
            "The components of MultiMetric must be one or more maps with the same number of "
            f"columns, but their shapes are {[part.shape for part in parts]}"
        )
    r = max(len(part) for part in parts)
    L = np.zeros((len(parts), r, parts[0].shape[1]), dtype=np.result_type(*parts))
    for whole, part in zip(L, parts, strict=True):
        whole[: len(part)] = part
    return frozen(L)


def _labels(classes: ArrayLike, n_groups: int) -> NDArray[Any]:
    # Through a list: the same labels are the same array, whatever they came in.
    labels = np.array(np.asarray(classes).tolist())
    if labels.shape != (n_groups,) or labels.dtype.kind not in "biufU":
        raise InvalidInputError(
            f"The classes of MultiMetric must be {n_groups} numbers or strings, one for each map; "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    if labels.dtype.kind == "f":
        check_finite(labels, "The classes of MultiMetric")
    if len(np.unique(labels)) < n_groups:
        raise InvalidInputError("The classes of MultiMetric must all be different")
    return frozen(labels)


def _points(centers: ArrayLike, n_groups: int, n_features: int) -> Array:
    points = check_matrix(centers, "centers", "MultiMetric")
    if points.shape != (n_groups, n_features):
        raise InvalidInputError(
            f"The centers of MultiMetric must have the shape {(n_groups, n_features)}, one point "
            f"for each map, but their shape is {points.shape}"
        )
    return points


def _root(values: Array) -> Array:
    return np.sqrt(values, out=values)
