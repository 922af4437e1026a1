"""Approximate search under a learned form, by the graphs of usearch and hnswlib."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear, Form, LowRankBilinear, Mahalanobis
from samewise.kernels.pairwise import dense
from samewise.supervision.supervision_checks import checked_rows

Float32 = NDArray[np.float32]

AT_FIRST = 1024
"""Places in a new hnswlib index; it is made larger as rows come."""


class MappedIndex(ABC):
    """An index of another package over mapped rows; queries and items are mapped on their way in.

    Attributes
    ----------
    form : Form
        What maps them.
    inner : object
        The index of the package, with its own methods of writing to a file.
    """

    def __init__(self, form: Form, inner: Any) -> None:
        self.form, self.inner = form, inner

    @abstractmethod
    def __len__(self) -> int:
        """How many rows there are."""

    def add(self, X: Matrix, keys: ArrayLike | None = None) -> Indices:
        """Map items and store them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Items.
        keys : int array of shape (n,), default=None
            What `query` calls them; by default numbers from the number of rows that are there.

        Returns
        -------
        int array of shape (n,)
            The keys.
        """
        rows = _as_float32(_items(self.form, X))
        found = np.arange(len(self), len(self) + len(rows)) if keys is None else np.asarray(keys)
        if found.shape != (len(rows),) or found.dtype.kind not in "iu" or found.min(initial=0) < 0:
            raise InvalidInputError(
                f"keys must be one whole number from 0 for each of the {len(rows)} rows. Got "
                f"{found.dtype} of shape {found.shape}."
            )
        self._add(found, rows)
        return found

    def query(self, X: Matrix, n_neighbors: int = 1) -> tuple[Array, Indices]:
        """Map queries and search.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Queries.
        n_neighbors : int, default=1
            How many neighbors each gets.

        Returns
        -------
        closeness : array of shape (n, n_neighbors)
            Larger is closer: minus the distance, or the similarity. As `Index.query` has it.
        keys : int array of shape (n, n_neighbors)
            Of the items, closest first.
        """
        if not 1 <= n_neighbors <= len(self):
            raise InvalidInputError(
                f"n_neighbors must be from 1 to the {len(self)} rows there are. Got {n_neighbors}."
            )
        dot = _is_dot(self.form)
        form: Any = self.form
        rows = _as_float32(form.embed_query(X) if dot else form.embed(X))
        distances, keys = self._search(rows, n_neighbors)
        closeness = 1 - distances if dot else -np.sqrt(np.maximum(distances, 0))
        return np.asarray(closeness), np.asarray(keys).astype(np.intp)

    @abstractmethod
    def _add(self, keys: Indices, rows: Float32) -> None: ...

    @abstractmethod
    def _search(self, rows: Float32, k: int) -> tuple[Array, Any]: ...


class _USearch(MappedIndex):
    def __len__(self) -> int:
        return len(self.inner)

    def _add(self, keys: Indices, rows: Float32) -> None:
        self.inner.add(keys.astype(np.uint64), rows)

    def _search(self, rows: Float32, k: int) -> tuple[Array, Any]:
        found = self.inner.search(rows, k)
        shape = (len(rows), k)
        return np.asarray(found.distances).reshape(shape), np.asarray(found.keys).reshape(shape)


class _HNSWLib(MappedIndex):
    def __len__(self) -> int:
        return int(self.inner.get_current_count())

    def _add(self, keys: Indices, rows: Float32) -> None:
        wanted = len(self) + len(rows)
        if wanted > (before := self.inner.get_max_elements()):
            self.inner.resize_index(max(wanted, 2 * before))
        self.inner.add_items(rows, keys)

    def _search(self, rows: Float32, k: int) -> tuple[Array, Any]:
        # It looks among `ef` rows, of which there must be k.
        if self.inner.ef < k:
            self.inner.set_ef(k)
        keys, distances = self.inner.knn_query(rows, k)
        return distances, keys


def to_usearch(form: Form, inner: Any = None) -> MappedIndex:
    """A usearch index that searches under a learned form.

    Parameters
    ----------
    form : Mahalanobis, Bilinear or LowRankBilinear
        A distance ‖Lx − Lx′‖, or a similarity qᵀWp of queries and items.
    inner : usearch.index.Index, default=None
        Where mapped rows are stored, or are already, as after ``Index.restore(path)``; under the
        metric "l2sq" for a distance and "ip" for a similarity. By default a new one, in float32.

    Returns
    -------
    MappedIndex
        ``add(X, keys)`` and ``query(X, n_neighbors)`` take rows as the form does; ``inner.save``
        writes the index.

    Notes
    -----
    It needs the package usearch: ``pip install 'samewise[search]'``. It works in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis
    >>> from samewise.search import to_usearch
    >>> index = to_usearch(Mahalanobis.from_components([[2.0, 0.0]]))  # doctest: +SKIP
    >>> index.add(np.array([[0.0, 0.0], [1.0, 9.0]]))  # doctest: +SKIP
    array([0, 1])
    >>> index.query(np.array([[0.9, 0.0]]))[1]  # doctest: +SKIP
    array([[1]])
    """
    metric, d = _metric(form, "to_usearch"), _width(form)
    package = _imported("usearch.index", "usearch")
    if inner is None:
        name = "ip" if metric == "ip" else "l2sq"
        return _USearch(form, package.Index(ndim=d, metric=name, dtype="f32"))
    kinds = package.MetricKind
    wanted = kinds.IP if metric == "ip" else kinds.L2sq
    _check_inner(inner.ndim, d, inner.metric_kind == wanted, str(wanted))
    return _USearch(form, inner)


def to_hnswlib(form: Form, inner: Any = None) -> MappedIndex:
    """An hnswlib index that searches under a learned form.

    Parameters
    ----------
    form : Mahalanobis, Bilinear or LowRankBilinear
        A distance ‖Lx − Lx′‖, or a similarity qᵀWp of queries and items.
    inner : hnswlib.Index, default=None
        Where mapped rows are stored, or are already, as after ``load_index(path)``; in the space
        "l2" for a distance and "ip" for a similarity. By default a new one with M=16 and
        ef_construction=200.

    Returns
    -------
    MappedIndex
        ``add(X, keys)`` and ``query(X, n_neighbors)`` take rows as the form does;
        ``inner.save_index`` writes the index. It grows as rows are added.

    Notes
    -----
    It needs the package hnswlib: ``pip install 'samewise[search]'``. It works in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import Mahalanobis
    >>> from samewise.search import to_hnswlib
    >>> index = to_hnswlib(Mahalanobis.from_components([[2.0, 0.0]]))  # doctest: +SKIP
    >>> index.add(np.array([[0.0, 0.0], [1.0, 9.0]]))  # doctest: +SKIP
    array([0, 1])
    >>> index.query(np.array([[0.9, 0.0]]))[1]  # doctest: +SKIP
    array([[1]])
    """
    metric, d = _metric(form, "to_hnswlib"), _width(form)
    package = _imported("hnswlib", "hnswlib")
    if inner is None:
        inner = package.Index(space=metric, dim=d)
        inner.init_index(max_elements=AT_FIRST, ef_construction=200, M=16, random_seed=0)
        inner.set_ef(100)
    _check_inner(inner.dim, d, inner.space == metric, repr(metric))
    return _HNSWLib(form, inner)


def _is_dot(form: Form) -> bool:
    return type(form) in (Bilinear, LowRankBilinear)


def _items(form: Any, X: Matrix) -> Any:
    """Mapped items; under a full matrix they are stored as they are."""
    if isinstance(form, LowRankBilinear):
        return form.embed_item(X)
    if isinstance(form, Mahalanobis):
        return form.embed(X)
    return dense(checked_rows(X, form.n_features_items, "X"))


def _metric(form: Form, owner: str) -> str:
    if isinstance(form, Mahalanobis):
        return "l2"
    if _is_dot(form):
        return "ip"
    raise InvalidInputError(
        f"{owner} needs a Mahalanobis distance or a bilinear similarity, whose maps are matrices. "
        f"Got a {type(form).__name__}; index rows that it has mapped (embed) instead."
    )


def _width(form: Any) -> int:
    """Columns of mapped rows."""
    if isinstance(form, Mahalanobis):
        return len(form.components)
    return int(_items(form, np.zeros((1, form.n_features_items))).shape[1])


def _check_inner(given: int, wanted: int, right: bool, metric: str) -> None:
    if given != wanted or not right:
        raise InvalidInputError(
            f"The inner index must be of {wanted} dimensions, as many as the form maps to, under "
            f"{metric}. Got one of {given} dimensions" + ("." if right else ", and another metric.")
        )


def _as_float32(rows: Any) -> Float32:
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(np.asarray(rows), dtype=np.float32)
    if not np.isfinite(found).all():
        raise InvalidInputError(
            "Mapped rows have values that overflow float32, in which the index works. Scale the "
            "features."
        )
    return found


def _imported(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This index needs the package {package}: pip install 'samewise[search]'."
        ) from error
