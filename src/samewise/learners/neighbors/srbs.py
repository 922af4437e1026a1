"""sRBS: the similarity with the fewest negative margins, counted smoothly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError
from samewise.kernels.pairwise import dense, row_dots, row_slices, times
from samewise.learners.attributes import RAN, Attribute, Number
from samewise.learners.class_checks import warn_of_small_classes
from samewise.learners.neighbors.similarity_learner import (
    ContrastLearner,
    nearest_psd,
    similarity,
)
from samewise.solvers.evaluation import LossAndGradient
from samewise.solvers.run_log import RunLog
from samewise.solvers.smooth import minimize_smooth

_BLOCK_BYTES = 4 * 2**20

MOST = 1e70
"""The largest β and λ: products with larger ones overflow."""


class MarginCost:
    """ε(A) = Σ_i 1/(1 + exp(β x_iᵀAv_i)) + λ‖A‖² and its gradient.

    Parameters
    ----------
    X, V : array or CSR matrix of shape (n, d)
        The examples x_i and their directions v_i.
    beta, regularization : float
        β and λ.
    diagonal : bool
        Whether A is given by its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> cost = MarginCost(np.array([[1.0]]), np.array([[2.0]]), 1.0, 0.5, diagonal=False)
    >>> cost(np.array([[0.0]]))
    (0.5, array([[-0.5]]))
    """

    def __init__(
        self, X: Matrix, V: Matrix, beta: float, regularization: float, diagonal: bool
    ) -> None:
        self.beta, self.regularization = beta, regularization
        self.n, self.diagonal = X.shape[0], diagonal
        self.X, self.V = X, V
        if diagonal:
            # x_iᵀ diag(a) v_i = (x_i ∘ v_i)ᵀ a.
            self.XV = sp.csr_array(X.multiply(V)) if sp.issparse(X) else X * V

    def margins(self, A: Array) -> Array:
        """x_iᵀAv_i for each i."""
        if self.diagonal:
            return np.asarray(self.XV @ A)
        m = np.empty(self.n)
        for rows in row_slices(self.n, 8 * A.shape[1], _BLOCK_BYTES):
            m[rows] = row_dots(times(self.X[rows], A), self.V[rows])
        return m

    def __call__(self, A: Array) -> tuple[float, Array]:
        """ε and ∂ε/∂A = −β Σ_i g_i/(1 + g_i)² x_i v_iᵀ + 2λA, g_i = exp(β x_iᵀAv_i)."""
        m = self.beta * self.margins(A)
        # 1/(1 + g) and g/(1 + g)², without g, which may overflow.
        wrong = expit(-m)
        slope = wrong * expit(m)
        value = wrong.sum() + self.regularization * np.sum(A * A)
        if self.diagonal:
            pull = np.asarray(self.XV.T @ slope)
        elif sp.issparse(self.X):
            pull = dense(self.X.T @ sp.csr_array(self.V.multiply(slope[:, None])))
        else:
            pull = self.X.T @ (self.V * slope[:, None])
        return float(value), 2 * self.regularization * A - self.beta * pull


class MeanMarginCost(NamedTuple):
    """ε(A)/n over the entries of A, or over those of L with A = LᵀL."""

    cost: MarginCost
    shape: tuple[int, ...]
    factored: bool

    def matrix(self, p: Array) -> Array:
        """A, or its diagonal."""
        P = p.reshape(self.shape)
        return P.T @ P if self.factored else P

    def value_and_gradient(self, p: Array) -> LossAndGradient:
        """The cost and its gradient by the entries."""
        value, G = self.cost(self.matrix(p))
        if self.factored:
            G = p.reshape(self.shape) @ (G + G.T)
        return LossAndGradient(value / self.cost.n, G.ravel() / self.cost.n)


@dataclass(eq=False, repr=False)
class SRBS(ContrastLearner):
    """Stricter RELIEF-based similarity: as few examples as possible nearer to impostors.

    With the rows x_i and v_i = Σ_q y_i^q/N − z_i^q/N of `RBS` (targets and impostors by the base
    similarity, fixed), x_iᵀAv_i is the margin of an example, and

        ε(A) = Σ_i 1/(1 + exp(β x_iᵀAv_i)) + λ‖A‖²

    is minimized from A = I: for large β the sum is the number of negative margins.

    Parameters
    ----------
    n_neighbors : int, default=1
        Number k of neighbors. In a class of k examples or fewer, an example has all others as
        targets and as many impostors; an example alone in its class takes no part. A warning says
        so.
    beta : float, default=1.0
        β, how sharply a margin counts as positive or negative. It is to be chosen by validation: a
        small β stays near A = I, the base similarity, and a large one moves A until few of these
        margins are negative, while examples that were far before may come near.
    regularization : float, default=1e-3
        Weight λ of the penalty.
    structure : {"full", "diagonal"}, default="full"
        Kind of matrix to learn; "diagonal" is one weight for each feature.
    normalizer : {"cosine", "dice", "jaccard"} or None, default="cosine"
        Normalizer N of the similarity, see `NormalizedBilinear`. None is N = 1. Zero rows have the
        similarity 0 to every row and contribute nothing.
    psd : {"each"} or None, default=None
        When positive semi-definiteness is restored. "each": at each iteration, as `solver` says.
        None: never.
    solver : {"gradient", "lbfgs"}, default="gradient"
        "gradient" takes the steps of the thesis, A ← A − (1/(tn)) ∂ε/∂A at iteration t, each
        followed by a projection on A ⪰ 0 with psd="each". Its steps fade: it ends where they lead
        from A = I, which need not be a minimum. "lbfgs" goes down to a minimum of the same cost;
        with psd="each" over L, A = LᵀL, or over weights bounded by 0. The cost is not convex:
        minima may differ.
    max_iter : int, default=500
        Maximum number of iterations. For "gradient" they are the epochs of the thesis. If `tol` is
        not reached by then, a ConvergenceWarning says so.
    tol : float, default=1e-3
        Tolerance of the stopping rule. "gradient" stops when the entries of A change by no more
        than this in sum; "lbfgs" when no entry of the gradient, with respect to its variables,
        exceeds this part of the largest at the start.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", "loss", "change", and "matrix", the present A (or its diagonal).

    Attributes
    ----------
    metric_ : NormalizedBilinear
        The learned similarity.
    components_ : array of shape (rank of A, n_features_in_)
        L with A = LᵀL, only where there is `transform`: with psd="each" and normalizer "cosine" or
        None.
    loss_ : float
        ε(A).
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss" ε, "change" Σ|ΔA|, and "seconds".
    classes_ : array of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    RBS : The largest sum of margins, in closed form.
    SiLA : Finds impostors under the present A.

    Notes
    -----
    Dense or CSR rows; A is a dense matrix for both. The work is done in float64.

    Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    Qamar, *Generalized Cosine and Similarity Metrics*, thesis, Grenoble 2010, sections 4.4.5 and
    4.4.6.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import RBS, SRBS
    >>> X, y = load_iris(return_X_y=True)
    >>> wrong = [(learner.fit(X, y).margins(X, y) < 0).sum() for learner in (RBS(), SRBS())]
    >>> bool(wrong[1] < wrong[0])
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {"loss_": Number(), **RAN}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "beta": [Interval(Real, 0, MOST, closed="right")],
        "regularization": [Interval(Real, 0, MOST, closed="both")],
        "psd": [StrOptions({"each"}), None],
        "solver": [StrOptions({"lbfgs", "gradient"})],
    }

    beta: float = 1.0
    regularization: float = 1e-3
    _: KW_ONLY
    solver: str = "gradient"
    max_iter: int = 500
    tol: float = 1e-3
    verbose: int | bool = False
    callback: Callable[[dict[str, Any]], object] | None = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            Examples.
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self : SRBS
            The fitted learner.
        """
        log = RunLog("SRBS", ("loss", "change"), self.verbose, self.callback, "matrix")
        # Ctrl-C is raised on leaving the log, with what was learned in place.
        with log, unchanged_if_refused(self):
            contrasts = self._contrasts(X, y)
            warn_of_small_classes(contrasts.labels, self.n_neighbors, stacklevel=3)
            rows = contrasts.rows.astype(np.float64)
            V = contrasts.directions.astype(np.float64)
            diagonal = self.structure == "diagonal"
            cost = MarginCost(rows, V, self.beta, self.regularization, diagonal)
            start = np.ones(rows.shape[1]) if diagonal else np.eye(rows.shape[1])
            solve = self._descend if self.solver == "gradient" else self._minimize
            A, self.converged_ = solve(cost, start, log)
            self.metric_ = similarity(A.astype(contrasts.rows.dtype), self.normalizer)
            self.loss_ = cost(A)[0]
            self.n_iter_ = len(log.rows)
            log.say()
            self.history_ = log.history
        if not (self.converged_ or log.stopped):
            warnings.warn(
                f"SRBS has not converged to tol={self.tol:g} in {self.n_iter_} iterations. Allow "
                "more (max_iter), a larger tol, or a larger regularization.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _descend(self, cost: MarginCost, A: Array, log: RunLog) -> tuple[Array, bool]:
        """The schedule of the thesis: steps of 1/t along the mean gradient."""
        loss, G = cost(A)
        for t in range(1, self.max_iter + 1):
            before = A
            with np.errstate(over="ignore", invalid="ignore"):
                A = A - G / (t * cost.n)
                if np.isfinite(A).all():
                    A = nearest_psd(A) if self.psd else A
                    loss, G = cost(A)
                change = float(np.abs(A - before).sum())
            # Not of the gradient: where it overflows, the next A does too.
            if not (np.isfinite(change) and np.isfinite(loss)):
                raise InvalidInputError(
                    f"SRBS diverges: steps along the gradient are too long for regularization="
                    f"{self.regularization:g} and beta={self.beta:g}. Use smaller ones, or "
                    "solver='lbfgs'."
                )
            if log.look(A.copy, loss, change):
                return A, False
            if change <= self.tol:
                return A, True
        return A, False

    def _minimize(self, cost: MarginCost, A: Array, log: RunLog) -> tuple[Array, bool]:
        """L-BFGS over A, or over L with A = LᵀL ⪰ 0; weights are bounded by 0 instead."""
        objective = MeanMarginCost(cost, A.shape, bool(self.psd) and not cost.diagonal)
        largest = float(np.abs(objective.value_and_gradient(A.ravel()).gradient).max())
        last = A

        def look(p: Array, loss: float) -> bool:
            nonlocal last
            new = objective.matrix(p).copy()
            change = float(np.abs(new - last).sum())
            last = new
            return log.look(new.copy, cost.n * loss, change)

        found = minimize_smooth(
            objective,
            A.ravel(),
            look=look,
            bounds=[(0, None)] * A.size if self.psd and cost.diagonal else None,
            maxiter=self.max_iter,
            maxfun=20 * self.max_iter,
            gtol=self.tol * largest,
            ftol=0.0,
        )
        # Where rounding leaves no lower value to be found, the search ends there as well.
        at_limit = found.nit >= self.max_iter or found.nfev >= 20 * self.max_iter
        return objective.matrix(found.x).copy(), not (at_limit or log.stopped)
