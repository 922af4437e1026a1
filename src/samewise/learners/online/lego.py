"""LEGO: ITML's steps, from one pair after another."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from samewise.engine.averaging import Spec
from samewise.engine.directions import Directions
from samewise.engine.logdet_mover import LogDetMover
from samewise.engine.stores import Symmetric
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved
from samewise.forms import Mahalanobis
from samewise.kernels.pairwise import row_dots
from samewise.learners.attributes import Attribute, TwoNumbers
from samewise.learners.batch.itml import chosen_bounds
from samewise.learners.batch.pair_differences import Differences
from samewise.learners.batch.priors import definite
from samewise.learners.constraints import POSITIVE
from samewise.learners.online.pair_learner import PairLearner
from samewise.learners.pair_judge import PairDistance
from samewise.supervision import Pairs


@dataclass(eq=False, repr=False)
class LEGO(PairDistance, PairLearner):
    """LogDet exact gradient online: ITML's steps, one pair at a time, each taken once.

    A similar pair aims at vᵀAv ≤ u, a dissimilar one at vᵀAv ≥ l. With t the bound and p = vᵀAv
    beyond it, A moves to the minimum of D(A′, A) + η/2 (vᵀA′v − t)², D the LogDet divergence:

        A ← A − β Av vᵀA / (1 + βp),   β = η (q − t),
        q = (ηtp − 1 + √((ηtp − 1)² + 4ηp²)) / (2ηp),

    where q, between p and t, is the distance after the step. A pair within its bound moves nothing.
    A stays positive definite by itself. As η grows, q tends to t: the projection of ITML without
    slack.

    Parameters
    ----------
    eta : float, default=0.001
        η, the learning rate; it has the unit of 1/D². Multiplied by the weight of a pair, where
        pairs have weights.
    bounds : pair of floats, default=None
        Bounds (u, l) on squared distances. It takes u < l. By default, with the A to start from: of
        pairs sampled from labels, the first quartile of vᵀAv of the similar ones and the third of
        the dissimilar ones, if they are so ordered; otherwise the 5th and the 95th percentile of
        vᵀAv between the rows that occur in the first portion of pairs (a thousand different ones,
        if there are more).
    average : {"uniform", "last", "survival"} or tuple, default="uniform"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half.
    init : "identity", array of shape (d, d) or Mahalanobis, default="identity"
        Where to start. A is the identity, a given positive definite matrix, or that of a given
        form.
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
        Number k of neighbors. For purpose="neighbors": near examples of each kind for each example.
    n_pairs : int, default=None
        Number of pairs to sample from labeled examples. By default all nearest pairs, or 20 random
        ones per example, and at most 100 000.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Mahalanobis
        The learned distance, with `matrix` A.
    threshold_ : float
        On squared distances. After labels, the one that decides most of some random pairs
        of that portion rightly, half of them similar, held out; after pairs, (u + l)/2.
    bounds_ : tuple of floats
        (u, l).
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
    ITML : The same steps, repeated until all pairs are satisfied, with slack.
    PassiveAggressive : Steps in the Frobenius norm.

    Notes
    -----
    The initial matrix must be positive definite. The loss is Σ |vᵀAv − t| over the pairs beyond
    their bounds; a mistake is a pair on the wrong side of the threshold. The state is kept in
    float64; float32 data give a float32 metric. Sparse rows are accepted; A and the time for a
    pair, Θ(d²), are those of dense ones.

    References
    ----------
    P. Jain, B. Kulis, I. S. Dhillon, K. Grauman: Online metric learning and fast similarity
    search. NIPS 2008, section 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from samewise import LEGO, Pairs
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = Pairs.from_labels(X, y, n_pairs=2000, random_state=0)
    >>> LEGO(eta=0.1).fit(pairs).score(X, y) > 0.9
    True
    """

    bounds_: tuple[float, float] = field(init=False)

    _moved_by = LogDetMover
    _learned: ClassVar[dict[str, Attribute]] = {"bounds_": TwoNumbers()}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "eta": [POSITIVE],
        "bounds": ["array-like", None],
        "init": [StrOptions({"identity"}), "array-like", Mahalanobis],
    }

    eta: float = 0.001
    _: KW_ONLY
    bounds: tuple[float, float] | None = None
    average: Spec = "uniform"
    init: Any = "identity"
    n_passes: int = 1
    shuffle: bool = False
    purpose: str = "neighbors"
    n_neighbors: int = 10
    n_pairs: int | None = None
    verbose: bool = False
    random_state: Any = None

    @classmethod
    def _former_parameters(cls, saved: Saved) -> dict[str, Any]:
        """There was no average."""
        former = super()._former_parameters(saved)
        return former if saved.has("average") else {**former, "average": "last"}

    def _mover(self, examples: Pairs) -> LogDetMover:
        A = definite(self.init, examples.X.shape[1], "init")
        bounds = self.bounds
        if bounds is None and self._held_out is not None:
            bounds = quartiles(examples, A)
        u, low = self.bounds_ = chosen_bounds(bounds, examples, A)
        if u == low:
            raise InvalidInputError(
                f"LEGO needs a lower bound above the upper one. Got u = l = {u:g}; give bounds."
            )
        return LogDetMover(Symmetric(A), (u + low) / 2, self.eta)

    def _directions(self, examples: Pairs) -> Directions:
        margin = np.full(len(examples), (self.bounds_[1] - self.bounds_[0]) / 2)
        return replace(super()._directions(examples), target=margin)


def quartiles(pairs: Pairs, A: NDArray[np.float64]) -> tuple[float, float] | None:
    """The first quartile of vᵀAv of similar pairs, the third of the others; None if not ordered."""
    V = Differences.of(pairs, "LEGO")
    D = np.concatenate([row_dots(V[rows] @ A, V[rows]) for rows in V.blocks()])
    counted = D > 0 if pairs.sample_weight is None else (D > 0) & (pairs.sample_weight > 0)
    kinds = [D[counted & (pairs.y == sign)] for sign in (1, -1)]
    if not all(map(len, kinds)):
        return None
    u, low = float(np.percentile(kinds[0], 25)), float(np.percentile(kinds[1], 75))
    return (u, low) if u < low else None
