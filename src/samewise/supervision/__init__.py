"""Supervision: pairs, triplets, quadruplets and judged lists of rows, and how they are sampled."""

from samewise.supervision.judgements import Judgements
from samewise.supervision.pairs import Pairs
from samewise.supervision.quadruplets import Quadruplets
from samewise.supervision.triplets import Triplets

__all__ = ["Judgements", "Pairs", "Quadruplets", "Triplets"]
