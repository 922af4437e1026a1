"""How results are scored: pure functions of arrays."""

from __future__ import annotations

from samewise.scores.filtering_scores import (
    FilteringScores,
    FilteringTally,
    detection_cost,
    f_measure,
    filtering_evolution,
    filtering_scores,
    linear_utility,
    scaled_utility,
)
from samewise.scores.gains import Gain
from samewise.scores.ranking import (
    RetrievalScores,
    average_precision,
    ndcg,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    retrieval_scores,
)
from samewise.scores.sequential import SequentialTest, sequential_test
from samewise.scores.significance import (
    Friedman,
    SignTest,
    friedman,
    holm,
    holm_pairwise,
    s_test,
    verdict,
)
from samewise.scores.verification import (
    Roc,
    balanced_error,
    choose_threshold,
    roc,
    verification_error,
)

__all__ = [
    "FilteringScores",
    "FilteringTally",
    "Friedman",
    "Gain",
    "RetrievalScores",
    "Roc",
    "SequentialTest",
    "SignTest",
    "average_precision",
    "balanced_error",
    "choose_threshold",
    "detection_cost",
    "f_measure",
    "filtering_evolution",
    "filtering_scores",
    "friedman",
    "holm",
    "holm_pairwise",
    "linear_utility",
    "ndcg",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_scores",
    "roc",
    "s_test",
    "scaled_utility",
    "sequential_test",
    "verdict",
    "verification_error",
]
