"""Decisions from a metric: which class, and whether two are the same."""

from __future__ import annotations

from samewise.decide.classifier import KNNClassifier
from samewise.decide.guarded import Guarded
from samewise.decide.per_class import PerClassClassifier
from samewise.decide.regressor import KNNRegressor
from samewise.decide.rules import sum_closeness, vote
from samewise.decide.verify import Verifier

__all__ = [
    "Guarded",
    "KNNClassifier",
    "KNNRegressor",
    "PerClassClassifier",
    "Verifier",
    "sum_closeness",
    "vote",
]
