"""Several Mahalanobis distances, one for each group of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.state import State
from samewise.forms._input_checks import check_finite, check_matrix, check_squares, frozen
from samewise.forms.distance_form import DistanceForm
from samewise.forms.mahalanobis import Mahalanobis
from samewise.kernels.pairwise import dense, row_slices

_BLOCK_BYTES = 64 * 2**20


class MultiMetric(DistanceForm):
    """A distance D(x, x') = ‖L_g(x − x')‖ whose map L_g is that of the group g of the item x'.

    It is not symmetric: the query x is measured by the map of the item. The group of an item is
    either its class, which the form must know (`bind`), or the nearest of given centers, which the
    form finds itself.

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

    See Also
    --------
    MultiMetricLMNN : Learns such a form.

    Examples
    --------
    >>> form = MultiMetric([[[1.0]], [[2.0]]], classes=["near", "far"])
    >>> items = [[0.0], [0.0]]
    >>> form.bind(items, ["far", "near"]).cross([[3.0]], items)
    array([[6., 3.]])
    >>> MultiMetric([[[1.0]], [[2.0]]], centers=[[0.0], [10.0]]).cross([[3.0]], [[0.0], [9.0]])
    array([[ 3., 12.]])
    """

    components: Array
    classes: NDArray[Any] | None
    centers: Array | None
    # The groups of the items that the form is bound to.
    _groups: Indices | None = None

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
                "each, or centers, a point for each, and not both."
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

    @property
    def spaces(self) -> tuple[Mahalanobis, ...]:
        """The distance to the items of each group."""
        return tuple(Mahalanobis._of_components(L) for L in self.components)

    @property
    def needs_labels(self) -> bool:
        """True if the groups are classes: items other than those of `bind` need labels."""
        return self.classes is not None

    def groups_of(self, Y: Matrix, labels: ArrayLike | None = None) -> Indices:
        """The group of each item: that of its label, or of the nearest center.

        Parameters
        ----------
        Y : array or CSR matrix of shape (m, d)
            Items, one row each.
        labels : array of shape (m,), default=None
            The classes of the items. Not needed if the form has centers, or is bound to the items.

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
        assert self.classes is not None
        if labels is not None:
            return _numbers(np.asarray(labels), self.classes, Y.shape[0])
        if self._groups is None:
            raise InvalidInputError(
                "This MultiMetric has a map for each class, so the classes of the items must be "
                "known; use form.bind(Y, labels)."
            )
        if len(self._groups) != Y.shape[0]:
            raise InvalidInputError(
                f"This MultiMetric is bound to {len(self._groups)} items, but {Y.shape[0]} were "
                "given; bind it to the others with form.bind(Y, labels)."
            )
        return self._groups

    def bind(self, Y: Matrix, labels: ArrayLike | None = None) -> Self:
        """The form that knows the classes of these items, to compare any rows with all of them.

        Parameters
        ----------
        Y : array or CSR matrix of shape (m, d)
            The items.
        labels : array of shape (m,), default=None
            Their classes. Not looked at if the form has centers.

        Returns
        -------
        MultiMetric
            Its `cross`, `closeness` and `blocks` take these m items as Y (or as X, without Y), and
            `pairs` compares with item i in row i. The items themselves are not kept. A form with
            centers finds the groups of any items, and is returned as it is.

        Examples
        --------
        >>> Y = [[0.0], [0.0]]
        >>> form = MultiMetric([[[1.0]], [[2.0]]], classes=["near", "far"]).bind(Y, ["far", "near"])
        >>> form.closeness([[3.0]], Y)
        array([[-6., -3.]])
        """
        if self.classes is None:
            return self
        bound = type(self).__new__(type(self))
        bound._set(**{**self.__dict__, "_groups": self.groups_of(Y, labels)})
        return bound

    def lift(self, axes: Array) -> Self:
        """The same distances for rows x whose images Vx the form compares.

        Parameters
        ----------
        axes : array of shape (d, n)
            V, with orthonormal rows.

        Returns
        -------
        MultiMetric
            A form of rows of n features.
        """
        # A center's distances to rows all grow by what V leaves of the row: ranks stay.
        centers = None if self.centers is None else self.centers @ axes
        return type(self)(
            [L @ axes for L in self.components], classes=self.classes, centers=centers
        )

    def _all_pair_values(self, X: Matrix, Y: Matrix) -> Array:
        # The rows of a group together: which they are is known for all items only.
        return self._pair_values(*self._check_pairs(X, Y))

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        values, spaces = np.empty(X.shape[0], dtype=X.dtype), self.spaces
        for g, at in members_of(self.groups_of(Y)):
            values[at] = spaces[g].pairs(X[at], Y[at], squared=True)
        return values

    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        spaces = self.spaces
        parts = [(at, spaces[g]._scorer(Y[at])) for g, at in members_of(self.groups_of(Y))]

        def score(X: Matrix) -> Array:
            values = np.empty((X.shape[0], Y.shape[0]), dtype=X.dtype)
            for at, part in parts:
                values[:, at] = part(X)
            return values

        return score

    @property
    def _width(self) -> int:
        return max(self.components.shape[1:])

    def state(self) -> State:
        """All that makes this form; the items it is bound to do not belong to it.

        Returns
        -------
        State
            Arrays and plain values, by name.
        """
        n_groups, _, d = self.components.shape
        arrays = {"components": self.components.reshape(-1, d)}
        if self.centers is not None:
            return State({**arrays, "centers": self.centers}, {"n_groups": n_groups})
        assert self.classes is not None
        return State(arrays, {"n_groups": n_groups, "classes": self.classes.tolist()})

    @classmethod
    def _of_parts(cls, *, components: Array, n_groups: int, **known: Any) -> Self:
        rows, d = components.shape
        if type(n_groups) is not int or n_groups < 1 or rows % n_groups:
            raise InvalidInputError(f"{rows} rows are no {n_groups!r} maps.")
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
    # Imported where it is needed: other forms start without it.
    from scipy.spatial.distance import cdist

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
    if sp.issparse(components) or not isinstance(components, Iterable):
        raise InvalidInputError(
            "The components of MultiMetric must be a sequence of maps, one for each group. Got "
            f"{type(components).__name__}; give a list of 2-D arrays."
        )
    parts = [check_matrix(L, "components", "MultiMetric") for L in components]
    for part in parts:
        check_squares(part, "The components of MultiMetric")
    if not parts or any(part.shape[1] != parts[0].shape[1] for part in parts):
        raise InvalidInputError(
            "The components of MultiMetric must be one or more maps with the same number of "
            f"columns, but their shapes are {[part.shape for part in parts]}."
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
            f"got {labels.dtype} of shape {labels.shape}."
        )
    if labels.dtype.kind == "f":
        check_finite(labels, "The classes of MultiMetric")
    if len(np.unique(labels)) < n_groups:
        raise InvalidInputError("The classes of MultiMetric must all be different.")
    return frozen(labels)


def _numbers(labels: NDArray[Any], classes: NDArray[Any], n_items: int) -> Indices:
    """The place of each label among the classes."""
    if labels.shape != (n_items,):
        raise InvalidInputError(
            f"labels must have the shape {(n_items,)}, one for each item, but their shape is "
            f"{labels.shape}."
        )
    order = np.argsort(classes)
    known = classes[order]
    found, numbers = np.unique(labels, return_inverse=True)
    places = np.searchsorted(known, found).clip(max=len(known) - 1)
    strange = found[known[places] != found]
    if len(strange):
        raise InvalidInputError(
            f"The class {strange.tolist()[0]!r} is not one of the {len(known)} classes that this "
            "MultiMetric has a map for; leave its items out, or learn with it."
        )
    return order[places][numbers]


def _points(centers: ArrayLike, n_groups: int, n_features: int) -> Array:
    points = check_matrix(centers, "centers", "MultiMetric")
    if points.shape != (n_groups, n_features):
        raise InvalidInputError(
            f"The centers of MultiMetric must have the shape {(n_groups, n_features)}, one point "
            f"for each map, but their shape is {points.shape}."
        )
    return points
