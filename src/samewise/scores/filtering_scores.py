"""Document filtering: what was retrieved for each topic against what is relevant to it.

For each topic the documents of a stream are counted:

                     relevant    not relevant
    retrieved           a             b
    not retrieved       c             d
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from samewise.exceptions import InvalidInputError

_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FilteringScores:
    """Scores of a filter.

    Attributes
    ----------
    n_documents : int
        Documents counted.
    micro : dict of str to float
        Of all topics' documents counted together.
    macro : dict of str to float
        Means over the topics that have a relevant document.
    topics : dict of str to array of shape (n_topics,)
        Of each topic; NaN where a topic has no relevant document.

    The names are "precision" P, "recall" R, "f", "utility" (raw), "scaled_utility",
    "detection_cost", "balanced_error", and "anticipation".
    """

    n_documents: int
    micro: dict[str, float]
    macro: dict[str, float]
    topics: dict[str, _Floats]


class FilteringTally:
    """Counts of a stream, block by block: scores at any moment, in memory for the topics only.

    Parameters
    ----------
    n_topics : int
        Topics of the stream.

    Examples
    --------
    >>> tally = FilteringTally(2)
    >>> tally.add([[True, False]], [[True, False]])
    >>> tally.add([[True, True]], [[False, True]])
    >>> tally.scores().micro["precision"]
    0.6666666666666666
    """

    def __init__(self, n_topics: int) -> None:
        self.n_documents = 0
        self.a, self.b, self.c, self.d = np.zeros((4, n_topics))
        # Relevant documents up to the first one that was retrieved, and that one.
        self._rank = np.zeros(n_topics)

    def add(self, retrieved: ArrayLike, relevant: ArrayLike) -> None:
        """Count some documents.

        Parameters
        ----------
        retrieved, relevant : bool arrays of shape (n_documents, n_topics)
            The next documents of the stream, in order.
        """
        got, wanted = np.asarray(retrieved), np.asarray(relevant)
        shape = (len(got), len(self.a))
        if {got.dtype, wanted.dtype} != {np.dtype(bool)} or not got.shape == wanted.shape == shape:
            raise InvalidInputError(
                "retrieved and relevant must be boolean matrices with a row for each document and "
                f"a column for each of {len(self.a)} topics. Got {got.dtype} of shape {got.shape} "
                f"and {wanted.dtype} of shape {wanted.shape}."
            )
        found = got & wanted
        new = (self._rank == 0) & found.any(axis=0)
        upto = (
            np.cumsum(wanted, axis=0)[found.argmax(axis=0), np.arange(shape[1])] if shape[0] else 0
        )
        self._rank = np.where(new, self.c + upto, self._rank)
        self.a += found.sum(axis=0)
        self.b += (got & ~wanted).sum(axis=0)
        self.c += (~got & wanted).sum(axis=0)
        self.d += (~got & ~wanted).sum(axis=0)
        self.n_documents += shape[0]

    def scores(self, **options: Any) -> FilteringScores:
        """The scores so far.

        Parameters
        ----------
        **options : float
            Those of `filtering_scores`.

        Returns
        -------
        FilteringScores
            The scores of all documents counted so far.
        """
        counts = self.a, self.b, self.c, self.d
        known = self.a + self.c > 0
        rank = np.where(self._rank > 0, self._rank, np.inf)
        each = {**_scores(counts, **options), "anticipation": 1 / rank}
        topics = {name: np.where(known, values, np.nan) for name, values in each.items()}
        macro = {
            name: float(np.mean(values[known])) if known.any() else np.nan
            for name, values in topics.items()
        }
        together = _scores([np.array([counted.sum()]) for counted in counts], **options)
        micro = {name: float(values[0]) for name, values in together.items()}
        return FilteringScores(self.n_documents, micro, macro, topics)


def filtering_scores(
    retrieved: ArrayLike,
    relevant: ArrayLike,
    *,
    alpha: float = 0.5,
    w1: float = 1.0,
    w2: float = 0.5,
    least: float = -0.5,
    c_miss: float = 10.0,
    c_false: float = 0.1,
    p_topic: float = 0.001,
) -> FilteringScores:
    """Precision, recall, F, utility, detection cost, balanced error and anticipation.

    P = a/(a + b), 0 if nothing was retrieved; R = a/(a + c). The balanced error is the mean of
    c/(a + c) and b/(b + d). The anticipation of a topic is 1/r if the r-th of its relevant
    documents is the first that was retrieved, and 0 if none was; it has a macro value only.

    Parameters
    ----------
    retrieved, relevant : bool arrays of shape (n_documents, n_topics)
        The documents in the order of the stream.
    alpha : float, default=0.5
        The weight of precision against recall, see `f_measure`.
    w1 : float, default=1.0
        What a relevant document is worth, see `linear_utility`.
    w2 : float, default=0.5
        What a document that is not relevant costs, see `linear_utility`.
    least : float, default=-0.5
        The least share of the largest utility that counts, see `scaled_utility`.
    c_miss : float, default=10.0
        The cost of missing a relevant document, see `detection_cost`.
    c_false : float, default=0.1
        The cost of retrieving a document that is not relevant, see `detection_cost`.
    p_topic : float, default=0.001
        The assumed share of relevant documents, see `detection_cost`.

    Returns
    -------
    FilteringScores
        The scores over all decisions, their means over topics, and those of each topic.

    References
    ----------
    A. M. Qamar: Generalized cosine and similarity metrics. Thesis, Grenoble 2010, §3.4.

    Examples
    --------
    >>> from samewise.scores import filtering_scores
    >>> retrieved = [[True], [True], [False], [False]]
    >>> relevant = [[False], [True], [True], [False]]
    >>> scores = filtering_scores(retrieved, relevant).macro
    >>> scores["precision"], scores["recall"], scores["anticipation"]
    (0.5, 0.5, 1.0)
    """
    tally = _tally_of(retrieved)
    tally.add(retrieved, relevant)
    options = {"alpha": alpha, "w1": w1, "w2": w2, "least": least}
    return tally.scores(**options, c_miss=c_miss, c_false=c_false, p_topic=p_topic)


def filtering_evolution(
    retrieved: ArrayLike,
    relevant: ArrayLike,
    every: int,
    *,
    cumulative: bool = True,
    **options: Any,
) -> list[FilteringScores]:
    """The scores after every so many documents, and after the last.

    Parameters
    ----------
    retrieved, relevant : bool arrays of shape (n_documents, n_topics)
        The documents in the order of the stream.
    every : int
        Documents between two scores.
    cumulative : bool, default=True
        Whether the scores are those of all documents so far, or only of the documents since the
        scores before.
    **options : float
        Those of `filtering_scores`.

    Returns
    -------
    list of FilteringScores
        In the order of the stream.

    Examples
    --------
    >>> from samewise.scores import filtering_evolution
    >>> retrieved, relevant = [[True], [True], [True]], [[False], [True], [True]]
    >>> for scores in filtering_evolution(retrieved, relevant, every=2):
    ...     print(scores.n_documents, round(scores.micro["precision"], 3))
    2 0.5
    3 0.667
    """
    if every < 1:
        raise InvalidInputError(f"every must be at least 1. Got {every} instead.")
    tally = _tally_of(retrieved)
    got, wanted = np.asarray(retrieved), np.asarray(relevant)
    found = []
    for start in range(0, len(got), every):
        tally.add(got[start : start + every], wanted[start : start + every])
        found.append(tally.scores(**options))
        if not cumulative:
            tally = _tally_of(retrieved)
    return found


def f_measure(precision: ArrayLike, recall: ArrayLike, alpha: float = 0.5) -> _Floats:
    """F_α = 1/(α/P + (1 − α)/R), 0 where P or R is.

    Parameters
    ----------
    precision, recall : array-like
        P and R.
    alpha : float, default=0.5
        The weight of precision against recall, from 0 to 1.

    Returns
    -------
    array
        F of each pair.

    Examples
    --------
    >>> from samewise.scores import f_measure
    >>> f_measure([0.5, 0.0], [1.0, 1.0])
    array([0.66666667, 0.        ])
    """
    if not 0 <= alpha <= 1:
        raise InvalidInputError(f"alpha must be in [0, 1]. Got {alpha} instead.")
    P, R = np.asarray(precision, dtype=np.float64), np.asarray(recall, dtype=np.float64)
    # PR/(αR + (1 − α)P) is the same, and divides by zero only where F is 0.
    return _ratio(P * R, alpha * R + (1 - alpha) * P)


def linear_utility(a: ArrayLike, b: ArrayLike, w1: float = 1.0, w2: float = 0.5) -> _Floats:
    """Linear utility, u = w₁a − w₂b.

    Parameters
    ----------
    a, b : array-like
        Retrieved documents that are relevant, and that are not.
    w1 : float, default=1.0
        What a relevant document is worth.
    w2 : float, default=0.5
        What a document that is not relevant costs.

    Returns
    -------
    array
        The utility of each topic.

    Examples
    --------
    >>> from samewise.scores import linear_utility
    >>> linear_utility([3], [2])
    array([2.])
    """
    return w1 * np.asarray(a, dtype=np.float64) - w2 * np.asarray(b, dtype=np.float64)


def scaled_utility(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, w1: float = 1.0, w2: float = 0.5, least: float = -0.5
) -> _Floats:
    """(max(u/u_max, u_min) − u_min)/(1 − u_min) with u_max = w₁(a + c): from 0 to 1.

    A filter that retrieves nothing has −u_min/(1 − u_min).

    Parameters
    ----------
    a, b : array-like
        Retrieved documents that are relevant, and that are not.
    c : array-like
        Relevant documents that were not retrieved.
    w1 : float, default=1.0
        What a relevant document is worth.
    w2 : float, default=0.5
        What a document that is not relevant costs.
    least : float, default=-0.5
        u_min, below which a user would not look any more.

    Returns
    -------
    array
        The scaled utility of each topic; NaN where a + c = 0.

    Examples
    --------
    >>> from samewise.scores import scaled_utility
    >>> scaled_utility([4, 0, 0], [0, 0, 100], [0, 4, 4])
    array([1.        , 0.33333333, 0.        ])
    """
    if not least < 1 or not w1 > 0:
        raise InvalidInputError(f"least must be below 1, and w1 positive. Got {least} and {w1}.")
    top = w1 * (np.asarray(a, dtype=np.float64) + np.asarray(c, dtype=np.float64))
    part = np.where(top > 0, _ratio(linear_utility(a, b, w1, w2), top), np.nan)
    return (np.maximum(part, least) - least) / (1 - least)


def detection_cost(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    d: ArrayLike,
    c_miss: float = 10.0,
    c_false: float = 0.1,
    p_topic: float = 0.001,
) -> _Floats:
    """Detection cost, c_miss P_miss P_topic + c_false P_false (1 − P_topic).

    With P_miss = c/(a + c) and P_false = b/(b + d). The thesis prints × between the two terms;
    the cost is their sum.

    Parameters
    ----------
    a, b : array-like
        Retrieved documents that are relevant, and that are not.
    c, d : array-like
        Documents that were not retrieved, relevant and not.
    c_miss : float, default=10.0
        The cost of missing a relevant document.
    c_false : float, default=0.1
        The cost of retrieving a document that is not relevant.
    p_topic : float, default=0.001
        The assumed share of relevant documents.

    Returns
    -------
    array
        The cost of each topic.

    Examples
    --------
    >>> from samewise.scores import detection_cost
    >>> detection_cost([0], [10], [5], [90])
    array([0.01999])
    """
    a, b, c, d = (np.asarray(counted, dtype=np.float64) for counted in (a, b, c, d))
    miss, false = _ratio(c, a + c), _ratio(b, b + d)
    return c_miss * miss * p_topic + c_false * false * (1 - p_topic)


def _scores(
    counts: Sequence[_Floats],
    alpha: float = 0.5,
    w1: float = 1.0,
    w2: float = 0.5,
    least: float = -0.5,
    **costs: float,
) -> dict[str, _Floats]:
    a, b, c, d = counts
    precision, recall = _ratio(a, a + b), _ratio(a, a + c)
    return {
        "precision": precision,
        "recall": recall,
        "f": f_measure(precision, recall, alpha),
        "utility": linear_utility(a, b, w1, w2),
        "scaled_utility": scaled_utility(a, b, c, w1, w2, least),
        "detection_cost": detection_cost(a, b, c, d, **costs),
        "balanced_error": (_ratio(c, a + c) + _ratio(b, b + d)) / 2,
    }


def _ratio(part: _Floats, whole: _Floats) -> _Floats:
    """part/whole, 0 where the whole is."""
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole != 0)


def _tally_of(retrieved: ArrayLike) -> FilteringTally:
    shape = np.shape(retrieved)
    if len(shape) != 2:
        raise InvalidInputError(
            "retrieved must be a boolean matrix with a row for each document and a column for each "
            f"topic. Got shape {shape}."
        )
    return FilteringTally(shape[1])
