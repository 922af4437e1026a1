"""Learners of `compare` without a process of their own: quick, and seen by patches."""

from __future__ import annotations

from samewise.protocols import trials


def learn_here(*work, limits):
    return trials.try_learner(*work)
