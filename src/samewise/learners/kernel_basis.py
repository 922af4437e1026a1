"""Learners in the feature space of a kernel, worked on in a basis of kernel PCA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError, NotPSDError
from samewise.forms import KernelMahalanobis
from samewise.forms.kernel_mahalanobis import KERNELS, kernel_values
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, FormOf, Values
from samewise.learners.constraints import COUNT, check_at_most
from samewise.learners.dense_rows import check_scale
from samewise.learners.learner import MapLearner
from samewise.solvers.evaluation import Matrix64
from samewise.supervision.supervision_checks import LARGEST

DIRECTIONS = "the number of directions that the landmarks span in feature space"
"""What limits the rank."""

EXACT = 5_000
"""Up to so many points, all are landmarks by default."""

LANDMARKS = 1_000
"""The number of landmarks sampled from more points than that by default."""

LEAST = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}
"""Directions with a smaller part of the largest eigenvalue are left out, by the type of input."""


@dataclass(eq=False, repr=False)
class KernelBasis(MapLearner, storable=False):
    """A learner in the coordinates that kernel PCA of the landmarks gives the points."""

    metric_: KernelMahalanobis = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((KernelMahalanobis,)),
        "landmarks_": Values(dtypes=("int64",)),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"precomputed", *KERNELS}), callable],
        "kernel_params": [None, dict],
        "n_landmarks": [Interval(Integral, 2, None, closed="left"), None],
        "n_directions": [COUNT, None],
    }

    kernel: str | Callable[..., float] = "rbf"
    kernel_params: Mapping[str, Any] | None = None
    _: KW_ONLY
    n_landmarks: int | None = None
    n_directions: int | None = None

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _accepted(self) -> dict[str, Any]:
        sparse = False if self._precomputed else "csr"
        return {"accept_sparse": sparse, "dtype": [np.float64, np.float32]}

    def _choose(self, shape: tuple[int, int], random: np.random.RandomState) -> Indices:
        """The landmarks, by row number."""
        n, m = shape
        if self._precomputed and n != m:
            raise InvalidInputError(
                "With kernel='precomputed', X must be the square kernel matrix between the "
                f"training points. Got shape ({n}, {m})."
            )
        s = self.n_landmarks or (n if n <= EXACT else LANDMARKS)
        check_at_most("n_landmarks", s, n, "the number of points")
        return np.arange(n) if s == n else np.sort(random.choice(n, s, replace=False))

    def _form(self, C: Array, landmarks: Indices, support: Matrix) -> KernelMahalanobis:
        rows = landmarks if self._precomputed else support
        return KernelMahalanobis(C, rows, self.kernel, self.kernel_params)

    def _basis(self, X: Matrix, landmarks: Indices, support: Matrix) -> tuple[Matrix64, Array]:
        """Coefficients of the directions, one row for each, and coordinates of the points."""
        check_scale(X)
        s = len(landmarks)
        # Keywords that the kernel does not know, and points it rejects, are met by the form.
        self._form(np.zeros((1, 1)), landmarks[:1], support[:1])
        if self._precomputed:
            K = support[:, landmarks]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                K = kernel_values(self.kernel, self.kernel_params, support)
        B = directions(K, X.dtype)
        check_at_most("n_directions", self.n_directions, len(B), DIRECTIONS)
        B = B[: self.n_directions]
        Z = K @ B.T if s == X.shape[0] else self._form(B, landmarks, support).embed(X)
        return B, Z

    def _rows(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return validate_data(self, sound_rows(X), reset=False, **self._accepted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


def directions(K: Matrix64, dtype: np.dtype[Any]) -> Matrix64:
    """Λ^(−1/2) Uᵀ for the eigenvalues Λ of JKJ = UΛUᵀ, largest first, that count.

    Which count depends on the type of the input. U is orthogonal to the constant vector, so that
    coordinates need no centering of their own.
    """
    size = float(np.abs(K).max())
    # Coordinates of the points are as large as its root.
    limit = LARGEST[np.dtype(np.float64)] ** 2
    if not (size == 0 or 1 / limit <= size <= limit):
        raise InvalidInputError(
            f"The kernel's largest value on the landmarks is {size:.3g}, but it must be finite and "
            f"between {1 / limit:g} and {limit:g}; scale the features, or choose other "
            "kernel_params."
        )
    rounding = len(K) * float(np.finfo(dtype).eps) * size
    if np.abs(K - K.T).max() > rounding:
        raise InvalidInputError(
            "The kernel must be symmetric, but k(x, x′) and k(x′, x) differ by up to "
            f"{np.abs(K - K.T).max():.3g}."
        )
    mean = K.mean(axis=0)
    centered = K - mean - mean[:, None] + mean.mean()
    values, U = np.linalg.eigh(centered)
    zero = max(LEAST[dtype] * values[-1], rounding)
    if values[0] < -zero:
        raise NotPSDError(
            "The kernel must be positive semi-definite, but on the landmarks, centered, the "
            f"eigenvalues of its matrix go from {values[0]:.3g} to {values[-1]:.3g}. Choose "
            "another kernel or other kernel_params."
        )
    kept = np.flatnonzero(values > zero)[::-1]
    if not len(kept):
        # All points are the same to the kernel: one direction, in which they are at 0.
        return np.zeros((1, len(K)))
    B: Matrix64 = (U[:, kept] / np.sqrt(values[kept])).T
    return B
