"""A Mahalanobis distance in the span of a kernel's support points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.files.state import State
from samewise.forms._frozen import freeze
from samewise.forms._input_checks import check_columns, check_matrix, check_rows, check_squares
from samewise.forms.distance_form import EuclideanForm
from samewise.kernels.pairwise import row_slices, squared_norms

_BLOCK_BYTES = 16 * 2**20
KERNELS = (
    "additive_chi2",
    "chi2",
    "linear",
    "polynomial",
    "poly",
    "rbf",
    "laplacian",
    "sigmoid",
    "cosine",
)
"""The names of `sklearn.metrics.pairwise.kernel_metrics`, which takes long to import."""


class KernelMahalanobis(EuclideanForm):
    """The distance ‖C(k(x) − k(x'))‖ with k(x) = (k(x, s_1), …, k(x, s_s)) and support s_j.

    Parameters
    ----------
    coefficients : array of shape (r, s)
        C.
    support : array or CSR matrix of shape (s, d)
        The support points; for ``kernel="precomputed"`` the (s,) numbers of their columns in the
        kernel matrices that take the place of X, which need at least as many columns.
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed", or a callable of two
        rows that returns a number (slow, and such a form cannot be saved).
    kernel_params : dict, default=None
        Keywords for the kernel, such as ``{"gamma": 0.5}``.

    Attributes
    ----------
    coefficients, support, kernel, kernel_params
        As given.
    matrix : array of shape (s, s)
        CᵀC, the metric in the span of the support.
    n_features_in : int
        d; for "precomputed" the smallest number of columns that holds the support.

    Examples
    --------
    >>> form = KernelMahalanobis([[1.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]], kernel="linear")
    >>> form
    KernelMahalanobis(kernel='linear', n_features_in=2, n_support=2, rank=1)
    >>> form.embed([[2.0, 5.0]])
    array([[3.]])
    >>> form.pairs([[2.0, 5.0]], [[0.0, 0.0]])
    array([3.])
    """

    coefficients: Array
    support: Matrix
    kernel: str | Callable[..., float]

    def __init__(
        self,
        coefficients: Array,
        support: Matrix,
        kernel: str | Callable[..., float] = "rbf",
        kernel_params: Mapping[str, Any] | None = None,
    ) -> None:
        names = ["precomputed", *KERNELS]
        if not callable(kernel) and kernel not in names:
            raise InvalidInputError(
                f"The kernel of KernelMahalanobis must be one of {', '.join(names)} or a callable, "
                f"but it is {kernel!r}."
            )
        C = check_matrix(coefficients, "coefficients", "KernelMahalanobis")
        check_squares(C, "The coefficients of KernelMahalanobis")
        support = _columns(support) if kernel == "precomputed" else _points(support)
        if C.shape[1] != support.shape[0]:
            raise InvalidInputError(
                f"The coefficients of KernelMahalanobis have {C.shape[1]} columns, but there are "
                f"{support.shape[0]} support points; give one column for each."
            )
        if not isinstance(kernel_params, Mapping | None):
            raise InvalidInputError(
                "The kernel_params of KernelMahalanobis must be a dict of keywords or None, but "
                f"they are {kernel_params!r}."
            )
        params = {name: _plain(value) for name, value in (kernel_params or {}).items()}
        self._set(coefficients=C, support=support, kernel=kernel, _kernel_params=params)
        self._try_kernel()

    @property
    def kernel_params(self) -> dict[str, Any]:
        """Keywords of the kernel, as a copy."""
        return dict(self._kernel_params)

    @cached_property
    def matrix(self) -> Array:
        """CᵀC, the metric in the span of the support."""
        return freeze(self.coefficients.T @ self.coefficients)

    @property
    def n_features_in(self) -> int:
        """Number of features; for "precomputed" the smallest number of columns."""
        if self.kernel == "precomputed":
            return int(self.support.max()) + 1
        return self.support.shape[1]

    @property
    def takes_more_columns(self) -> bool:
        """Whether rows may have more columns: those of training points beside the support."""
        return self.kernel == "precomputed"

    def embed(self, X: Matrix) -> Array:
        """Rows k(X, support) Cᵀ, whose Euclidean distance is this distance.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            For "precomputed" n rows of a kernel matrix, whose columns are the training points.

        Returns
        -------
        array of shape (n, r)
            The embedded rows.

        Examples
        --------
        >>> form = KernelMahalanobis([[1.0, 2.0]], [0, 2], kernel="precomputed")
        >>> form.embed([[1.0, 9.0, 3.0]])
        array([[7.]])
        """
        return self._checked(self._embed, self._check_rows(X, "X", self.n_features_in))

    def _check_rows(self, X: Matrix, name: str, n_features: int) -> Matrix:
        if self.kernel == "precomputed":
            return check_columns(X, name, n_features, type(self).__name__)
        return check_rows(X, name, n_features, type(self).__name__)

    @property
    def _width(self) -> int:
        return max(self.coefficients.shape)

    def _embed(self, X: Matrix) -> Array:
        C = self.coefficients.astype(X.dtype, copy=False).T
        E = np.empty((X.shape[0], C.shape[1]), dtype=X.dtype)
        support = self._support_for(X)
        for rows in row_slices(len(E), len(C) * X.dtype.itemsize, _BLOCK_BYTES):
            E[rows] = self._evaluate(X[rows], support) @ C
        return E

    def _support_for(self, X: Matrix) -> Matrix:
        if self.kernel == "precomputed":
            return self.support
        return self.support.astype(X.dtype, copy=False)

    def _evaluate(self, X: Matrix, support: Matrix) -> Matrix:
        if self.kernel == "precomputed":
            return X[:, support]
        return kernel_values(self.kernel, self._kernel_params, X, support)

    def _try_kernel(self) -> None:
        """Meet keywords that the kernel does not know, or points it rejects, before any use."""
        if self.kernel == "precomputed":
            if self._kernel_params:
                raise InvalidInputError(
                    "A precomputed kernel takes no kernel_params, "
                    f"but they are {self._kernel_params}."
                )
            return
        point = self.support[:1]
        if sparse.issparse(point) and point.nnz:
            # The columns it has: a file may claim any number of others.
            point = point[:, np.unique(point.indices)]
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                self._evaluate(point, point)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"The kernel {self.kernel!r} cannot be evaluated on the support with kernel_params="
                f"{self._kernel_params}: {error}."
            ) from error

    def _pair_values(self, X: Matrix, Y: Matrix) -> Array:
        return squared_norms(self._embed(X) - self._embed(Y))

    def state(self) -> State:
        """All that makes this form.

        Returns
        -------
        State
            Arrays and plain values, by name.
        """
        arrays = {"coefficients": self.coefficients}
        params = {"kernel": self.kernel, "kernel_params": self._kernel_params}
        if not sparse.issparse(self.support):
            return State({**arrays, "support": self.support}, params)
        parts = {
            "support_data": self.support.data,
            "support_indices": self.support.indices.astype(np.int64),
            "support_indptr": self.support.indptr.astype(np.int64),
        }
        return State({**arrays, **parts}, {**params, "n_features": self.support.shape[1]})

    @classmethod
    def _of_parts(cls, *_: Any, **parts: Any) -> Self:
        return cls._of_sparse(**parts) if "n_features" in parts else cls(**parts)

    @classmethod
    def _of_sparse(
        cls,
        *,
        coefficients: Array,
        support_data: Array,
        support_indices: Array,
        support_indptr: Array,
        n_features: int,
        kernel: str,
        kernel_params: dict[str, Any],
    ) -> Self:
        parts = support_data, support_indices, support_indptr
        _check_csr(*parts, n_features)
        support = sparse.csr_array(parts, shape=(len(support_indptr) - 1, n_features))
        return cls(coefficients, support, kernel, kernel_params)

    def _summary(self) -> dict[str, Any]:
        return {
            "kernel": repr(self.kernel),
            "n_features_in": self.n_features_in,
            "n_support": self.support.shape[0],
            "rank": len(self.coefficients),
        }

    _kernel_params: dict[str, Any]


def kernel_values(
    kernel: str | Callable[..., float],
    params: Mapping[str, Any] | None,
    X: Matrix,
    Y: Matrix | None = None,
) -> Array:
    """k(x, y) of all rows of X and Y, or of X and X, by scikit-learn.

    Examples
    --------
    >>> kernel_values("linear", None, np.array([[1.0, 2.0]]))
    array([[5.]])
    """
    if kernel in ("chi2", "additive_chi2"):
        # scikit-learn's loops for these take no read-only arrays.
        X, Y = np.array(X), None if Y is None else np.array(Y)
    # Imported where it is needed: other forms start without it.
    from sklearn.metrics.pairwise import pairwise_kernels

    return pairwise_kernels(X, Y, metric=kernel, **(params or {}))


def _points(support: Any) -> Matrix:
    if not sparse.issparse(support):
        return check_matrix(support, "support", "KernelMahalanobis")
    rows = check_rows(support, "support", support.shape[-1], "KernelMahalanobis")
    # The narrowest index type, so that the same points have the same bits wherever they come from.
    index = sparse.get_index_dtype(maxval=max(rows.nnz, *rows.shape))
    parts = rows.data.copy(), rows.indices.astype(index), rows.indptr.astype(index)
    return freeze(sparse.csr_array(parts, shape=rows.shape))


def _check_csr(data: Array, indices: Array, indptr: Array, n_features: int) -> None:
    # SciPy's own check trusts the last entry of indptr.
    if (
        any(part.ndim != 1 for part in (data, indices, indptr))
        or any(part.dtype != np.int64 for part in (indices, indptr))
        or len(indptr) == 0
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(data) != len(indices)
        or np.any(np.diff(indptr) < 0)
        or np.any((indices < 0) | (indices >= n_features))
    ):
        raise InvalidInputError("The sparse support points are inconsistent.")


def _columns(support: Any) -> Any:
    columns = np.array(support)
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or np.min(columns, initial=0) < 0:
        raise InvalidInputError(
            "The support of a precomputed kernel must be a 1-D array of column numbers (integers "
            f"from 0), but it has the shape {columns.shape} and the type {columns.dtype}."
        )
    return freeze(columns.astype(np.int64))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
