"""LMNN in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    _fit_context,
)
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from samewise._typing import Array, Indices, Matrix
from samewise.exceptions import InvalidInputError, NotPSDError
from samewise.forms import KernelMahalanobis
from samewise.learners.attributes import (
    Attribute,
    Count,
    Flag,
    FormOf,
    History,
    Labels,
    Number,
    Values,
)
from samewise.learners.batch.lmnn import target_checks as checks
from samewise.learners.batch.lmnn.estimator import LMNN
from samewise.learners.learner import MapLearner
from samewise.learners.neighbors.class_checks import numbered
from samewise.solvers.evaluation import Matrix64

EXACT = 10_000
"""Up to so many points all are landmarks unless said otherwise."""

LANDMARKS = 1_000
"""The number of landmarks drawn from more points than that, unless said otherwise."""

ROWS = 256
"""The most rows of L unless said otherwise: the solver keeps about twenty arrays of its size."""

LEAST = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}
"""Directions with a smaller part of the largest eigenvalue are left out, by the type of input."""

LEARNED = ("loss_", "n_active_", "gap_", "n_iter_", "history_", "classes_")
"""What is taken over from LMNN in the basis."""


class KernelBasis(MapLearner, storable=False):
    """A learner in the coordinates that kernel PCA of the landmarks gives the points."""

    kernel: str | Callable[..., float]
    kernel_params: Mapping[str, Any] | None
    n_landmarks: int | None
    n_directions: int | None
    metric_: KernelMahalanobis

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"precomputed", *kernel_metrics()}), callable],
        "kernel_params": [None, dict],
        "n_landmarks": [Interval(Integral, 2, None, closed="left"), None],
        "n_directions": [Interval(Integral, 1, None, closed="left"), None],
    }

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
        if s > n:
            raise InvalidInputError(
                f"n_landmarks must be at most the number of points, {n}. Got {s} instead."
            )
        return np.arange(n) if s == n else np.sort(random.choice(n, s, replace=False))

    def _form(self, C: Array, landmarks: Indices, support: Matrix) -> KernelMahalanobis:
        rows = landmarks if self._precomputed else support
        return KernelMahalanobis(C, rows, self.kernel, self.kernel_params)

    def _basis(self, X: Matrix, landmarks: Indices, support: Matrix) -> tuple[Matrix64, Array]:
        """Coefficients of the directions, one row for each, and coordinates of the points."""
        s = len(landmarks)
        # Keywords that the kernel does not know, and points it rejects, are met by the form.
        self._form(np.zeros((1, 1)), landmarks[:1], support[:1])
        if self._precomputed:
            K = support[:, landmarks]
        else:
            K = pairwise_kernels(support, metric=self.kernel, **(self.kernel_params or {}))
        B = directions(K, X.dtype)
        if self.n_directions is not None:
            _check_at_most("n_directions", self.n_directions, len(B))
            B = B[: self.n_directions]
        Z = K @ B.T if s == X.shape[0] else self._form(B, landmarks, support).embed(X)
        return B, Z

    def _rows(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._accepted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.pairwise = self._precomputed
        return tags


class KernelLMNN(KernelBasis):
    """LMNN on φ(x), known through a kernel k(x, x′) = φ(x)·φ(x′) only.

    The loss is that of `LMNN` with D_ij = ‖L(φ(x_i) − φ(x_j))‖². The best L lies in the span of the
    points, L = CΦ with rows φ(s_1), …, φ(s_s) in Φ, so that M = LᵀL = ΦᵀAΦ with A = CᵀC, and
    D_ij = ‖C(k(x_i) − k(x_j))‖² with k(x) = (k(x, s_1), …, k(x, s_s)). It is found in the basis of
    kernel PCA: with the kernel matrix of the s points, centered, JKJ = UΛUᵀ, the point x has the
    coordinates Λ^(−1/2) Uᵀ k(x). There LMNN learns L′, and C = L′ Λ^(−1/2) Uᵀ.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, a callable of two rows, or
        "precomputed". In that case X is the kernel matrix between the training points, and later
        input holds the kernel values of new points with all training points.
    kernel_params : dict, default=None
        Keywords for the kernel, such as ``{"gamma": 0.5}``.
    n_landmarks : int, default=None
        Number s of landmarks. With all n points the span is complete. With fewer, sampled at
        random, points are replaced by their projections on the span of the landmarks (Nyström's
        method), which is an approximation of everything that follows. By default all points up to
        10 000, and 1 000 of more.
    n_directions : int, default=None
        How many leading directions of kernel PCA to keep: a second approximation, which saves much
        time. By default all whose eigenvalue is above 1e-8 of the largest (1e-5 for float32 input)
        and above the rounding of the kernel's values.
    n_components : int, default=None
        Number of rows of L. At most the number of directions. By default that number, up to 256.
        With solver "M", L is square.
    n_neighbors : int, default=3
        Number k of neighbors. In a class of k points or fewer, each point has all others as
        targets.
    push_weight : float in [0, 1], default=0.5
        Weight μ of the push terms; 1 − μ is that of the pull terms.
    n_passes : int, default=1
        How often targets are searched. In each further pass the targets are found under the
        distance of the pass before, from which it starts.
    solver : {"L", "M"}, default="L"
        "L" minimizes over L by L-BFGS, which is fast; the problem is not convex, but starts from
        anywhere were seen to end at the same loss. "M" finds the minimum of the convex problem over
        M = LᵀL ⪰ 0 and proves it by a duality gap; it takes many more iterations.
    targets : array of shape (n, k), default=None
        The target neighbors of each point, as row numbers of X; −1 for none. By default the k
        nearest of the same class in feature space, by k(x, x) − 2 k(x, x′) + k(x′, x′).
    hinge : {"linear", "squared"}, default="linear"
        "squared" has [·]₊² in the place of [·]₊, a different loss.
    max_iter : int, default=500
        Maximum number of iterations. They are counted anew after each search of targets.
    tol : float, default=2e-4
        Tolerance of the stopping rule. Solver "L" stops when two iterations in a row lower the loss
        by no more than tol·loss; "M" when the duality gap is at most tol·loss, which can be asked
        for down to about 1e-5.
    validation_fraction : float in (0, 1), default=None
        Part of the examples to hold out for early stopping. Of each class this part is held out.
        Its k-NN error is computed every fifth iteration; learning stops after three evaluations
        without improvement, and the best map is kept. Points that are held out may still be
        landmarks.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `metric_`, restricted
        to the span of the landmarks.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present C.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    components_ : array of shape (n_components, s)
        C, the coefficients of the landmarks.
    metric_ : KernelMahalanobis
        The learned form.
    landmarks_ : array of shape (s,)
        Row numbers of the landmarks.
    n_directions_ : int
        Number of directions that were kept.
    loss_ : float
        ε of `components_` over all triplets, in the span of the directions, with the targets of the
        last pass.
    n_active_ : int
        Number of triplets with a positive hinge.
    gap_ : float
        With solver "M": no M ⪰ 0 in the span of the directions has a loss below loss_ − gap_.
    n_iter_ : int
        Iterations, in all passes.
    converged_ : bool
        Whether the last pass ended by `tol`.
    history_ : dict of arrays
        After each iteration: "pass"; "loss" over the candidates, with solver "M" that of a hinge
        that is rounded off; "n_active"; "n_candidates", pairs of points; "validation_error", NaN
        where it was not computed; "seconds".
    classes_ : array
        The labels.
    n_features_in_ : int
        Number of features d.

    Notes
    -----
    Distances do not depend on where the origin of feature space is. The kernel is centered at the
    mean of the landmarks because the mean would otherwise be a direction of its own, often the
    longest, that no distance depends on.

    s landmarks take memory for about five s × s arrays and O(s³) time. After that, memory and time
    are those of LMNN on n points with n_directions_ features, whose start decomposes a few matrices
    of that size: thousands of directions take minutes.

    In nearly as many directions as there are points, any labels can be pulled together and apart:
    the loss comes close to 0, which says little about new points. Fewer directions (`n_directions`)
    or early stopping (`validation_fraction`) keep from that, and the first saves time.

    A kernel that is not positive semi-definite on the points (after centering) is refused.

    A run also ends when the loss is at most `tol` for each point: nothing is left to be gained.

    Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    Weinberger and Saul, *Distance metric learning for large margin nearest neighbor
    classification*, JMLR 10, 2009, section 5.3. Torresani and Lee, *Large margin component
    analysis*, NIPS 2007.

    Examples
    --------
    >>> from samewise.datasets import make_concentric_circles
    >>> from samewise.decide import KNNClassifier
    >>> from samewise.learners.batch.lmnn.kernel_lmnn import KernelLMNN
    >>> X, y = make_concentric_circles(200, random_state=0)
    >>> learner = KernelLMNN("poly", {"degree": 2}).fit(X[:100], y[:100])
    >>> learner.metric_
    KernelMahalanobis(kernel='poly', n_features_in=2, n_support=100, rank=5)
    >>> KNNClassifier(learner, n_neighbors=3).fit(X[:100], y[:100]).score(X[100:], y[100:])
    1.0
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((KernelMahalanobis,)),
        "landmarks_": Values(dtypes=("int64",)),
        "n_directions_": Count(1),
        "classes_": Labels(),
        "loss_": Number(),
        "n_active_": Count(),
        "gap_": Number(optional=True),
        "n_iter_": Count(),
        "converged_": Flag(),
        "history_": History(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelBasis._parameter_constraints,
        **{
            name: LMNN._parameter_constraints[name]
            for name in (
                "n_components",
                "n_neighbors",
                "push_weight",
                "n_passes",
                "solver",
                "targets",
                "hinge",
                "max_iter",
                "tol",
                "validation_fraction",
                "warm_start",
                "verbose",
                "callback",
                "random_state",
            )
        },
    }

    def __init__(
        self,
        kernel: str | Callable[..., float] = "rbf",
        kernel_params: Mapping[str, Any] | None = None,
        *,
        n_landmarks: int | None = None,
        n_directions: int | None = None,
        n_components: int | None = None,
        n_neighbors: int = 3,
        push_weight: float = 0.5,
        n_passes: int = 1,
        solver: str = "L",
        targets: ArrayLike | None = None,
        hinge: str = "linear",
        max_iter: int = 500,
        tol: float = 2e-4,
        validation_fraction: float | None = None,
        warm_start: bool = False,
        verbose: int | bool = False,
        callback: Callable[[dict[str, Any]], object] | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_landmarks = n_landmarks
        self.n_directions = n_directions
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.push_weight = push_weight
        self.n_passes = n_passes
        self.solver = solver
        self.targets = targets
        self.hinge = hinge
        self.max_iter = max_iter
        self.tol = tol
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            For "precomputed" the kernel matrix of shape (n, n).
        y : array of shape (n,)
            Class labels.
        """
        before = vars(self).copy()
        lmnn = None
        try:
            X, labels = validate_data(self, X, y, ensure_min_samples=2, **self._accepted)
            numbered(labels, "KernelLMNN")
            random = check_random_state(self.random_state)
            landmarks = self._choose(X.shape, random)
            support = X[landmarks].astype(np.float64)
            B, Z = self._basis(X, landmarks, support)
            nothing = self.tol * X.shape[0]
            lmnn = self._linear(B, self._start(B, support), nothing, random)
            lmnn.fit(Z, labels)
        finally:
            # It is fitted after Ctrl-C, too.
            if lmnn is not None and hasattr(lmnn, "components_"):
                self._keep(lmnn, B, landmarks, support)
                self.converged_ = lmnn.converged_ or lmnn.loss_ <= nothing
            else:
                self.__dict__.clear()
                self.__dict__.update(before)
        return self

    def _start(self, B: Matrix64, support: Matrix) -> Matrix64 | None:
        """The map of the fit before, in the basis, if there is one to start from."""
        if not self.warm_start or not hasattr(self, "metric_"):
            return None
        before: KernelMahalanobis = self.metric_
        if before.n_features_in > self.n_features_in_:
            raise InvalidInputError(
                f"With warm_start, X must have the {before.n_features_in} features of the fit "
                f"before. Got {self.n_features_in_}."
            )
        if self.n_components not in (None, len(before.coefficients)):
            raise InvalidInputError(
                f"With warm_start, n_components must be that of the fit before, "
                f"{len(before.coefficients)}. Got {self.n_components}."
            )
        L: Matrix64 = before.embed(support).T @ B.T
        return L

    def _linear(
        self, B: Matrix64, start: Matrix64 | None, nothing: float, random: np.random.RandomState
    ) -> LMNN:
        """LMNN for the coordinates of the points, which stops at a loss of `nothing`."""
        rows, m = self.n_components, len(B)
        checks.components(rows, m if rows is None else max(m, rows), self.solver)
        if rows is not None:
            _check_at_most("n_components", rows, m)
        elif self.solver == "L" and start is None:
            rows = min(m, ROWS)

        def look(info: dict[str, Any]) -> bool:
            stop = False
            if self.callback is not None:
                stop = bool(self.callback(info | {"components": info["components"] @ B}))
            return stop or info["loss"] <= nothing

        return LMNN(
            self.n_neighbors,
            self.push_weight,
            n_components=rows,
            n_passes=self.n_passes,
            solver=self.solver,
            targets=self.targets,
            init="auto" if start is None else start,
            hinge=self.hinge,
            max_iter=self.max_iter,
            tol=self.tol,
            validation_fraction=self.validation_fraction,
            verbose=self.verbose,
            callback=look,
            random_state=random,
        )

    def _keep(self, lmnn: LMNN, B: Matrix64, landmarks: Indices, support: Matrix) -> None:
        self.metric_ = self._form(lmnn.components_ @ B, landmarks, support)
        self.landmarks_, self.n_directions_ = landmarks, len(B)
        self.__dict__.pop("gap_", None)
        for name in LEARNED:
            if hasattr(lmnn, name):
                setattr(self, name, getattr(lmnn, name))


def directions(K: Matrix64, dtype: np.dtype[Any]) -> Matrix64:
    """Λ^(−1/2) Uᵀ for the eigenvalues Λ of JKJ = UΛUᵀ, largest first, that count.

    Which count depends on the type of the input. U is orthogonal to the constant vector, so that
    coordinates need no centering of their own.
    """
    if not np.isfinite(K).all():
        raise InvalidInputError(
            "The kernel has values that are not finite on the landmarks; scale the features, or "
            "choose other kernel_params."
        )
    size = float(np.abs(K).max())
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


def _check_at_most(name: str, given: int, n_directions: int) -> None:
    if given > n_directions:
        raise InvalidInputError(
            f"{name} must be at most the number of directions that the landmarks span in feature "
            f"space, {n_directions}. Got {given} instead."
        )
