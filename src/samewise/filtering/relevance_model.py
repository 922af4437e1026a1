"""Thresholds from the distribution of scores and from judgments: what a score says of relevance.

Of the scores s of a topic, the highest 5 % lie above a level s₀, and those of irrelevant documents
fall off exponentially from there. In units of that decay,

    x = (s − s₀) / m,   m = (s₁ − s₀) / ln 5   with s₁, above which is the highest 1 %,

so that x means the same for every topic, collection and metric: e⁻ˣ of the irrelevant documents
above s₀ are above x. Relevant documents fall off more slowly, like e^(−ρx), which makes the
log-odds of relevance linear: log p/(1 − p) = a_t + (1 − ρ) x for topic t. With w = e^a/ρ relevant
documents to each irrelevant one above s₀, a threshold x retrieves R(x) = w e^(−ρx) relevant and
B(x) = e⁻ˣ irrelevant ones, and every utility of the two has its best x.

What a_t is, judgments say: a priori a_t = μ + δ_t with μ ~ N(μ₀, σ²) for the collection and
δ_t ~ N(0, τ²) for the topic. The posterior is approximated by a normal at its mode (Laplace), and
the threshold maximizes the expected utility under it, so that scarce judgments count for little.

The constants were chosen on every second topic of `python -m experiments infile_shape`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import expit

from samewise.files.state import Saved, State
from samewise.filtering.sparse_store import packed, unpacked_pairs

_Floats = NDArray[np.float64]

TOP, TIP = 0.05, 0.01
"""The shares of documents above s₀ and above s₁."""
PATIENCE = 256
"""Documents before the first question: by then weights of terms and levels are worth asking by."""
_RATE = 0.3
_MEAN, _COLLECTION, _TOPIC = -4.9, 0.5, 2.0
# What is known of cosines of texts before any are seen, and as how many documents it counts.
_START, _DECAY, _WEIGHT = 0.065, 1 / 28, 50
# Beyond, a score could say nothing more.
_FAR = 1e6
_STEPS, _NEAR = 100, 1e-9
# What the last question must promise to teach.
_PRICE = 0.8
# The expectation over a_t, and the thresholds that are compared.
_NODES, _SHARES = hermegauss(9)
_SHARES = _SHARES / _SHARES.sum()
_GRID = np.arange(0, 800) * 0.05
# Utility and detection cost as in `samewise.scores`.
_GAIN, _LOSS, _LEAST = 1.0, 0.5, -0.5
_MISS, _FALSE = 10.0 * 0.001, 0.1 * 0.999


class RelevanceModel:
    """What the scores of each topic say of relevance, and the thresholds that follow.

    Parameters
    ----------
    n_topics : int
        The number of topics.
    utility : float or {"linear", "detection"}
        β of F_β, or the utility to maximize.
    most : int
        The largest number of judgments that are remembered.

    Examples
    --------
    >>> model = RelevanceModel(1, 1.0, most=100)
    >>> strict = model.thresholds()
    >>> for k in range(5):
    ...     model.judge(str(k), 0, 0.2, True)
    >>> bool(model.thresholds() < strict)
    True
    """

    def __init__(self, n_topics: int, utility: float | str, most: int) -> None:
        self.utility, self.most = utility, most
        self.start = np.full(n_topics, _START)
        self.decay = np.full(n_topics, _DECAY)
        # Document and topic: x, and whether it is relevant.
        self.judged: dict[tuple[str, int], tuple[float, bool]] = {}
        self._posterior: tuple[_Floats, _Floats] | None = None

    def measure(self, topics: Any, levels: Any, n: int) -> None:
        """Set s₀ and m of some topics by their levels s₀ and s₁ in n documents."""
        share = n / (n + _WEIGHT)
        first, second = levels
        self.start[topics] = share * first + (1 - share) * _START
        decay = (second - first) / math.log(TOP / TIP)
        self.decay[topics] = share * decay + (1 - share) * _DECAY

    def judge(self, document: str, topic: int, score: float, relevant: bool) -> None:
        """Take in a judgment of a document with this score; an earlier one is replaced."""
        x = np.clip((score - self.start[topic]) / self.decay[topic], -_FAR, _FAR)
        self.judged.pop((document, topic), None)
        self.judged[document, topic] = float(x), relevant
        if len(self.judged) > self.most:
            del self.judged[next(iter(self.judged))]
        self._posterior = None

    def posterior(self) -> tuple[_Floats, _Floats]:
        """Mode and variance of a_t for each topic."""
        if self._posterior is None:
            topics = np.array([topic for _, topic in self.judged], dtype=np.int64)
            values = np.array(list(self.judged.values()), dtype=np.float64).reshape(-1, 2)
            shift, relevant = (1 - _RATE) * values[:, 0], values[:, 1]
            self._posterior = posterior(len(self.start), topics, shift, relevant)
        return self._posterior

    def thresholds(self) -> _Floats:
        """The score of each topic from which on documents are assigned."""
        pairs, back = np.unique(np.stack(self.posterior()), axis=1, return_inverse=True)
        best = np.array([best_x(a, v, self.utility) for a, v in pairs.T])
        return self.start + self.decay * best[back.ravel()]

    def questions(self, left: float) -> tuple[_Floats, _Floats]:
        """Lowest and highest score of each topic to ask about, with `left` questions a topic.

        A judgment at probability p teaches about p(1 − p)·Var(a_t). What it must teach is the more
        the fewer questions are left.
        """
        a, v = self.posterior()
        root = np.sqrt(np.maximum(0.0, 1 - 4 * (_PRICE / (1 + left)) / v))
        with np.errstate(divide="ignore"):
            half = np.where(root > 0, np.log1p(root) - np.log1p(-root), -np.inf)
        low, high = (-half - a) / (1 - _RATE), (half - a) / (1 - _RATE)
        return self.start + self.decay * low, self.start + self.decay * high

    def state(self) -> State:
        """Levels, decays and judgments."""
        values = np.array(list(self.judged.values()), dtype=np.float64).reshape(-1, 2)
        arrays = {"start": self.start, "decay": self.decay, "x": values[:, 0].copy()}
        arrays["relevant"] = values[:, 1] > 0
        return State({"judged": packed(self.judged), **arrays})

    def restore(self, saved: Saved) -> None:
        """Take over what `state` gave."""
        n = len(self.start)
        self.start = saved.array("start", n, dtypes=["float64"])
        self.decay = saved.array("decay", n, dtypes=["float64"])
        saved.check(bool(np.all(self.decay > 0)), "decays must be positive")
        keys = unpacked_pairs(saved, "judged", str, int)
        x = saved.array("x", len(keys), dtypes=["float64"], empty=True)
        relevant = saved.array("relevant", len(keys), dtypes=["bool"], empty=True)
        right = len(set(keys)) == len(keys) <= self.most and all(0 <= i < n for _, i in keys)
        saved.check(right, "judgments must be about topics, each once")
        values = zip(x.tolist(), relevant.tolist(), strict=True)
        self.judged, self._posterior = dict(zip(keys, values, strict=True)), None


def posterior(n: int, topics: Any, shift: Any, relevant: Any) -> tuple[_Floats, _Floats]:
    """Mode and variance of a_t given judgments with log-odds a_t + shift, by Newton's method.

    The prior's precision is I/τ² − c 11ᵀ with c = σ²/(τ²(τ² + nσ²)); with the diagonal G⁻¹ of
    judgments and I/τ², the inverse Hessian is G + c g gᵀ/(1 − c Σg).
    """
    tight = 1 / _TOPIC**2
    c = _COLLECTION**2 * tight / (_TOPIC**2 + n * _COLLECTION**2)
    a = np.full(n, _MEAN)

    def value(at: _Floats) -> float:
        eta, off = at[topics] + shift, at - _MEAN
        fit = np.sum(relevant * eta - np.logaddexp(0, eta))
        return float(fit - (tight * off @ off - c * off.sum() ** 2) / 2)

    for _ in range(_STEPS):
        p, off = expit(a[topics] + shift), a - _MEAN
        slope = np.bincount(topics, relevant - p, n) - tight * off + c * off.sum()
        g = 1 / (np.bincount(topics, p * (1 - p), n) + tight)
        share = c / (1 - c * g.sum())
        step = g * slope + share * g * (g @ slope)
        # A whole step may go too far; the value is concave, so that a part of it does not.
        before = value(a)
        while value(a + step) < before and np.abs(step).max() >= _NEAR:
            step = step / 2
        a = a + step
        if np.abs(step).max() < _NEAR:
            break
    return a, g + share * g * g


def best_x(a: float, v: float, utility: float | str) -> float:
    """The threshold of the largest expected utility for a_t ~ N(a, v)."""
    # Beyond e⁶⁰ everything, or nothing, is relevant anyway.
    w = np.exp(np.clip(a + np.sqrt(v) * _NODES, -60, 60)) / _RATE
    noise, kept = np.exp(-_GRID)[:, None], np.exp(-_RATE * _GRID)[:, None]
    if utility == "detection":
        value = (_MISS * kept - _FALSE * TOP * noise) * np.ones_like(w)
    elif utility == "linear":
        value = np.maximum(_LEAST, kept - (_LOSS / _GAIN) * noise / w)
    else:
        weight = float(utility) ** 2
        value = (1 + weight) * kept * w / (noise + kept * w + weight * w)
    return float(_GRID[np.argmax(value @ _SHARES)])
