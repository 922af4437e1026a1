"""Information-theoretic metric learning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array
from samewise.engine.online import few_threads
from samewise.exceptions import DegenerateInputError, InvalidInputError
from samewise.forms import Mahalanobis
from samewise.kernels.logdet_loop import cycle
from samewise.kernels.pairwise import dense, row_dots, squared_distances, times
from samewise.kernels.psd import factor
from samewise.learners.attributes import Attribute, Number, TwoNumbers, Values
from samewise.learners.batch.batch_learner import BatchLearner, BatchPairLearner
from samewise.learners.batch.pair_differences import Differences
from samewise.learners.batch.priors import prior_metric
from samewise.learners.constraints import POSITIVE
from samewise.learners.pair_judge import PairDistance
from samewise.solvers.run_log import RunLog
from samewise.supervision import Pairs
from samewise.supervision.sampling import row_keys
from samewise.supervision.supervision_checks import parameter_array

Vector = NDArray[np.float64]

LEAST = 1e-150
"""Pairs whose squared distance is not larger say nothing: its square would vanish."""

MOST_NEAREST = 10_000
"""Nearest pairs sampled by default: each takes part in every cycle."""

SAMPLE = 1000
"""Rows whose distances tell the bounds."""


@dataclass(eq=False, repr=False)
class ITML(PairDistance, BatchPairLearner, BatchLearner):
    """Information-theoretic metric learning: near a prior, with bounds on distances.

    Similar pairs are to have vᵀAv ≤ u and dissimilar ones vᵀAv ≥ l, where v = x − x′. Bounds ξ
    may give way at a cost, and

        D(A, A₀) + γ Σ_i D(ξ_i, ξ₀_i)   subject to   δ_i v_iᵀAv_i ≤ δ_i ξ_i

    is minimized, where D(A, A₀) = tr(AA₀⁻¹) − log det(AA₀⁻¹) − d is the LogDet divergence, for
    numbers ξ/ξ₀ − log(ξ/ξ₀) − 1; ξ₀ is u with δ = 1 for similar pairs, l with δ = −1 for
    dissimilar ones. The problem is convex. One pair after the other is projected on its
    constraint, a step of rank one, over and over; with λ_i ≥ 0 the multiplier of a pair,

        A⁻¹ = A₀⁻¹ + Σ_i δ_i λ_i v_i v_iᵀ,   1/ξ_i = 1/ξ₀_i − δ_i λ_i/γ.

    Parameters
    ----------
    gamma : float, default=0.1
        Cost γ of slack, multiplied by the weight of a pair where pairs have weights. The larger it
        is, the more iterations it takes.
    max_iter : int, default=1000
        Maximum number of iterations. An iteration is a cycle through all pairs.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when the duality gap is at most tol·loss.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `duals_`, if there
        are as many pairs and as long as they give a positive definite A, and otherwise from the
        prior.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    prior : {"identity", "covariance"}, array of shape (d, d) or Mahalanobis, default="identity"
        The prior metric: the Euclidean distance, the inverse of the covariance, or a positive
        definite matrix. A singular covariance gets a ridge, with a warning.
    bounds : pair of floats, default=None
        Bounds (u, l) on squared distances. By default the 5th and the 95th percentile of the
        squared distances vᵀA₀v between the rows that occur in the pairs (a thousand different ones,
        if there are more).
    purpose : {"neighbors", "verification"}, default="neighbors"
        What the metric is for, if pairs are sampled from labeled examples. "neighbors": for each
        example its nearest of its own class and of the others, which tells what to bring near for
        k-NN and search. "verification": random pairs, half of them similar, which tells whether
        any two examples are the same.
    n_neighbors : int, default=10
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all nearest pairs and at most
        10 000, or 20c² random ones for c classes, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` A.
    components_ : array of shape (rank, n_features)
        L with A = LᵀL.
    threshold_ : float
        On squared distances: a pair is called similar when its squared distance is at most this.
        Of all thresholds, it decides most pairs rightly: of random ones that are held out, after
        labels, and otherwise of those learned from. Not there if these are all similar or all
        dissimilar.
    bounds_ : tuple of floats
        (u, l).
    duals_ : array of shape (n_pairs,)
        λ, in the order of the pairs.
    loss_ : float
        The objective at A, with the cheapest ξ that it allows.
    gap_ : float
        No positive definite A has a loss below loss_ − gap_.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each cycle: "loss", "gap" and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    LEGO : The same divergence, learned online.
    MMC : Learns from pairs without a prior.

    Notes
    -----
    The paper prints the step α = min(λ, δ/2 (1/p − γ/ξ)), which is the projection for γ = 1 only;
    for any γ, A and ξ meet at α = δ γ/(γ + 1) (1/p − 1/ξ). After each cycle A is computed anew from
    the multipliers, so that rounding does not pile up.

    Pairs of identical rows say nothing about A and are passed over. The work is done in float64.
    Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra, I. S. Dhillon: Information-theoretic metric learning.
    ICML 2007, algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import ITML
    >>> X, y = load_iris(return_X_y=True)
    >>> itml = ITML(random_state=0).fit(X, y)
    >>> itml.metric_
    Mahalanobis(n_features_in=4, rank=4)
    >>> bool(0 <= itml.gap_ <= 1e-3 * itml.loss_)
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "bounds_": TwoNumbers(),
        "duals_": Values(),
        "loss_": Number(),
        "gap_": Number(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [POSITIVE],
        "prior": [StrOptions({"identity", "covariance"}), "array-like", Mahalanobis],
        "bounds": ["array-like", None],
    }

    gamma: float = 0.1
    _: KW_ONLY
    prior: str | ArrayLike | Mahalanobis = "identity"
    bounds: tuple[float, float] | None = None
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
    max_iter: int = 1000
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        X : Pairs, array of shape (n, 2, n_features), or matrix of labeled examples
            Pairs of examples. From labeled examples, dense or CSR, pairs are sampled first.
        y : array, default=None
            ±1 with an array of pairs; class labels with examples; None with Pairs.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with self._log("loss", "gap") as log:
            with unchanged_if_refused(self):
                pairs, judged = self._pairs(X, y, check_random_state(self.random_state))
                inverse, A = prior_metric(self.prior, pairs.X, "ITML")
                self.bounds_ = chosen_bounds(self.bounds, pairs, A)
                problem, used = self._problem(pairs, inverse)
                duals = np.zeros(len(pairs))
                before = getattr(self, "duals_", duals)
                start = duals[used]
                if self.warm_start and len(before) == len(duals):
                    start = problem.admissible(before[used].copy())
                with few_threads(len(A)):
                    state = self._solve(problem, start, log)
                duals[used] = state.duals
                self.duals_ = duals
                self._keep(state.components(), pairs.X.dtype)
                self._calibrate(judged)
                self.loss_, self.gap_ = state.loss, state.gap
                self.converged_ = self._enough(state)
            self._end(log, f"; the gap is {state.gap / max(state.loss, 1e-300):.1e}·loss")
        return self

    def _n_pairs(self, y: NDArray[Any]) -> int | None:
        if self.n_pairs is not None:
            return self.n_pairs
        n = len(y)
        few = min(20 * len(np.unique(y)) ** 2, n * (n - 1) // 2)
        return MOST_NEAREST if self.purpose == "neighbors" else few

    def _problem(self, pairs: Pairs, inverse: Vector) -> tuple[DualProblem, NDArray[np.intp]]:
        """The problem of the pairs that say something, and which these are."""
        V = Differences.of(pairs, "ITML")
        weight = np.ones(len(pairs)) if pairs.sample_weight is None else pairs.sample_weight
        used = np.flatnonzero(V.differ(LEAST) & (weight > 0))
        if not len(used):
            raise DegenerateInputError(
                "ITML needs pairs of different rows. Got only pairs of identical rows, or of "
                "weight 0; give other pairs."
            )
        u, low = self.bounds_
        delta = pairs.y[used].astype(np.float64)
        xi = np.where(delta > 0, u, low)
        log_det = float(np.linalg.slogdet(inverse)[1])
        gamma = self.gamma * weight[used]
        return DualProblem(V.only(used), delta, gamma, xi, inverse, log_det), used

    def _solve(self, problem: DualProblem, duals: Vector, log: RunLog) -> DualState:
        try:
            state = problem.state(duals)
            while len(log.rows) < self.max_iter:
                state = problem.state(problem.cycle(state))
                stop = log.look(state.components, state.loss, state.gap)
                if stop or self._enough(state):
                    break
        except np.linalg.LinAlgError as error:
            raise DegenerateInputError(
                "ITML's matrix has become singular by rounding: distances between the rows of "
                "pairs differ too much. Scale the features, leave out rows that are far from all "
                "others, or give bounds."
            ) from error
        log.say()
        return state

    def _enough(self, state: DualState) -> bool:
        return bool(state.gap <= self.tol * state.loss)


class DualState(NamedTuple):
    """Multipliers, the A that they give, its loss, and how far that is from the least at most."""

    duals: Vector
    A: Vector
    loss: float
    gap: float

    def components(self) -> Array:
        """L with A = LᵀL."""
        return factor(self.A)[0]


class DualProblem(NamedTuple):
    """Pairs with δ, γ and ξ₀, A₀⁻¹ and log det A₀⁻¹."""

    V: Differences
    delta: Vector
    gamma: Vector
    xi: Vector
    inverse: Vector
    log_det: float

    def admissible(self, duals: Vector) -> Vector:
        """These multipliers if they give a positive definite A and positive ξ; else zeros."""
        fits = np.all(1 / self.xi > self.delta * duals / self.gamma)
        try:
            if fits:
                cholesky(self._precision(duals))
        except np.linalg.LinAlgError:
            fits = np.False_
        return duals if fits else np.zeros_like(duals)

    def _precision(self, duals: Vector) -> Vector:
        """A⁻¹ = A₀⁻¹ + Σ δλ v vᵀ."""
        K: Vector = self.inverse.copy()
        on = np.flatnonzero(duals > 0)
        V, factor = self.V.only(on), (self.delta * duals)[on]
        for rows in V.blocks():
            block = V[rows]
            K += (block.T * factor[rows]) @ block
        return K

    def slack_bounds(self, duals: Vector) -> Vector:
        """ξ: 1/ξ = 1/ξ₀ − δλ/γ."""
        return 1 / (1 / self.xi - self.delta * duals / self.gamma)

    def cycle(self, state: DualState) -> Vector:
        """The multipliers after one projection on each constraint."""
        A, duals, bounds = state.A.copy(), state.duals.copy(), self.slack_bounds(state.duals)
        for rows in self.V.blocks():
            cycle(A, self.V[rows], self.delta[rows], self.gamma[rows], duals[rows], bounds[rows])
        return duals

    def state(self, duals: Vector) -> DualState:
        """A from the multipliers, the loss P(A) and P(A) − g(λ).

        The dual function is g(λ) = −log det(AA₀⁻¹) − γ Σ log(ξ/ξ₀), and below every loss.
        """
        root = cholesky(self._precision(duals), lower=True)
        A = np.tril(dpotri(root, lower=1)[0])
        A += np.tril(A, -1).T
        log_det = -2 * np.log(np.diagonal(root)).sum() + self.log_det
        ratio = np.empty_like(self.xi)
        for rows in self.V.blocks():
            V = self.V[rows]
            ratio[rows] = row_dots(V @ A, V) / self.xi[rows]
        # A violated bound moves to the distance; others stay.
        ratio = np.where(self.delta * (ratio - 1) > 0, ratio, 1.0)
        slack = self.gamma @ (ratio - np.log(ratio) - 1)
        loss = np.vdot(A, self.inverse) - log_det - len(A) + slack
        bound = -log_det - self.gamma @ np.log(self.slack_bounds(duals) / self.xi)
        # Below 0 there is only rounding.
        return DualState(duals, A, max(float(loss), 0.0), max(float(loss - bound), 0.0))


def chosen_bounds(given: Any, pairs: Pairs, A: Vector) -> tuple[float, float]:
    """(u, l): those given, or percentiles of the squared distances between rows of the pairs."""
    if given is not None:
        bounds = parameter_array(given, "bounds", np.float64)
        if bounds.shape != (2,) or not 0 < bounds[0] <= bounds[1] < np.inf:
            raise InvalidInputError(
                "bounds must be two finite numbers (u, l), 0 < u ≤ l, on squared distances. Got "
                f"{given!r}."
            )
        return float(bounds[0]), float(bounds[1])
    counted = slice(None) if pairs.sample_weight is None else pairs.sample_weight > 0
    members = np.union1d(pairs.left[counted], pairs.right[counted])
    if not len(members):
        raise InvalidInputError("Bounds on distances need pairs. All have weight 0; give others.")
    X = pairs.X[members]
    # Different ones, the same however they are ordered.
    rows = np.unique(row_keys(X), return_index=True)[1]
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(np.intp)]
    E = times(dense(X[rows]).astype(np.float64), factor(A)[0].T)
    E -= E.mean(axis=0)
    D = squared_distances(E, E)[np.triu_indices(len(E), 1)]
    if not np.any(D > 0):
        raise DegenerateInputError(
            "Bounds on distances need rows that differ. All rows are the same; give other examples."
        )
    u, low = np.percentile(D[D > 0], (5, 95))
    return float(u), float(low)
