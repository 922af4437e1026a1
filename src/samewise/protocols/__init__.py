"""How learners are tuned and judged."""

from samewise.protocols.tune import TunedC, neighbor_accuracies, tune_C

__all__ = ["TunedC", "neighbor_accuracies", "tune_C"]
