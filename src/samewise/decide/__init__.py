"""Decisions from a metric: which class, and whether two are the same."""

from __future__ import annotations

from samewise.decide.classifier import KNNClassifier
from samewise.decide.rules import sum_closeness, vote
from samewise.decide.verify import Verifier

__all__ = ["KNNClassifier", "Verifier", "sum_closeness", "vote"]
