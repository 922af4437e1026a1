"""OASIS: an online algorithm for scalable (image) similarity learning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from samewise._typing import Array
from samewise.engine.averaging import Spec
from samewise.engine.policy import Psd
from samewise.engine.rank_one_mover import RankOneMover
from samewise.engine.stores import Full
from samewise.exceptions import InvalidInputError
from samewise.forms import Form
from samewise.kernels import psd as cone
from samewise.kernels.steps import Step
from samewise.learners.online.triplet_learner import TripletLearner
from samewise.supervision import Triplets


@dataclass(eq=False, repr=False)
class OASIS(TripletLearner):
    """Online learning of a bilinear similarity S(q, p) = qᵀWp from triplets.

    A triplet (q, p⁺, p⁻) with p = p⁺ − p⁻ should satisfy qᵀWp ≥ margin. With the loss
    ℓ = max(0, margin − qᵀWp) each triplet moves

        τ = min(C, ℓ / (‖q‖² ‖p‖²)),   W ← W + τ q pᵀ.

    W need not be symmetric, positive semi-definite or square: queries and items may have different
    features. `metric_.embed_query(Q)` = Q W turns queries into vectors whose plain dot product with
    the stored items is the learned score.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): a learned dot product is for unit vectors and
    sparse rows, not for standardized features.

    Parameters
    ----------
    C : float, default=0.1
        Aggressiveness: larger allows larger steps.
    margin : float or "auto", default="auto"
        The wanted difference of scores. "auto" is 1, as in the paper, except where vectors have
        unit length (half of them to 5 %; a few odd ones are left out, with a warning) and W does
        not start at zero. Similarities of embeddings differ by tenths there, and steps towards a
        margin of 1 would undo what the start is good for; the margin is then such that a step
        changes the scores of unrelated pairs by about a twentieth of their size: from the identity,
        min(1, 0.05/ρ) with ρ the root mean square of the products of different rows (of at most
        1000). In a stream the first portion settles it, by all rows of its matrix, if they are 200
        or more; else 100 products of 0.2 are counted as well, and the next portions settle it
        anew until 200 rows were seen. `margin_` says which.
    init : {"identity", "zero", "auto"} or array of shape (m, n), default="identity"
        Where to start. W is the identity, which is the plain dot product, 0, or a given matrix of
        as many rows and columns as queries and items have features. "auto" is the identity for unit
        vectors of the same features, and else 0.
    symmetric : bool, default=False
        Whether the result is (W + Wᵀ)/2.
    psd : "end", int or None, default=None
        When positive semi-definiteness is restored. The symmetric part of W is made positive
        semi-definite only in the result ("end"), also after every n updates (a number n of at least
        2), or never (None).
    average : {"last", "uniform", "survival"} or tuple, default="last"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half.
    n_passes : int, default=1
        How often `fit` goes through the data.
    shuffle : bool, default=False
        Whether `fit` takes the data in a new random order on each pass.
    n_triplets : int, default=None
        Number of triplets to sample from labeled examples. By default 20 per example and at most
        100 000.
    rank : int, default=None
        For large dimensions: learn in the leading `rank` directions of queries and items only
        (singular vectors of the first portion's rows), W = A C Bᵀ. What is learned there is exact;
        what vectors have outside these directions is not seen, so it is an approximation of the
        full W. Memory goes with rank² + rank · (m + n) instead of m · n. `metric_` is then a
        LowRankBilinear. Instead, `metric_.reduce(rank)` approximates a W learned in full.
    validation_fraction : float, default=None
        Part of the examples to hold out for early stopping. Only for labeled examples, of which
        this part of each class is held out.
    evaluate_every : int, default=None
        With validation examples, how many triplets to learn before the mean average precision among
        them is computed again; by default a tenth of the triplets.
    patience : int, default=5
        Evaluations without a better value after which learning stops. The best state is kept.
    path : {"auto", "compiled", "blocked", "plain"}, default="auto"
        How the arithmetic is done. All give the same result; "auto" takes the fastest.
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Bilinear
        The learned similarity, with `matrix` W.
    margin_ : float
        The margin used.
    n_updates_ : int
        Updates so far.
    n_seen_ : int
        Triplets seen so far.
    n_mistakes_ : int
        Triplets that were judged wrongly when they arrived.
    n_skipped_ : int
        Number of triplets from which nothing can be learned: q = 0, p⁺ = p⁻, or weight 0.
    loss_ : float
        Σ ℓ over the triplets, each when it arrived.
    history_ : dict of arrays
        Running totals "rounds", "loss", "mistakes" and "updates".
    validation_curve_ : list of (triplets seen, mean average precision)
        Where there were validation examples.
    n_features_items_ : int
        Number of features of the items.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Names of the features, if X had any.

    See Also
    --------
    DiagonalAROMA : Also learns how certain each entry of W is.
    FactoredAROMA : Also learns how rows and columns of W covary.

    Notes
    -----
    A mistake is a triplet with qᵀWp ≤ 0 when it arrived. With `psd`, it is the symmetric part of W
    that is made positive semi-definite.

    References
    ----------
    G. Chechik, V. Sharma, U. Shalit, S. Bengio: Large scale online learning of image similarity
    through ranking. JMLR 11 (2010).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from samewise import OASIS, Triplets
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> triplets = Triplets.from_labels(X[:1000], y[:1000], n_triplets=5000, random_state=0)
    >>> learner = OASIS().fit(triplets)
    >>> test = Triplets.from_labels(X[1000:], y[1000:], n_triplets=5000, random_state=1)
    >>> learner.score(test) > OASIS(C=1e-9).fit(triplets).score(test)
    True
    """

    _moved_by = RankOneMover
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "symmetric": ["boolean"],
        "psd": [None, StrOptions({"end"}), Interval(Integral, 2, None, closed="left")],
    }

    C: float = 0.1
    margin: float | str = "auto"
    _: KW_ONLY
    init: Any = "identity"
    symmetric: bool = False
    psd: Psd = None
    average: Spec = "last"
    n_passes: int = 1
    shuffle: bool = False
    n_triplets: int | None = None
    rank: int | None = None
    validation_fraction: float | None = None
    evaluate_every: int | None = None
    patience: int = 5
    path: str = "auto"
    verbose: bool = False
    random_state: Any = None

    def _mover(self, examples: Triplets) -> RankOneMover:
        m, n = examples.X.shape[1], examples.items.shape[1]
        if m != n and (self.symmetric or self.psd is not None):
            raise InvalidInputError(
                "symmetric and psd need queries and items of the same features. Got "
                f"{m} and {n} features; leave both out."
            )
        W = np.array(self._start(examples), order="C")
        return RankOneMover(Full(W), 0.0, Step(cap=self.C), self.path, psd=self.psd)

    def _form(self, M: Array) -> Form:
        if self.psd is not None:
            M = cone.project(M)
        elif self.symmetric:
            M = cone.symmetrize(M)
        return super()._form(M)
