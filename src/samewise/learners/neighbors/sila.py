"""SiLA and eSiLA: similarities for k-NN by a voted perceptron."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from samewise._rollback import alone, unchanged_if_refused
from samewise._typing import Array, Indices, Matrix
from samewise.engine.averaging import RankOnes, Spec, Terms, checked_average
from samewise.engine.history import History
from samewise.engine.online import few_threads
from samewise.engine.progress import Progress
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.files.state import Saved, State
from samewise.forms import Bilinear, NormalizedBilinear
from samewise.kernels import sila_loop as kernel
from samewise.kernels.pairwise import dense
from samewise.kernels.screen import screen, whitened
from samewise.kernels.steps import Step
from samewise.learners.attributes import Attribute, FormOf, Labels
from samewise.learners.class_checks import numbered, warn_of_small_classes
from samewise.learners.constraints import COUNT, SHARED
from samewise.learners.counted import Counted
from samewise.learners.neighbors.base_similarity import BaseSimilarity
from samewise.learners.neighbors.similarity_learner import SimilarityLearner, similarity
from samewise.learners.neighbors.voted_perceptron import VotedRun

STRUCTURES = {"full": kernel.FULL, "symmetric": kernel.SYMMETRIC, "diagonal": kernel.DIAGONAL}
BLOCK = 256
"""Examples between two looks at averages, progress and Ctrl-C."""
LARGEST = 2**28
"""Entries of A beyond which it would hardly fit into memory."""


@dataclass(eq=False, repr=False)
class SiLA(Counted, SimilarityLearner):
    """Similarity learning for k-NN: s_A(x, x') = xᵀAx'/N(x, x') by a voted perceptron.

    Every example should be more similar to its targets T, the k nearest of its own class under the
    base similarity (A = I), than to its impostors B, the k nearest of the other classes under the
    present A. For each example with Σ_{y∈T} s_A(x, y) − Σ_{z∈B} s_A(x, z) ≤ 0

        A ← A + Σ_{y∈T} f(x, y) − Σ_{z∈B} f(x, z),

    with f = xyᵀ/N (full), (xyᵀ + yxᵀ)/N (symmetric) or diag(x∘y)/N (diagonal). The result is an
    average over the matrices met, each weighted by the rounds it survived. With psd="each" A is
    projected on A ⪰ 0 after each step: eSiLA.

    If some U with ‖U‖ = 1 keeps every example's targets ahead of any k examples of other classes by
    γ, and no step is longer than R, then a pass makes at most R²/γ² mistakes; with examples that
    lack up to ε_i of it, at most (R + D)²/γ², D² = Σ ε_i². (From A = 0, full and diagonal, without
    psd.)

    Parameters
    ----------
    n_neighbors : int, default=3
        Number k of neighbors. In a class of k examples or fewer, an example has all others as
        targets and as many impostors; an example alone in its class takes no part. A warning says
        so.
    structure : {"full", "symmetric", "diagonal"}, default="full"
        Kind of matrix to learn; "diagonal" is one weight for each feature.
    normalizer : {"cosine", "dice", "jaccard"}, callable or None, default="cosine"
        Normalizer N of the similarity, see `NormalizedBilinear`. None is N = 1. With a named
        normalizer zero rows have the similarity 0 to every row and are skipped.
    psd : {"each"} or None, default=None
        When positive semi-definiteness is restored. "each": after each step. None: never.
    impostors : "exact" or int, default="exact"
        Search all examples of other classes, or only the so many nearest of them under the base
        similarity, which are found once.
    step : {"perceptron", "pa1", "pa2"}, default="perceptron"
        "perceptron": as above. "pa1", "pa2": the step is multiplied by τ = min(C, ℓ/g) or
        ℓ/(g + 1/(2C)), where ℓ > 0 is what the margin lacks to 1 and g is by how much the whole
        step would raise it; then also examples with a positive margin below 1 move A.
    C : float, default=1.0
        Aggressiveness: larger allows larger steps. Only for "pa1" and "pa2".
    init : {"identity", "zero"}, default="identity"
        Where to start. A is the identity, which is the base similarity, or 0, as in the thesis;
        then the first examples decide what is similar at all.
    average : {"survival", "last", "uniform"} or tuple, default="survival"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half.
        Here the last q are weighted by their rounds, too.
    n_passes : int, default=10
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    warm_start : bool, default=False
        Whether to start from the result of the previous `fit`. It goes on from A, the averages and
        the counters.
    verbose : bool or int, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : NormalizedBilinear, or Bilinear for normalizer=None
        The learned similarity.
    classes_ : array of shape (n_classes,)
        The class labels.
    n_updates_, n_seen_, n_mistakes_ : int
        Examples that moved A, examples shown, and those whose margin was not positive then.
    loss_ : float
        What margins lacked to 0 (perceptron) or 1, in all.
    history_ : dict of arrays
        Running totals "rounds", "loss", "mistakes", "updates".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    GCosLA : A generalized cosine, learned from pairs.
    RBS : A similarity from targets and impostors in closed form.
    PerClassClassifier : One similarity for each class against the others.

    Notes
    -----
    Where similarities are equal, the impostor of the smaller class comes first, then the one of the
    smaller row number. With sparse X, A is dense nevertheless.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, sections 4.2
    and 4.3, theorems 1 to 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import KNNClassifier, SiLA
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = SiLA(n_passes=5).fit(X[::2], y[::2])
    >>> learner.metric_
    NormalizedBilinear(shape=(4, 4), normalizer='cosine')
    >>> KNNClassifier(learner).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    metric_: Bilinear = field(init=False)

    _learned: ClassVar[dict[str, Attribute]] = {
        "metric_": FormOf((Bilinear, NormalizedBilinear)),
        "classes_": Labels(),
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "structure": [StrOptions(set(STRUCTURES))],
        "normalizer": [*SHARED["normalizer"], callable],
        "psd": [StrOptions({"each"}), None],
        "impostors": [StrOptions({"exact"}), COUNT],
        "step": [StrOptions({"perceptron", "pa1", "pa2"})],
        "init": [StrOptions({"zero", "identity"})],
        "average": [str, tuple, list],
    }

    n_neighbors: int = 3
    _: KW_ONLY
    structure: str = "full"
    normalizer: str | Callable[[Matrix, Matrix], Array] | None = "cosine"
    psd: str | None = None
    impostors: int | str = "exact"
    step: str = "perceptron"
    C: float = 1.0
    init: str = "identity"
    average: Spec = "survival"
    n_passes: int = 10
    shuffle: bool = False
    warm_start: bool = False
    verbose: int | bool = False
    random_state: Any = None

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
        self : SiLA
            The fitted learner.
        """
        random = check_random_state(self.random_state)
        # Ctrl-C is raised on leaving Progress, with what was learned in place.
        with (
            alone(self),
            Progress("SiLA", 0, self.verbose) as progress,
            unchanged_if_refused(self, random),
        ):
            X, y = self._examples(X, y)
            checked_average(self.average)
            classes, labels = numbered(y, "SiLA")
            run = self._beginning(X.shape[1])
            base = BaseSimilarity(X, labels, self.normalizer)
            neighborhoods = Neighborhoods(base, min(self.n_neighbors, len(labels)), self.impostors)
            warn_of_small_classes(labels, self.n_neighbors, stacklevel=3)
            progress.total = self.n_passes * len(neighborhoods.shown)
            with few_threads(X.shape[1]):
                for shown in self._blocks(neighborhoods, random):
                    self._show(run, neighborhoods, shown)
                    progress.report(run.history)
                    if progress.interrupted:
                        break
            self.metric_, self._run, self.classes_ = self._form(run, X.dtype), run, classes
        return self

    def _beginning(self, d: int) -> VotedRun:
        """A new run, or that of the fit before to go on with."""
        if d * d > LARGEST and self.structure != "diagonal":
            raise TooLargeError(
                f"A of {d} features has {d}² entries, more than {LARGEST:,}. Reduce the features "
                "first, for example with sklearn.decomposition.TruncatedSVD, or use "
                "structure='diagonal'."
            )
        shape = (1, d) if self.structure == "diagonal" else (d, d)
        # A copy: what is refused on the way leaves the run before as it was.
        run = copy.deepcopy(getattr(self, "_run", None)) if self.warm_start else None
        if run is None:
            # A diagonal matrix is its one row of weights.
            identity = np.ones(shape) if self.structure == "diagonal" else np.eye(d)
            return VotedRun.begin(
                identity if self.init == "identity" else np.zeros(shape), self.average
            )
        if run.store.shape != shape:
            raise InvalidInputError(
                f"warm_start goes on with a matrix of shape {run.store.shape}, but now it would be "
                f"{shape}; use a new learner."
            )
        return run

    def _blocks(
        self, neighborhoods: Neighborhoods, random: np.random.RandomState
    ) -> Iterator[Indices]:
        n = len(neighborhoods.shown)
        for _ in range(self.n_passes):
            order = random.permutation(n) if self.shuffle else np.arange(n)
            for start in range(0, n, neighborhoods.block):
                yield neighborhoods.shown[order[start : start + neighborhoods.block]]

    def _show(self, run: VotedRun, neighborhoods: Neighborhoods, shown: Indices) -> None:
        """Learn from a block of examples."""
        n, d = len(shown), neighborhoods.base.rows.shape[1]
        hinge, psd = self.step != "perceptron", bool(self.psd)
        step = Step(relax=0.5 / self.C) if self.step == "pa2" else Step(cap=self.C)
        rule = kernel.MarginRule(STRUCTURES[self.structure], psd, step, float(hinge))
        tau, violation, mu = np.zeros((3, n))
        W, U = np.zeros((n, d)), np.zeros((n if psd else 0, d))
        trace = kernel.UpdateTrace(tau, violation, W, mu, U)
        block = neighborhoods.of(shown, run.store.array)
        try:
            neighborhoods.scored += kernel.advance(run.store.array, block, rule, trace)
        except (ZeroDivisionError, np.linalg.LinAlgError):
            # The projection on A ⪰ 0 divides by what has vanished, or factors what is not finite.
            violation[:] = np.nan
        if not np.isfinite(violation).all():
            raise InvalidInputError(
                "The similarities of SiLA overflow or vanish; scale the features, or choose "
                "another normalizer."
            )
        rows = np.flatnonzero(tau)
        if run.average.kind != "last":
            X = dense(neighborhoods.base.rows[shown[rows]]).astype(np.float64, copy=False)
            terms = self._terms(X, W[rows], tau[rows], U[rows] if psd else None, mu[rows])
            run.average.observe(run.store, n, rows, np.zeros(len(rows)), 0.0, terms)
        run.history.record(violation, np.full(n, rule.wanted), np.ones(n), tau)

    def _terms(
        self, X: Array, W: Array, tau: NDArray[np.float64], U: Array | None, mu: NDArray[np.float64]
    ) -> list[Terms]:
        """What the updates added to A."""
        update = np.arange(len(tau))
        one = np.ones((len(tau), 1))
        if self.structure == "diagonal":
            terms = [RankOnes(one, X * W, tau, update)]
        elif self.structure == "full" and U is None:
            terms = [RankOnes(X, W, tau, update)]
        else:
            c = tau / 2 if self.structure == "full" else tau
            terms = [RankOnes(X, W, c, update), RankOnes(W, X, c, update)]
        if U is not None:
            terms.append(RankOnes(one if self.structure == "diagonal" else U, U, mu, update))
        return list(terms)

    def _form(self, run: VotedRun, dtype: Any) -> Bilinear:
        A = run.average.solution(run.store, 0.0)[0].astype(dtype)
        if self.structure == "diagonal":
            A = np.diag(A[0])
        return Bilinear(A) if self.normalizer is None else similarity(A, self.normalizer)

    @classmethod
    def _former_parameters(cls, saved: Saved) -> dict[str, Any]:
        """Before there was `init`, A started at 0."""
        return {} if saved.has("init") else {"init": "zero"}

    def _learned_state(self) -> State:
        return super()._learned_state().add("run", self._run.state())

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        self._run = VotedRun.restore(saved.part("run"))
        d = self.n_features_in_
        saved.check(self._run.store.shape in ((1, d), (d, d)), "run must be of its features")

    @property
    def _history(self) -> History:
        check_is_fitted(self)
        return self._run.history


class Neighborhoods:
    """Targets, fixed, and where impostors are looked for."""

    def __init__(self, base: BaseSimilarity, k: int, impostors: int | str) -> None:
        self.base = base
        n = len(base.order)
        sizes = np.diff(base.starts)
        self._targets = base.targets(k)
        # As many targets as there are impostors to set against them.
        others = (n - sizes)[base.labels]
        self._targets[np.arange(k) >= others[:, None]] = -1
        self._pool = np.empty((0, 0), dtype=np.intp)
        if impostors != "exact":
            self._pool = base.pool(max(int(impostors), k))
        self._target_inverse = self._pool_inverse = np.empty((0, 0))
        if not base.splits:
            self._target_inverse = base.inverse_pairs(np.arange(n), self._targets)
            self._pool_inverse = base.inverse_pairs(np.arange(len(self._pool)), self._pool)
        X = base.rows
        if sp.issparse(X):
            X.sort_indices()
            self._rows = X.indptr, X.indices, X.data
        else:
            indptr = np.arange(n + 1) * X.shape[1]
            self._rows = indptr, np.empty(0, dtype=np.int32), np.ascontiguousarray(X).ravel()
        searched = impostors == "exact" and base.splits and not sp.issparse(X)
        self._whitened = whitened(X) if searched else None
        self._screen: Any = None
        self.scored = 0
        self.seeds = np.full((n, k), -1, dtype=np.int64)
        wide = impostors == "exact" and not base.splits
        self.block = max(1, min(BLOCK, 2**22 // n)) if wide else BLOCK
        place = np.empty(n, dtype=np.intp)
        place[base.order] = np.arange(n)
        self.shown = place[(self._targets[place, 0] >= 0) & ~base.zero[place]]

    def of(self, shown: Indices, A: Array) -> kernel.ShownExamples:
        """What the compiled loop takes of these examples, beginning with A."""
        # A new screen takes about the time in which so many rows are scored.
        if self._screen is None or self.scored > len(self.base.order):
            self._screen, self.scored = screen(self._whitened, A), 0
        base, classes = self.base, self.base.labels[shown]
        own = np.column_stack([base.starts[classes], base.starts[classes + 1]])
        pool = self._pool[shown] if len(self._pool) else self._pool
        inverse: Array = np.empty((0, 0))
        target_inverse = inverse
        if not base.splits:
            target_inverse = self._target_inverse[shown]
            inverse = self._pool_inverse[shown] if len(pool) else base.inverse(shown, slice(None))
        return kernel.ShownExamples(
            self._rows,
            shown,
            own,
            self._targets[shown],
            target_inverse,
            pool,
            inverse,
            self._screen,
            self.seeds,
        )
