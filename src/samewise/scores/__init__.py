"""How results are scored: pure functions of arrays."""

from __future__ import annotations

from samewise.scores.pairs import (
    Roc,
    balanced_error,
    choose_threshold,
    roc,
    verification_error,
)
from samewise.scores.ranking import (
    RetrievalScores,
    average_precision,
    ndcg,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    retrieval_scores,
)
from samewise.scores.significance import Friedman, friedman, holm, holm_pairwise

__all__ = [
    "Friedman",
    "RetrievalScores",
    "Roc",
    "average_precision",
    "balanced_error",
    "choose_threshold",
    "friedman",
    "holm",
    "holm_pairwise",
    "ndcg",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_scores",
    "roc",
    "verification_error",
]
