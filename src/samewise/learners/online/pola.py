"""POLA: the pseudo-metric online learning algorithm, and its batch conversion."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from samewise.engine.averaging import Spec
from samewise.engine.online import portions
from samewise.engine.rank_one_mover import RankOneMover
from samewise.forms import Mahalanobis
from samewise.kernels.steps import Step
from samewise.learners.attributes import Attribute, Count
from samewise.learners.constraints import COUNT, POSITIVE
from samewise.learners.online.pair_learner import PairLearner, rank_one_mover
from samewise.learners.pair_judge import PairDistance
from samewise.supervision import Pairs


@dataclass(eq=False, repr=False)
class POLA(PairDistance, PairLearner):
    """Pseudo-metric online learning: project on each pair's half-space, then on the PSD cone.

    A pair with difference v and label y that suffers the loss ℓ = max(0, 1 − y (b − vᵀMv)) moves

        τ = ℓ / (1 + γ + ‖v‖⁴),   M ← M − τ y v vᵀ,   b ← b + τ y,

    and then M to the nearest M ⪰ 0 and b to b ≥ 1. M starts at 0 and b at 1.

    If some (M*, b*) satisfies every pair, then with R ≥ 1 + ‖v‖⁴ for all pairs

        Σ ℓ_t² ≤ R (‖M*‖² + (b* − 1)²),

    the number of mistakes has the same bound, and going over a finite set again and again brings
    every loss below ε within R (‖M*‖² + (b* − 1)²) / ε² passes.

    Parameters
    ----------
    relaxation : float, default=0.0
        Relaxation γ for data that are not separable: larger is more cautious.
    epsilon : float, default=None
        In batch mode, `fit` repeats its passes until no pair has a loss above it. By default `fit`
        makes `n_passes` passes.
    max_passes : int, default=1000
        Maximum number of passes in batch mode; a warning says if they did not suffice.
    average : {"auto", "survival", "last", "uniform"} or tuple, default="auto"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half. "auto" is
        "survival", except in batch mode: there the last one is what satisfies the pairs.
    tolerance : float, default=0.0
        An update is made only if |τ| ≥ tolerance.
    n_passes : int, default=1
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    init : {"zero", "identity"}, array of shape (d, d) or Mahalanobis, default="zero"
        Where to start. M is 0, the identity, a given matrix, or that of a given form.
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
    path : {"auto", "compiled", "blocked", "plain"}, default="auto"
        How the arithmetic is done. All give the same result; "auto" takes the fastest.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` M and `components` L.
    threshold_ : float
        b, on squared distances. After labels, the one that decides most of some random pairs
        of that portion rightly, half of them similar, held out; after pairs, the learner's own.
    components_ : array of shape (n_features, n_features)
        L = M^½, the symmetric root, so that `transform` has the same columns along a stream;
        leading directions are in ``metric_.components``.
    n_updates_ : int
        Updates so far.
    n_seen_ : int
        Pairs seen so far.
    n_mistakes_ : int
        Pairs that were judged wrongly when they arrived.
    loss_ : float
        Σ ℓ over the pairs, each when it arrived.
    history_ : dict of arrays
        Running totals "rounds", "loss", "mistakes" and "updates".
    n_passes_ : int
        Number of passes that `fit` made.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X had any.

    See Also
    --------
    KernelPOLA : The same in the feature space of a kernel.
    PassiveAggressive : Other rules for the step, and fewer projections.

    References
    ----------
    S. Shalev-Shwartz, Y. Singer, A. Y. Ng: Online and batch learning of pseudo-metrics. ICML 2004.

    Examples
    --------
    >>> from samewise import POLA, Pairs
    >>> from samewise.datasets import make_separable_pairs
    >>> pairs, y, M, b = make_separable_pairs(200, 4, random_state=0)
    >>> learner = POLA(epsilon=0.1).fit(pairs, y)
    >>> bool((learner.predict(pairs) == y).all())
    True
    """

    _moved_by = RankOneMover
    _learned: ClassVar[dict[str, Attribute]] = {"n_passes_": Count(1)}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [None, POSITIVE],
        "max_passes": [COUNT],
        "init": [str, "array-like", Mahalanobis],
    }

    relaxation: float = 0.0
    _: KW_ONLY
    epsilon: float | None = None
    max_passes: int = 1000
    average: Spec = "auto"
    tolerance: float = 0.0
    n_passes: int = 1
    shuffle: bool = False
    init: Any = "zero"
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
    path: str = "auto"
    verbose: bool = False
    random_state: Any = None

    def _mover(self, examples: Pairs) -> RankOneMover:
        step = Step(relax=self.relaxation, tolerance=self.tolerance)
        return rank_one_mover(self, examples, step)

    @property
    def _average(self) -> Spec:
        if isinstance(self.average, str) and self.average == "auto":
            return "survival" if self.epsilon is None else "last"
        return self.average

    def _learn(self, examples: Pairs, once: bool, **how: Any) -> None:
        epsilon, worst = self.epsilon, np.inf
        if once or epsilon is None:
            self.n_passes_ = 1 if once else self.n_passes
            super()._learn(examples, once, **how)
            return

        def satisfied(n: int) -> bool:
            nonlocal worst
            self.n_passes_, worst = n, self._largest_loss(examples)
            return worst <= epsilon

        super()._learn(examples, once, n_passes=self.max_passes, done=satisfied, **how)
        if worst > epsilon:
            warnings.warn(
                f"After {self.max_passes} passes a pair still has loss {worst:.3g}, above epsilon="
                f"{epsilon:g}: the pairs may not be separable. Raise max_passes or epsilon, or "
                "relax the steps with relaxation.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _largest_loss(self, pairs: Pairs) -> float:
        """max ℓ over the pairs under the present (M, b)."""
        worst, mover = 0.0, self._online.mover
        for part in portions(pairs):
            block = self._directions(pairs[part]).dense(mover.store.dtype)
            margin = block.sign * mover.store.scores(block) + block.offset * mover.b
            worst = max(worst, float(np.max(block.target - margin)))
        return worst
