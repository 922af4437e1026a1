"""MMC: Mahalanobis metric learning for clustering, with side information."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.engine.online import few_threads
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved
from samewise.kernels.pairwise import squared_norms
from samewise.kernels.psd import factor
from samewise.learners.attributes import Attribute, Number
from samewise.learners.batch.batch_learner import (
    SINGULAR,
    BatchLearner,
    BatchPairLearner,
    regularized,
)
from samewise.learners.batch.pair_differences import Differences
from samewise.learners.pair_judge import PairDistance
from samewise.solvers.evaluation import LossAndGradient, Matrix64
from samewise.solvers.factored_convex import ProvenSolution, solve
from samewise.solvers.run_log import RunLog
from samewise.supervision import Pairs
from samewise.supervision.supervision_checks import LARGEST

Vector = NDArray[np.float64]

LEAST = 1e-100
"""Distances below are taken for this: their square roots have no derivative, cubes vanish."""

SHRINK = 0.01
"""A weight shrinks to no less than this part of it in a step, so that none is lost by accident."""

IDLE = 1e-8
"""Weights whose part of Σ_S is below this, and that should fall further, only shrink."""


@dataclass(eq=False, repr=False)
class MMC(PairDistance, BatchPairLearner, BatchLearner):
    """Dissimilar pairs as far apart as possible, while similar ones are near.

        maximize Σ_D √(vᵀAv)   subject to   Σ_S vᵀAv ≤ 1, A ⪰ 0,

    where v = x − x′ runs over the dissimilar pairs D and the similar pairs S. The problem is
    convex.

    Parameters
    ----------
    structure : {"full", "diagonal"}, default="full"
        Kind of matrix to learn; "diagonal" is one weight for each feature. It is learned by
        Newton's method.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when no other A can have an objective larger
        by more than this part. It can be asked for down to about 1e-7.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `metric_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    shrinkage : float in [0, 1], default=0.7
        Shrinkage s towards a multiple of the identity. A of trace 1 is replaced by (1 − s) A + s/d
        I: without it, A has few directions and neighbors are lost, see the notes.
    purpose : {"neighbors", "verification"}, default="neighbors"
        What the metric is for, if pairs are sampled from labeled examples. "neighbors": for each
        example its nearest of its own class and of the others, which tells what to bring near for
        k-NN and search. "verification": random pairs, half of them similar, which tells whether
        any two examples are the same.
    n_neighbors : int, default=10
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all nearest pairs, or 20 random
        ones per example, and at most 100 000.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` A after shrinkage, scaled so that Σ_S vᵀAv = 1.
    components_ : array of shape (rank, n_features)
        L with A = LᵀL.
    threshold_ : float
        On squared distances: a pair is called similar when its squared distance is at most this.
        Of all thresholds, it decides most pairs rightly: of random ones that are held out, after
        labels, and otherwise of those learned from. Not there if these are all similar or all
        dissimilar.
    objective_ : float
        Σ_D √(vᵀAv) of the A found, before shrinkage.
    gap_ : float
        No A has an objective above objective_ + gap_.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "objective", "gap" as last computed, and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    ITML : Bounds on distances, near a prior metric.
    POLA : Learns online from pairs.

    Notes
    -----
    The paper climbs the gradient and projects on the two conditions in turn, many times for each
    step. Here coordinates are chosen in which Σ_S vᵀAv is the trace of A, and with A = LᵀL

        log Σ_D ‖Lv‖ − ½ log tr LᵀL

    is climbed by L-BFGS without any condition; its derivative proves how far the maximum can be.
    With weights, pairs count as often as their weights say. The differences of dissimilar pairs are
    held in memory, in float64.

    A feature, or a direction, in which dissimilar pairs differ and similar ones do not could be
    stretched without end. There the scatter of similar pairs gets a ridge, with a warning. What no
    pair differs in has no part in A. Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    E. P. Xing, A. Y. Ng, M. I. Jordan, S. Russell: Distance metric learning, with application to
    clustering with side-information. NIPS 2002, equations 3–5 and 6–8.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import MMC
    >>> X, y = load_iris(return_X_y=True)
    >>> mmc = MMC(random_state=0).fit(X, y)
    >>> bool(0 <= mmc.gap_ <= 1e-3 * mmc.objective_)
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"objective_": Number(), "gap_": Number()}

    structure: str = "full"
    _: KW_ONLY
    shrinkage: float = 0.7
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
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
        with unchanged_if_refused(self):
            before = self._before("components_")
            pairs, judged = self._pairs(X, y, check_random_state(self.random_state))
            if before is not None and before.shape[1] != pairs.X.shape[1]:
                before = None
            sides = sides_of(pairs)
            problem = PROBLEMS[self.structure](sides)
        self._learn(problem, sides, before, lambda: self._calibrate(judged))
        return self

    def _learn(
        self,
        problem: Stretch | Weights,
        sides: Sides,
        before: Array | None,
        calibrate: Callable[[], None],
    ) -> None:
        """Learn from the sums over both sides, and then choose a threshold."""
        with self._log("objective", "gap") as log, few_threads(len(sides.near)):
            found = problem.solve(before, self.max_iter, self.tol, log)
            log.say()
            self._keep(self._shrunk(found.components, sides.near), sides.dtype)
            calibrate()
            self.objective_, self.gap_ = found.objective, found.gap
            self.converged_ = bool(found.gap <= self.tol * found.objective)
            reached = f"; the gap is {found.gap / found.objective:.1e}·objective"
            self._end(log, reached, stacklevel=6)

    @classmethod
    def _former_parameters(cls, saved: Saved) -> dict[str, Any]:
        former = super()._former_parameters(saved)
        return former if saved.has("shrinkage") else {**former, "shrinkage": 0.0}

    def _shrunk(self, L: Array, near: Vector) -> Array:
        """L of the result: A with its part of the identity, and again Σ_S vᵀAv = 1."""
        trace, s = float(np.vdot(L, L)), self.shrinkage
        if not s or not trace:
            return L
        A = (1 - s) / trace * (L.T @ L)
        A[np.diag_indices(len(A))] += s / len(A)
        return factor(A / np.vdot(A, near))[0]


class Found(NamedTuple):
    """A learned metric, scaled to Σ_S = 1; its objective, and how much a better one can have."""

    components: Array
    objective: float
    gap: float


class FarPairs:
    """Sums over dissimilar pairs, of ‖Lu‖ and its derivatives; u = Bᵀv.

    Parameters
    ----------
    D : Differences
    B : array of shape (d, r)
    """

    def __init__(self, D: Differences, B: Vector) -> None:
        self.U = np.empty((len(D), B.shape[1]))
        for rows in D.blocks():
            self.U[rows] = D[rows] @ B

    def lengths(self, L: Matrix64) -> tuple[float, Vector]:
        """Σ ‖Lu‖, and Σ Lu uᵀ/‖Lu‖."""
        E = self.U @ L.T
        lengths = np.maximum(np.sqrt(squared_norms(E)), LEAST)
        E /= lengths[:, None]
        return float(lengths.sum()), E.T @ self.U

    def derivatives(self, L: Matrix64) -> tuple[float, Vector]:
        """Σ ‖Lu‖, and Σ u uᵀ/(2‖Lu‖)."""
        lengths = np.maximum(np.sqrt(squared_norms(self.U @ L.T)), LEAST)
        return float(lengths.sum()), (self.U.T / (2 * lengths)) @ self.U


class FarSquares:
    """Sums over dissimilar pairs, of √(Σ_k a_k w_k) and its derivatives; w = (v/units)².

    Parameters
    ----------
    D : Differences
    used : array
        The features in w.
    units : array
        One for each.
    """

    def __init__(self, D: Differences, used: Indices, units: Vector) -> None:
        self.W = np.empty((len(D), len(used)))
        for rows in D.blocks():
            self.W[rows] = (D[rows][:, used] / units) ** 2

    def roots(self, a: Vector) -> tuple[float]:
        """Σ √(aᵀw)."""
        return (float(np.sqrt(self.W @ a).sum()),)

    def derivatives(self, a: Vector) -> tuple[float, Vector]:
        """Σ √(aᵀw), and Σ w/(2√(aᵀw))."""
        roots = np.maximum(np.sqrt(self.W @ a), LEAST)
        return float(roots.sum()), (0.5 / roots) @ self.W

    def curvature(self, a: Vector) -> tuple[Vector]:
        """Σ w wᵀ/(4 (aᵀw)^(3/2))."""
        roots = np.maximum(np.sqrt(self.W @ a), LEAST)
        return ((self.W.T * (0.25 / roots**3)) @ self.W,)


class Sides(NamedTuple):
    """Similar and dissimilar pairs, by sums over them.

    Attributes
    ----------
    near, far : arrays of shape (d, d)
        Their scatters.
    dtype : the type of the rows
    far_sums : callable
        `FarPairs` or `FarSquares` and its arguments without D → the sums over dissimilar pairs.
    """

    near: Vector
    far: Vector
    dtype: np.dtype[Any]
    far_sums: Callable[..., Any]


def sides_of(pairs: Pairs) -> Sides:
    """The sides of pairs that are at hand."""
    S, D = split_sides(pairs)
    for name, side in (("similar", S), ("dissimilar", D)):
        check_side(name, len(side))
    return Sides(
        S.scatter(), D.scatter(), pairs.X.dtype, lambda kind, *arguments: kind(D, *arguments)
    )


def split_sides(pairs: Pairs) -> tuple[Differences, Differences]:
    """Differences of similar and of dissimilar pairs, times their weights (√ for similar ones)."""
    V = Differences.of(pairs, "MMC")
    weight = np.ones(len(pairs)) if pairs.sample_weight is None else pairs.sample_weight
    used = V.differ() & (weight > 0)
    similar, others = (np.flatnonzero(used & (pairs.y == sign)) for sign in (1, -1))
    # √(vᵀAv) is linear in the length of v.
    return V.only(similar, np.sqrt(weight[similar])), V.only(others, weight[others])


def check_side(name: str, n: int) -> None:
    """Refuse a side without pairs."""
    if not n:
        raise InvalidInputError(
            f"MMC needs similar and dissimilar pairs of rows that differ. Got no {name} pair; "
            "give some, or use ITML, which learns from either kind."
        )


def _sizes(near: Vector, far: Vector, dtype: np.dtype[Any]) -> Vector:
    """The size of the differences in each feature; 0 where a weight of 1/size² would overflow."""
    sizes = np.sqrt(np.diagonal(near) + np.diagonal(far))
    return np.where(sizes > 1 / LARGEST[dtype], sizes, 0.0)


class Stretch:
    """−log Σ_D ‖Lu‖ + ½ log tr LᵀL, in coordinates u = Bᵀv with Σ_S u uᵀ = I."""

    def __init__(self, sides: Sides) -> None:
        near, far = sides.near, sides.far
        sizes = _sizes(near, far, sides.dtype)
        unit = np.where(sizes > 0, sizes, 1.0)
        near, far = near / unit / unit[:, None], far / unit / unit[:, None]
        values, axes = np.linalg.eigh(near + far)
        basis = axes[:, values > SINGULAR * values[-1]]
        inner = regularized(basis.T @ near @ basis, "the scatter of similar pairs", "MMC")
        values, axes = np.linalg.eigh(inner)
        self.B = basis @ (axes / np.sqrt(values)) / unit[:, None]
        self.back = basis @ (axes * np.sqrt(values)) * unit[:, None]
        self.far: FarPairs = sides.far_sums(FarPairs, self.B)

    def solve(self, before: Array | None, max_iter: int, tol: float, log: RunLog) -> Found:
        """The best A, found over L."""
        r = self.B.shape[1]
        L = np.eye(r) / np.sqrt(r)
        if before is not None and (given := before.astype(np.float64) @ self.back).any():
            L = np.linalg.qr(np.vstack([given, np.zeros((r, r))])).R
        found = solve(
            self,
            L,
            max_iter=max_iter,
            tol=tol,
            look=lambda found: log.look(
                lambda: self._result(found).components, *self._result(found)[1:]
            ),
        )
        return self._result(found)

    def _result(self, found: ProvenSolution) -> Found:
        L = found.L / np.linalg.norm(found.L)
        objective = float(np.exp(-found.value.loss))
        M = self.B @ (L.T @ L) @ self.B.T
        return Found(factor((M + M.T) / 2)[0], objective, found.gap * objective)

    def value_and_gradient(self, L: Matrix64) -> LossAndGradient:
        """The loss and its gradient."""
        total, by_L = self.far.lengths(L)
        trace = float(np.vdot(L, L))
        loss = -np.log(total) + 0.5 * np.log(trace)
        return LossAndGradient(loss, L / trace - by_L / total)

    def proof(self, L: Matrix64) -> tuple[float, Vector]:
        """Part of the objective that is missing at most, and directions in which A should grow.

        With g concave, tr A = tr A′ = 1 and G = ∂g/∂A, g(A′) ≤ g(A) + ⟨G, A′ − A⟩
        ≤ g(A)/2 + λ_max(G), because ⟨G, A⟩ = g(A)/2.
        """
        total, G = self.far.derivatives(L / np.linalg.norm(L))
        values, vectors = np.linalg.eigh(G)
        values = values / total - 0.5
        R = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        return max(0.0, float(values[-1])), R


class Weights:
    """Σ_S vᵀAv − log Σ_D √(vᵀAv) over diagonal A (the paper's equation 6)."""

    def __init__(self, sides: Sides) -> None:
        near, far = sides.near, sides.far
        sizes = _sizes(near, far, sides.dtype)
        self.used = np.flatnonzero(sizes)
        self.units = sizes[self.used]
        self.n_features = len(near)
        self.far: FarSquares = sides.far_sums(FarSquares, self.used, self.units)
        scatter = np.diag(np.diagonal(near)[self.used] / self.units**2)
        self.s = regularized(scatter, "the scatter of similar pairs", "MMC").diagonal()

    def solve(self, before: Array | None, max_iter: int, tol: float, log: RunLog) -> Found:
        """The best weights: Newton's method, with steps that keep them positive."""
        a = 1 / (self.s * len(self.s))
        if before is not None:
            given = squared_norms(before.T.astype(np.float64))[self.used] * self.units**2
            a = np.maximum(given, IDLE * a) / (self.s @ given) if given.any() else a
        h, gradient, hessian = self._derivatives(a)
        found = self._found(a)
        while len(log.rows) < max_iter:
            if found.gap <= tol * found.objective and log.rows:
                break
            onward = self._step(a, h, gradient, hessian)
            if onward is not None:
                a = onward
                h, gradient, hessian = self._derivatives(a)
            found = self._found(a)
            if log.look(partial(getattr, found, "components"), *found[1:]) or onward is None:
                break
        return found

    def _cost(self, a: Vector) -> float:
        (total,) = self.far.roots(a)
        return float(self.s @ a - np.log(total))

    def _derivatives(self, a: Vector) -> tuple[float, Vector, Vector]:
        g, first = self.far.derivatives(a)
        (second,) = self.far.curvature(a)
        first, second = first / g, second / g
        return float(self.s @ a - np.log(g)), self.s - first, second + np.outer(first, first)

    def _step(self, a: Vector, h: float, gradient: Vector, hessian: Vector) -> Vector | None:
        free = ~((self.s * a <= IDLE) & (gradient > 0))
        p = np.full(len(a), np.inf)
        # In units of 1/s all weights are alike.
        unit = self.s[free]
        H = hessian[np.ix_(free, free)] / np.outer(unit, unit)
        H[np.diag_indices(len(H))] += 1e-12 * np.trace(H)
        p[free] = np.linalg.solve(H, gradient[free] / unit) / unit
        t = 1.0
        while t > 1e-12:
            trial = np.maximum(a - t * p, SHRINK * a)
            there = self._cost(trial)
            if there <= h + 1e-4 * gradient @ (trial - a) and there < h:
                return trial
            t /= 2
        return None

    def _found(self, a: Vector) -> Found:
        """Of Σ_S = 1, max_k (∂g/∂a)_k / s_k is what λ_max is for full matrices."""
        a = a / (self.s @ a)
        objective, first = self.far.derivatives(a)
        most = float((first / self.s).max())
        weights = np.zeros(self.n_features)
        weights[self.used] = a / self.units**2
        components = np.diag(np.sqrt(weights))[weights > 0]
        return Found(components, objective, max(0.0, most - objective / 2))


PROBLEMS: dict[str, type[Stretch] | type[Weights]] = {"full": Stretch, "diagonal": Weights}
"""What is solved, by the structure of A."""
