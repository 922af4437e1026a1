"""How results are scored: pure functions of arrays."""

from __future__ import annotations

from samewise.scores.clustering import ClusteringScores, clustering_scores
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
from samewise.scores.pair_test import PairTest, pair_test
from samewise.scores.ranking import (
    RetrievalScores,
    average_precision,
    ndcg,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    retrieval_scores,
)
from samewise.scores.retrieval_depths import (
    average_precision_at_r,
    hit_rate_at_k,
    r_precision,
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
    equal_error_rate,
    fnmr_at_fmr,
    roc,
    verification_error,
)

__all__ = [
    "ClusteringScores",
    "FilteringScores",
    "FilteringTally",
    "Friedman",
    "Gain",
    "PairTest",
    "RetrievalScores",
    "Roc",
    "SequentialTest",
    "SignTest",
    "average_precision",
    "average_precision_at_r",
    "balanced_error",
    "choose_threshold",
    "clustering_scores",
    "detection_cost",
    "equal_error_rate",
    "f_measure",
    "filtering_evolution",
    "filtering_scores",
    "fnmr_at_fmr",
    "friedman",
    "hit_rate_at_k",
    "holm",
    "holm_pairwise",
    "linear_utility",
    "ndcg",
    "pair_test",
    "precision_at_k",
    "r_precision",
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
