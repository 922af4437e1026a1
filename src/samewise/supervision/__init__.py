"""Supervision: pairs and triplets of rows, and how they are sampled."""

from samewise.supervision.containers import Pairs, Triplets

__all__ = ["Pairs", "Triplets"]
