"""AROMA: adaptive regularization of matrix models, a similarity that knows how sure it is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from samewise._rollback import alone
from samewise._typing import Array
from samewise.engine.averaging import Spec, checked_average
from samewise.engine.gaussian_mover import DiagonalGaussian, FactoredGaussian
from samewise.exceptions import InvalidInputError
from samewise.files.state import Saved
from samewise.learners.constraints import POSITIVE
from samewise.learners.online.triplet_learner import TripletLearner
from samewise.learners.online.uncertain_scores import UncertainScores
from samewise.supervision import Triplets


@dataclass(eq=False, repr=False)
class DiagonalAROMA(UncertainScores, TripletLearner):
    """Bilinear similarity S(q, p) = qᵀWp with the variance Σ of each of its entries: d-AROMA.

    Starting from Σ = 1, a triplet (q, p⁺, p⁻) with p = p⁺ − p⁻, loss
    ℓ = max(0, margin − qᵀWp) > 0, G = q pᵀ and s = Σ_kl G²_kl Σ_kl moves

        W ← W + ℓ / (s + r) · Σ ∘ G,   Σ ← Σ − (Σ ∘ G)² / (s + r).

    Entries about which much is known move little: rare features keep learning fast. Sparse
    vectors cost Θ(nnz(q) · nnz(p)) a triplet. The paper's Theorem 1 bounds the mistakes;
    tests/theory/test_aroma.py has where it holds as printed, and where not (r > 2).

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): a learned dot product is for unit vectors and
    sparse rows, not for standardized features.

    Parameters
    ----------
    r : float, default=1.0
        How noisy a triplet is held to be: the larger, the smaller the steps.
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
    init : {"auto", "zero", "identity"} or array of shape (m, n), default="auto"
        Where to start. W is 0, the identity, or a given matrix of as many rows and columns as
        queries and items have features. From 0, as in the paper, the scale of the scores means
        nothing, and the first thousands of triplets are worse than no learning. From the identity,
        the plain dot product is improved. "auto" is the identity for unit vectors of the same
        features, and else 0; in a stream the first portion decides.
    average : {"last", "uniform", "survival"} or tuple, default="last"
        Which hypothesis is used: the last one; the mean of all; the mean weighted by the rounds
        each survived; ("suffix", q), the mean of the last q; ("cutoff", k), the mean of those that
        survived more than k rounds, weighted by the rounds beyond k; ("decay", h), an average that
        forgets, the mean weighted by rounds where one of h rounds ago counts half.
        The mean of the last q is not offered: it would need q matrices here.
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
        How the arithmetic is done. All give the same result; "auto" takes the fastest. There is no
        blocked form here: "blocked" is "compiled".
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Bilinear
        The learned similarity, with `matrix` W.
    variance_ : array of shape (n_features, n_item_features)
        Σ, in the coordinates of `rank` where that is given.
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
    FactoredAROMA : Rows and columns of W covary.
    OASIS : Learns W without its uncertainty.

    Notes
    -----
    A mistake is a triplet with qᵀWp ≤ 0 when it arrived. There is no average of the last q, which
    would need q matrices, and no blocked path: "blocked" is "compiled".

    References
    ----------
    K. Crammer, G. Chechik: Adaptive regularization for weight matrices. ICML 2012, figure 1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from samewise import DiagonalAROMA, Triplets
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> triplets = Triplets.from_labels(X[:1000], y[:1000], n_triplets=5000, random_state=0)
    >>> learner = DiagonalAROMA().fit(triplets)
    >>> test = Triplets.from_labels(X[1000:], y[1000:], n_triplets=5000, random_state=1)
    >>> learner.score(test) > 0.9
    True
    >>> learner.ask(X[1000], X[1001:], n=3).shape
    (3,)
    """

    _moved_by = DiagonalGaussian
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"r": [POSITIVE]}

    r: float = 1.0
    margin: float | str = "auto"
    _: KW_ONLY
    init: Any = "auto"
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

    def _mover(self, examples: Triplets) -> DiagonalGaussian:
        if checked_average(self.average)[0] == "suffix":
            raise InvalidInputError(
                "DiagonalAROMA has no suffix average: its steps are whole matrices, and the last q "
                f"of them would have to be kept. Got {self.average!r}; use 'survival' or 'uniform'."
            )
        return DiagonalGaussian(self._start(examples), self.r, self.path)

    def _restore_learned(self, saved: Saved) -> None:
        super()._restore_learned(saved)
        saved.check(self._online.average.kind != "suffix", "average must not be suffix")

    @property
    def variance_(self) -> Array:
        """Σ, as a copy."""
        with alone(self):
            return self._gaussian.variances.copy()


@dataclass(eq=False, repr=False)
class FactoredAROMA(UncertainScores, TripletLearner):
    """Bilinear similarity S(q, p) = qᵀWp whose rows covary by Λ and columns by Ω: f-AROMA.

    Starting from Λ = I and Ω = I, a triplet (q, p⁺, p⁻) with p = p⁺ − p⁻, loss
    ℓ = max(0, margin − qᵀWp) > 0, s = qᵀΛq and t = pᵀΩp moves

        W ← W + ℓ / (r + s t) · (Λq)(Ωp)ᵀ,
        Ω ← Ω − s / (m r + s t) · (Ωp)(Ωp)ᵀ,   Λ ← Λ − t / (n r + s t) · (Λq)(Λq)ᵀ.

    What is learned about a feature carries over to those it occurs with. Memory is that of three
    matrices, mn + m² + n². Sparse vectors are taken a block at a time; the matrices are dense.

    From labels and with its defaults, it makes k-NN worse than no learning does on more than one
    set in ten (``python -m experiments defaults``): a learned dot product is for unit vectors and
    sparse rows, not for standardized features.

    Parameters
    ----------
    r : float, default=1.0
        How noisy a triplet is held to be: the larger, the smaller the steps.
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
    init : {"auto", "zero", "identity"} or array of shape (m, n), default="auto"
        Where to start. W is 0, the identity, or a given matrix of as many rows and columns as
        queries and items have features. From 0, as in the paper, the scale of the scores means
        nothing, and the first thousands of triplets are worse than no learning. From the identity,
        the plain dot product is improved. "auto" is the identity for unit vectors of the same
        features, and else 0; in a stream the first portion decides.
    update : {"margin", "mistake"}, default="margin"
        "margin": every triplet with a loss moves W. "mistake": only one with qᵀWp ≤ 0 does, and
        W = Λ B Ω with the covariances after the step, B ← B + ℓ / (r + s t) · q pᵀ: the variant
        of the paper's Theorem 2 on the number of mistakes.
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
        How the arithmetic is done. All give the same result; "auto" takes the fastest. With
        update="mistake" there is no blocked form: "blocked" is "compiled".
    verbose : bool, default=False
        Print progress to standard error.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of every random choice. Pass an int for reproducible output.

    Attributes
    ----------
    metric_ : Bilinear
        The learned similarity, with `matrix` W.
    query_covariance_ : array of shape (n_features, n_features)
        Λ, in the coordinates of `rank` where that is given.
    item_covariance_ : array of shape (n_item_features, n_item_features)
        Ω, in the coordinates of `rank` where that is given.
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
    DiagonalAROMA : Entries of W are independent.
    OASIS : Learns W without its uncertainty.

    Notes
    -----
    A mistake is a triplet with qᵀWp ≤ 0 when it arrived.

    References
    ----------
    K. Crammer, G. Chechik: Adaptive regularization for weight matrices. ICML 2012, figure 2.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from samewise import FactoredAROMA, Triplets
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> triplets = Triplets.from_labels(X[:1000], y[:1000], n_triplets=5000, random_state=0)
    >>> learner = FactoredAROMA().fit(triplets)
    >>> test = Triplets.from_labels(X[1000:], y[1000:], n_triplets=5000, random_state=1)
    >>> learner.score(test) > 0.9
    True
    >>> bool(learner.score_variance(X[:1], X[:1]) < FactoredAROMA().fit(
    ...     triplets[:10]).score_variance(X[:1], X[:1]))
    True
    """

    _moved_by = FactoredGaussian
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "r": [POSITIVE],
        "update": [StrOptions({"margin", "mistake"})],
    }

    r: float = 1.0
    margin: float | str = "auto"
    _: KW_ONLY
    init: Any = "auto"
    update: str = "margin"
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

    def _mover(self, examples: Triplets) -> FactoredGaussian:
        return FactoredGaussian(self._start(examples), self.r, self.update == "mistake", self.path)

    @property
    def query_covariance_(self) -> Array:
        """Λ, as a copy."""
        with alone(self):
            return self._gaussian.left.matrix

    @property
    def item_covariance_(self) -> Array:
        """Ω, as a copy."""
        with alone(self):
            return self._gaussian.right.matrix
