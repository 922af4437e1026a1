"""SDML: sparse distance metric learning, a graphical lasso of pairs."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotri
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array
from samewise.engine.online import few_threads
from samewise.exceptions import DegenerateInputError, SamewiseWarning
from samewise.forms import Mahalanobis
from samewise.kernels.psd import factor
from samewise.learners.attributes import Attribute, Number, Positive
from samewise.learners.batch.batch_learner import BatchLearner, BatchPairLearner
from samewise.learners.batch.pair_differences import Differences
from samewise.learners.batch.priors import prior_metric
from samewise.learners.constraints import NOT_NEGATIVE, POSITIVE
from samewise.learners.dense_rows import typed
from samewise.learners.pair_judge import PairDistance
from samewise.solvers.run_log import RunLog
from samewise.supervision import Pairs

Vector = NDArray[np.float64]

SHARE = 0.9
"""How much of the prior the pairs may take away in any direction, for balance="auto"."""

FLAT = 1e-6
"""S counts as positive definite if it is at least this part of the inverse of the prior."""

TRIALS = 60
"""How often a step is halved before none is found."""


@dataclass(eq=False, repr=False)
class SDML(PairDistance, BatchPairLearner, BatchLearner):
    """Sparse distance metric learning: near a prior, with few features related to each other.

    With v = x − x′ and δ = 1 for similar pairs, −1 for dissimilar ones,

        minimize tr(SM) − log det M + λ Σ_{j≠k} |M_jk|,   S = M₀⁻¹ + η Σ w δ v vᵀ,

    over M ≻ 0. This is the graphical lasso of S, which stands in for a covariance. The first two
    terms are the LogDet divergence from the prior M₀ and η Σ w δ vᵀMv, up to a constant.

    Parameters
    ----------
    balance : float or "auto", default="auto"
        η. Dissimilar pairs make S smaller; where it is no longer positive definite, M may grow
        without end. "auto" is the η for which the pairs add or take away at most nine tenths of the
        prior, in any direction. A number that makes S indefinite is lowered to that, with a
        warning; `balance_` is what was used.
    sparsity : float, default=0.01
        λ. The larger it is, the more entries of M beside the diagonal are exactly 0.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-3
        Tolerance of the stopping rule. Learning stops when `gap_` is at most this for each feature.
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
        The learned distance, with `matrix` M.
    components_ : array of shape (n_features, n_features)
        L with M = LᵀL.
    threshold_ : float
        On squared distances: a pair is called similar when its squared distance is at most this.
        Of all thresholds, it decides most pairs rightly: of random ones that are held out, after
        labels, and otherwise of those learned from. Not there if these are all similar or all
        dissimilar.
    balance_ : float
        The η that was used.
    loss_ : float
        The objective at M.
    gap_ : float
        No M has a loss below loss_ − gap_; infinite if that could not be shown.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`.
    history_ : dict of arrays
        After each iteration: "loss", "gap" and "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    ITML : Bounds on distances, near the same kind of prior.
    LSML : Learns from comparisons, near the same kind of prior.

    Notes
    -----
    The dual problem is solved: of all W with |W − S| ≤ λ and the diagonal of S, the one of the
    largest determinant. Its gradient is W⁻¹, and steps along it, cut off at λ, are of the length of
    Barzilai and Borwein, shortened until the determinant grows. Where W is strictly inside, M is 0;
    elsewhere it is W⁻¹. What lies between the loss at M and log det W + d is `gap_`.

    metric-learn calls scikit-learn's graphical lasso for the same problem, with η = 1/2, and raises
    where S is indefinite, which it is for most data with as many dissimilar pairs as similar ones.

    Differences are summed in blocks; there are only matrices of d × d. The work is done in float64.
    Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    G.-J. Qi, J. Tang, Z.-J. Zha, T.-S. Chua, H.-J. Zhang: An efficient sparse metric learning in
    high-dimensional space via ℓ1-penalized log-determinant regularization. ICML 2009, equation 10.

    O. Banerjee, L. El Ghaoui, A. d'Aspremont: Model selection through sparse maximum likelihood
    estimation. JMLR 9, 2008, equation 4, the dual problem.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from samewise import SDML
    >>> X, y = load_wine(return_X_y=True)
    >>> sdml = SDML(sparsity=0.2, random_state=0).fit(scale(X), y)
    >>> sdml.metric_
    Mahalanobis(n_features_in=13, rank=13)
    >>> bool((sdml.get_mahalanobis_matrix() == 0).sum() > 13)
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "balance_": Positive(),
        "loss_": Number(),
        "gap_": Number(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "balance": [StrOptions({"auto"}), POSITIVE],
        "sparsity": [NOT_NEGATIVE],
        "prior": [StrOptions({"identity", "covariance"}), "array-like", Mahalanobis],
    }

    balance: float | str = "auto"
    sparsity: float = 0.01
    _: KW_ONLY
    prior: str | ArrayLike | Mahalanobis = "identity"
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
        with self._log("loss", "gap") as log:
            with unchanged_if_refused(self):
                before = self._before("metric_")
                pairs, judged = self._pairs(X, y, check_random_state(self.random_state))
                inverse, prior = prior_metric(self.prior, pairs.X, "SDML")
                K = signed_scatter(pairs)
                self.balance_ = self._balance(K, factor(prior, tol=0.0)[0])
                problem = SparsePrecision(inverse + self.balance_ * K, self.sparsity)
                start = problem.start(None if before is None else before.matrix)
                with few_threads(len(K)):
                    found = self._solve(problem, start, log)
                # Of M itself, so that its zeros stay.
                self.metric_ = Mahalanobis(typed(found.M, pairs.X.dtype))
                self._calibrate(judged)
                self.loss_, self.gap_ = found.loss, found.gap
                self.converged_ = self._enough(found)
            self._end(log, f"; the gap is {found.gap:.1e}")
        return self

    def _balance(self, K: Vector, root: Array) -> float:
        """η: what was asked for, or what leaves a tenth of the prior."""
        values = np.linalg.eigvalsh(root @ K @ root.T)
        most = SHARE / float(np.abs(values).max())
        if isinstance(self.balance, str):
            return most
        if 1 + self.balance * values[0] > FLAT:
            return float(self.balance)
        lowered = SHARE / -float(values[0])
        warnings.warn(
            f"SDML: with balance={self.balance:g} dissimilar pairs outweigh the prior, and M has "
            f"no bound. balance_={lowered:.3g} is used; lower balance, or leave it at 'auto'.",
            SamewiseWarning,
            stacklevel=4,
        )
        return lowered

    def _solve(self, problem: SparsePrecision, found: Precision, log: RunLog) -> Precision:
        """Steps until the gap is small enough."""
        step = problem.first_step(found)
        while len(log.rows) < self.max_iter:
            onward = problem.onward(found, step)
            if onward is not None:
                step, found = problem.next_step(found, onward), onward
            stop = log.look(partial(_root, found), found.loss, found.gap)
            if stop or onward is None or self._enough(found):
                break
        log.say()
        return found

    def _enough(self, found: Precision) -> bool:
        return bool(found.gap <= self.tol * len(found.M))


def signed_scatter(pairs: Pairs) -> Vector:
    """Σ w δ v vᵀ."""
    V = Differences.of(pairs, "SDML")
    weight = np.ones(len(pairs)) if pairs.sample_weight is None else pairs.sample_weight
    similar, others = (np.flatnonzero((pairs.y == sign) & (weight > 0)) for sign in (1, -1))
    near, far = (V.only(rows, np.sqrt(weight[rows])).scatter() for rows in (similar, others))
    K = near - far
    # What is left of two equal sums is rounding.
    if not np.abs(K).max() > 1e-14 * max(near.max(), far.max()) > 0:
        raise DegenerateInputError(
            "SDML needs pairs of different rows whose similar and dissimilar differences are not "
            "the same. Got pairs that say nothing; give others."
        )
    return K


def _root(found: Precision) -> Array:
    """L with M = LᵀL."""
    return factor(found.M)[0]


class Precision(NamedTuple):
    """W and its inverse, the dual's value; M, its loss, and how far that is from the least."""

    W: Vector
    inverse: Vector
    value: float
    M: Vector
    loss: float
    gap: float


class SparsePrecision:
    """tr(SM) − log det M + λ Σ_{j≠k} |M_jk| over M ≻ 0, and its dual log det W + d.

    Parameters
    ----------
    S : array of shape (d, d)
        Positive definite.
    sparsity : float
        λ.
    """

    def __init__(self, S: Vector, sparsity: float) -> None:
        self.S = (S + S.T) / 2
        self.most = np.full(S.shape, float(sparsity))
        np.fill_diagonal(self.most, 0.0)

    def at(self, W: Vector) -> Precision:
        """What follows from a W, which must be positive definite."""
        root = np.linalg.cholesky(W)
        inverse = np.tril(dpotri(root, lower=1)[0])
        inverse += np.tril(inverse, -1).T
        value = 2 * float(np.log(np.diagonal(root)).sum()) + len(W)
        inside = np.abs(W - self.S) < (1 - 1e-9) * self.most
        M = np.where(inside, 0.0, inverse)
        loss = self.loss(M)
        if not np.isfinite(loss):
            M, loss = inverse, self.loss(inverse)
        return Precision(W, inverse, value, M, loss, max(loss - value, 0.0))

    def loss(self, M: Vector) -> float:
        """The objective; infinite where M is not positive definite."""
        try:
            root = np.linalg.cholesky(M)
        except np.linalg.LinAlgError:
            return np.inf
        log_det = 2 * float(np.log(np.diagonal(root)).sum())
        return float(np.vdot(self.S, M) - log_det + np.vdot(self.most, np.abs(M)))

    def start(self, before: Array | None) -> Precision:
        """From a given M, or the better of what is right for a small λ and for a large one."""
        inverse = np.linalg.inv(self.S)
        towards = [self.most * np.sign(inverse), -self.S]
        if before is not None and before.shape == self.S.shape:
            towards.insert(0, np.linalg.pinv(before.astype(np.float64)) - self.S)
        found = [self.at(self.S)]
        for E in towards:
            try:
                found.append(self.at(self.S + np.clip((E + E.T) / 2, -self.most, self.most)))
            except np.linalg.LinAlgError:
                continue
        return max(found, key=lambda each: each.value)

    def first_step(self, found: Precision) -> float:
        """1/‖W⁻¹‖², with which the determinant always grows."""
        return float(np.linalg.norm(found.inverse, 2)) ** -2

    def next_step(self, before: Precision, now: Precision) -> float:
        """‖ΔW‖² / ⟨ΔW, −ΔW⁻¹⟩."""
        moved = now.W - before.W
        turned = float(np.vdot(moved, before.inverse - now.inverse))
        return float(np.vdot(moved, moved)) / turned if turned > 0 else self.first_step(now)

    def onward(self, found: Precision, step: float) -> Precision | None:
        """A step that raises the determinant; None if none does."""
        for _ in range(TRIALS):
            E = found.W - self.S + step * found.inverse
            W = self.S + np.clip(E, -self.most, self.most)
            moved = W - found.W
            try:
                there = self.at(W) if moved.any() else None
            except np.linalg.LinAlgError:
                step /= 2
                continue
            if there is None:
                return None
            if there.value >= found.value + 1e-4 * float(np.vdot(found.inverse, moved)):
                return there
            step /= 2
        return None
