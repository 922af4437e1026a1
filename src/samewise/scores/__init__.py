"""How results are scored: pure functions of arrays."""

from __future__ import annotations

from samewise.scores.pairs import (
    Roc,
    balanced_error,
    choose_threshold,
    roc,
    verification_error,
)
from samewise.scores.significance import Friedman, friedman, holm, holm_pairwise

__all__ = [
    "Friedman",
    "Roc",
    "balanced_error",
    "choose_threshold",
    "friedman",
    "holm",
    "holm_pairwise",
    "roc",
    "verification_error",
]
