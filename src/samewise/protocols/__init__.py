"""How learners are tuned and judged."""

from samewise.protocols.double_cv import DoubleCV, double_cross_validation
from samewise.protocols.tune import TunedC, neighbor_accuracies, tune_C

__all__ = [
    "DoubleCV",
    "TunedC",
    "double_cross_validation",
    "neighbor_accuracies",
    "tune_C",
]
