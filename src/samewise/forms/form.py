"""What a learned metric promises, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from samewise._cards import spectrum_lines, table
from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved, State
from samewise.files.storable import Storable
from samewise.forms._frozen import Frozen
from samewise.forms._input_checks import check_overflow, check_rows, check_size, naming_rows
from samewise.kernels.pairwise import row_slices

if TYPE_CHECKING:
    from samewise.forms.distance_form import EuclideanForm

LITTLE = 2**18
"""Entries of a matrix whose spectrum is no work."""

MAX_BYTES = 4 * 2**30
_BLOCK_BYTES = 64 * 2**20
# Row by row nothing is shared between rows, so blocks are small enough for the cache.
_PAIR_BYTES = 4 * 2**20


class Form(Frozen, Storable, ABC, storable=False):
    """A learned metric: a frozen object that compares rows.

    A form says how near two rows are, either as a distance (`is_distance`) or as a similarity.
    `closeness` hides which of the two: larger is always closer. Its arrays are read-only copies,
    and its attributes cannot be set. Rows may be dense or CSR; float32 rows give float32 values.

    A new kind subclasses this and gives ``_pair_values``, ``_scorer`` and the names ``_stored``.

    Examples
    --------
    >>> from samewise import Bilinear, Mahalanobis
    >>> X, Y = [[0.0, 0.0]], [[3.0, 4.0]]
    >>> Mahalanobis.identity(2).pair_closeness(X, Y), Bilinear([[1, 0], [0, 1]]).pairs(Y, Y)
    (array([-5.]), array([25.]))
    """

    is_distance: ClassVar[bool] = False
    _stored: ClassVar[tuple[str, ...]] = ()
    """The attributes that make the form."""

    # What each kind gives

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name != "embed":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            kind, here = type(self).__name__, dir(type(self))
            if "embed_query" not in here:
                instead = "it compares two rows; use closeness, or search with an Index"
            elif "embed_item" in here:
                instead = "use embed_query for queries and embed_item for stored items"
            else:
                instead = "use embed_query for queries and store items as they are"
            raise AttributeError(f"A {kind} has no embed, one map for all rows: {instead}.")

    @property
    @abstractmethod
    def n_features_in(self) -> int:
        """Number of features of the rows of X (the queries)."""

    @property
    def n_features_items(self) -> int:
        """Number of features of the rows of Y (the items); that of X by default."""
        return self.n_features_in

    @property
    def takes_more_columns(self) -> bool:
        """Whether rows may have more columns than that, as those of a kernel matrix may."""
        return False

    @abstractmethod
    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        """Values of the rows of checked X and Y, one by one."""

    @abstractmethod
    def _scorer(self, Y: Matrix) -> Callable[[Matrix], Array]:
        """Prepare the items once; the function gives the values of some rows against all."""

    def state(self) -> State:
        """All that makes this form.

        Returns
        -------
        State
            Arrays and plain values, by name.
        """
        parts = {name: getattr(self, name) for name in self._stored}
        arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
        return State(arrays, {name: parts[name] for name in parts if name not in arrays})

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The form of a state, with exactly its arrays, which are checked but not recomputed.

        Parameters
        ----------
        saved : Saved
            The state, read from a file.

        Returns
        -------
        Form
            The restored object.
        """
        parts = saved.everything()
        form = cls._of_parts(**parts)
        state = form.state()
        saved.check({*state.arrays, *state.values} == {*parts}, "parts are missing")
        return form

    @classmethod
    def _of_parts(cls, *_: Any, **parts: Any) -> Self:
        """The form of its arrays and values."""
        return cls(**parts)

    @property
    def _width(self) -> int:
        """Columns that one row needs while it is worked on."""
        return self.n_features_items

    # What a kind with a metric for each group of items gives too

    @property
    def spaces(self) -> tuple[EuclideanForm, ...]:
        """The distances that the form consists of: one for each group of items, none if it is a
        similarity."""
        return ()

    @property
    def needs_labels(self) -> bool:
        """Whether items can be compared with only when their classes are known; see `bind`."""
        return False

    def groups_of(self, Y: Matrix, labels: ArrayLike | None = None) -> Indices:
        """The group of each item: the number of the space in which it is compared.

        Parameters
        ----------
        Y : array or CSR matrix of shape (m, n_features_items)
            Items, one row each.
        labels : array of shape (m,), default=None
            The classes of the items, for a form with `needs_labels`.

        Returns
        -------
        array of shape (m,)
            Zeros if the form has one space or none.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> Mahalanobis.identity(1).groups_of([[0.0], [1.0]])
        array([0, 0])
        """
        return np.zeros(self._check_rows(Y, "Y", self.n_features_items).shape[0], dtype=np.intp)

    def bind(self, Y: Matrix, labels: ArrayLike | None = None) -> Form:
        """The form for these items: the one to compare any rows with all of them.

        Only a form with `needs_labels` makes use of it; every other form returns itself. So code
        that knows the classes of its items binds, and then works with any form.

        Parameters
        ----------
        Y : array or CSR matrix of shape (m, n_features_items)
            The items.
        labels : array of shape (m,), default=None
            Their classes.

        Returns
        -------
        Form
            The form itself, or one that knows the classes of the items.

        See Also
        --------
        MultiMetric.bind : The form that has a metric for each class.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> form = Mahalanobis.identity(1)
        >>> form.bind([[0.0], [1.0]], ["a", "b"]) is form
        True
        """
        return self

    def lift(self, axes: Array) -> Form:
        """The same distances for rows x whose images Vx the form compares.

        Parameters
        ----------
        axes : array of shape (n_features_in, n)
            V, with orthonormal rows.

        Returns
        -------
        Form
            A form of rows of n features.
        """
        raise InvalidInputError(
            f"{type(self).__name__} is not made of linear maps, so it cannot be lifted."
        )

    # What all kinds share

    def pairs(self, X: Matrix, Y: Matrix) -> Array:
        """Compare row i of X with row i of Y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            First member of each pair, one row each.
        Y : array or CSR matrix of shape (n, n_features_items)
            Second member of each pair, one row each.

        Returns
        -------
        array of shape (n,)
            The value of each pair.

        Examples
        --------
        >>> from samewise import Bilinear
        >>> Bilinear([[2.0, 0.0], [0.0, 1.0]]).pairs([[1.0, 1.0]], [[1.0, 3.0]])
        array([5.])
        """
        return self._all_pair_values(X, Y)

    def cross(self, X: Matrix, Y: Matrix | None = None, *, max_bytes: float = MAX_BYTES) -> Array:
        """Compare every row of X with every row of Y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            Rows to compare.
        Y : array or CSR matrix of shape (m, n_features_items), default=None
            X itself by default.
        max_bytes : float, default=2**32
            The largest result that may be allocated; beyond it, a TooLargeError.

        Returns
        -------
        array of shape (n, m)
            The value of every row of X with every row of Y.

        Examples
        --------
        >>> from samewise import Bilinear
        >>> Bilinear([[1.0, 0.0], [0.0, 1.0]]).cross([[1.0, 1.0], [0.0, 2.0]])
        array([[2., 2.],
               [2., 4.]])
        """
        return self._gather("cross", X, Y, max_bytes, unchanged)

    def closeness(
        self, X: Matrix, Y: Matrix | None = None, *, max_bytes: float = MAX_BYTES
    ) -> Array:
        """Like `cross`, but larger is always closer: −distance, or the similarity itself.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            Rows to compare.
        Y : array or CSR matrix of shape (m, n_features_items), default=None
            Rows to compare with; X itself by default.
        max_bytes : float, default=2**32
            The largest result that may be allocated; beyond it, a TooLargeError is raised.

        Returns
        -------
        array of shape (n, m)
            Closeness of every row of X to every row of Y; larger is closer.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> Mahalanobis.identity(1).closeness([[0.0], [2.0]], [[1.0], [5.0]])
        array([[-1., -5.],
               [-1., -3.]])
        """
        return self._gather("closeness", X, Y, max_bytes, self._oriented)

    def pair_closeness(self, X: Matrix, Y: Matrix) -> Array:
        """Like `pairs`, but larger is always closer: −distance, or the similarity itself.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            First member of each pair, one row each.
        Y : array or CSR matrix of shape (n, n_features_items)
            Second member of each pair, one row each.

        Returns
        -------
        array of shape (n,)
            Closeness of each pair; larger is closer.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> Mahalanobis.identity(1).pair_closeness([[0.0], [2.0]], [[1.0], [5.0]])
        array([-1., -3.])
        """
        return self._oriented(self._all_pair_values(X, Y))

    def blocks(
        self, X: Matrix, Y: Matrix | None = None, *, block_bytes: int = _BLOCK_BYTES
    ) -> Iterator[tuple[slice, Array]]:
        """Go through `closeness` in blocks of rows, in bounded memory.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features_in)
            Rows to compare.
        Y : array or CSR matrix of shape (m, n_features_items), default=None
            X itself by default. It is prepared once.
        block_bytes : int, default=2**26
            About the size of one block; a block has at least one row.

        Returns
        -------
        iterator of (slice, array)
            The rows of X, and their closeness to all rows of Y.

        Examples
        --------
        >>> from samewise import Mahalanobis
        >>> for rows, block in Mahalanobis.identity(1).blocks([[0.0], [2.0]], block_bytes=16):
        ...     print(rows.start, block)
        0 [[ 0. -2.]]
        1 [[-2.  0.]]
        """
        values = self._value_blocks(*self._check_cross(X, Y), block_bytes)
        return ((rows, self._oriented(block)) for rows, block in values)

    def _oriented(self, values: Array) -> Array:
        return values

    def _check_rows(self, X: Matrix, name: str, n_features: int) -> Matrix:
        return check_rows(X, name, n_features, type(self).__name__)

    def _check_pairs(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        X, Y = self._check_two(X, Y)
        if X.shape[0] != Y.shape[0]:
            raise InvalidInputError(
                f"pairs compares row by row, but X has {X.shape[0]} rows and Y has {Y.shape[0]}; "
                "give as many of each, or use cross for all against all."
            )
        return X, Y

    def _check_cross(self, X: Matrix, Y: Matrix | None) -> tuple[Matrix, Matrix | None]:
        if Y is not None:
            return self._check_two(X, Y)
        if self.n_features_in != self.n_features_items:
            raise InvalidInputError(
                f"{type(self).__name__} compares rows of {self.n_features_in} features with rows "
                f"of {self.n_features_items}, so Y cannot be X; give Y."
            )
        return self._check_rows(X, "X", self.n_features_in), None

    def _check_two(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        X = self._check_rows(X, "X", self.n_features_in)
        Y = self._check_rows(Y, "Y", self.n_features_items)
        dtype = np.result_type(X.dtype, Y.dtype)
        return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)

    def _all_pair_values(self, X: Matrix, Y: Matrix) -> Array:
        X, Y = self._check_pairs(X, Y)
        values = np.empty(X.shape[0], dtype=X.dtype)
        row_bytes = (X.shape[1] + self._width) * X.dtype.itemsize
        for rows in row_slices(len(values), row_bytes, _PAIR_BYTES):
            values[rows] = self._checked(self._pair_values, X[rows], Y[rows], start=rows.start)
        return values

    def _value_blocks(
        self, X: Matrix, Y: Matrix | None, block_bytes: int
    ) -> Iterator[tuple[slice, Array]]:
        items = X if Y is None else Y
        with naming_rows():
            score = self._scorer(items)
        row_bytes = max(items.shape[0], self._width) * X.dtype.itemsize
        for rows in row_slices(X.shape[0], row_bytes, block_bytes):
            yield rows, self._checked(score, X[rows], start=rows.start)

    def _checked(self, compute: Callable[..., Array], *rows: Any, start: int = 0) -> Array:
        """What is computed of rows from `start` on; refused where it is undefined or overflows."""
        with naming_rows(start):
            values = compute(*rows)
            check_overflow(values, type(self).__name__)
        return values

    def _gather(
        self,
        what: str,
        X: Matrix,
        Y: Matrix | None,
        max_bytes: float,
        finish: Callable[[Array], Array],
    ) -> Array:
        X, Y = self._check_cross(X, Y)
        shape = X.shape[0], (X if Y is None else Y).shape[0]
        check_size(what, *shape, X.dtype, max_bytes)
        values = np.empty(shape, dtype=X.dtype)
        for rows, block in self._value_blocks(X, Y, _BLOCK_BYTES):
            values[rows] = finish(block)
        return values

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Form):
            return NotImplemented
        mine, theirs = self.state(), other.state()
        return (
            mine.values == theirs.values
            and mine.arrays.keys() == theirs.arrays.keys()
            and all(_same(values, theirs.arrays[name]) for name, values in mine.arrays.items())
        )

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value}" for name, value in self._summary().items())
        return f"{type(self).__name__}({parts})"

    def _repr_html_(self) -> str:
        """What a notebook shows: kind, size, spectrum."""
        lines = [(name.replace("_", " "), str(value)) for name, value in self._summary().items()]
        return table(type(self).__name__, lines + spectrum_lines(self._spectrum()))

    def _spectrum(self) -> Array | None:
        """Eigenvalues or singular values, largest first, where they are no work."""
        return None

    @abstractmethod
    def _summary(self) -> dict[str, Any]:
        """What to show of the form in one line."""


def _same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b)


def unchanged(values: Array) -> Array:
    """Finish a block that needs no finishing."""
    return values
