"""The passive–aggressive family: PA, PA-I, PA-II and least squares, each with and without +."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from samewise.engine.averaging import Spec
from samewise.engine.policy import Psd
from samewise.engine.rank_one_mover import RankOneMover
from samewise.forms import Mahalanobis
from samewise.kernels.steps import Step
from samewise.learners.online.pair_learner import PairLearner, rank_one_mover
from samewise.learners.pair_judge import PairDistance
from samewise.supervision import Pairs


@dataclass(eq=False, repr=False)
class PassiveAggressive(PairDistance, PairLearner):
    """Online passive–aggressive learning of a Mahalanobis distance and its threshold.

    A pair with difference v = x − x′ and label y should satisfy y (b − vᵀMv) ≥ 1. With the signed
    loss p = 1 − y (b − vᵀMv) and the hinge loss ℓ = max(0, p), each pair moves

        M ← M − τ y v vᵀ,   b ← b + τ y,

    where τ depends on the rule:

        "pa"    ℓ / (1 + ‖v‖⁴)               the nearest model without loss on this pair
        "pa1"   min(C, ℓ / (1 + ‖v‖⁴))       linear slack
        "pa2"   ℓ / (1 + 1/(2C) + ‖v‖⁴)      quadratic slack
        "pals"  p / (1 + 1/(2C) + ‖v‖⁴)      least squares: distances aim at b ∓ 1, τ may be < 0

    M ⪰ 0 and b ≥ 1 are restored after each update (the study's +), after several, or only in the
    result (its −). M starts at 0 and b at 0.

    Parameters
    ----------
    rule : {"pa", "pa1", "pa2", "pals"}, default="pa1"
        How far a pair moves the matrix, see above.
    C : float, default=0.1
        Aggressiveness: larger allows larger steps. Not used by "pa".
    psd : {"each", "end"} or int, default="each"
        When positive semi-definiteness is restored. M ⪰ 0 and b ≥ 1 are restored after each update
        ("each"), after every n updates (a number n of at least 2), or only in the result ("end").
    average : {"survival", "last", "uniform"} or tuple, default="survival"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half.
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
        How the arithmetic is done. All give the same result; "auto" takes the fastest. With
        psd="each", "compiled" and "blocked" are the same.
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
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X had any.

    See Also
    --------
    POLA : The same constraints, with projections and a bound on the losses.
    LEGO : Steps in the LogDet divergence.
    tune_C : Chooses C.

    Notes
    -----
    float32 data give a float32 metric. With psd="each" the state itself is kept in float64, and
    the paths "compiled" and "blocked" are the same.

    References
    ----------
    A. Pérez-Suay, F. J. Ferri, M. Arevalillo-Herráez: Passive-aggressive online distance metric
    learning and extensions. Progress in Artificial Intelligence 2 (2013), eqs. 9–16.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import PassiveAggressive, Pairs
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = Pairs.from_labels(X, y, n_pairs=2000, random_state=0)
    >>> learner = PassiveAggressive(rule="pa1", C=0.1).fit(pairs)
    >>> learner.metric_
    Mahalanobis(n_features_in=4, rank=...)
    >>> learner.predict([[X[0], X[1]], [X[0], X[100]]])
    array([ 1, -1])
    """

    _moved_by = RankOneMover
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rule": [StrOptions({"pa", "pa1", "pa2", "pals"})],
        "init": [str, "array-like", Mahalanobis],
    }

    rule: str = "pa1"
    C: float = 0.1
    _: KW_ONLY
    psd: Psd = "each"
    average: Spec = "survival"
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
        step = Step(tolerance=self.tolerance)
        if self.rule == "pa1":
            step = step._replace(cap=self.C)
        elif self.rule != "pa":
            step = step._replace(relax=1.0 / (2.0 * self.C), signed=self.rule == "pals")
        return rank_one_mover(self, examples, step, self.psd, b=0.0)
