"""gCosLA: a generalized cosine and a threshold, learned online from pairs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._typing import Array, Matrix
from samewise.engine.averaging import Spec
from samewise.engine.cosine_mover import CosineMover
from samewise.engine.directions import Directions, pair_members
from samewise.engine.policy import Psd
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.forms import Form, GeneralizedCosine
from samewise.kernels.psd import project
from samewise.learners.online.pair_learner import PairLearner
from samewise.supervision import Pairs


@dataclass(eq=False, repr=False)
class GCosLA(PairLearner):
    """Generalized cosine learning: s_A(x, x') = xᵀAx'/√(xᵀAx · x'ᵀAx'), A ⪰ 0, and a threshold b.

    A similar pair (y = +1) should have s_A ≥ b + γ, a dissimilar one (y = −1) s_A ≤ b − γ. A starts
    at the identity and b at 0. A pair with a loss, max(0, y(b − s_A) + γ) > 0, freezes the
    denominator on the safe side, R = 1/max(xᵀAx, x'ᵀAx') if similar and 1/min(…) if not, and moves
    (A, b) to the nearest point with y(R xᵀAx' − b) ≥ β: with S = (xx'ᵀ + x'xᵀ)/2,

        a = max(0, β − y(R xᵀAx' − b)) / (R²‖S‖² + 1),   A ← A + y a R S,   b ← b − y a,

    and then to the nearest A ⪰ 0 and −1 + γ ≤ b ≤ 1 − γ.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): where the cosine is worse than the Euclidean
    distance, a learned one may be too.

    Parameters
    ----------
    margin : float in (0, 1), default=0.1
        Margin γ between the cosines of pairs and the threshold.
    step_margin : float or None, default=None
        Margin β = γ − γ₁ in (−2, γ] that a step establishes: less than γ, and even negative, where
        pairs cannot all be satisfied: then only the worst pairs move A. None is γ.
    psd : "each", "end" or int, default="each"
        When positive semi-definiteness is restored. A ⪰ 0 is restored after each step ("each"),
        after every n steps (a number n of at least 2), or only in the result ("end"). In between, a
        pair with xᵀAx ≤ 0 has no cosine and is skipped.
    update : {"projection", "thesis"}, default="projection"
        "projection": as above. "thesis": as printed there, a = (β − y(R xᵀAx' − b))/(R‖x‖²‖x'‖²),
        A ← A + y a S, b ← b + y a, which is no projection: b moves the wrong way.
    average : {"uniform", "last", "survival"} or tuple, default="uniform"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half.
    n_passes : int, default=1
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    purpose : {"neighbors", "verification"}, default="neighbors"
        What the metric is for, if pairs are sampled from labeled examples. "neighbors": for each
        example its nearest of its own class and of the others, which tells what to bring near for
        k-NN and search. "verification": random pairs, half of them similar, which tells whether
        any two examples are the same.
    n_neighbors : int, default=10
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example,
        by the cosine.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all nearest pairs, or 20 random
        ones per example, and at most 100 000.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : GeneralizedCosine
        The learned similarity. A row with xᵀAx = 0 has similarity 0 with everything.
    threshold_, closeness_threshold_ : float
        b: a pair is called similar when its similarity is at least b. After labels, the one that
        decides most of some random pairs rightly, half of them similar, which are held out; after
        pairs, the learner's own.
    components_ : array of shape (n_features, n_features)
        L = A^½, the symmetric root, so that `transform` has the same columns along a stream;
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
    SiLA : A similarity learned from nearest neighbors, without a threshold.
    PerClassClassifier : Learns one similarity for each class.

    Notes
    -----
    Weights of pairs do not change a step. Pairs of weight 0, and pairs with a zero vector, from
    which nothing can be learned, are left out. Where A ⪰ 0 is not restored at each step, a pair
    with xᵀAx ≤ 0 has no cosine and is left out too. No eigendecomposition is made for a step: from
    A ⪰ 0 it leads to at most one negative eigenvalue, which is found by Lanczos' method.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, section 4.5.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> from samewise import GCosLA, KNNClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = minmax_scale(X) + 0.01
    >>> learner = GCosLA(n_passes=3).fit(X[::2], y[::2])
    >>> KNNClassifier(learner).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    _moved_by = CosineMover
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "margin": [Interval(Real, 0, 1, closed="neither")],
        "step_margin": [None, Interval(Real, -2, 1, closed="neither")],
        "update": [StrOptions({"projection", "thesis"})],
    }

    margin: float = 0.1
    step_margin: float | None = None
    _: KW_ONLY
    psd: Psd = "each"
    update: str = "projection"
    average: Spec = "uniform"
    n_passes: int = 1
    shuffle: bool = False
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
    verbose: bool = False
    random_state: Any = None

    def _nearness(self, X: Matrix) -> GeneralizedCosine:
        return GeneralizedCosine(np.eye(X.shape[1], dtype=X.dtype), on_zero="zero")

    def _mover(self, examples: Pairs) -> CosineMover:
        step_margin = self.margin if self.step_margin is None else self.step_margin
        if step_margin > self.margin:
            raise InvalidInputError(
                f"step_margin must be at most margin={self.margin:g}, which it relaxes. Got "
                f"{step_margin:g}."
            )
        A, printed = Symmetric(np.eye(examples.X.shape[1])), self.update == "thesis"
        margins = self.margin, step_margin
        return CosineMover(A, 0.0, *margins, printed, psd=self.psd, least_b=self.margin - 1.0)

    def _directions(self, examples: Pairs) -> Directions:
        mover = self._online.mover
        assert isinstance(mover, CosineMover)
        return pair_members(examples, mover.margin)

    def _form(self, M: Array) -> Form:
        return GeneralizedCosine(project(M).astype(self._dtype), on_zero="zero")
