"""The LMNN estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from samewise._rollback import unchanged_if_refused
from samewise._typing import Array, Indices
from samewise.kernels.lmnn_loops import Costs
from samewise.learners.attributes import Attribute, Count, Labels, Number
from samewise.learners.batch.batch_learner import BatchLearner, held_out
from samewise.learners.batch.lmnn import target_checks as checks
from samewise.learners.batch.lmnn.anchors import Anchors
from samewise.learners.batch.lmnn.minimize import LMNNSolution, logged, solve, solve_convex
from samewise.learners.batch.lmnn.objective import LINEAR, SQUARED, Hinge
from samewise.learners.batch.lmnn.problem import LMNNBasis, LMNNProblem
from samewise.learners.batch.lmnn.weighted_targets import (
    given_costs,
    positive_weights,
    renumbered,
    weighted_targets,
)
from samewise.learners.batch.neighbor_errors import NeighborErrors
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.learners.class_checks import warn_of_small_classes
from samewise.learners.constraints import COUNT, check_at_most
from samewise.solvers.evaluation import Matrix64
from samewise.solvers.held_out import HeldOut
from samewise.solvers.run_log import RunLog
from samewise.solvers.workers import Workers, workers

FIELDS = ("stage", "loss", "n_active", "n_candidates", "validation_error")
"""What `history_` has, but for the seconds."""

SMALL = 2**22
"""Up to this many values the work is done in float64, beyond in float32."""


@dataclass(eq=False, repr=False)
class LMNN(BatchLearner):
    """Large margin nearest neighbors: a Mahalanobis distance for k-NN classification.

    Every point pulls its k target neighbors j⇝i, the nearest of its own class, and pushes points
    of other classes a unit beyond them:

        ε = (1−μ) Σ_{j⇝i} D_ij + μ Σ_{j⇝i} Σ_{l: c_l≠c_i} [1 + D_ij − D_il]₊,

    with D_ij = ‖L(x_i − x_j)‖². The loss is minimized as it stands, without normalization, and
    over all triplets: points that may come into reach are searched exactly, again and again, and
    the solver stops only when a fresh search confirms it.

    Parameters
    ----------
    n_neighbors : int, default=3
        Number k of neighbors. In a class of k points or fewer, each point has all others as
        targets.
    push_weight : float in [0, 1], default=0.5
        Weight μ of the push terms; 1 − μ is that of the pull terms.
    max_iter : int, default=500
        Maximum number of iterations. They are counted anew after each search of targets.
    tol : float, default=2e-4
        Tolerance of the stopping rule. Solver "L" stops when two iterations in a row lower the loss
        by no more than tol·loss; "M" when the duality gap is at most tol·loss, which can be asked
        for down to about 1e-5.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It starts from `components_`.
    verbose : bool or int, default=False
        Print progress to standard error.
    callback : callable, default=None
        Called after each iteration with a dict; if it returns a true value, learning stops. The
        dict has "iteration", the fields of `history_`, and "components", the present L.
    n_components : int, default=None
        Number of rows of L. By default L is square, or has as many rows as the points span where
        there are no more points than features. A square L is cut down by
        ``metric_.reduce(n_components)``.
    n_target_searches : int, default=1
        How many times target neighbors are searched. Each search after the first is by the distance
        learned before it, from which learning goes on.
    solver : {"L", "M"}, default="L"
        "L" minimizes over L by L-BFGS, which is fast; the problem is not convex, but starts from
        anywhere were seen to end at the same loss. "M" finds the minimum of the convex problem over
        M = LᵀL ⪰ 0 and proves it by a duality gap; it takes many more iterations.
    targets : array of shape (n, k), default=None
        The target neighbors of each point, as row numbers of X; −1 for none. By default the k
        nearest of the same class in Euclidean distance, ties to the smaller row number.
    init : {"auto", "identity", "pca"} or array of shape (n_components, n_features), default="auto"
        Where to start. A scaled map that looks best on a sample, L = I, the leading principal
        directions, or a given L.
    hinge : {"linear", "squared"}, default="linear"
        "squared" has [·]₊² in the place of [·]₊, a different loss.
    max_anchors : int, default=None
        Sum the loss only over so many points i, times n over their number; j and l are still
        searched among all points. The points are sampled at random, from each class in proportion,
        so the expectation is the loss over all. For data sets too large for all pairs: the time for
        a search grows with max_anchors · n. By default, and where there are no more points, all are
        taken.
    validation_fraction : float in (0, 1), default=None
        Part of the examples to hold out for early stopping. Of each class this part is held out.
        Its k-NN error is computed every fifth iteration; learning stops after three evaluations
        without improvement, and the best map is kept.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        L.
    metric_ : Mahalanobis
        The learned form.
    loss_ : float
        ε of `components_` over all triplets, with the targets of the last search. With
        `max_anchors`, an unbiased estimate of it: all terms of the anchors learned from, and those
        of as many others, sampled at random after learning, for all others.
    loss_std_ : float
        Standard error of `loss_`; 0 where all terms were taken.
    anchor_loss_ : float
        What was minimized: ε over the anchors learned from, times n over their number. It is below
        `loss_` by as much as L is fitted to them.
    n_active_ : int
        Number of triplets with a positive hinge, of the anchors learned from.
    gap_ : float
        With solver "M": no M ⪰ 0 has an `anchor_loss_` below anchor_loss_ − gap_.
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
    MultiMetricLMNN : One metric for each class or region.
    KernelLMNN : LMNN in the feature space of a kernel.
    NCA : A smooth loss of nearest neighbors, also by labels.
    KNNClassifier : A classifier that uses the learned metric.

    Notes
    -----
    Sparse input is accepted up to 2²⁷ values and made dense: the learned map has one column for
    each feature and is dense itself. For text, reduce the features first.

    Ctrl-C ends a run with what was learned up to there in place.

    With weights w, the loss is that of the data in which each point is repeated so many times:

        ε = Σ_{j⇝i} w_i m_ij ((1−μ) D_ij + μ Σ_{l: c_l≠c_i} w_l [1 + D_ij − D_il]₊),

    where m_ij says how often j is a target of i. The weights of the targets add up to k: the
    nearest is the point itself, w_i − 1 times where that is above 0, and the last one counts by the
    part that is still wanted. Targets that are given count once each. `n_active_` counts triplets
    of rows, whatever their weights.

    Memory grows with the number of points, of features and of pairs in reach, never with the
    number of all pairs. Time for a search grows with the square of the number of points;
    `max_anchors` bounds one of the two factors. Up to 2²² values the work is done in float64,
    beyond in float32.

    References
    ----------
    Weinberger and Saul, *Distance metric learning for large margin nearest neighbor
    classification*, JMLR 10, 2009: the loss is equation 13 and the convex problem that of
    section 3.3; sections 6.1 and 6.2 for passes and reduced dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from samewise import LMNN
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 2)) * [1.0, 10.0]
    >>> X[:, 0] += 4 * y
    >>> lmnn = LMNN().fit(X, y)
    >>> across, along = np.linalg.norm(lmnn.components_, axis=0)
    >>> bool(across > 2 * along)
    True
    """

    _learned: ClassVar[dict[str, Attribute]] = {
        "classes_": Labels(),
        "loss_": Number(),
        "loss_std_": Number(),
        "anchor_loss_": Number(),
        "n_active_": Count(),
        "gap_": Number(optional=True),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "init": [StrOptions({"auto", "identity", "pca"}), "array-like"],
        "max_anchors": [COUNT, None],
    }

    n_neighbors: int = 3
    push_weight: float = 0.5
    _: KW_ONLY
    n_components: int | None = None
    n_target_searches: int = 1
    solver: str = "L"
    targets: ArrayLike | None = None
    init: str | ArrayLike = "auto"
    hinge: str = "linear"
    max_anchors: int | None = None
    tol: float = 2e-4
    validation_fraction: float | None = None
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from labeled examples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_features)
            The examples.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default=None
            Weights of the examples: one of weight 2 counts as two in the same place, one of weight
            0 is left out. See the notes.

        Returns
        -------
        self : object
            The fitted learner.
        """
        with unchanged_if_refused(self):
            X, y = self._examples(X, y)
            given = checks.targets(self.targets, y, self.validation_fraction)
            weight = None
            if sample_weight is not None:
                weight, kept = positive_weights(sample_weight, len(y), self.validation_fraction)
                X, y = X[kept], y[kept]
                given = None if given is None else renumbered(given, kept)
            X, labels = self._dense(X, y)
            checks.rank(self.n_components, self.solver)
            check_at_most("n_components", self.n_components, X.shape[1], "the number of features")
            start = self._given_start(self.n_components)
            checks.start(start, X)
            random = check_random_state(self.random_state)
            X, labels, held = held_out(X, labels, self.validation_fraction, random)
            classes = Classes(labels, len(self.classes_))
        if given is None:
            warn_of_small_classes(labels, self.n_neighbors, 3, weight)
        with self._log(*FIELDS) as log, workers() as team:
            if held is not None:
                log.held_out = HeldOut(NeighborErrors(X, labels, *held, self.n_neighbors, team))
            search = _TargetSearch(X, classes, self.n_neighbors, given, weight, team)
            sample = Anchors(classes, given, self.max_anchors, random, weight)
            settings = self.push_weight, self._hinge, self._dtype(X.size)
            self._learn(_Problems(search, sample, *settings, random), start, log, X.dtype)
        return self

    @property
    def _hinge(self) -> Hinge:
        return SQUARED if self.hinge == "squared" else LINEAR

    def _dtype(self, n_values: int) -> type:
        """The type of the work on so many values."""
        return np.float64 if n_values <= SMALL or self.solver == "M" else np.float32

    def _learn(
        self,
        problems: Problems,
        components: Matrix64 | None,
        log: RunLog,
        dtype: np.dtype[Any],
    ) -> None:
        for stage in range(1, self.n_target_searches + 1):
            # Later stages look for targets under the distance of the stage before.
            under = components if stage > 1 else None
            problem = problems(under)
            found = self._solve(problem, components, stage, problems.factor, log)
            components = problem.components(found.L)
            if log.stopped:
                break
        assert components is not None
        if log.held_out is not None:
            log.held_out.look(components)
            if log.held_out.best is not components:
                components = log.held_out.best
                found.L = problem.coordinates(components)
                problem.objective.search(found.L)
                found.value = problem.objective.value_and_gradient(found.L)
        log.say()
        missing = max(0, (self.n_components or 0) - len(components))
        self._keep(np.pad(components, ((0, missing), (0, 0))), dtype)
        self.loss_, self.loss_std_ = problems.estimate(problem, found, under)
        self.anchor_loss_ = problems.factor * found.value.loss
        self.__dict__.pop("gap_", None)
        reached = ""
        if self.solver == "M":
            self.gap_ = problems.factor * (found.value.loss - found.bound)
            reached = f"; the gap is {self.gap_ / (self.anchor_loss_ or 1.0):.1e}·loss"
        self.n_active_, self.converged_ = found.value.active, found.converged
        self._end(log, reached, stacklevel=6)

    def _solve(
        self,
        problem: LMNNBasis,
        components: Matrix64 | None,
        stage: int,
        factor: float,
        log: RunLog,
    ) -> LMNNSolution:
        if components is not None:
            L = problem.coordinates(components)
        else:
            make = problem.principal if self.init == "pca" else problem.start
            L = problem.with_signs(make(self.n_components))
        if len(L) > L.shape[1]:
            L = np.linalg.qr(L).R

        look = logged(log, stage, problem.objective, problem.components, factor)
        method = solve if self.solver == "L" else solve_convex
        return method(problem.objective, L, max_iter=self.max_iter, tol=self.tol, look=look)


class Problems(Protocol):
    """How the problem of a stage is made.

    Attributes
    ----------
    factor : float
        What the loss of the problem is to be multiplied by.
    """

    factor: float

    def __call__(self, under: Matrix64 | None, /) -> LMNNBasis:
        """The problem with the nearest targets under a map."""

    def estimate(
        self, problem: Any, found: LMNNSolution, under: Matrix64 | None, /
    ) -> tuple[float, float]:
        """The loss over all triplets, and its standard error."""


class _Problems:
    """The problems of points that are at hand."""

    def __init__(
        self,
        search: _TargetSearch,
        sample: Anchors,
        mu: float,
        hinge: Hinge,
        dtype: type,
        random: np.random.RandomState,
    ) -> None:
        self._search, self._sample, self._random = search, sample, random
        self._settings = mu, hinge, dtype
        self.factor = sample.factor

    def __call__(self, under: Matrix64 | None) -> LMNNProblem:
        search = self._search
        targets, costs = search(under, self._sample.chosen)
        return LMNNProblem(search.X, search.classes, targets, *self._settings, search.team, costs)

    def estimate(
        self, problem: LMNNProblem, found: LMNNSolution, under: Matrix64 | None
    ) -> tuple[float, float]:
        """The loss over all triplets, and its standard error."""
        others = self._sample.others(self._random)
        if others is None:
            return found.value.loss, 0.0
        terms = problem.losses(found.L, *self._search(under, others))
        return self._sample.estimate(found.value.loss, terms)


@dataclass(frozen=True)
class _TargetSearch:
    """Targets of points: those given, or the nearest under a map; and how often they count."""

    X: Array
    classes: Classes
    n_neighbors: int
    given: Indices | None
    weight: NDArray[np.float64] | None
    team: Workers

    def __call__(
        self, under: Matrix64 | None, anchors: NDArray[np.int32] | None
    ) -> tuple[NDArray[np.int32], Costs | None]:
        """Of the anchors, sorted rows, or of all; those given are for the first pass."""
        weight = None if self.weight is None else self.weight[self.classes.order]
        if self.given is not None and under is None:
            targets = self.classes.sorted_targets(self.given, anchors)
            return targets, None if weight is None else given_costs(targets, weight)
        Z = self.X if under is None else self.X @ under.T.astype(self.X.dtype)

        def find(k: int) -> NDArray[np.int32]:
            return nearest_targets(Z, self.classes, min(k, len(Z)), self.team, anchors)

        if weight is None:
            return find(self.n_neighbors), None
        return weighted_targets(find, weight, self.n_neighbors, anchors)
