"""LMNN in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from samewise._typing import Indices, Matrix
from samewise.exceptions import InvalidInputError
from samewise.forms import KernelMahalanobis
from samewise.kernels.sparse_structure import sound_rows
from samewise.learners.attributes import Attribute, Count
from samewise.learners.batch.lmnn import target_checks as checks
from samewise.learners.batch.lmnn.estimator import LMNN
from samewise.learners.class_checks import numbered
from samewise.learners.constraints import check_at_most
from samewise.learners.kernel_basis import DIRECTIONS, KernelBasis
from samewise.solvers.evaluation import Matrix64

ROWS = 256
"""The most rows of L by default: the solver keeps about twenty arrays of its size."""

PASSED_ON = (
    "n_neighbors", "push_weight", "n_target_searches", "solver", "targets", "hinge", "max_iter",
    "tol", "validation_fraction", "verbose",
)  # fmt: skip
"""Parameters of LMNN in the basis."""

LEARNED = ("classes_", "loss_", "n_active_", "gap_", "n_iter_", "history_")
"""What is taken over from LMNN in the basis."""


@dataclass(eq=False, repr=False)
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
        5 000, and 1 000 of more.
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
    n_target_searches : int, default=1
        How many times target neighbors are searched. Each search after the first is by the distance
        learned before it, from which learning goes on.
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
        last search.
    n_active_ : int
        Number of triplets with a positive hinge.
    gap_ : float
        With solver "M": no M ⪰ 0 in the span of the directions has a loss below loss_ − gap_.
    n_iter_ : int
        Iterations, after all target searches.
    converged_ : bool
        Whether the run after the last target search ended by `tol`.
    history_ : dict of arrays
        After each iteration: "stage", the number of the target search; "loss" over the
        candidates, with solver "M" that of a hinge that is rounded off; "n_active";
        "n_candidates", pairs of points; "validation_error", NaN where it was not computed;
        "seconds".
    classes_ : array of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    LMNN : The same without a kernel.
    KernelPOLA : Online learning from pairs, with a kernel.
    KRCA : A closed form, with a kernel.

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
    >>> from samewise import KNNClassifier, KernelLMNN
    >>> X, y = make_concentric_circles(200, random_state=0)
    >>> learner = KernelLMNN("poly", {"degree": 2}).fit(X[:100], y[:100])
    >>> learner.metric_
    KernelMahalanobis(kernel='poly', n_features_in=2, n_support=100, rank=5)
    >>> KNNClassifier(learner, n_neighbors=3).fit(X[:100], y[:100]).score(X[100:], y[100:])
    1.0
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "n_directions_": Count(1),
        **{name: LMNN._learned[name] for name in (*LEARNED, "converged_")},
    }

    _: KW_ONLY
    n_components: int | None = None
    n_neighbors: int = 3
    push_weight: float = 0.5
    n_target_searches: int = 1
    solver: str = "L"
    targets: ArrayLike | None = None
    hinge: str = "linear"
    max_iter: int = 500
    tol: float = 2e-4
    validation_fraction: float | None = None
    warm_start: bool = False
    verbose: int | bool = False
    callback: Callable[[dict[str, Any]], object] | None = None
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The examples; for "precomputed" the kernel matrix of shape (n, n).
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : object
            The fitted learner.
        """
        before = vars(self).copy()
        lmnn = None
        try:
            X, labels = validate_data(
                self, sound_rows(X), y, ensure_min_samples=2, **self._accepted
            )
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
        checks.rank(rows, self.solver)
        check_at_most("n_components", rows, m, DIRECTIONS)
        if rows is None and self.solver == "L" and start is None:
            rows = min(m, ROWS)

        def look(info: dict[str, Any]) -> bool:
            stop = False
            if self.callback is not None:
                stop = bool(self.callback(info | {"components": info["components"] @ B}))
            return stop or info["loss"] <= nothing

        return LMNN(
            **{name: getattr(self, name) for name in PASSED_ON},
            n_components=rows,
            init="auto" if start is None else start,
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
