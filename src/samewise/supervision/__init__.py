"""Supervision: pairs, triplets and judged lists of rows, and how they are sampled."""

from samewise.supervision.containers import Pairs, Triplets
from samewise.supervision.judgements import Judgements

__all__ = ["Judgements", "Pairs", "Triplets"]
