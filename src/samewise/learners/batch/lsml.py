"""LSML: least squared residuals of relative comparisons."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Matrix
from samewise.engine.online import few_threads
from samewise.forms import Mahalanobis
from samewise.kernels.psd import factor
from samewise.learners.attributes import Attribute, Number
from samewise.learners.batch.comparison_learner import ComparedRows, ComparisonLearner
from samewise.learners.batch.priors import prior_metric
from samewise.learners.constraints import COUNT, POSITIVE
from samewise.solvers.evaluation import LossAndGradient, Matrix64
from samewise.solvers.factored_convex import ProvenSolution, solve
from samewise.supervision.purposes import STRATEGIES
from samewise.supervision.quadruplets import Quadruplets

Vector = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class LSML(ComparisonLearner):
    """Least squared residuals of comparisons: two rows are closer than two others, near a prior.

    Of a quadruplet (a, b, c, d), a and b should be closer to each other than c and d. With
    u = a − b, v = c − d and weights w of sum 1,

        minimize D(M, M₀) + γ Σ w [√(uᵀMu) − √(vᵀMv)]₊²,

    where D(M, M₀) = tr(MM₀⁻¹) − log det(MM₀⁻¹) − d is the LogDet divergence from a prior. The
    problem is convex: for p > q, (√p − √q)² is q φ(p/q) with a convex φ.

    Parameters
    ----------
    gamma : float, default=100.0
        Cost γ of the residuals. They are distances of the examples as they are given: the larger
        the features, the less the prior matters.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when `gap_` is at most this part of the loss
        of the best multiple of the prior.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `metric_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    prior : {"identity", "covariance"}, array of shape (d, d) or Mahalanobis, default="identity"
        The prior metric: the Euclidean distance, the inverse of the covariance, or a positive
        definite matrix. A singular covariance gets a ridge, with a warning.
    purpose : {"neighbors", "verification"}, default="neighbors"
        What the metric is for, if quadruplets are sampled from labeled examples. "neighbors": each
        example and its nearest of its own class, beside the example and its nearest of the others.
        "verification": random similar pairs beside random dissimilar ones.
    n_neighbors : int, default=10
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example.
    n_quadruplets : int, default=None
        Number of quadruplets to sample from labeled examples. By default all nearest ones, or 20
        random ones per example, and at most 100 000.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` M.
    components_ : array of shape (n_features, n_features)
        L with M = LᵀL.
    loss_ : float
        The objective at M.
    gap_ : float
        No positive definite M has a loss below loss_ − gap_.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss", "gap" as last computed, and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    ITML : Bounds on the distances of pairs, near a prior metric.
    SCML : Learns from triplets and quadruplets a sum of few directions.
    OASIS : Learns a similarity from triplets, online.

    Notes
    -----
    In coordinates in which the prior is the identity, L with M = LᵀL is found by L-BFGS. It has
    full rank, because of the log det, so that a point where the gradient vanishes is the minimum.
    With η the eigenvalues of LGLᵀ, G being the gradient by M, convexity of the residuals gives

        loss(M) − minimum ≤ Σ η − log(1 + η),

    which is `gap_`; where some η ≤ −1 it is the loss, since none is below 0. The paper and
    metric-learn step down the gradient by M and cut off negative eigenvalues.

    The work is done in float64. Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    E. Y. Liu, Z. Guo, X. Zhang, V. Jojic, W. Wang: Metric learning from relative comparisons by
    minimizing squared residual. ICDM 2012, equations 4 and 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import LSML, Quadruplets
    >>> X, y = load_iris(return_X_y=True)
    >>> quadruplets = Quadruplets.from_labels(X, y, 200, random_state=0)
    >>> lsml = LSML().fit(quadruplets)
    >>> lsml.score(quadruplets) > 0.9
    True
    >>> bool(0 <= lsml.gap_ <= 1e-3 * lsml.history_["loss"][0])
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"loss_": Number(), "gap_": Number()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [POSITIVE],
        "prior": [StrOptions({"identity", "covariance"}), "array-like", Mahalanobis],
        "n_quadruplets": [COUNT, None],
    }

    gamma: float = 100.0
    _: KW_ONLY
    prior: str | ArrayLike | Mahalanobis = "identity"
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_quadruplets: int | None = None
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from comparisons.

        Parameters
        ----------
        X : Quadruplets, Triplets, array of shape (n, 4, d) or (n, 3, d), or labeled examples
            Comparisons. From labeled examples, dense or CSR, quadruplets are sampled first.
        y : array of shape (n,), default=None
            Class labels for examples, None for comparisons.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with self._log("loss", "gap") as log:
            with unchanged_if_refused(self):
                before = self._before("components_")
                quadruplets, weight, _ = self._quadruplets(X, y)
                inverse, prior = prior_metric(self.prior, quadruplets.X, "LSML")
                root = factor(prior, tol=0.0)[0]
                rows = ComparedRows(quadruplets, "LSML", root.T)
                problem = Residuals(rows, self.gamma * weight)
                start = problem.start()
                enough = self.tol * problem.value_and_gradient(start).loss
                if before is not None and before.shape == root.shape:
                    start = before @ inverse @ root.T

                def look(found: ProvenSolution) -> bool:
                    return log.look(lambda: found.L @ root, found.value.loss, found.gap)

                with few_threads(len(root)):
                    found = solve(problem, start, max_iter=self.max_iter, tol=enough, look=look)
                log.say()
                self._keep(found.L @ root, quadruplets.X.dtype)
                # No loss is below 0.
                self.loss_, self.gap_ = float(found.value.loss), min(found.gap, found.value.loss)
                self.converged_ = bool(found.gap <= enough)
            self._end(log, f"; the gap is {self.gap_:.1e}")
        return self

    def _sampled(self, X: Matrix, y: NDArray[Any], random: np.random.RandomState) -> Quadruplets:
        return Quadruplets.from_labels(
            X,
            y,
            self.n_quadruplets,
            strategy=STRATEGIES[self.purpose],
            n_neighbors=self.n_neighbors,
            merge_duplicates=True,
            random_state=random,
        )


class Residuals:
    """tr A − log det A − d + Σ w [√(uᵀAu) − √(vᵀAv)]₊² over A = LᵀL.

    Parameters
    ----------
    rows : ComparedRows
        Coordinates in which the prior is the identity.
    weight : array of shape (n,)
        γw.
    """

    def __init__(self, rows: ComparedRows, weight: Vector) -> None:
        self.rows, self.weight = rows, weight

    def start(self) -> Matrix64:
        """The best multiple of the prior: residuals are linear along it."""
        d = self.rows.Z.shape[1]
        near, far = np.sqrt(self.rows.distances(self.rows.Z))
        residual = float(self.weight @ np.maximum(near - far, 0) ** 2)
        return np.eye(d) * np.sqrt(d / (d + residual))

    def value_and_gradient(self, L: Matrix64) -> LossAndGradient:
        """The loss and its gradient by L."""
        E = self.rows.Z @ L.T
        near, far = np.sqrt(self.rows.distances(E))
        h = np.maximum(near - far, 0)
        log_det = 2 * np.linalg.slogdet(L)[1]
        loss = float(np.vdot(L, L) - log_det - len(L) + self.weight @ h**2)
        if not np.isfinite(loss):
            return LossAndGradient(np.inf, np.zeros_like(L))
        # 1 − √(q/p) of a near pair, 1 − √(p/q) of a far one; a far pair of equal rows adds nothing.
        w = 2 * self.weight * h
        pull = np.divide(w, near, out=np.zeros_like(h), where=h > 0)
        push = np.divide(-w, far, out=np.zeros_like(h), where=far > 0)
        gradient = self.rows.scatter(E, pull, push) + 2 * (L - np.linalg.inv(L).T)
        return LossAndGradient(loss, gradient)

    def proof(self, L: Matrix64) -> tuple[float, Matrix64]:
        """Σ η − log(1 + η), see the notes of `LSML`; L never loses rank."""
        H = self.value_and_gradient(L).gradient @ L.T / 2
        eta = np.linalg.eigvalsh((H + H.T) / 2)
        nowhere = np.zeros((1, len(L)))
        if not eta[0] > -1:
            return np.inf, nowhere
        return max(float(np.sum(eta - np.log1p(eta))), 0.0), nowhere
