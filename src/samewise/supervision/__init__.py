"""Supervision: pairs, triplets, quadruplets and judged lists of rows, and how they are sampled."""

from samewise.supervision.containers import Pairs, Triplets
from samewise.supervision.judgements import Judgements
from samewise.supervision.quadruplets import Quadruplets

__all__ = ["Judgements", "Pairs", "Quadruplets", "Triplets"]
