"""How a filter compares: any form as a dot product of rows, and a learner that moves with feedback.

A topic, and a document that a topic holds, is a query; the incoming document is an item. For the
plain cosine both are the unit vectors themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from samewise._typing import Array, Matrix
from samewise.exceptions import InvalidInputError, TooLargeError
from samewise.filtering.sparse_store import Rows, as_rows
from samewise.forms import Bilinear, Form, GeneralizedCosine, KernelMahalanobis, LowRankBilinear
from samewise.forms.bilinear import NormalizedBilinear
from samewise.forms.distance_form import EuclideanForm
from samewise.kernels.pairwise import squared_norms, times
from samewise.learners.online.online_learner import OnlineLearner
from samewise.learners.online.pair_learner import PairLearner
from samewise.learners.online.triplet_learner import TripletLearner
from samewise.supervision import Pairs, Triplets

# What rounding may add to a value of at most 1.
_SLACK = 1e-6
# A learner's matrix has the square of this many entries.
_MOST_FEATURES = 16_384

_Map = Callable[[Rows], Rows]


@dataclass(frozen=True)
class DocumentSimilarity:
    """Maps to rows whose dot product is the similarity, and a bound that no similarity exceeds."""

    queries: _Map
    items: _Map
    most: float
    plain: bool = False
    """Whether it is the cosine of the vectors themselves."""


def compare_by(metric: Any) -> DocumentSimilarity:
    """The similarity of a form, or of what a learner has learned so far.

    Distances become 1 − D/2 with the squared distance D, which for the Euclidean distance of unit
    vectors is their cosine. None, and a learner that has learned nothing yet, is the cosine.
    """
    if isinstance(metric, OnlineLearner):
        metric = metric.metric_ if metric.__sklearn_is_fitted__() else None
    match metric:
        case None:
            return DocumentSimilarity(_same, _same, 1 + _SLACK, plain=True)
        case EuclideanForm():
            embed = _one_by_one(metric) if isinstance(metric, KernelMahalanobis) else metric.embed
            queries, items = _distance_maps(embed)
            return DocumentSimilarity(queries, items, 1 + _SLACK)
        case GeneralizedCosine():
            # Not form.embed: a document that A maps to zero is near to nothing, and no error.
            L = metric.components.T.astype(np.float64)
            both = lambda rows: as_rows(times(rows.csr(), L)).unit()  # noqa: E731
            return DocumentSimilarity(both, both, 1 + _SLACK)
        case NormalizedBilinear() if metric.normalizer not in (None, "cosine"):
            raise InvalidInputError(
                "A filter compares unit vectors by NormalizedBilinear with the normalizer 'cosine' "
                f"or None. Got {metric.normalizer!r}."
            )
        case Bilinear():
            W = metric.matrix.astype(np.float64)
            return DocumentSimilarity(lambda rows: as_rows(times(rows.csr(), W)), _same, np.inf)
        case LowRankBilinear():
            return DocumentSimilarity(
                lambda rows: as_rows(metric.embed_query(rows.csr())),
                lambda rows: as_rows(metric.embed_item(rows.csr())),
                np.inf,
            )
    raise InvalidInputError(
        f"A filter cannot compare by a {type(metric).__name__}; give a form of samewise.forms."
    )


def check_metric(metric: Any, n_features: int) -> None:
    """Refuse a metric that does not fit the vectors, before anything is compared."""
    if metric is None:
        return
    if isinstance(metric, Form):
        sides = {metric.n_features_in, metric.n_features_items}
        if not isinstance(metric, KernelMahalanobis) and sides != {n_features}:
            raise InvalidInputError(
                f"The metric compares vectors of {sorted(sides)[0]} features, but topics and "
                f"documents have {n_features}."
            )
        compare_by(metric)
        return
    if not isinstance(metric, PairLearner | TripletLearner):
        name = type(metric).__name__
        remedy = (
            f" {name} learns from labeled examples as a whole, not from single answers: fit it to "
            "judged documents first, and give its metric_."
            if hasattr(metric, "fit")
            else ""
        )
        raise InvalidInputError(
            "The 'metric' parameter must be None, a form, or an online learner of pairs or "
            f"triplets. Got {name} instead.{remedy}"
        )
    if n_features > _MOST_FEATURES:
        raise TooLargeError(
            f"A learner keeps a matrix of {n_features} × {n_features} numbers; use at most "
            f"{_MOST_FEATURES} features, as with TextVectors(n_features=1024)."
        )
    if metric.__sklearn_is_fitted__() and metric.n_features_in_ != n_features:
        raise InvalidInputError(
            f"The learner was fitted on {metric.n_features_in_} features, but topics and documents "
            f"have {n_features}."
        )


def teach(
    learner: Any, topic: Rows, document: Rows, relevant: bool, nearest: Rows | None, other: Rows
) -> bool:
    """Let a learner learn from one judgment; whether it could.

    A learner of pairs is shown that topic and document, and the document and the nearest one that
    the topic holds, are the same or not. A learner of triplets is shown that of two documents, this
    one and the last one judged the other way, the relevant one is the nearer to the topic. A
    document without any term teaches nothing.
    """
    if not len(document.indices):
        return False
    if isinstance(learner, PairLearner):
        members = [document, topic]
        if nearest is not None and len(nearest.indices):
            members.append(nearest)
        n = len(members) - 1
        X = members[0].joined(*members[1:]).csr()
        learner.partial_fit(Pairs(X, [0] * n, range(1, n + 1), [1 if relevant else -1] * n))
        return True
    if not len(other.indices):
        return False
    pair = (document, other) if relevant else (other, document)
    learner.partial_fit(Triplets(topic.joined(*pair).csr(), [0], [1], [2]))
    return True


def _same(rows: Rows) -> Rows:
    return rows


def _distance_maps(embed: Callable[[Matrix], Array]) -> tuple[_Map, _Map]:
    # 1 − ‖e − f‖²/2 = e·f − ‖e‖²/2 + (1 − ‖f‖²/2): two more coordinates make it a dot product.
    def ends(rows: Rows, query: bool) -> Rows:
        E = embed(rows.csr())
        half, one = squared_norms(E)[:, None] / 2, np.ones((len(E), 1))
        return as_rows(np.hstack([E, -half, one] if query else [E, one, 1 - half]))

    return lambda rows: ends(rows, True), lambda rows: ends(rows, False)


def _one_by_one(form: KernelMahalanobis) -> Callable[[Matrix], Array]:
    # Kernels of several rows at once are BLAS products, whose last bits depend on their number.
    def embed(X: Matrix) -> Array:
        rows = [form.embed(X[[i]]) for i in range(X.shape[0])]
        return np.concatenate(rows) if rows else form.embed(X)

    return embed
