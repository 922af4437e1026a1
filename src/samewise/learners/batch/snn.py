"""SNN: a similarity by a neural network with one hidden layer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis

from samewise._rollback import unchanged_if_refused
from samewise._typing import Matrix
from samewise.engine.online import few_threads
from samewise.exceptions import InvalidInputError
from samewise.forms import NeuralSimilarity
from samewise.kernels.pairwise import row_slices, times
from samewise.kernels.scatter_loop import add_rows
from samewise.learners.attributes import RAN, Attribute, FormOf, Number
from samewise.learners.batch.batch_learner import BatchPairLearner
from samewise.learners.constraints import COUNT, NOT_NEGATIVE
from samewise.learners.dense_rows import typed
from samewise.solvers.evaluation import LossAndGradient
from samewise.solvers.held_out import HeldOut
from samewise.solvers.run_log import RunLog
from samewise.solvers.smooth import minimize_smooth
from samewise.supervision import Pairs

Vector = NDArray[np.float64]

BLOCK_BYTES = 2**20
"""Activations of a block of pairs, which are worked on several times."""

FAILED_SEARCH = 2
"""SciPy's status of a run whose line search finds nothing lower."""


@dataclass(eq=False, repr=False)
class SNN(BatchPairLearner):
    """Similarity neural network: two rows in, one hidden layer, their similarity out.

    The network

        s(x, x') = σ(b + Σ_h w_h (tanh(u_hᵀx + v_hᵀx' + c_h) + tanh(v_hᵀx + u_hᵀx' + c_h)))

    has hidden units in pairs that mirror each other and weigh the same, so that the order of x and
    x' does not matter, and an output in (0, 1). It should be 1 for similar and 0 for dissimilar
    pairs: with t those targets, and the mean over all pairs,

        minimize mean (s(x, x') − t)² + α/2 (Σ ‖u_h‖² + ‖v_h‖² + w_h²)

    by SciPy's L-BFGS with exact gradients. It is not convex, and depends on the random start.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): it learns whether two examples are the same,
    and not which are nearest.

    Parameters
    ----------
    n_hidden : int, default=10
        Number of pairs of hidden units.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-6
        Tolerance of the stopping rule. Learning stops when an iteration lowers the loss by no more
        than tol·max(loss, 1).
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `metric_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "metric", the present form.
    alpha : float, default=1e-4
        Weight α of the penalty.
    purpose : {"neighbors", "verification"}, default="verification"
        What the metric is for, if pairs are sampled from labeled examples. "neighbors": for each
        example its nearest of its own class and of the others, which tells what to bring near for
        k-NN and search. "verification": random pairs, half of them similar, which tells whether
        any two examples are the same.
    n_neighbors : int, default=10
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all nearest pairs, or 20 random
        ones per example, and at most 100 000.
    validation_fraction : float in (0, 1), default=None
        Part of the examples to hold out for early stopping. This part of the pairs is held out. Its
        mean squared error is computed every fifth iteration; learning stops after three evaluations
        without improvement, and the best network is kept.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : NeuralSimilarity
        The learned similarity.
    threshold_ : float
        A pair is called similar when its similarity is at least this. Of all thresholds, it decides
        most pairs rightly: of random ones that are held out, after labels, and otherwise of those
        learned from.
    loss_ : float
        The loss of `metric_`.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the run ended by `tol`, or where no step lowers the loss.
    history_ : dict of arrays
        After each iteration: "loss"; "validation_loss", NaN where it was not looked at; "seconds".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    HIER : A similarity by class probabilities.
    ITML : A Mahalanobis distance learned from pairs.

    Notes
    -----
    Features are centered and scaled to unit variance inside, where α counts; the weights of
    `metric_` are for features as they are given. With weights, pairs count in the mean as often as
    their weights say.

    What is linear in the rows is computed once for each row, and the rest for a block of pairs at
    a time: memory grows with n_hidden·(n + d), beside the rows and the numbers of the pairs. Sparse
    rows stay sparse. float32 rows are worked on in float32, in which a run may end early.

    Ctrl-C ends a run with what was learned up to there in place.

    References
    ----------
    S. Melacci, L. Sarti, M. Maggini, M. Bianchini: A neural network approach to similarity
    learning. ANNPR 2008. M. Maggini, S. Melacci, L. Sarti: Learning from pairwise constraints by
    similarity neural networks. Neural Networks 26, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import SNN, KNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> snn = SNN(random_state=0).fit(X[::2], y[::2])
    >>> snn.metric_
    NeuralSimilarity(n_features_in=4, n_hidden=10)
    >>> KNNClassifier(snn.metric_).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    metric_: NeuralSimilarity = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((NeuralSimilarity,)),
        "loss_": Number(),
        **RAN,
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [COUNT],
        "alpha": [NOT_NEGATIVE],
    }

    n_hidden: int = 10
    _: KW_ONLY
    alpha: float = 1e-4
    purpose: str = "verification"
    n_neighbors: int = 10
    n_pairs: int | None = None
    tol: float = 1e-6
    validation_fraction: float | None = None
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
            random = check_random_state(self.random_state)
            pairs, judged = self._pairs(X, y, random)
            used, held = self._parts(pairs, random)
            scale = FeatureScale.of(pairs.X)
            network = self._start(scale, random)
        made = partial(scale.form, n_hidden=self.n_hidden)
        fields = ("loss", "validation_loss")
        with (
            self._log(*fields, shown="metric", as_shown=made) as log,
            few_threads(pairs.X.shape[1]),
        ):
            cost = NetworkLoss(used, scale, self.n_hidden, self.alpha)
            if held is not None:
                unseen = NetworkLoss(held, scale, self.n_hidden, 0.0)
                log.held_out = HeldOut(lambda network: unseen.value_and_gradient(network).loss)
            self._solve(cost, network, log)
            self._calibrate(judged)
            self._end(log)
        return self

    def _parts(self, pairs: Pairs, random: np.random.RandomState) -> tuple[Pairs, Pairs | None]:
        """Pairs to learn from and pairs held out, if any; those of weight 0 are left out."""
        if pairs.sample_weight is not None:
            pairs = pairs[pairs.sample_weight > 0]
        n_held = int(len(pairs) * (self.validation_fraction or 0.0))
        if self.validation_fraction is not None and n_held == 0:
            raise InvalidInputError(
                f"validation_fraction={self.validation_fraction:g} holds out none of {len(pairs)} "
                "pairs; raise it, or leave it out."
            )
        order = random.permutation(len(pairs)) if n_held else np.arange(len(pairs))
        used = pairs[np.sort(order[n_held:])]
        for name, sign in (("similar", 1), ("dissimilar", -1)):
            if not np.any(used.y == sign):
                raise InvalidInputError(
                    f"SNN needs similar and dissimilar pairs. Got no {name} pair; give some."
                )
        return used, pairs[np.sort(order[:n_held])] if n_held else None

    def _start(self, scale: FeatureScale, random: np.random.RandomState) -> Vector:
        """The parameters to start from, in one vector."""
        d, H = len(scale.mean), self.n_hidden
        before = self._before("metric_")
        if before is None:
            # Activations of rows of unit variance, and their sum, are of the size of 1.
            weights = random.normal(size=2 * H * d) / np.sqrt(2 * d)
            rest = random.normal(size=H), random.normal(size=H) / np.sqrt(2 * H), np.zeros(1)
            return np.concatenate([weights, *rest])
        if before.left.shape != (H, d):
            raise InvalidInputError(
                f"With warm_start, n_hidden and the number of features must be those of the fit "
                f"before, {before.left.shape}. Got {(H, d)}."
            )
        return scale.inside(before)

    def _solve(self, cost: NetworkLoss, network: Vector, log: RunLog) -> None:
        found = minimize_smooth(
            cost,
            network,
            look=lambda now, loss: log.look(lambda: now, loss),
            maxiter=self.max_iter,
            maxfun=np.inf,
            ftol=self.tol,
            gtol=0.0,
        )
        network, loss = found.x, float(found.fun)
        if log.held_out is not None:
            log.held_out.look(network)
            network = log.held_out.best
            loss = cost.value_and_gradient(network).loss
        log.say()
        self.converged_ = not log.stopped and found.status in (0, FAILED_SEARCH)
        self.loss_ = loss
        self.metric_ = cost.scale.form(network, self.n_hidden)


class FeatureScale(NamedTuple):
    """Where features are centered and of unit variance, and the way there and back for weights."""

    mean: Vector
    size: Vector
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, X: Matrix) -> FeatureScale:
        """The scale of some rows; features that do not vary stay as large as they are."""
        if sp.issparse(X):
            mean, variance = mean_variance_axis(X.astype(np.float64), axis=0)
        else:
            mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        size = np.sqrt(variance)
        limits = np.finfo(X.dtype)
        varies = size > np.maximum(16 * limits.eps * np.abs(mean), np.sqrt(limits.tiny))
        return cls(mean, np.where(varies, size, 1.0), X.dtype)

    def form(self, network: Vector, n_hidden: int) -> NeuralSimilarity:
        """The network for rows as they are given."""
        U, V, c, w, b = parts(network, n_hidden)
        U, V = U / self.size, V / self.size
        c = c - (U + V) @ self.mean
        left, right, bias, output = (typed(part, self.dtype) for part in (U, V, c, w))
        return NeuralSimilarity(left, right, bias, output, float(b[0]))

    def inside(self, form: NeuralSimilarity) -> Vector:
        """The network of a form, for scaled rows."""
        U, V, c, w = (
            part.astype(np.float64) for part in (form.left, form.right, form.bias, form.output)
        )
        c = c + (U + V) @ self.mean
        return np.concatenate(
            [(U * self.size).ravel(), (V * self.size).ravel(), c, w, [form.intercept]]
        )


class NetworkLoss:
    """mean (s − t)² + α/2 (‖U‖² + ‖V‖² + ‖w‖²) and its gradient, as one vector.

    Rows are never scaled: Uz = (U/size)(x − mean) for z = (x − mean)/size.
    """

    def __init__(self, pairs: Pairs, scale: FeatureScale, n_hidden: int, alpha: float) -> None:
        self.scale, self.n_hidden, self.alpha = scale, n_hidden, alpha
        rows, places = np.unique([pairs.left, pairs.right], return_inverse=True)
        self.X = pairs.X if len(rows) == pairs.X.shape[0] else pairs.X[rows]
        self.left, self.right = places.reshape(2, -1)
        self.target = (pairs.y > 0).astype(self.X.dtype)
        weight = np.ones(len(pairs)) if pairs.sample_weight is None else pairs.sample_weight
        self.weight = (weight / weight.sum()).astype(self.X.dtype)

    def value_and_gradient(self, network: Vector) -> LossAndGradient:
        """The loss and its gradient."""
        dtype, (mean, size, _) = self.X.dtype, self.scale
        U, V, c, w, b = parts(network, self.n_hidden)
        both = np.concatenate([U, V]) / size
        # Half of c on either side of a pair.
        shift = np.tile(c / 2, 2) - both @ mean
        E = times(self.X, both.T.astype(dtype)) + shift.astype(dtype)
        G = np.zeros_like(E)
        loss, gradient_w, gradient_b = 0.0, np.zeros(self.n_hidden), 0.0
        w = w.astype(dtype)
        for block in row_slices(len(self.left), E[:1].nbytes, BLOCK_BYTES):
            left, right = self.left[block], self.right[block]
            # Columns: a unit of each pair, then its mirror image.
            T = np.tanh(E[left] + np.roll(E[right], self.n_hidden, axis=1))
            units = T[:, : self.n_hidden] + T[:, self.n_hidden :]
            s = expit(units @ w + dtype.type(b[0]))
            missed = s - self.target[block]
            counted = self.weight[block] * missed
            loss += float(counted @ missed)
            slope = 2 * counted * s * (1 - s)
            gradient_w += units.T @ slope
            gradient_b += float(slope.sum(dtype=np.float64))
            T *= -T
            T += 1
            T *= np.tile(w, 2) * slope[:, None]
            add_rows(G, left, T)
            add_rows(G, right, np.roll(T, self.n_hidden, axis=1))
        sums = G.sum(axis=0, dtype=np.float64)
        back = (np.asarray(self.X.T @ G).T.astype(np.float64) - np.outer(sums, mean)) / size
        gradient = np.concatenate(
            [back.ravel(), sums.reshape(2, -1).sum(axis=0) / 2, gradient_w, [gradient_b]]
        )
        # All but c and b.
        punished = network.copy()
        punished[-1 - 2 * self.n_hidden : -1 - self.n_hidden] = 0
        punished[-1] = 0
        loss += self.alpha / 2 * float(punished @ punished)
        return LossAndGradient(loss, gradient + self.alpha * punished)


def parts(network: Vector, n_hidden: int) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """U, V, c, w and b out of one vector."""
    H = n_hidden
    weights, c, w, b = np.split(network, [-1 - 2 * H, -1 - H, -1])
    U, V = weights.reshape(2, H, -1)
    return U, V, c, w, b
