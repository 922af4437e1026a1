"""What a learner is told: pairs and triplets of rows, and how they are drawn."""

from samewise.supervision.containers import Pairs, Triplets

__all__ = ["Pairs", "Triplets"]
