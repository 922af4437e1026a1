"""SCML: sparse compositional metric learning."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Matrix
from samewise.engine.online import few_threads
from samewise.exceptions import InvalidInputError, SamewiseWarning
from samewise.kernels.psd import factor
from samewise.learners.attributes import Attribute, Number, Values
from samewise.learners.batch.comparison_learner import ComparedRows, ComparisonLearner
from samewise.learners.batch.local_directions import contrasts, local_discriminants, unit_rows
from samewise.learners.constraints import COUNT, NOT_NEGATIVE
from samewise.learners.dense_rows import dense_rows
from samewise.solvers.evaluation import LossAndGradient
from samewise.solvers.run_log import RunLog
from samewise.solvers.smooth import minimize_smooth
from samewise.supervision import Triplets
from samewise.supervision.gate import is_labeled
from samewise.supervision.quadruplets import Quadruplets
from samewise.supervision.supervision_checks import parameter_array

Vector = NDArray[np.float64]

WIDTHS = (0.5, 0.1, 0.02)
"""Widths of the hinge's smoothed kink, one run after the other."""

PER_FEATURE = 20
"""Directions by default, for each feature."""

GRAINS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
"""Weights below such a part of the largest become 0 if the loss hardly rises."""


@dataclass(eq=False, repr=False)
class SCML(ComparisonLearner):
    """Sparse compositional metric learning: a sum of few of many given directions.

    With directions b_k of unit length, M = Σ_k w_k b_k b_kᵀ, and of a triplet the anchor should be
    closer to the positive than to the negative by 1, in squared distance:

        minimize Σ_t s_t [1 + uᵀMu − vᵀMv]₊ + β Σ_k w_k   over w ≥ 0,

    where u and v are the differences of the near and the far pair, and weights s have sum 1. The
    problem is convex, and most w_k are 0 at its minimum. With examples and labels the directions
    are discriminants of classes around sampled examples, at two scales; otherwise they are those in
    which the far pairs of a few sampled triplets are longer than the near ones.

    Parameters
    ----------
    beta : float, default=1e-5
        Cost β of the weights. The larger it is, the fewer directions there are.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when an iteration lowers the loss by at most
        tol times the loss, with the sharpest of three approximations of the hinge.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `weights_`, over the
        same `basis_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    basis : array of shape (k, n_features), default=None
        The directions, of any length, instead of sampled ones.
    n_basis : int, default=None
        Number of directions to sample. By default 20 for each feature.
    n_neighbors : int, default=3
        Number k of neighbors. From labeled examples: nearest examples of its own class for each
        anchor.
    n_impostors : int, default=10
        From labeled examples: nearest examples of other classes for each anchor. Each of them is in
        a triplet with each near example of its own class.
    n_triplets : int, default=None
        Number of triplets to sample from labeled examples. By default all nearest ones, and at most
        100 000.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` M.
    components_ : array of shape (rank, n_features)
        L with M = LᵀL: its rows are √w_k b_k if fewer directions than features have a weight.
    basis_ : array of shape (k, n_features)
        The b_k.
    weights_ : array of shape (k,)
        The w_k.
    loss_ : float
        The objective at M.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss" and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    LMNN : The same hinge, over all M ⪰ 0, with all impostors.
    LSML : Learns from comparisons, near a prior.

    Notes
    -----
    A weight's gradient is b_kᵀGb_k, where G = Σ s (u uᵀ − v vᵀ) over the triplets whose hinge is
    not 0: it takes one d × d matrix for all directions, where metric-learn keeps a number for each
    triplet and direction. The kink of the hinge is smoothed over a width of 0.5, then 0.1, then
    0.02, and L-BFGS-B minimizes over w ≥ 0, in units in which all directions are alike. `loss_` is
    that of the hinge itself.

    The paper and metric-learn take stochastic steps by dual averaging. The work is done in float64.
    Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    Y. Shi, A. Bellet, F. Sha: Sparse compositional metric learning. AAAI 2014, equation 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import SCML
    >>> X, y = load_iris(return_X_y=True)
    >>> scml = SCML(random_state=0).fit(X, y)
    >>> scml.basis_.shape
    (80, 4)
    >>> scml.score(X, y) > 0.95
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "basis_": Values((None, "d"), ("float64",)),
        "weights_": Values((None,), ("float64",)),
        "loss_": Number(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "beta": [NOT_NEGATIVE],
        "basis": ["array-like", None],
        "n_basis": [COUNT, None],
        "n_impostors": [COUNT],
    }

    beta: float = 1e-5
    _: KW_ONLY
    basis: ArrayLike | None = None
    n_basis: int | None = None
    n_neighbors: int = 3
    n_impostors: int = 10
    n_triplets: int | None = None
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from comparisons.

        Parameters
        ----------
        X : Triplets, Quadruplets, array of shape (n, 3, d) or (n, 4, d), or labeled examples
            Comparisons. From labeled examples, dense or CSR, triplets are sampled first.
        y : array of shape (n,), default=None
            Class labels for examples, None for comparisons.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with self._log("loss") as log:
            with unchanged_if_refused(self):
                before = self._before("basis_"), self._before("weights_")
                quadruplets, share, random = self._quadruplets(X, y)
                rows = ComparedRows(quadruplets, "SCML")
                B, start = before
                if B is None or B.shape[1] != self.n_features_in_:
                    B, start = self._chosen(X, y, quadruplets, rows, random), None
                problem = SmoothedHinge(rows, share, B, self.beta)
                with few_threads(B.shape[1]):
                    w = self._solve(problem, start, log)
                log.say()
                self._keep(composed(w, B), quadruplets.X.dtype)
                self.basis_, self.weights_ = B, w
                self.loss_ = problem.loss(w)
            self._end(log)
        return self

    def _sampled(self, X: Matrix, y: NDArray[Any], random: np.random.RandomState) -> Quadruplets:
        return Quadruplets.from_triplets(
            Triplets.from_neighbors(
                X,
                y,
                self.n_triplets,
                n_neighbors=self.n_neighbors,
                n_impostors=self.n_impostors,
                merge_duplicates=True,
                random_state=random,
            )
        )

    def _chosen(
        self, X: Any, y: Any, found: Quadruplets, rows: ComparedRows, random: np.random.RandomState
    ) -> Vector:
        """Given or sampled directions of unit length."""
        d = found.X.shape[1]
        if self.basis is not None:
            B = parameter_array(self.basis, "basis", np.float64)
            if B.ndim != 2 or B.shape[1] != d or not np.isfinite(B).all():
                raise InvalidInputError(
                    f"basis must be a finite array of shape (k, {d}). Got shape {B.shape}."
                )
            B = unit_rows(B)
        else:
            k = PER_FEATURE * d if self.n_basis is None else self.n_basis
            if is_labeled(X):
                points = dense_rows(found.X, "SCML")
                labels = np.unique(np.ravel(np.asarray(y)), return_inverse=True)[1]
                B = local_discriminants(points.astype(np.float64), labels, k, random)
            else:
                B = contrasts(rows, k, random)
        if not len(B):
            raise InvalidInputError(
                "SCML found no direction in which far pairs are longer than near ones. Give other "
                "comparisons, or a basis."
            )
        return B

    def _solve(self, problem: SmoothedHinge, start: Vector | None, log: RunLog) -> Vector:
        """w of the least loss, with sharper and sharper hinges."""
        best = problem.start() if start is None else start / problem.unit
        least, self.converged_ = problem.loss(best * problem.unit), False

        def look(p: Array, _: float) -> bool:
            nonlocal best, least
            w: Vector = np.asarray(p, dtype=np.float64) * problem.unit
            now = problem.loss(w)
            if now < least:
                best, least = np.array(p, dtype=np.float64), now
            return log.look(lambda: composed(w, problem.B), now) or len(log.rows) >= self.max_iter

        for problem.width in WIDTHS:
            value = problem.value_and_gradient(best).loss
            done = minimize_smooth(
                problem,
                best,
                look=look,
                bounds=[(0.0, None)] * len(best),
                maxiter=self.max_iter,
                # SciPy compares with the larger of the loss and 1.
                ftol=min(self.tol * min(value, 1.0), 1.0),
                gtol=0.0,
            )
            self.converged_ = bool(done.success)
            if log.stopped or len(log.rows) >= self.max_iter:
                break
        w = self._sparse(problem, best, least)
        if w.any():
            return w
        warnings.warn(
            "SCML: no sum of directions has a lower loss than none, so that all get the same "
            f"weight. Lower beta={self.beta:g}, or give other comparisons: these tell nothing.",
            SamewiseWarning,
            stacklevel=5,
        )
        return problem.start() * problem.unit

    def _sparse(self, problem: SmoothedHinge, p: Vector, loss: float) -> Vector:
        """w with as few weights as leave the loss where it is, up to `tol`."""
        for grain in GRAINS:
            w = np.where(p > grain * p.max(), p, 0.0) * problem.unit
            if problem.loss(w) <= loss * (1 + self.tol):
                return w
        return p * problem.unit


def composed(w: Vector, B: Vector) -> Array:
    """L with LᵀL = Σ_k w_k b_k b_kᵀ, of as few rows as possible."""
    rows = np.sqrt(w[w > 0])[:, None] * B[w > 0]
    return rows if len(rows) < B.shape[1] else factor(rows.T @ rows)[0]


class SmoothedHinge:
    """Σ_t s_t h(1 + uᵀMu − vᵀMv) + β Σ_k w_k over p = w / unit.

    h(z) is 0 below 0, z − width/2 above the width, and a parabola between.

    Parameters
    ----------
    rows : ComparedRows
    share : array of shape (n,)
        s, of sum 1.
    B : array of shape (k, d)
        Directions.
    beta : float
    """

    width = WIDTHS[0]

    def __init__(self, rows: ComparedRows, share: Vector, B: Vector, beta: float) -> None:
        self.rows, self.share, self.B, self.beta = rows, share, B, beta
        sizes = self._along(rows.scatter(rows.Z, share, share))
        self.unit = np.divide(1.0, sizes, out=np.zeros(len(B)), where=sizes > 1e-150)

    def _along(self, G: Vector) -> Vector:
        """b_kᵀGb_k."""
        return np.einsum("kd,kd->k", self.B @ G, self.B)

    def _slack(self, w: Vector) -> Vector:
        """1 + uᵀMu − vᵀMv."""
        L = factor((self.B.T * w) @ self.B)[0]
        near, far = self.rows.distances(self.rows.Z @ L.T)
        return np.asarray(1 + near - far)

    def loss(self, w: Vector) -> float:
        """The objective, with the hinge itself."""
        hinge = np.maximum(self._slack(w), 0)
        return float(self.share @ hinge + self.beta * w.sum())

    def start(self) -> Vector:
        """All directions alike, at the best of some scales."""
        p = np.full(len(self.B), 1 / len(self.B))
        more = self._slack(p * self.unit) - 1
        cost = self.beta * float(p @ self.unit)
        scales = 2.0 ** np.arange(-6, 12)
        losses = [self.share @ np.maximum(1 + t * more, 0) + t * cost for t in scales]
        return p * scales[int(np.argmin(losses))]

    def value_and_gradient(self, p: Vector) -> LossAndGradient:
        """The smoothed loss and its gradient by p."""
        w = p * self.unit
        z = self._slack(w)
        inside = np.clip(z / self.width, 0, 1)
        loss = self.share @ (inside * (z - self.width * inside / 2))
        active = self.share * inside
        G = self.rows.scatter(self.rows.Z, active, -active)
        gradient = (self._along(G) + self.beta) * self.unit
        return LossAndGradient(float(loss + self.beta * w.sum()), gradient)
